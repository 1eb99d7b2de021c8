//! The servers under load, Greenroom and the baselines, behind one interface.

use crate::{baseline::BaselineKind, scenarios::counting_script};
use anyhow::{Context as _, ensure};
use domain::ids::{AgentId, RoomId};
use std::{
    net::SocketAddr,
    path::Path,
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use testkit::client::{ServerLaunch, TestClient, TestPost, TestServerProcess};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

const START: Duration = Duration::from_secs(30);
/// The local key of every measured server, so that requests on plain sockets know it.
pub const LOCAL_KEY: &str = "grm_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

pub struct GreenroomStack {
    pub server: TestServerProcess,
    pub api: TestClient,
    pub address: SocketAddr,
    pub agent: AgentId,
}

impl GreenroomStack {
    pub fn launch(binary: &Path, data: &Path) -> ServerLaunch {
        let launch = ServerLaunch { chosen_key: Some(LOCAL_KEY.into()), ..ServerLaunch::new(binary, data) };
        launch
            .with("GREENROOM_LIMITS__REQUESTS_PER_SECOND", "1000000")
            .with("GREENROOM_LIMITS__BURST", "1000000")
            .with("GREENROOM_LIMITS__STREAMS_PER_USER", "1000000")
            .with("GREENROOM_LIMITS__SUBSCRIPTIONS_PER_USER", "10000000")
            .with("GREENROOM_LIMITS__SOCKET_MESSAGE_BURST", "10000000")
            .with("GREENROOM_LIMITS__ROOMS_PER_WORKSPACE", "10000000")
            .with("GREENROOM_SERVER__MAX_CONNECTIONS_PER_ADDRESS", "1000000")
            .with("GREENROOM_RUNS__CONCURRENCY", "1000")
            .with("GREENROOM_LOG__LEVEL", "warn")
    }

    pub async fn start(binary: &Path, data: &Path) -> anyhow::Result<Self> {
        Self::start_with(&Self::launch(binary, data)).await
    }

    pub async fn start_with(launch: &ServerLaunch) -> anyhow::Result<Self> {
        let server = launch.start().await?;
        let api = server.client()?;
        let address = server.base_url().trim_start_matches("http://").parse()?;
        let agent = api.scripted_agent().await?;
        Ok(Self { server, api, address, agent })
    }

    pub async fn room(&self) -> anyhow::Result<RoomId> {
        Ok(self.api.create_room("bench", &[self.agent]).await?.id)
    }
}

pub struct BaselineStack {
    child: Child,
    pub address: SocketAddr,
    rooms: AtomicUsize,
}

pub enum BenchStack {
    Greenroom(GreenroomStack),
    Baseline(BaselineStack),
}

/// How fast the provider sends tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenRate {
    /// As fast as possible; adjacent tokens may be joined into one event.
    Unpaced,
    /// As fast as possible, alternating text and thinking, which cannot be joined.
    UnpacedUnjoined,
    Paced(Duration),
}

/// A room on either stack, with the path of its feed.
pub struct StackRoom {
    name: String,
    pub feed: String,
}

impl BenchStack {
    pub async fn greenroom(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        Ok(Self::Greenroom(GreenroomStack::start(binary, folder).await?))
    }

    pub async fn baseline(kind: BaselineKind, folder: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mode = match kind {
            BaselineKind::Bare => "--serve-bare",
            BaselineKind::Insert => "--serve-insert",
        };
        command.arg(mode).arg(folder).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let output = child.stdout.take().context("no stdout")?;
        let line = timeout(START, BufReader::new(output).lines().next_line()).await??.context("the baseline ended")?;
        let address = line.trim_start_matches("http://").parse()?;
        Ok(Self::Baseline(BaselineStack { child, address, rooms: AtomicUsize::new(0) }))
    }

    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Greenroom(it) => it.address,
            Self::Baseline(it) => it.address,
        }
    }

    pub fn pid(&self) -> anyhow::Result<u32> {
        match self {
            Self::Greenroom(it) => Ok(it.server.pid()),
            Self::Baseline(it) => it.child.id().context("the baseline ended"),
        }
    }

    pub async fn room(&self) -> anyhow::Result<StackRoom> {
        match self {
            Self::Greenroom(it) => {
                let name = it.room().await?.to_string();
                Ok(StackRoom { feed: format!("/api/rooms/{name}/events?after=0"), name })
            }
            Self::Baseline(it) => {
                let name = it.rooms.fetch_add(1, Ordering::Relaxed).to_string();
                Ok(StackRoom { feed: format!("/rooms/{name}/events"), name })
            }
        }
    }

    /// Starts streaming `1 2 3 …` in a room.
    pub async fn stream_tokens(&self, room: &StackRoom, tokens: u32, speech: TokenRate) -> anyhow::Result<()> {
        let pace = if let TokenRate::Paced(pace) = speech { pace.as_millis() } else { 0 };
        match self {
            Self::Greenroom(it) => {
                let text = match speech {
                    TokenRate::UnpacedUnjoined => counting_script(tokens, 0),
                    TokenRate::Unpaced | TokenRate::Paced(_) => format!("!count {tokens} {pace}"),
                };
                it.api.post_message(room.name.parse()?, &TestPost::new(text)).await?;
            }
            Self::Baseline(it) => {
                let mut socket = crate::stream::connect(it.address).await?;
                let target = format!("/rooms/{}/count?tokens={tokens}&pace={pace}", room.name);
                socket.write_all(format!("POST {target} HTTP/1.1\r\nHost: {}\r\n\r\n", it.address).as_bytes()).await?;
                let mut answer = [0; 12];
                timeout(START, socket.read_exact(&mut answer)).await??;
                ensure!(&answer == b"HTTP/1.1 202", "the baseline rejected {target}");
            }
        }
        Ok(())
    }

    /// Returns the number of events in the rooms; `None` for a baseline, which has one per token.
    pub async fn events(&self, rooms: &[StackRoom]) -> anyhow::Result<Option<f64>> {
        let Self::Greenroom(it) = self else { return Ok(None) };
        let mut sum = 0;
        for room in rooms {
            sum += it.api.room(room.name.parse()?).await?.head;
        }
        Ok(Some(u32::try_from(sum).map(f64::from)?))
    }

    pub async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Greenroom(it) => it.server.kill().await,
            Self::Baseline(mut it) => Ok(it.child.kill().await?),
        }
    }
}
