//! How late a token arrives when twelve agents of one room answer at the same time, compared with a single agent that sends as
//! many tokens a second as all of them together: no agent may delay another.

use crate::{
    Bench,
    load::{Arrivals, TIMEOUT, latencies},
    stack::GreenroomStack,
    statistics::{Rounds, percentile},
    stream::RawStream,
    table::{Aim, FigureRow, FigureUnit},
    tokens::TokenCounter,
};
use anyhow::{Context as _, ensure};
use domain::{
    agent::Agent,
    ids::{AgentId, RunId},
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use testkit::client::TestPost;
use tokio::task::JoinSet;

const AGENTS: u32 = 12;
const READERS: usize = 10;
/// The time between two tokens of the whole room.
const PACE: Duration = Duration::from_millis(4);

#[derive(Default)]
struct RoomRounds {
    many: Rounds,
    one: Rounds,
}

#[derive(Default)]
pub struct RoomsScenario {
    p50: RoomRounds,
    p99: RoomRounds,
}

/// The part of an event that is needed here.
#[derive(Deserialize)]
struct EventOfRun {
    run_id: RunId,
}

/// What one reader has received of one run.
#[derive(Default)]
struct ReceivedRun {
    tokens: TokenCounter,
    times: Vec<Duration>,
}

impl RoomsScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let stack = GreenroomStack::start(&bench.binary, &bench.new_folder("rooms")).await?;
        let mut agents = Vec::new();
        for number in 1..=AGENTS {
            let spec = json!({"name": format!("agent {number}"), "provider": "scripted"});
            let created: Agent = stack.api.send(stack.api.request(Method::POST, "/api/agents").json(&spec)).await?;
            agents.push(created.id);
        }
        let (mut of_many, mut of_one) = (Vec::new(), Vec::new());
        let tokens = bench.scale.paced_tokens * 4;
        // Alternating, so that a slow phase of the machine affects both.
        for _ in 0..bench.scale.paced_turns {
            of_many.extend(measure(&stack, &agents, tokens / AGENTS, PACE * AGENTS).await?);
            of_one.extend(measure(&stack, &agents[..1], tokens, PACE).await?);
        }
        for (percent, pair) in [(50.0, &mut self.p50), (99.0, &mut self.p99)] {
            pair.many.push(percentile(&of_many, percent).context("nothing arrived")?);
            pair.one.push(percentile(&of_one, percent).context("nothing arrived")?);
        }
        stack.server.kill().await
    }

    pub fn rows(self) -> Vec<FigureRow> {
        let shape =
            format!("{AGENTS} agents in 1 room × {READERS} readers, {} tokens/s in all", 1000 / PACE.as_millis());
        let row = |name: &str, pair: RoomRounds| {
            FigureRow::new(format!("{name} token → reader, {shape}"), FigureUnit::Milliseconds, pair.many)
                .against("one agent at that rate", pair.one)
        };
        vec![row("p50", self.p50), row("p99", self.p99).aiming_at(Aim::RatioAtMost(1.5))]
    }
}

/// Lets all agents of a new room answer at once. Returns how late each token arrived at each reader, in milliseconds.
async fn measure(stack: &GreenroomStack, agents: &[AgentId], tokens: u32, pace: Duration) -> anyhow::Result<Vec<f64>> {
    let room = stack.api.create_room_with("bench", agents, json!({"kind": "concurrent"})).await?.id;
    let zero = Instant::now();
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let stream = RawStream::open(stack.address, &format!("/api/rooms/{room}/events?after=0")).await?;
        readers.spawn(read(stream, agents.len(), tokens, zero));
    }
    let text = format!("!count {tokens} {}", pace.as_millis());
    stack.api.post_message(room, &TestPost::new(text)).await?;
    let mut arrivals = Vec::new();
    while let Some(received) = readers.join_next().await {
        // The runs have the same order at every reader.
        let streams = received??.into_values().map(|run| run.times).enumerate();
        arrivals.extend(streams.map(|(stream, times)| Arrivals { stream, times }));
    }
    Ok(latencies(&arrivals, agents.len(), pace))
}

/// Reads until every run has sent all its tokens.
async fn read(
    mut stream: RawStream,
    agents: usize,
    tokens: u32,
    zero: Instant,
) -> anyhow::Result<BTreeMap<RunId, ReceivedRun>> {
    let mut runs: BTreeMap<RunId, ReceivedRun> = BTreeMap::new();
    let mut body = Vec::new();
    while runs.len() < agents || runs.values().any(|run| run.tokens.count < tokens) {
        stream.read(&mut body, TIMEOUT).await?;
        let now = zero.elapsed();
        let Some(end) = body.windows(2).rposition(|bytes| bytes == b"\n\n") else { continue };
        let whole: Vec<u8> = body.drain(..end + 2).collect();
        for frame in std::str::from_utf8(&whole)?.split_inclusive("\n\n") {
            ensure!(!frame.contains("event: run_failed"), "a run failed: {frame}");
            if !frame.contains("event: content_delta") {
                continue;
            }
            let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).context("a frame without data")?;
            let EventOfRun { run_id } = serde_json::from_str(data)?;
            let run = runs.entry(run_id).or_default();
            run.tokens.push(frame.as_bytes())?;
            run.times.resize(usize::try_from(run.tokens.count)?, now);
        }
    }
    Ok(runs)
}
