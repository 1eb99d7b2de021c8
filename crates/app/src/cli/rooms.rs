//! `greenroom rooms`: lists the rooms.

use super::{
    Exit, ServerArgs,
    client::{
        ApiClient,
        responses::{AgentListResponse, RoomListResponse},
    },
    find::short_id,
};
use crate::terminal::table;
use clap::Args;
use serde_json::Value;

#[derive(Args, Debug)]
pub struct RoomsArgs {
    /// Show at most so many, the most recent first.
    #[arg(long, value_name = "COUNT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print them as JSON, one object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ServerArgs,
}

pub async fn run(arguments: &RoomsArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    let limit = arguments.limit.to_string();
    if arguments.json {
        let list: Value = client.get("/api/rooms", &[("limit", &limit)]).await?;
        table::print_json(&list["rooms"])?;
        return Ok(Exit::Success);
    }
    let RoomListResponse { rooms } = client.get("/api/rooms", &[("limit", &limit)]).await?;
    let names = client.get::<AgentListResponse>("/api/agents", &[]).await?.names();
    let rows: Vec<Vec<String>> = rooms
        .into_iter()
        .map(|room| {
            // A deleted agent may still be listed in a room.
            let agents = room.agents.iter().map(|id| names.get(id).cloned().unwrap_or_else(|| short_id(id.0)));
            let agents = agents.collect::<Vec<_>>().join(", ");
            vec![short_id(room.id.0), room.name, agents, table::minute(&room.updated_at)]
        })
        .collect();
    table::print_standard(&["id", "name", "agents", "updated"], &rows)?;
    Ok(Exit::Success)
}
