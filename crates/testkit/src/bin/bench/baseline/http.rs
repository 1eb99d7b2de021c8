//! A minimal HTTP server: `GET /rooms/N/events` streams a room, `POST /rooms/N/count?tokens=T&pace=MS` writes tokens
//! to it.

use super::{BaselineToken, rooms::BaselineRooms};
use anyhow::{Context as _, bail, ensure};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::Sender,
    task::JoinSet,
    time::{Instant, sleep_until},
};

const MAX_REQUEST: usize = 8 * 1024;

pub async fn serve(rooms: BaselineRooms, tokens: Sender<BaselineToken>) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                socket.set_nodelay(true)?;
                connections.spawn(answer(socket, rooms.clone(), tokens.clone()));
            }
            // A reader that disconnected is not a failure.
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer(mut socket: TcpStream, rooms: BaselineRooms, tokens: Sender<BaselineToken>) -> anyhow::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        ensure!(socket.read_buf(&mut request).await? > 0 && request.len() < MAX_REQUEST, "no complete request");
    }
    let line = std::str::from_utf8(&request)?.lines().next().context("empty")?;
    let target = line.split(' ').nth(1).context("no target")?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut parts = path.trim_start_matches('/').split('/').skip(1);
    let room: usize = parts.next().context("no room")?.parse()?;
    match parts.next() {
        Some("events") => stream(socket, &rooms, room).await,
        Some("count") => {
            socket.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
            drop(socket);
            count(room, query, &tokens).await
        }
        _ => bail!("no such endpoint"),
    }
}

async fn stream(mut socket: TcpStream, rooms: &BaselineRooms, room: usize) -> anyhow::Result<()> {
    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\r\n").await?;
    let room = Arc::clone(&rooms.get(room));
    let mut head = room.follow();
    let mut position = 0;
    loop {
        head.wait_for(|head| *head > position).await?;
        let frames = room.after(position);
        position += frames.len();
        let bytes = if let [one] = frames.as_slice() { one.clone() } else { frames.concat().into() };
        socket.write_all(&bytes).await?;
    }
}

async fn count(room: usize, query: &str, tokens: &Sender<BaselineToken>) -> anyhow::Result<()> {
    let value = |name: &str| -> anyhow::Result<u64> {
        let found = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
        Ok(found.context("missing parameter")?.1.parse()?)
    };
    let pace = Duration::from_millis(value("pace")?);
    let mut due = Instant::now();
    for number in 1..=u32::try_from(value("tokens")?)? {
        if !pace.is_zero() {
            sleep_until(due).await;
            due += pace;
        }
        tokens.send(BaselineToken { room, number }).await?;
    }
    Ok(())
}
