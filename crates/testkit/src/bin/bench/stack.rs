//! The servers under load, Greenroom and the baselines, behind one face.

use crate::{baseline::Kind, scenarios::script};
use anyhow::{Context as _, ensure};
use domain::ids::{AgentId, RoomId};
use std::{
    net::SocketAddr,
    path::Path,
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use testkit::client::{Api, Launch, Post, ServerProcess};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

const START: Duration = Duration::from_secs(30);

pub struct Greenroom {
    pub server: ServerProcess,
    pub api: Api,
    pub address: SocketAddr,
    pub agent: AgentId,
}

impl Greenroom {
    pub fn launch(binary: &Path, data: &Path) -> Launch {
        Launch::new(binary, data)
            .with("GREENROOM_LIMITS__REQUESTS_PER_SECOND", "1000000")
            .with("GREENROOM_LIMITS__BURST", "1000000")
            .with("GREENROOM_RUNS__CONCURRENCY", "1000")
            .with("GREENROOM_LOG__LEVEL", "warn")
    }

    pub async fn start(binary: &Path, data: &Path) -> anyhow::Result<Self> {
        Self::started(&Self::launch(binary, data)).await
    }

    pub async fn started(launch: &Launch) -> anyhow::Result<Self> {
        let server = launch.start().await?;
        let api = Api::new(server.base())?;
        let address = server.base().trim_start_matches("http://").parse()?;
        let agent = api.scripted_agent().await?;
        Ok(Self { server, api, address, agent })
    }

    pub async fn room(&self) -> anyhow::Result<RoomId> {
        Ok(self.api.create_room("bench", &[self.agent]).await?.id)
    }
}

pub struct Baseline {
    child: Child,
    pub address: SocketAddr,
    rooms: AtomicUsize,
}

pub enum Stack {
    Greenroom(Greenroom),
    Baseline(Baseline),
}

/// How a provider speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speech {
    /// As fast as it is read; neighbouring words may be joined into one event.
    FlatOut,
    /// As fast as it is read, in texts and thoughts by turns, which cannot be joined.
    FlatOutApart,
    Paced(Duration),
}

/// A room of either, with the path of its feed.
pub struct Room {
    name: String,
    pub feed: String,
}

impl Stack {
    pub async fn greenroom(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        Ok(Self::Greenroom(Greenroom::start(binary, folder).await?))
    }

    pub async fn baseline(kind: Kind, folder: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mode = match kind {
            Kind::Bare => "--serve-bare",
            Kind::Insert => "--serve-insert",
        };
        command.arg(mode).arg(folder).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let output = child.stdout.take().context("no stdout")?;
        let line = timeout(START, BufReader::new(output).lines().next_line()).await??.context("the baseline ended")?;
        let address = line.trim_start_matches("http://").parse()?;
        Ok(Self::Baseline(Baseline { child, address, rooms: AtomicUsize::new(0) }))
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

    pub async fn room(&self) -> anyhow::Result<Room> {
        match self {
            Self::Greenroom(it) => {
                let name = it.room().await?.to_string();
                Ok(Room { feed: format!("/api/rooms/{name}/events?after=0"), name })
            }
            Self::Baseline(it) => {
                let name = it.rooms.fetch_add(1, Ordering::Relaxed).to_string();
                Ok(Room { feed: format!("/rooms/{name}/events"), name })
            }
        }
    }

    /// Begins to stream `1 2 3 …` in a room.
    pub async fn speak(&self, room: &Room, tokens: u32, speech: Speech) -> anyhow::Result<()> {
        let pace = if let Speech::Paced(pace) = speech { pace.as_millis() } else { 0 };
        match self {
            Self::Greenroom(it) => {
                let text = match speech {
                    Speech::FlatOutApart => script(tokens),
                    Speech::FlatOut | Speech::Paced(_) => format!("!count {tokens} {pace}"),
                };
                it.api.post_message(room.name.parse()?, &Post::new(text)).await?;
            }
            Self::Baseline(it) => {
                let mut socket = crate::stream::connect(it.address).await?;
                let target = format!("/rooms/{}/count?tokens={tokens}&pace={pace}", room.name);
                socket.write_all(format!("POST {target} HTTP/1.1\r\nHost: {}\r\n\r\n", it.address).as_bytes()).await?;
                let mut answer = [0; 12];
                timeout(START, socket.read_exact(&mut answer)).await??;
                ensure!(&answer == b"HTTP/1.1 202", "the baseline refused {target}");
            }
        }
        Ok(())
    }

    /// How many events the rooms hold; a baseline has one for each token.
    pub async fn events(&self, rooms: &[Room]) -> anyhow::Result<Option<f64>> {
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
