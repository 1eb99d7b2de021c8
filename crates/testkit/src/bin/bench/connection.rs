//! A cheap keep-alive HTTP client: it sends prepared request bytes and reads whole responses.

use crate::stream::{self, ChunkDecoder, RawStream};
use anyhow::{Context as _, ensure};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const TIMEOUT: Duration = Duration::from_secs(60);

pub struct RawConnection {
    socket: TcpStream,
    received: Vec<u8>,
    body: Vec<u8>,
}

pub struct RawResponse<'a> {
    head: &'a [u8],
    pub body: &'a [u8],
}

impl RawConnection {
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self { socket: stream::connect(address).await?, received: Vec::new(), body: Vec::new() })
    }

    /// Returns when the whole response has arrived, so the connection is free for the next request.
    pub async fn send(&mut self, request: &[u8]) -> anyhow::Result<RawResponse<'_>> {
        self.send_watching(request, |_| {}).await
    }

    /// Also calls `watch` with the body so far, whenever more of it has arrived.
    pub async fn send_watching(
        &mut self,
        request: &[u8],
        mut watch: impl FnMut(&[u8]),
    ) -> anyhow::Result<RawResponse<'_>> {
        self.received.clear();
        self.body.clear();
        self.socket.write_all(request).await?;
        let end = stream::read_head(&mut self.socket, &mut self.received).await?;
        let mut rest = self.received.split_off(end);
        let length: usize = match header(&self.received, "content-length") {
            Some(length) => length.parse()?,
            None => 0,
        };
        let mut chunks = header(&self.received, "transfer-encoding").map(|_| ChunkDecoder::default());
        loop {
            let ended = match &mut chunks {
                Some(chunks) => chunks.decode(&rest, &mut self.body)?,
                None => {
                    self.body.extend_from_slice(&rest);
                    self.body.len() >= length
                }
            };
            watch(&self.body);
            if ended {
                return Ok(RawResponse { head: &self.received, body: &self.body });
            }
            rest.clear();
            let count =
                timeout(TIMEOUT, self.socket.read_buf(&mut rest)).await.context("the response does not end")??;
            ensure!(count > 0, "the response was cut off");
        }
    }

    /// Sends a request whose response is an endless stream.
    pub async fn into_stream(self, request: &[u8]) -> anyhow::Result<RawStream> {
        RawStream::begin(self.socket, request).await
    }
}

impl RawResponse<'_> {
    pub fn is_success(&self) -> bool {
        self.head.starts_with(b"HTTP/1.1 2")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }

    /// The head and body as text, for error messages.
    pub fn text(&self) -> String {
        format!("{}{}", String::from_utf8_lossy(self.head), String::from_utf8_lossy(self.body))
    }
}

fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let value = head.split(|byte| *byte == b'\n').find_map(|line| {
        let (found, rest) = line.split_at_checked(name.len())?;
        found.eq_ignore_ascii_case(name.as_bytes()).then(|| rest.strip_prefix(b":"))?
    })?;
    Some(std::str::from_utf8(value).ok()?.trim())
}

#[cfg(test)]
mod tests {
    use super::header;

    #[test]
    fn header_names_are_case_insensitive() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length-Of: 3\r\ncontent-LENGTH: 12\r\n\r\n";
        assert_eq!(header(head, "content-length"), Some("12"));
        assert_eq!(header(head, "transfer-encoding"), None);
    }
}
