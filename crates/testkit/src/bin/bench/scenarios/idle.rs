//! Memory per idle reader over SSE and WebSocket, and whether all of them are still served afterwards.

use crate::{
    Bench,
    stack::{GreenroomStack, LOCAL_KEY},
    statistics::Rounds,
    stream::{RawStream, connect},
    table::{Aim, FigureRow, FigureUnit, grouped},
    usage::resident_kibibytes,
};
use anyhow::{Context as _, ensure};
use domain::ids::RoomId;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use std::{net::SocketAddr, time::Duration};
use testkit::client::TestPost;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, client::IntoClientRequest as _, protocol::WebSocketConfig},
};

const ROOMS: usize = 100;
/// Connections opened concurrently.
const AT_ONCE: usize = 64;
const SETTLE_TIME: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(60);
/// Open files that a process needs in addition to its connections.
const OTHER_FILES: u64 = 500;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FeedTransport {
    Sse,
    WebSocket,
}

#[derive(Default)]
pub struct IdleScenario {
    sse: Rounds,
    websocket: Rounds,
    held: usize,
}

pub enum IdleReader {
    Sse(RawStream),
    WebSocket(Box<WebSocketStream<TcpStream>>),
}

impl IdleScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let possible = usize::try_from(bench.files.saturating_sub(OTHER_FILES))?;
        self.held = bench.scale.idle_readers.min(possible);
        self.sse.push(measure(bench, FeedTransport::Sse, self.held).await.context("SSE")?);
        self.websocket.push(measure(bench, FeedTransport::WebSocket, self.held).await.context("WebSocket")?);
        Ok(())
    }

    pub fn rows(self) -> Vec<FigureRow> {
        let held = grouped(&self.held.to_string());
        let what = |transport: &str| format!("memory per idle reader, {transport}, {held} held and then served");
        let row = |transport, rounds, most| {
            FigureRow::new(what(transport), FigureUnit::Kibibytes, rounds).aiming_at(Aim::AtMost(most))
        };
        vec![row("SSE", self.sse, 24.0), row("WebSocket", self.websocket, 8.0)]
    }
}

/// Returns KiB per reader.
async fn measure(bench: &Bench, transport: FeedTransport, count: usize) -> anyhow::Result<f64> {
    let stack = GreenroomStack::start(&bench.binary, &bench.new_folder("idle")).await?;
    let mut rooms = Vec::new();
    for _ in 0..ROOMS {
        let room = stack.room().await?;
        rooms.push((room, stack.api.room(room).await?.head));
    }
    sleep(SETTLE_TIME).await;
    let before = resident_kibibytes(stack.server.pid())?;
    let mut opening = JoinSet::new();
    let mut readers = Vec::new();
    for (_, &(room, head)) in (0..count).zip(rooms.iter().cycle()) {
        if opening.len() >= AT_ONCE
            && let Some(reader) = opening.join_next().await
        {
            readers.push(reader??);
        }
        opening.spawn(IdleReader::open(stack.address, transport, room, head));
    }
    while let Some(reader) = opening.join_next().await {
        readers.push(reader??);
    }
    sleep(SETTLE_TIME).await;
    let after = resident_kibibytes(stack.server.pid())?;

    for (room, _) in &rooms {
        stack.api.post_message(*room, &TestPost::new("!count 3")).await?;
    }
    for reader in &mut readers {
        reader.wait_for_text("run_completed").await?;
    }
    ensure!(readers.len() == count, "{} of {count} readers", readers.len());
    drop(readers);
    stack.server.kill().await?;
    Ok((after - before) / u32::try_from(count).map(f64::from)?)
}

impl IdleReader {
    pub async fn open(address: SocketAddr, transport: FeedTransport, room: RoomId, head: u64) -> anyhow::Result<Self> {
        if transport == FeedTransport::Sse {
            return Ok(Self::Sse(RawStream::open(address, &format!("/api/rooms/{room}/events?after={head}")).await?));
        }
        let socket = connect(address).await?;
        // Small buffers on our side too: ten thousand of the default size take a gigabyte.
        let config = WebSocketConfig::default().read_buffer_size(4096).write_buffer_size(0);
        let mut request = format!("ws://{address}/api/ws").into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {LOCAL_KEY}").parse()?);
        let handshake = client_async_with_config(request, socket, Some(config));
        let (mut socket, _) = timeout(TIMEOUT, handshake).await??;
        socket.send(Message::text(json!({"type": "subscribe", "room": room, "after": head}).to_string())).await?;
        let mut reader = Self::WebSocket(Box::new(socket));
        reader.wait_for_text("subscribed").await?;
        Ok(reader)
    }

    /// Reads until the quoted word arrives.
    async fn wait_for_text(&mut self, word: &str) -> anyhow::Result<()> {
        let word = format!("\"{word}\"");
        let mut received = Vec::new();
        loop {
            match self {
                Self::Sse(stream) => stream.read(&mut received, TIMEOUT).await?,
                Self::WebSocket(socket) => {
                    let message = timeout(TIMEOUT, socket.next()).await?.context("closed")??;
                    received.extend_from_slice(&message.into_data());
                }
            }
            if received.windows(word.len()).any(|window| window == word.as_bytes()) {
                return Ok(());
            }
        }
    }
}
