//! A cheap reader, so that the measured load is the server's: a plain socket, HTTP/1.1, chunks decoded in place.

use crate::stack::LOCAL_KEY;
use anyhow::{Context as _, ensure};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

const ANSWER: Duration = Duration::from_secs(60);
const MAX_HEADERS: usize = 16 * 1024;

pub struct RawStream {
    socket: TcpStream,
    chunks: Option<ChunkDecoder>,
    received: Vec<u8>,
}

/// Closes with a reset: ten thousand regular closes would keep their ports busy for a minute.
pub async fn connect(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_zero_linger()?;
    let socket = timeout(ANSWER, socket.connect(address)).await.context("connecting")??;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Reads until the headers are complete and returns where they end.
pub async fn read_head(socket: &mut TcpStream, received: &mut Vec<u8>) -> anyhow::Result<usize> {
    loop {
        let count = timeout(ANSWER, socket.read_buf(received)).await.context("no response")??;
        ensure!(count > 0, "closed before the headers ended");
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            return Ok(end + 4);
        }
        ensure!(received.len() < MAX_HEADERS, "the headers are too long");
    }
}

impl RawStream {
    /// Returns when the response headers have arrived.
    pub async fn open(address: SocketAddr, path: &str) -> anyhow::Result<Self> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {LOCAL_KEY}\r\n\
             Accept: text/event-stream\r\n\r\n"
        );
        Self::begin(connect(address).await?, request.as_bytes()).await.context(path.to_owned())
    }

    /// Sends any request on an idle connection and returns when the response headers have arrived.
    pub async fn begin(mut socket: TcpStream, request: &[u8]) -> anyhow::Result<Self> {
        socket.write_all(request).await?;
        let mut received = Vec::new();
        let end = read_head(&mut socket, &mut received).await?;
        let head = std::str::from_utf8(&received[..end])?.to_ascii_lowercase();
        ensure!(head.starts_with("http/1.1 200"), "{head}");
        let chunks = head.contains("transfer-encoding: chunked").then(ChunkDecoder::default);
        received.drain(..end);
        Ok(Self { socket, chunks, received })
    }

    /// Appends the next bytes of the body to `body`.
    pub async fn read(&mut self, body: &mut Vec<u8>, patience: Duration) -> anyhow::Result<()> {
        if self.received.is_empty() {
            let count = timeout(patience, self.socket.read_buf(&mut self.received))
                .await
                .context("nothing arrived in time")??;
            ensure!(count > 0, "the server closed the stream");
        }
        match &mut self.chunks {
            Some(chunks) => ensure!(!chunks.decode(&self.received, body)?, "the server ended the stream"),
            None => body.extend_from_slice(&self.received),
        }
        self.received.clear();
        // Keeps the buffer from growing without bound.
        self.received.shrink_to(64 * 1024);
        Ok(())
    }
}

#[derive(Default)]
pub struct ChunkDecoder {
    state: ChunkState,
}

enum ChunkState {
    Size(usize),
    Bytes(usize),
    /// The line end after a chunk.
    Tail,
    /// After the last chunk.
    End,
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size(0)
    }
}

impl ChunkDecoder {
    /// Returns whether the last chunk has ended.
    pub fn decode(&mut self, mut bytes: &[u8], body: &mut Vec<u8>) -> anyhow::Result<bool> {
        while let [first, rest @ ..] = bytes {
            match &mut self.state {
                ChunkState::Size(size) => {
                    bytes = rest;
                    match first {
                        b'\r' => {}
                        b'\n' if *size == 0 => self.state = ChunkState::End,
                        b'\n' => self.state = ChunkState::Bytes(*size),
                        digit => {
                            let digit = char::from(*digit).to_digit(16).context("not a chunk size")?;
                            *size = *size * 16 + usize::try_from(digit)?;
                        }
                    }
                }
                ChunkState::Bytes(left) => {
                    let (now, later) = bytes.split_at((*left).min(bytes.len()));
                    body.extend_from_slice(now);
                    bytes = later;
                    *left -= now.len();
                    if *left == 0 {
                        self.state = ChunkState::Tail;
                    }
                }
                ChunkState::Tail => {
                    bytes = rest;
                    if *first == b'\n' {
                        self.state = ChunkState::default();
                    }
                }
                ChunkState::End => {
                    bytes = rest;
                    if *first == b'\n' {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::ChunkDecoder;

    #[test]
    fn chunks_are_decoded_at_any_split() {
        let text = b"5\r\nhello\r\n10\r\n, this is sixtee\r\n0\r\n\r\n";
        for size in 1..text.len() {
            let (mut chunks, mut body) = (ChunkDecoder::default(), Vec::new());
            let parts: Vec<&[u8]> = text.chunks(size).collect();
            let ended: Vec<bool> = parts.iter().map(|part| chunks.decode(part, &mut body).unwrap()).collect();
            assert_eq!(body, b"hello, this is sixtee");
            assert_eq!(ended.iter().position(|ended| *ended), Some(parts.len() - 1));
        }
    }
}
