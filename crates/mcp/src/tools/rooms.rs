//! The tools for rooms: list rooms, read a room, post a message.

use super::{
    arguments::{McpToolError, check_range, find_agent, parse_id},
    definitions::MAX_MESSAGES,
};
use crate::{handler::McpRequestContext, resources};
use domain::{ids::RoomId, room::WhenBusy};
use engine::commands::NewPost;
use serde::Deserialize;
use serde_json::{Value, json};

const LIST_ROOMS_HINT: &str = "list_rooms shows the available rooms";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListRoomsArguments {
    #[serde(default)]
    limit: Option<u64>,
}

pub async fn list(ctx: &McpRequestContext<'_>, args: ListRoomsArguments) -> Result<Value, McpToolError> {
    let limit = check_range("limit", args.limit.unwrap_or(50), 1..=MAX_MESSAGES)?;
    let rooms = ctx.shared.engine.queries().rooms(&ctx.actor.workspace, limit as u32).await?;
    let rooms: Vec<Value> = rooms
        .iter()
        .map(|summary| {
            let room = &summary.room;
            json!({"id": room.id, "name": room.name, "head": room.head, "busy": summary.busy, "waiting": summary.waiting,
                   "agents": room.agents, "uri": resources::room_uri(room.id)})
        })
        .collect();
    Ok(json!({"rooms": rooms}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadRoomArguments {
    room: String,
    #[serde(default)]
    before: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
}

pub async fn read(ctx: &McpRequestContext<'_>, args: ReadRoomArguments) -> Result<Value, McpToolError> {
    let room: RoomId = parse_id("room", &args.room)?;
    let limit = check_range("limit", args.limit.unwrap_or(50), 1..=MAX_MESSAGES)? as u32;
    let read = resources::conversation(ctx, room, args.before, limit).await;
    read.map_err(|error| McpToolError::not_found(&format!("room {room}"), LIST_ROOMS_HINT)(error.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostMessageArguments {
    room: String,
    text: String,
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    #[serde(default)]
    mentions: Vec<String>,
}

pub async fn post(ctx: &McpRequestContext<'_>, args: PostMessageArguments) -> Result<Value, McpToolError> {
    let (engine, actor) = (&ctx.shared.engine, &ctx.actor);
    let room: RoomId = parse_id("room", &args.room)?;
    let no_room = || McpToolError::not_found(&format!("room {room}"), LIST_ROOMS_HINT);
    let mut mentions = Vec::with_capacity(args.mentions.len().min(64));
    if !args.mentions.is_empty() {
        let (_, participants) =
            engine.queries().room_with_agents(&actor.workspace, room).await.map_err(|error| no_room()(error.into()))?;
        for wanted in &args.mentions {
            mentions.push(find_agent(&participants, wanted)?.id);
        }
    }
    let post = NewPost { when_busy: args.when_busy, mentions, ..NewPost::new(args.text) };
    let posted = engine.post_message(actor, room, post, None).await;
    let posted = posted.map_err(no_room())?;
    let runs: Vec<Value> = posted.runs.iter().map(|run| json!({"run_id": run.id, "agent_id": run.agent_id})).collect();
    Ok(json!({"message_id": posted.message.id, "seq": posted.message.seq, "runs": runs}))
}
