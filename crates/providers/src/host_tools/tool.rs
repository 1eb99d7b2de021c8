//! The trait that a host tool implements.

use super::{HostCall, HostToolAudience, HostToolDefinition};
use crate::{AgentWorkspace, AttachedFile};
use std::{future::Future, pin::Pin};

pub type HostToolFuture<'a> = Pin<Box<dyn Future<Output = HostToolOutcome> + Send + 'a>>;

pub trait HostTool: Send + Sync + 'static {
    /// Describes the tool. Always the same.
    fn definition(&self) -> HostToolDefinition;

    /// Describes the tool to one agent; `None` if it is of no use to this agent. Programs read it once, when they start.
    fn definition_for(&self, _agent: &HostToolAgent) -> Option<HostToolDefinition> {
        Some(self.definition())
    }

    /// Runs a call. A wrong argument is an outcome too, with a text that helps the model to correct it. The future is
    /// dropped soon after [`HostCall::cancel`] is canceled, and at the timeout; it must not block its thread.
    fn call(&self, call: HostCall) -> HostToolFuture<'_>;
}

/// The agent that calls a tool.
#[derive(Clone, Debug)]
pub struct HostToolAgent {
    pub workspace: AgentWorkspace,
    /// Files of the conversation; none for an agent whose program reads them in its workspace.
    pub attachments: Vec<AttachedFile>,
    is_on_model_api: bool,
}

impl HostToolAgent {
    pub fn with_program(workspace: AgentWorkspace) -> Self {
        Self { workspace, attachments: Vec::new(), is_on_model_api: false }
    }

    pub fn on_model_api(workspace: AgentWorkspace) -> Self {
        Self { workspace, attachments: Vec::new(), is_on_model_api: true }
    }

    #[must_use]
    pub fn with_attachments(self, attachments: Vec<AttachedFile>) -> Self {
        Self { attachments, ..self }
    }

    pub(super) fn is_in(&self, audience: HostToolAudience) -> bool {
        match audience {
            HostToolAudience::EveryAgent => true,
            HostToolAudience::InCompany => self.workspace.has_company,
            HostToolAudience::InProject => self.workspace.space.key.project_id().is_some(),
            HostToolAudience::ModelApiAgents => self.is_on_model_api,
        }
    }
}

/// The result of a call, for the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostToolOutcome {
    pub text: String,
    pub is_error: bool,
}

impl HostToolOutcome {
    pub fn success(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}
