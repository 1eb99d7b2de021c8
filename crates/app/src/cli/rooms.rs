//! `greenroom rooms`: which conversations there are.

use super::{
    Connection, Exit,
    client::{
        Client,
        views::{Agents, Rooms},
    },
};
use crate::terminal::table;
use std::io;

pub async fn run(connection: &Connection) -> anyhow::Result<Exit> {
    let client = Client::new(connection)?;
    let Rooms { rooms } = client.get("/api/rooms", &[]).await?;
    let names = client.get::<Agents>("/api/agents", &[]).await?.names();
    let rows: Vec<Vec<String>> = rooms
        .into_iter()
        .map(|room| {
            // An agent that has been deleted since is still in the room's past.
            let agents = room.agents.iter().map(|id| names.get(id).cloned().unwrap_or_else(|| id.to_string()));
            let agents = agents.collect::<Vec<_>>().join(", ");
            vec![room.id.to_string(), room.name, agents, room.head.to_string(), room.updated_at]
        })
        .collect();
    table::print(&mut io::stdout().lock(), &["id", "name", "agents", "head", "updated"], &rows)?;
    Ok(Exit::Success)
}
