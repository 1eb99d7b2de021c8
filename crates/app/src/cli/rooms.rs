//! `greenroom rooms`: lists the rooms.

use super::{
    Exit, ServerArgs,
    client::{
        ApiClient,
        responses::{AgentListResponse, RoomListResponse},
    },
};
use crate::terminal::table;
use std::io;

pub async fn run(connection: &ServerArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(connection)?;
    let RoomListResponse { rooms } = client.get("/api/rooms", &[]).await?;
    let names = client.get::<AgentListResponse>("/api/agents", &[]).await?.names();
    let rows: Vec<Vec<String>> = rooms
        .into_iter()
        .map(|room| {
            // A deleted agent may still be listed in a room; show its id.
            let agents = room.agents.iter().map(|id| names.get(id).cloned().unwrap_or_else(|| id.to_string()));
            let agents = agents.collect::<Vec<_>>().join(", ");
            vec![room.id.to_string(), room.name, agents, room.head.to_string(), room.updated_at]
        })
        .collect();
    table::print(&mut io::stdout().lock(), &["id", "name", "agents", "head", "updated"], &rows)?;
    Ok(Exit::Success)
}
