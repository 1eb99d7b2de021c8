//! The overhead that Greenroom adds to a bare model API: the same request with the same model double behind it,
//! alternately sent by an HTTP client and through a room; one conversation, and many at once.

use crate::{
    Bench,
    connection::RawConnection,
    stack::{GreenroomStack, LOCAL_KEY},
    statistics::{Rounds, percentile},
    stream::RawStream,
    table::{Aim, FigureRow, FigureUnit},
};
use anyhow::{Context as _, bail, ensure};
use domain::{agent::Agent, ids::AgentId};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use testkit::models::{ModelDouble, VendorApi};
use tokio::task::JoinSet;

const CONVERSATIONS: usize = 50;
/// For one conversation: only the first token counts.
const SHORT_ANSWER: &str = "!count 5 1";
/// For many at once: 50 tokens a second each, so that every conversation streams while others start.
const LONG_ANSWER: &str = "!count 20 20";
const TIMEOUT: Duration = Duration::from_secs(60);

/// A model API that both Greenroom and the double implement.
struct Wire {
    name: &'static str,
    provider: &'static str,
    api: VendorApi,
    path: &'static str,
    /// What the first delta with text contains, and no frame before it.
    delta: &'static str,
}

const WIRES: [Wire; 2] = [
    Wire {
        name: "OpenAI chat completions",
        provider: "openai",
        api: VendorApi::Chat,
        path: "/v1/chat/completions",
        delta: "{\"content\":\"1\"}",
    },
    Wire {
        name: "Anthropic Messages",
        provider: "anthropic",
        api: VendorApi::Messages,
        path: "/v1/messages",
        delta: "\"text_delta\"",
    },
];

/// Medians in milliseconds, round by round.
#[derive(Default)]
struct FirstTokens {
    greenroom: Rounds,
    direct: Rounds,
}

#[derive(Default)]
pub struct DirectScenario {
    single: [FirstTokens; WIRES.len()],
    concurrent: [FirstTokens; WIRES.len()],
}

impl DirectScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let models = ModelDouble::start().await?;
        let launch = GreenroomStack::launch(&bench.binary, &bench.new_folder("direct"))
            .with("GREENROOM_OPENAI__BASE_URL", format!("{}/v1", models.url()))
            .with("GREENROOM_ANTHROPIC__BASE_URL", models.url())
            .with("OPENAI_API_KEY", "test-key")
            .with("ANTHROPIC_API_KEY", "test-key");
        let stack = GreenroomStack::start_with(&launch).await?;
        for (wire, (single, concurrent)) in WIRES.iter().zip(self.single.iter_mut().zip(&mut self.concurrent)) {
            let mut conversations = Conversations::open(&stack, &models, wire).await.context(wire.name)?;
            conversations.compare(1, SHORT_ANSWER, bench.scale.direct_turns, single).await.context(wire.name)?;
            let bursts = bench.scale.direct_bursts;
            conversations.compare(CONVERSATIONS, LONG_ANSWER, bursts, concurrent).await.context(wire.name)?;
        }
        stack.server.kill().await?;
        models.stop().await;
        Ok(())
    }

    pub fn rows(self) -> Vec<FigureRow> {
        let row = |what: &str, wire: &Wire, tokens: FirstTokens| {
            FigureRow::new(format!("{what}, {}", wire.name), FigureUnit::Milliseconds, tokens.greenroom)
                .against("asked directly", tokens.direct)
        };
        let single = WIRES.iter().zip(self.single).map(|(wire, tokens)| {
            row("first token with one conversation", wire, tokens).aiming_at(Aim::AddsAtMost(4.0))
        });
        let concurrent = WIRES.iter().zip(self.concurrent).map(|(wire, tokens)| {
            let what = format!("first token with {CONVERSATIONS} conversations at once");
            row(&what, wire, tokens).aiming_at(Aim::RatioAtMost(1.5))
        });
        single.chain(concurrent).collect()
    }
}

/// The same number of conversations each way, on connections that are kept.
struct Conversations {
    in_rooms: Vec<RoomConversation>,
    direct: Vec<DirectConversation>,
}

impl Conversations {
    async fn open(stack: &GreenroomStack, models: &ModelDouble, wire: &'static Wire) -> anyhow::Result<Self> {
        let spec = json!({"name": wire.provider, "provider": wire.provider, "model": "double"});
        let request = stack.api.request(Method::POST, "/api/agents").json(&spec);
        let agent: Agent = stack.api.send(request).await?;
        let mut in_rooms = Vec::new();
        for _ in 0..CONVERSATIONS {
            in_rooms.push(RoomConversation::open(stack, agent.id).await?);
        }
        // The first turn of each room is cold, and shows what Greenroom sends.
        turns(&mut in_rooms, CONVERSATIONS, SHORT_ANSWER).await?;
        let recorded = models.requests();
        let sent = recorded.iter().rfind(|request| request.api == Some(wire.api)).context("nothing was asked")?;
        let mut direct = Vec::new();
        for _ in 0..CONVERSATIONS {
            let connection = RawConnection::open(models.address()).await?;
            direct.push(DirectConversation { connection, wire, body: sent.body.clone() });
        }
        turns(&mut direct, CONVERSATIONS, SHORT_ANSWER).await?;
        Ok(Self { in_rooms, direct })
    }

    /// Alternates between both ways `count` times, with the first `concurrent` conversations at once.
    async fn compare(
        &mut self,
        concurrent: usize,
        prompt: &'static str,
        count: usize,
        medians: &mut FirstTokens,
    ) -> anyhow::Result<()> {
        let (mut in_rooms, mut direct) = (Vec::new(), Vec::new());
        for turn in 0..count {
            // Alternate the order: each turn starts while the previous one is still being cleaned up.
            if turn % 2 == 0 {
                direct.extend(turns(&mut self.direct, concurrent, prompt).await?);
                in_rooms.extend(turns(&mut self.in_rooms, concurrent, prompt).await?);
            } else {
                in_rooms.extend(turns(&mut self.in_rooms, concurrent, prompt).await?);
                direct.extend(turns(&mut self.direct, concurrent, prompt).await?);
            }
        }
        medians.greenroom.push(percentile(&in_rooms, 50.0).context("no turn")?);
        medians.direct.push(percentile(&direct, 50.0).context("no turn")?);
        Ok(())
    }
}

trait Conversation: Send + Sized + 'static {
    /// Returns milliseconds from the question to the first token, when the whole answer has arrived.
    fn turn(&mut self, prompt: &str) -> impl Future<Output = anyhow::Result<f64>> + Send;
}

/// Starts a turn in the first `concurrent` conversations at once.
async fn turns<C: Conversation>(
    conversations: &mut Vec<C>,
    concurrent: usize,
    prompt: &'static str,
) -> anyhow::Result<Vec<f64>> {
    let mut running = JoinSet::new();
    for mut conversation in conversations.drain(..concurrent) {
        running.spawn(async move {
            let first = conversation.turn(prompt).await;
            (conversation, first)
        });
    }
    let (mut finished, mut times) = (Vec::new(), Vec::new());
    while let Some(turn) = running.join_next().await {
        let (conversation, first) = turn?;
        finished.push(conversation);
        times.push(first?);
    }
    // Back to the front, so that the next turns use the same ones.
    conversations.splice(0..0, finished);
    Ok(times)
}

/// Sends what Greenroom sent, except for the prompt.
struct DirectConversation {
    connection: RawConnection,
    wire: &'static Wire,
    body: Value,
}

impl Conversation for DirectConversation {
    async fn turn(&mut self, prompt: &str) -> anyhow::Result<f64> {
        let message = self.body["messages"].as_array_mut().and_then(|messages| messages.last_mut());
        message.context("no message")?["content"] = json!(prompt);
        let request = post(self.wire.path, &self.body);
        let start = Instant::now();
        let mut first = None;
        let response = self.connection.send_watching(&request, |body| {
            if first.is_none() && contains(body, self.wire.delta) {
                first = Some(millis(start));
            }
        });
        let response = response.await?;
        ensure!(response.is_success(), "{}", response.text());
        first.with_context(|| format!("no token in {}", response.text()))
    }
}

/// A room with its feed.
struct RoomConversation {
    posts: RawConnection,
    feed: RawStream,
    path: String,
}

impl RoomConversation {
    async fn open(stack: &GreenroomStack, agent: AgentId) -> anyhow::Result<Self> {
        let address: SocketAddr = stack.address;
        let room = stack.api.create_room("bench", &[agent]).await?.id;
        Ok(Self {
            posts: RawConnection::open(address).await?,
            feed: RawStream::open(address, &format!("/api/rooms/{room}/events?after=0")).await?,
            path: format!("/api/rooms/{room}/messages"),
        })
    }
}

impl Conversation for RoomConversation {
    async fn turn(&mut self, prompt: &str) -> anyhow::Result<f64> {
        let request = post(&self.path, &json!({"text": prompt}));
        let start = Instant::now();
        let (posted, first) = tokio::join!(self.posts.send(&request), first_token(&mut self.feed, start));
        let posted = posted?;
        ensure!(posted.is_success(), "{}", posted.text());
        first
    }
}

async fn first_token(feed: &mut RawStream, start: Instant) -> anyhow::Result<f64> {
    let (mut body, mut first) = (Vec::new(), None);
    loop {
        feed.read(&mut body, TIMEOUT).await?;
        if first.is_none() && contains(&body, "event: content_delta\n") {
            first = Some(millis(start));
        }
        if contains(&body, "event: run_completed\n") {
            return first.context("the answer has no text");
        }
        if contains(&body, "event: run_failed\n") {
            bail!("the run failed: {}", String::from_utf8_lossy(&body));
        }
    }
}

pub(super) fn post(path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    let headers = format!("Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}");
    format!("POST {path} HTTP/1.1\r\n{headers}\r\nAuthorization: Bearer {LOCAL_KEY}\r\n\r\n{body}").into_bytes()
}

pub(super) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

pub(super) fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
