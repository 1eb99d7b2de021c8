//! Shared test helpers: an agent workspace without a provider, and notes.

use super::{HostTool, HostTools};
use crate::{
    AgentWorkspace,
    memory::{Note, NoteFuture, NoteStore},
};
use domain::{
    agent::{Agent, AgentSpec},
    ids::{AgentId, RoomId},
    name::Name,
    owner::Owner,
    time::Timestamp,
};
use std::sync::Arc;

pub fn workspace_with(tools: impl IntoIterator<Item = Arc<dyn HostTool>>) -> AgentWorkspace {
    let (spec, created) = (AgentSpec::new(Name::parse("Ann").unwrap(), "p"), Timestamp::from_millis(0));
    AgentWorkspace {
        owner: Owner::local(),
        room_id: RoomId::generate(),
        agent: Agent { id: AgentId::generate(), spec, created_at: created, updated_at: created },
        folder: ".".into(),
        space: std::sync::Arc::new(domain::project::ProjectSpace::scratch(
            domain::owner::Owner::local(),
            RoomId::generate(),
            ".".into(),
        )),
        home: ".".into(),
        sandbox: None,
        skills: Vec::new(),
        mcp_servers: Vec::new(),
        host_tools: HostTools::new(tools).unwrap(),
        has_company: false,
        depth: 0,
    }
}

/// Notes that cannot be saved, and one that is always found.
pub struct OneNote;

impl NoteStore for OneNote {
    fn save(&self, _: String) -> NoteFuture<()> {
        Box::pin(async { Err("full".into()) })
    }

    fn recall(&self, about: String) -> NoteFuture<Vec<Note>> {
        Box::pin(async move { Ok(vec![Note { saved_at: "today".into(), text: about }]) })
    }
}
