//! A room with one agent, and how long its turns take for somebody who follows the room.

use anyhow::{Context as _, bail};
use domain::{event::EventType, ids::RoomId, position::Position};
use reqwest::Method;
use serde_json::Value;
use std::time::Instant;
use testkit::client::{SseReader, TestClient, TestPost};

pub struct AgentRoom {
    api: TestClient,
    room: RoomId,
    reader: SseReader,
}

/// Milliseconds from the prompt to the first token, and to the end.
pub struct TurnTimes {
    pub first: f64,
    pub total: f64,
}

impl AgentRoom {
    /// Creates an agent with these settings, and a room with it.
    pub async fn open(api: TestClient, agent: &Value) -> anyhow::Result<Self> {
        let agent: domain::agent::Agent = api.send(api.request(Method::POST, "/api/agents").json(agent)).await?;
        let room = api.create_room("bench", &[agent.id]).await?.id;
        let reader = SseReader::connect(&api, room, &Position::START).await?;
        Ok(Self { api, room, reader })
    }

    pub async fn turn(&mut self, question: &str) -> anyhow::Result<TurnTimes> {
        let start = Instant::now();
        let run = self.api.post_message(self.room, &TestPost::new(question)).await?.runs[0].id;
        let mut first = None;
        while let Some(event) = self.reader.next_event().await? {
            if event.run_id != Some(run) {
                continue;
            }
            if event.kind == EventType::ContentDelta && first.is_none() {
                first = Some(millis(start));
            }
            if event.kind == EventType::RunFailed {
                bail!("the run failed: {}", event.data);
            }
            if event.kind.ends_a_run() {
                return Ok(TurnTimes { first: first.context("the answer has no text")?, total: millis(start) });
            }
        }
        bail!("the stream ended")
    }
}

pub fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
