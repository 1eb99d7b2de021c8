//! What Greenroom adds to a warm turn of the real `claude`: the same question to the same double of the model's API, in
//! turn by itself and through a room.

use crate::{
    Bench,
    stack::Greenroom,
    statistics::{Rounds, percentile},
    table::{Aim, Row, Unit},
};
use anyhow::{Context as _, bail};
use domain::{event::EventType, position::Position};
use providers::host_tools::{SERVER, mcp};
use reqwest::Method;
use serde_json::{Value, json};
use std::{path::Path, process::Stdio, time::Instant};
use testkit::{
    client::{Api, Post, SseReader},
    models::Models,
    programs,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
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
    /// Of two processes of `claude` one may be some milliseconds quicker than the other, turn after turn, for no reason that
    /// can be seen from outside. So a round has several conversations, and each is compared for itself.
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
        let mut claude = ByItself::start(&folder, &models.url()).await?;
        let launch = Greenroom::launch(&bench.binary, &folder.join("data"))
            .with("GREENROOM_CLAUDE_CODE__COMMAND", programs::Clis::found().claude.display().to_string())
            .with("GREENROOM_CLAUDE_CODE__SHARE_LOGIN", "false")
            .with("ANTHROPIC_BASE_URL", models.url())
            .with("ANTHROPIC_API_KEY", "test-key");
        let server = launch.start().await?;
        let mut room = InARoom::open(server.base()).await?;
        let (mut by_itself, mut in_a_room) = (Vec::new(), Vec::new());
        for turn in 0..=bench.scale.conversation_turns {
            // Each begins while what the other one left behind is still being tidied up.
            let (direct, through) = if turn % 2 == 0 {
                let direct = claude.turn().await?;
                (direct, room.turn().await?)
            } else {
                let through = room.turn().await?;
                (claude.turn().await?, through)
            };
            // The first turn of each is cold.
            if turn > 0 {
                by_itself.push(direct);
                in_a_room.push(through);
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

/// The program on two pipes, with the flags and the tools that Greenroom gives it.
struct ByItself {
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl ByItself {
    async fn start(folder: &Path, models: &str) -> anyhow::Result<Self> {
        let home = folder.join("home");
        std::fs::create_dir_all(&home)?;
        let mut process = Command::new(programs::Clis::found().claude)
            .args(["-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose"])
            .args(["--include-partial-messages", "--permission-prompt-tool=stdio", "--permission-mode=default"])
            .args(["--setting-sources=user", "--strict-mcp-config", "--model", MODEL])
            .arg(format!("--mcp-config={}", json!({"mcpServers": {SERVER: {"type": "sdk", "name": SERVER}}})))
            .env("ENABLE_TOOL_SEARCH", "false")
            .env("ANTHROPIC_BASE_URL", models)
            .env("ANTHROPIC_API_KEY", "test-key")
            .env("CLAUDE_CONFIG_DIR", &home)
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("DISABLE_TELEMETRY", "1")
            .env("DISABLE_ERROR_REPORTING", "1")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = process.stdin.take().context("no input")?;
        let lines = BufReader::new(process.stdout.take().context("no output")?).lines();
        let mut claude = Self { stdin, lines, _process: process };
        let request = json!({"subtype": "initialize", "sdkMcpServers": [SERVER]});
        claude.say(&json!({"type": "control_request", "request_id": "1", "request": request})).await?;
        Ok(claude)
    }

    async fn say(&mut self, line: &Value) -> anyhow::Result<()> {
        Ok(self.stdin.write_all(format!("{line}\n").as_bytes()).await?)
    }

    /// It has the same tools of Greenroom's as in a room.
    async fn answer(&mut self, asked: &Value) -> anyhow::Result<()> {
        let reply = match mcp::step(&asked["request"]["message"]) {
            mcp::Step::Reply(reply) => reply,
            mcp::Step::Nothing => json!({"jsonrpc": "2.0", "id": 0, "result": {}}),
            mcp::Step::Call { .. } => bail!("nobody asked it to call a tool"),
        };
        let response =
            json!({"subtype": "success", "request_id": asked["request_id"], "response": {"mcp_response": reply}});
        self.say(&json!({"type": "control_response", "response": response})).await
    }

    async fn turn(&mut self) -> anyhow::Result<Turn> {
        let message = json!({"role": "user", "content": QUESTION});
        let line = json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""});
        let asked = Instant::now();
        self.say(&line).await?;
        let mut first = None;
        while let Some(line) = self.lines.next_line().await? {
            let line: Value = serde_json::from_str(&line)?;
            if line["event"]["delta"]["type"] == "text_delta" && first.is_none() {
                first = Some(millis(asked));
            }
            if line["type"] == "control_request" {
                self.answer(&line).await?;
            }
            if line["type"] == "result" {
                return Ok(Turn { first: first.context("an answer without words")?, whole: millis(asked) });
            }
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
