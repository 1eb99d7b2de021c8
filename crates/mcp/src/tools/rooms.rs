//! Rooms: which there are, what was said there, saying something.

use super::{
    arguments::{Trouble, agent_of, id, within},
    definitions::MAX_MESSAGES,
};
use crate::{handler::Asking, resources};
use domain::{ids::RoomId, room::WhenBusy};
use engine::commands::Post;
use serde::Deserialize;
use serde_json::{Value, json};

const WHERE: &str = "list_rooms shows which there are";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    #[serde(default)]
    limit: Option<u64>,
}

pub async fn list(asking: &Asking<'_>, wish: List) -> Result<Value, Trouble> {
    let limit = within("limit", wish.limit.unwrap_or(50), 1..=MAX_MESSAGES)?;
    let rooms = asking.house.engine.store().rooms(&asking.owner, limit as u32).await?;
    let rooms: Vec<Value> = rooms
        .iter()
        .map(|summary| {
            let room = &summary.room;
            json!({"id": room.id, "name": room.name, "head": room.head, "busy": summary.busy, "waiting": summary.waiting,
                   "agents": room.agents, "uri": resources::room(room.id)})
        })
        .collect();
    Ok(json!({"rooms": rooms}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    room: String,
    #[serde(default)]
    before: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
}

pub async fn read(asking: &Asking<'_>, wish: Read) -> Result<Value, Trouble> {
    let room: RoomId = id("room", &wish.room)?;
    let limit = within("limit", wish.limit.unwrap_or(50), 1..=MAX_MESSAGES)? as u32;
    let told = resources::conversation(asking, room, wish.before, limit).await;
    told.map_err(|error| Trouble::missing(&format!("room {room}"), WHERE)(error.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Say {
    room: String,
    text: String,
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    #[serde(default)]
    mentions: Vec<String>,
}

pub async fn post(asking: &Asking<'_>, wish: Say) -> Result<Value, Trouble> {
    let (engine, owner) = (&asking.house.engine, &asking.owner);
    let room: RoomId = id("room", &wish.room)?;
    let no_room = || Trouble::missing(&format!("room {room}"), WHERE);
    let mut mentions = Vec::with_capacity(wish.mentions.len().min(64));
    if !wish.mentions.is_empty() {
        let (_, seated) = engine.store().seating(owner, room).await.map_err(|error| no_room()(error.into()))?;
        for wanted in &wish.mentions {
            mentions.push(agent_of(&seated, wanted)?.id);
        }
    }
    let post = Post { text: wish.text, when_busy: wish.when_busy, attachments: Vec::new(), mentions };
    let posted = engine.post(owner, room, post, None).await;
    let posted = posted.map_err(no_room())?;
    let runs: Vec<Value> = posted.runs.iter().map(|run| json!({"run_id": run.id, "agent_id": run.agent_id})).collect();
    Ok(json!({"message_id": posted.message.id, "seq": posted.message.seq, "runs": runs}))
}
