//! `greenroom agents`: who can be asked.

use super::{
    Connection, Exit,
    client::{Client, views::Agents},
};
use crate::terminal::table;
use std::io;

pub async fn run(connection: &Connection) -> anyhow::Result<Exit> {
    let client = Client::new(connection)?;
    let Agents { agents } = client.get("/api/agents", &[]).await?;
    let rows: Vec<Vec<String>> = agents
        .into_iter()
        .map(|agent| vec![agent.id.to_string(), agent.name, agent.provider, agent.model.unwrap_or_default()])
        .collect();
    table::print(&mut io::stdout().lock(), &["id", "name", "provider", "model"], &rows)?;
    Ok(Exit::Success)
}
