//! A client that keeps its connection and costs as little as possible: whole requests are given as bytes, whole answers
//! are read.

use crate::stream::{self, Chunks, Stream};
use anyhow::{Context as _, ensure};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(60);

pub struct Connection {
    socket: TcpStream,
    received: Vec<u8>,
    body: Vec<u8>,
}

pub struct Answer<'a> {
    head: &'a [u8],
    pub body: &'a [u8],
}

impl Connection {
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self { socket: stream::connect(address).await?, received: Vec::new(), body: Vec::new() })
    }

    /// Returns when the whole answer is there, so that the connection is free for the next request.
    pub async fn ask(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.received.clear();
        self.body.clear();
        self.socket.write_all(request).await?;
        let end = stream::read_head(&mut self.socket, &mut self.received).await?;
        let mut rest = self.received.split_off(end);
        let length: usize = match header(&self.received, "content-length") {
            Some(length) => length.parse()?,
            None => 0,
        };
        let mut chunks = header(&self.received, "transfer-encoding").map(|_| Chunks::default());
        loop {
            let ended = match &mut chunks {
                Some(chunks) => chunks.take(&rest, &mut self.body)?,
                None => {
                    self.body.extend_from_slice(&rest);
                    self.body.len() >= length
                }
            };
            if ended {
                return Ok(Answer { head: &self.received, body: &self.body });
            }
            rest.clear();
            let count =
                timeout(PATIENCE, self.socket.read_buf(&mut rest)).await.context("the answer does not end")??;
            ensure!(count > 0, "the answer was cut off");
        }
    }

    /// For a request whose answer does not end.
    pub async fn follow(self, request: &[u8]) -> anyhow::Result<Stream> {
        Stream::begin(self.socket, request).await
    }
}

impl Answer<'_> {
    pub fn is_success(&self) -> bool {
        self.head.starts_with(b"HTTP/1.1 2")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }

    /// For a message about what went wrong.
    pub fn whole(&self) -> String {
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
    fn a_header_is_found_however_it_is_written() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length-Of: 3\r\ncontent-LENGTH: 12\r\n\r\n";
        assert_eq!(header(head, "content-length"), Some("12"));
        assert_eq!(header(head, "transfer-encoding"), None);
    }
}
