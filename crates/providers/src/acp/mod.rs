//! Command-line agents that support the Agent Client Protocol, version 1, such as Gemini CLI.
//!
//! `preset` has the command line and the peculiarities of each known agent. `turn` runs one turn: it gets a running
//! `process`, opens a `session`, and runs an `exchange` that ends with the response to the prompt. `parse`,
//! `tool_calls` and `ending` convert the agent's messages to events; they are pure. `steering` sends messages for a prompt in
//! progress. Start with `turn`.

#[cfg(test)]
mod crash_tests;
mod ending;
mod exchange;
mod folder;
mod gemini;
#[cfg(test)]
mod host_tools_tests;
mod parse;
mod preset;
mod process;
mod session;
mod steering;
#[cfg(test)]
mod steering_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tool_calls;
#[cfg(test)]
mod transcripts;
mod turn;

pub use preset::Preset;

use crate::{
    AgentWorkspace, Capabilities, CloseFuture, InspectFuture, Inspection, ModelApiUse, Provider, TurnChannel,
    TurnFuture, TurnRequest,
    agent_tokens::HostToolsAccess,
    crash_breaker::CrashBreaker,
    pool::{ConversationKey, PoolLimits, ProcessPool},
    program::AgentProgram,
};
use domain::provider_settings::WorkspaceProviders;
use process::AcpLauncher;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinSet;
use turn::AcpShared;

const INSPECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Processes started before they are needed.
const SPARES: usize = 1;

#[derive(Debug)]
pub struct AcpConfig {
    pub preset: Preset,
    /// Its `command` is used; the preset only has a default.
    pub program: AgentProgram,
    /// The maximum number of processes.
    pub pool: usize,
    /// How long an idle process is kept for the next turn of its conversation.
    pub idle: Duration,
    /// The endpoint of the host tools.
    pub host_tools_endpoint: HostToolsAccess,
}

#[derive(Debug)]
pub struct AcpProvider {
    shared: Arc<AcpShared>,
    preparing: Mutex<JoinSet<()>>,
}

impl AcpProvider {
    pub fn new(config: AcpConfig) -> Self {
        let AcpConfig { preset, program, pool, idle, host_tools_endpoint: endpoint } = config;
        let pool = ProcessPool::new(PoolLimits { slots: pool, idle_timeout: idle, spares: SPARES });
        let crash_breaker = CrashBreaker::new(&preset.name);
        let launcher =
            AcpLauncher { preset, program, host_tools_endpoint: endpoint, can_steer: AtomicBool::new(false) };
        let shared = AcpShared { launcher, pool, crash_breaker };
        Self { shared: Arc::new(shared), preparing: Mutex::default() }
    }
}

impl Provider for AcpProvider {
    fn name(&self) -> &str {
        &self.shared.launcher.preset.name
    }

    fn label(&self) -> &str {
        self.shared.launcher.preset.label()
    }

    fn lends_login(&self, settings: &WorkspaceProviders) -> bool {
        let AcpLauncher { preset, program, .. } = &self.shared.launcher;
        let program = program.without_own_access(&preset.wires(), settings);
        program.lends_file(preset.login_files) || program.lends_variable(preset.allowed_variables)
    }

    fn model_apis(&self) -> Vec<ModelApiUse> {
        let AcpLauncher { preset, program, .. } = &self.shared.launcher;
        program.model_apis(&preset.wires())
    }

    fn capabilities(&self) -> Capabilities {
        let AcpLauncher { preset, can_steer, .. } = &self.shared.launcher;
        Capabilities {
            resume: true,
            steer: can_steer.load(Ordering::Relaxed),
            approvals: true,
            thinking: preset.thinking,
            mcp: true,
            skills: preset.skills.is_some(),
        }
    }

    fn runs_program(&self) -> bool {
        true
    }

    fn inspect(&self) -> InspectFuture {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let launcher = &shared.launcher;
            let Some(program) = launcher.program.locate() else {
                return Inspection::Missing { advice: launcher.install_advice() };
            };
            // Not every agent supports `--version`; some start to serve instead.
            let version = tokio::time::timeout(INSPECT_TIMEOUT, process::version(&launcher.program, &program)).await;
            Inspection::Ready { version: version.ok().flatten(), program: Some(program) }
        })
    }

    fn prepare(&self, workspace: AgentWorkspace) {
        if self.shared.crash_breaker.check(&workspace.agent.id).is_err() {
            return;
        }
        let Some(slot) = self.shared.pool.acquire_spare(ConversationKey::of(&workspace)) else { return };
        let shared = Arc::clone(&self.shared);
        let mut preparing = self.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        while preparing.try_join_next().is_some() {}
        preparing.spawn(async move {
            let error = match shared.launcher.start(&workspace).await {
                Ok(mut agent) => match agent.initialize().await {
                    Ok(()) => return slot.put_back(agent).await,
                    Err(error) => shared.launcher.open_failed(agent, &error).await.0,
                },
                Err(error) => error,
            };
            shared.crash_breaker.record_failure(&workspace.agent.id, &error);
            // A turn will report the error.
            tracing::debug!(error = error.message, "could not start a spare ACP agent");
        });
    }

    fn close(&self) -> CloseFuture {
        let shared = Arc::clone(&self.shared);
        let mut preparing = std::mem::take(&mut *self.preparing.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(async move {
            preparing.shutdown().await;
            shared.pool.close().await;
        })
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        Box::pin(turn::turn(Arc::clone(&self.shared), request, channel))
    }
}
