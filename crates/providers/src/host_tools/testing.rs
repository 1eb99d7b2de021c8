//! Shared test helpers: an agent workspace without a provider.

use super::{HostTool, HostTools};
use crate::AgentWorkspace;
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
        servers_sandbox: None,
        skills: Vec::new(),
        mcp_servers: Vec::new(),
        host_tools: HostTools::new(tools).unwrap(),
        provider_settings: Default::default(),
        has_company: false,
        depth: 0,
    }
}
