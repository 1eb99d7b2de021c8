//! What Greenroom adds to a warm turn of the real `claude`: the same process is asked the same question, in turn past
//! Greenroom and through a room, and has the same double of its API behind it.

use crate::{
    Bench, relay,
    stack::Greenroom,
    statistics::{Rounds, percentile},
    table::{Aim, Row, Unit},
};
use anyhow::{Context as _, bail};
use domain::{event::EventType, position::Position};
use reqwest::Method;
use serde_json::{Value, json};
use std::{net::Ipv4Addr, path::Path, time::Instant};
use testkit::{
    client::{Api, Post, SseReader},
    models::Models,
    programs,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream},
    net::TcpStream,
};

const QUESTION: &str = "!count 5 1";
const MODEL: &str = "claude-sonnet-4-5";

#[derive(Default)]
pub struct Providers {
    first_by_itself: Rounds,
    first_in_a_room: Rounds,
    whole_by_itself: Rounds,
    whole_in_a_room: Rounds,
}

/// Milliseconds from asking to the first word, and to the end.
struct Turn {
    first: f64,
    whole: f64,
}

impl Providers {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        for _ in 0..bench.scale.conversations {
            self.conversation(bench).await?;
        }
        Ok(())
    }

    async fn conversation(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let models = Models::start().await?;
        let folder = bench.fresh("providers");
        std::fs::create_dir_all(&folder)?;
        let relay = relay::install(&folder, &programs::Clis::found().claude)?;
        let launch = Greenroom::launch(&bench.binary, &folder.join("data"))
            .with("GREENROOM_CLAUDE_CODE__COMMAND", relay.display().to_string())
            .with("GREENROOM_CLAUDE_CODE__SHARE_LOGIN", "false")
            .with("ANTHROPIC_BASE_URL", models.url())
            .with("ANTHROPIC_API_KEY", "test-key");
        let server = launch.start().await?;
        let mut room = InARoom::open(server.base()).await?;
        // The first turn of each is cold.
        room.turn().await?;
        let mut claude = ByItself::reach(&folder).await?;
        claude.turn().await?;
        let (mut by_itself, mut in_a_room) = (Vec::new(), Vec::new());
        for turn in 0..bench.scale.conversation_turns {
            // Each begins while what the one before it left behind is still being tidied up.
            if turn % 2 == 0 {
                by_itself.push(claude.turn().await?);
                in_a_room.push(room.turn().await?);
            } else {
                in_a_room.push(room.turn().await?);
                by_itself.push(claude.turn().await?);
            }
        }
        server.terminate(std::time::Duration::from_secs(30)).await?;
        let median = |turns: &[Turn], what: fn(&Turn) -> f64| {
            percentile(&turns.iter().map(what).collect::<Vec<_>>(), 50.0).context("no turn")
        };
        self.first_by_itself.push(median(&by_itself, |turn| turn.first)?);
        self.first_in_a_room.push(median(&in_a_room, |turn| turn.first)?);
        self.whole_by_itself.push(median(&by_itself, |turn| turn.whole)?);
        self.whole_in_a_room.push(median(&in_a_room, |turn| turn.whole)?);
        Ok(())
    }

    pub fn rows(self) -> Vec<Row> {
        let name = "claude by itself";
        vec![
            Row::new("warm turn of Claude Code, asked to first word", Unit::Milliseconds, self.first_in_a_room)
                .against(name, self.first_by_itself)
                .aiming_at(Aim::AddsAtMost(5.0)),
            Row::new("warm turn of Claude Code, asked to end", Unit::Milliseconds, self.whole_in_a_room)
                .against(name, self.whole_by_itself),
        ]
    }
}

/// The very process that answers in the room, asked past Greenroom.
struct ByItself(BufStream<TcpStream>);

impl ByItself {
    async fn reach(folder: &Path) -> anyhow::Result<Self> {
        let port = relay::port(folder).context("Greenroom has not started the program")?;
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufStream::new(stream)))
    }

    async fn turn(&mut self) -> anyhow::Result<Turn> {
        let message = json!({"role": "user", "content": QUESTION});
        let line = json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""});
        let asked = Instant::now();
        self.0.write_all(format!("{line}\n").as_bytes()).await?;
        self.0.flush().await?;
        let (mut first, mut line) = (None, String::new());
        while self.0.read_line(&mut line).await? > 0 {
            let said: Value = serde_json::from_str(&line)?;
            if said["event"]["delta"]["type"] == "text_delta" && first.is_none() {
                first = Some(millis(asked));
            }
            if said["type"] == "result" {
                return Ok(Turn { first: first.context("an answer without words")?, whole: millis(asked) });
            }
            line.clear();
        }
        bail!("claude ended")
    }
}

struct InARoom {
    api: Api,
    room: domain::ids::RoomId,
    reader: SseReader,
}

impl InARoom {
    async fn open(base: &str) -> anyhow::Result<Self> {
        let api = Api::new(base)?;
        let spec = json!({"name": "claude", "provider": "claude_code", "model": MODEL});
        let agent: domain::agent::Agent = api.send(api.request(Method::POST, "/api/agents").json(&spec)).await?;
        let room = api.create_room("bench", &[agent.id]).await?.id;
        let reader = SseReader::connect(&api, room, &Position::START).await?;
        Ok(Self { api, room, reader })
    }

    async fn turn(&mut self) -> anyhow::Result<Turn> {
        let asked = Instant::now();
        let run = self.api.post_message(self.room, &Post::new(QUESTION)).await?.runs[0].id;
        let mut first = None;
        while let Some(event) = self.reader.next_event().await? {
            if event.run_id != Some(run) {
                continue;
            }
            if event.kind == EventType::ContentDelta && first.is_none() {
                first = Some(millis(asked));
            }
            if event.kind == EventType::RunFailed {
                bail!("the run failed: {}", event.data);
            }
            if event.kind.ends_a_run() {
                return Ok(Turn { first: first.context("an answer without words")?, whole: millis(asked) });
            }
        }
        bail!("the stream ended")
    }
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
