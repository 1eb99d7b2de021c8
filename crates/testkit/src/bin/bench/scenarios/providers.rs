//! The overhead that Greenroom adds to a warm turn of the real `claude`: the same process gets the same prompt,
//! alternately directly and through a room, with the same model double behind it.

use super::agent_room::{AgentRoom, TurnTimes, millis};
use crate::{
    Bench, relay,
    stack::GreenroomStack,
    statistics::{Rounds, percentile},
    table::{Aim, FigureRow, FigureUnit},
};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::{net::Ipv4Addr, path::Path, time::Instant};
use testkit::{models::ModelDouble, programs};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream},
    net::TcpStream,
};

const QUESTION: &str = "!count 5 1";
const MODEL: &str = "claude-sonnet-4-5";

#[derive(Default)]
pub struct ProvidersScenario {
    first_direct: Rounds,
    first_in_room: Rounds,
    total_direct: Rounds,
    total_in_room: Rounds,
}

impl ProvidersScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        for _ in 0..bench.scale.conversations {
            self.conversation(bench).await?;
        }
        Ok(())
    }

    async fn conversation(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let models = ModelDouble::start().await?;
        let folder = bench.new_folder("providers");
        std::fs::create_dir_all(&folder)?;
        let relay = relay::install(&folder, &programs::CliPrograms::from_env().claude)?;
        let launch = GreenroomStack::launch(&bench.binary, &folder.join("data"))
            .with("GREENROOM_CLAUDE_CODE__COMMAND", relay.display().to_string())
            .with("GREENROOM_CLAUDE_CODE__SHARE_LOGIN", "false")
            .with("ANTHROPIC_BASE_URL", models.url())
            .with("ANTHROPIC_API_KEY", "test-key");
        let server = launch.start().await?;
        let agent = json!({"name": "claude", "provider": "claude_code", "model": MODEL});
        let mut room = AgentRoom::open(server.client()?, &agent).await?;
        // The first turn of each is cold.
        room.turn(QUESTION).await?;
        let mut claude = DirectClaude::connect(&folder).await?;
        claude.turn().await?;
        let (mut by_itself, mut in_a_room) = (Vec::new(), Vec::new());
        for turn in 0..bench.scale.conversation_turns {
            // Alternate the order: each turn starts while the previous one is still being cleaned up.
            if turn % 2 == 0 {
                by_itself.push(claude.turn().await?);
                in_a_room.push(room.turn(QUESTION).await?);
            } else {
                in_a_room.push(room.turn(QUESTION).await?);
                by_itself.push(claude.turn().await?);
            }
        }
        server.terminate(std::time::Duration::from_secs(30)).await?;
        let median = |turns: &[TurnTimes], what: fn(&TurnTimes) -> f64| {
            percentile(&turns.iter().map(what).collect::<Vec<_>>(), 50.0).context("no turn")
        };
        self.first_direct.push(median(&by_itself, |turn| turn.first)?);
        self.first_in_room.push(median(&in_a_room, |turn| turn.first)?);
        self.total_direct.push(median(&by_itself, |turn| turn.total)?);
        self.total_in_room.push(median(&in_a_room, |turn| turn.total)?);
        Ok(())
    }

    pub fn rows(self) -> Vec<FigureRow> {
        let name = "claude by itself";
        vec![
            FigureRow::new(
                "warm turn of Claude Code, asked to first word",
                FigureUnit::Milliseconds,
                self.first_in_room,
            )
            .against(name, self.first_direct)
            .aiming_at(Aim::AddsAtMost(5.0)),
            FigureRow::new("warm turn of Claude Code, asked to end", FigureUnit::Milliseconds, self.total_in_room)
                .against(name, self.total_direct),
        ]
    }
}

/// Direct access to the process that also answers in the room.
struct DirectClaude(BufStream<TcpStream>);

impl DirectClaude {
    async fn connect(folder: &Path) -> anyhow::Result<Self> {
        let port = relay::port(folder).context("Greenroom has not started the program")?;
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufStream::new(stream)))
    }

    async fn turn(&mut self) -> anyhow::Result<TurnTimes> {
        let message = json!({"role": "user", "content": QUESTION});
        let line = json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""});
        let start = Instant::now();
        self.0.write_all(format!("{line}\n").as_bytes()).await?;
        self.0.flush().await?;
        let (mut first, mut line) = (None, String::new());
        while self.0.read_line(&mut line).await? > 0 {
            let line_json: Value = serde_json::from_str(&line)?;
            if line_json["event"]["delta"]["type"] == "text_delta" && first.is_none() {
                first = Some(millis(start));
            }
            if line_json["type"] == "result" {
                return Ok(TurnTimes { first: first.context("the answer has no text")?, total: millis(start) });
            }
            line.clear();
        }
        bail!("claude ended")
    }
}
