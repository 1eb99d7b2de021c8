//! Posts the message: finds the agent, creates the room, and stores the message.

use crate::{
    cli::{
        client::{
            ApiClient, REQUEST_DEADLINE,
            responses::{AgentListResponse, PostResponse, PostedRun, RoomResponse},
        },
        exit::UsageError,
    },
    terminal::sanitize,
};
use domain::{
    ids::{AgentId, RoomId},
    message::MAX_TEXT_BYTES,
    name::Name,
    position::Seq,
};
use serde_json::json;
use std::{
    collections::HashMap,
    io::{self, Read as _},
};

/// A new room gets the start of its first message as its name.
const ROOM_NAME_CHARS: usize = 60;

pub struct PostedQuestion {
    pub room: RoomId,
    /// The seq of the message; the answer comes after it.
    pub seq: Seq,
    pub runs: Vec<PostedRun>,
    pub names: HashMap<AgentId, String>,
}

pub fn message_text(message: &str) -> anyhow::Result<String> {
    let text = if message == "-" { read(io::stdin().lock())? } else { message.to_owned() };
    if text.trim().is_empty() {
        return Err(UsageError("there is nothing to say: the message is empty".into()).into());
    }
    Ok(text)
}

fn read(from: impl io::Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_TEXT_BYTES as u64 + 2).read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes).map_err(|_| UsageError("the message is not UTF-8 text".into()))?;
    let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    if text.len() > MAX_TEXT_BYTES {
        return Err(UsageError(format!("a message has at most {MAX_TEXT_BYTES} bytes")).into());
    }
    Ok(text.to_owned())
}

pub async fn post_message(
    client: &ApiClient,
    wanted: &str,
    room: Option<RoomId>,
    text: &str,
) -> anyhow::Result<PostedQuestion> {
    let agents: AgentListResponse = client.get("/api/agents", &[]).await?;
    let agent = agents.find_or_list(wanted)?;
    let room: RoomResponse = match room {
        None => {
            let body = json!({"name": room_name(text, &agent.name), "agents": [agent.id]});
            client.post("/api/rooms", &body, REQUEST_DEADLINE).await?
        }
        Some(id) => client.get(&format!("/api/rooms/{id}"), &[]).await?,
    };
    if !room.agents.contains(&agent.id) {
        anyhow::bail!("{} is not in the room {}", agent.name, room.id);
    }
    let path = format!("/api/rooms/{}/messages", room.id);
    let posted: PostResponse = client.post(&path, &json!({"text": text}), REQUEST_DEADLINE).await?;
    Ok(PostedQuestion { room: room.id, seq: posted.message.seq, runs: posted.runs, names: agents.names() })
}

pub fn room_name(text: &str, agent: &str) -> String {
    let line = sanitize::line(text.trim().lines().next().unwrap_or_default(), ROOM_NAME_CHARS);
    Name::parse(&line).map_or_else(|_| agent.to_owned(), String::from)
}

#[cfg(test)]
mod tests {
    use super::{message_text, read, room_name};
    use domain::message::MAX_TEXT_BYTES;

    #[test]
    fn a_message_from_a_pipe_loses_only_its_last_newline() {
        assert_eq!(read(&b"a\n\nb\n"[..]).unwrap(), "a\n\nb");
        assert_eq!(read(&b"a\r\n"[..]).unwrap(), "a");
        assert!(read(&b"\xff"[..]).is_err());
        let long = vec![b'x'; MAX_TEXT_BYTES];
        assert_eq!(read(&long[..]).unwrap().len(), MAX_TEXT_BYTES);
        assert!(read(&[&long[..], b"xx"].concat()[..]).is_err());
        assert!(message_text(" \n").is_err());
    }

    #[test]
    fn a_room_is_named_after_the_first_line() {
        assert_eq!(room_name("  What is\u{1b}[2J up?\nreally", "ada"), "What is␛[2J up?");
        assert_eq!(room_name(&"x".repeat(100), "ada").chars().count(), 60);
    }
}
