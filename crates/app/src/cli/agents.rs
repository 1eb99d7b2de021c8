//! `greenroom agents`: lists the agents.

use super::{
    Exit, ServerArgs,
    client::{ApiClient, responses::AgentListResponse},
};
use crate::terminal::table;
use std::io;

pub async fn run(connection: &ServerArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(connection)?;
    let AgentListResponse { agents } = client.get("/api/agents", &[]).await?;
    let rows: Vec<Vec<String>> = agents
        .into_iter()
        .map(|agent| vec![agent.id.to_string(), agent.name, agent.provider, agent.model.unwrap_or_default()])
        .collect();
    table::print(&mut io::stdout().lock(), &["id", "name", "provider", "model"], &rows)?;
    Ok(Exit::Success)
}
