//! Memory for each reader that only waits, by SSE and by WebSocket; and whether all of them are still served afterwards.

use crate::{
    Bench,
    stack::Greenroom,
    statistics::Rounds,
    stream::{Stream, connect},
    table::{Aim, Row, Unit, grouped},
    usage::resident_kibibytes,
};
use anyhow::{Context as _, ensure};
use domain::ids::RoomId;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use std::{net::SocketAddr, time::Duration};
use testkit::client::Post;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

const ROOMS: usize = 100;
/// Connections being opened at the same time.
const AT_ONCE: usize = 64;
const SETTLED: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
/// What a process needs besides its connections.
const OTHER_FILES: u64 = 500;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    Sse,
    WebSocket,
}

#[derive(Default)]
pub struct Idle {
    sse: Rounds,
    websocket: Rounds,
    held: usize,
}

enum Reader {
    Sse(Stream),
    WebSocket(Box<WebSocketStream<TcpStream>>),
}

impl Idle {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let possible = usize::try_from(bench.files.saturating_sub(OTHER_FILES))?;
        self.held = bench.scale.idle_readers.min(possible);
        self.sse.push(measure(bench, Door::Sse, self.held).await.context("SSE")?);
        self.websocket.push(measure(bench, Door::WebSocket, self.held).await.context("WebSocket")?);
        Ok(())
    }

    pub fn rows(self) -> Vec<Row> {
        let held = grouped(&self.held.to_string());
        let what = |door: &str| format!("memory per idle reader, {door}, {held} held and then served");
        let aim = Aim::AtMost(24.0);
        vec![
            Row::new(what("SSE"), Unit::Kibibytes, self.sse).aiming_at(aim),
            Row::new(what("WebSocket"), Unit::Kibibytes, self.websocket).aiming_at(aim),
        ]
    }
}

/// In KiB.
async fn measure(bench: &Bench, door: Door, count: usize) -> anyhow::Result<f64> {
    let stack = Greenroom::start(&bench.binary, &bench.fresh("idle")).await?;
    let mut rooms = Vec::new();
    for _ in 0..ROOMS {
        let room = stack.room().await?;
        rooms.push((room, stack.api.room(room).await?.head));
    }
    sleep(SETTLED).await;
    let before = resident_kibibytes(stack.server.pid())?;
    let mut opening = JoinSet::new();
    let mut readers = Vec::new();
    for (_, &(room, head)) in (0..count).zip(rooms.iter().cycle()) {
        if opening.len() >= AT_ONCE
            && let Some(reader) = opening.join_next().await
        {
            readers.push(reader??);
        }
        opening.spawn(Reader::open(stack.address, door, room, head));
    }
    while let Some(reader) = opening.join_next().await {
        readers.push(reader??);
    }
    sleep(SETTLED).await;
    let after = resident_kibibytes(stack.server.pid())?;

    for (room, _) in &rooms {
        stack.api.post_message(*room, &Post::new("!count 3")).await?;
    }
    for reader in &mut readers {
        reader.hears("run_completed").await?;
    }
    ensure!(readers.len() == count, "{} of {count} readers", readers.len());
    drop(readers);
    stack.server.kill().await?;
    Ok((after - before) / u32::try_from(count).map(f64::from)?)
}

impl Reader {
    async fn open(address: SocketAddr, door: Door, room: RoomId, head: u64) -> anyhow::Result<Self> {
        if door == Door::Sse {
            return Ok(Self::Sse(Stream::open(address, &format!("/api/rooms/{room}/events?after={head}")).await?));
        }
        let socket = connect(address).await?;
        // Ours to keep small too: ten thousand of the usual size are a gigabyte.
        let config = WebSocketConfig::default().read_buffer_size(4096).write_buffer_size(0);
        let shaking = client_async_with_config(format!("ws://{address}/api/ws"), socket, Some(config));
        let (mut socket, _) = timeout(PATIENCE, shaking).await??;
        socket.send(Message::text(json!({"type": "subscribe", "room": room, "after": head}).to_string())).await?;
        let mut reader = Self::WebSocket(Box::new(socket));
        reader.hears("subscribed").await?;
        Ok(reader)
    }

    /// Reads until the word comes.
    async fn hears(&mut self, word: &str) -> anyhow::Result<()> {
        let word = format!("\"{word}\"");
        let mut heard = Vec::new();
        loop {
            match self {
                Self::Sse(stream) => stream.read(&mut heard, PATIENCE).await?,
                Self::WebSocket(socket) => {
                    let message = timeout(PATIENCE, socket.next()).await?.context("closed")??;
                    heard.extend_from_slice(&message.into_data());
                }
            }
            if heard.windows(word.len()).any(|window| window == word.as_bytes()) {
                return Ok(());
            }
        }
    }
}
