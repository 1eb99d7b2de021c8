//! Paused readers: their sockets have tiny buffers and are not read until requested.

use domain::{ids::RoomId, position::Seq};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use std::net::SocketAddr;
use testkit::client::{ReceivedFrame, ReceivedFrameParser, TestClient, socket_request};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

const RECEIVE_BYTES: u32 = 4096;

async fn connect(api: &TestClient) -> TcpStream {
    let address: SocketAddr = api.base_url().strip_prefix("http://").unwrap().parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVE_BYTES).unwrap();
    socket.connect(address).await.unwrap()
}

/// A room's stream from its first event on.
pub struct SlowStream(TcpStream);

impl SlowStream {
    pub async fn open(api: &TestClient, room: RoomId) -> Self {
        let mut tcp = connect(api).await;
        let host = tcp.peer_addr().unwrap();
        // HTTP/1.0 has no chunked encoding: the body is the raw stream.
        let head = format!(
            "GET /api/rooms/{room}/events HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\
             Accept: text/event-stream\r\n\r\n",
            api.token().unwrap()
        );
        tcp.write_all(head.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tcp.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&head));
        Self(tcp)
    }

    /// Reads until `fits`, checks that no event is missing or duplicated, and returns the last seq.
    pub async fn read_until(mut self, fits: impl Fn(Seq, &ReceivedFrame) -> bool) -> Seq {
        let (mut parser, mut frames, mut buffer) =
            (ReceivedFrameParser::default(), Vec::<ReceivedFrame>::new(), vec![0; 256 * 1024]);
        let mut seq = 0;
        loop {
            let size = self.0.read(&mut buffer).await.unwrap();
            assert!(size > 0, "the stream ended after event {seq}");
            parser.push(&buffer[..size], &mut frames).unwrap();
            for frame in frames.drain(..).filter(|frame| frame.id.is_some()) {
                seq += 1;
                assert!(frame.data.contains(&format!("\"seq\":{seq},")), "event {seq} is next, not {}", frame.data);
                if fits(seq, &frame) {
                    return seq;
                }
            }
        }
    }
}

/// A socket that follows one room from its first event on.
pub struct SlowSocket(WebSocketStream<TcpStream>);

impl SlowSocket {
    pub async fn open(api: &TestClient, room: RoomId) -> Self {
        let request = socket_request(api).unwrap();
        let (mut socket, _) = tokio_tungstenite::client_async(request, connect(api).await).await.unwrap();
        let subscribe = json!({"type": "subscribe", "room": room, "after": 0}).to_string();
        socket.send(Message::text(subscribe)).await.unwrap();
        Self(socket)
    }

    pub async fn read_until(mut self, head: Seq) {
        let mut seq = 0;
        while seq < head {
            let Message::Text(text) = self.0.next().await.unwrap().unwrap() else { continue };
            if text.starts_with(r#"{"type":"event""#) {
                seq += 1;
                assert!(text.contains(&format!("\"seq\":{seq},")), "event {seq} is next, not {text}");
            }
        }
    }
}
