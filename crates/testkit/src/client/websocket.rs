//! Follows one or many rooms over one WebSocket.

use super::{SeenEvent, SeenHead, SeenItem, TestClient, TestClientError, event::position_text};
use domain::{
    ids::RoomId,
    position::{Epoch, Position, Seq},
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{Message, client::IntoClientRequest as _, handshake::client::Request},
};

/// Three missed heartbeats.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);
const IO_TIMEOUT: Duration = Duration::from_secs(30);

pub struct WsReader {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    positions: BTreeMap<RoomId, Position>,
    ready: VecDeque<(RoomId, SeenItem)>,
    idle: Duration,
}

/// All messages that a server may send, as one struct because they share fields.
#[derive(Deserialize)]
struct WsServerMessage<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    room: Option<RoomId>,
    epoch: Option<Epoch>,
    head: Option<Seq>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    heads: Option<BTreeMap<RoomId, Seq>>,
    code: Option<String>,
    detail: Option<String>,
}

/// The request that opens a WebSocket, with the client's credential.
pub fn socket_request(api: &TestClient) -> Result<Request, TestClientError> {
    let url = format!("{}/api/ws", api.base_url().replacen("http", "ws", 1));
    let mut request = url.as_str().into_client_request()?;
    if let Some(token) = api.token() {
        let value = format!("Bearer {token}")
            .parse()
            .map_err(|_| TestClientError::unexpected("the token is not a valid header value"))?;
        request.headers_mut().insert("authorization", value);
    }
    Ok(request)
}

impl WsReader {
    pub async fn connect(api: &TestClient) -> Result<Self, TestClientError> {
        let connecting = tokio_tungstenite::connect_async(socket_request(api)?);
        let (socket, _) =
            tokio::time::timeout(IO_TIMEOUT, connecting).await.map_err(|_| TestClientError::Timeout(IO_TIMEOUT))??;
        Ok(Self { socket, positions: BTreeMap::new(), ready: VecDeque::new(), idle: IDLE_TIMEOUT })
    }

    #[must_use]
    pub fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    pub async fn subscribe(&mut self, room: RoomId, after: &Position) -> Result<(), TestClientError> {
        self.positions.insert(room, after.clone());
        self.send(&json!({"type": "subscribe", "room": room, "after": position_text(after)})).await
    }

    pub async fn unsubscribe(&mut self, room: RoomId) -> Result<(), TestClientError> {
        self.positions.remove(&room);
        self.send(&json!({"type": "unsubscribe", "room": room})).await
    }

    pub async fn ping(&mut self) -> Result<(), TestClientError> {
        self.send(&json!({"type": "ping"})).await
    }

    async fn send(&mut self, message: &serde_json::Value) -> Result<(), TestClientError> {
        let sending = self.socket.send(Message::text(message.to_string()));
        tokio::time::timeout(IO_TIMEOUT, sending).await.map_err(|_| TestClientError::Timeout(IO_TIMEOUT))??;
        Ok(())
    }

    /// The position of the last received event of a room, to resume from.
    pub fn position(&self, room: RoomId) -> Option<&Position> {
        self.positions.get(&room)
    }

    /// Returns the next item about any room; `None` if the server closed the socket.
    pub async fn next(&mut self) -> Result<Option<(RoomId, SeenItem)>, TestClientError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            let received = tokio::time::timeout(self.idle, self.socket.next()).await;
            match received.map_err(|_| TestClientError::Timeout(self.idle))?.transpose()? {
                Some(Message::Text(text)) => self.read(text.as_str())?,
                Some(Message::Close(_)) | None => return Ok(None),
                Some(_) => {}
            }
        }
    }

    fn read(&mut self, text: &str) -> Result<(), TestClientError> {
        let bad = |what: &str| TestClientError::unexpected(format!("{what} in {text}"));
        let message: WsServerMessage<'_> = serde_json::from_str(text).map_err(|error| bad(&error.to_string()))?;
        match message.kind {
            "event" => {
                let event = SeenEvent::parse(message.event.ok_or_else(|| bad("no event"))?.get())?;
                let position = self.positions.entry(event.room_id).or_insert(Position::START);
                position.seq = event.seq;
                self.ready.push_back((event.room_id, SeenItem::Event(event)));
            }
            "subscribed" | "reset" => {
                let room = message.room.ok_or_else(|| bad("no room"))?;
                let epoch = message.epoch.ok_or_else(|| bad("no epoch"))?;
                let head = message.head.ok_or_else(|| bad("no head"))?;
                let position = self.positions.entry(room).or_insert(Position::START);
                position.epoch = Some(epoch.clone());
                let feed_head = SeenHead { epoch, head };
                if message.kind == "reset" {
                    position.seq = 0;
                    self.ready.push_back((room, SeenItem::Reset(feed_head)));
                } else {
                    self.ready.push_back((room, SeenItem::Heartbeat(feed_head)));
                }
            }
            "heartbeat" => {
                let epoch = message.epoch.ok_or_else(|| bad("no epoch"))?;
                for (room, head) in message.heads.unwrap_or_default() {
                    self.ready.push_back((room, SeenItem::Heartbeat(SeenHead { epoch: epoch.clone(), head })));
                }
            }
            "pong" => {}
            "error" => {
                let code = message.code.unwrap_or_default();
                return Err(TestClientError::Problem { status: 0, code, detail: message.detail.unwrap_or_default() });
            }
            other => return Err(bad(other)),
        }
        Ok(())
    }
}

impl std::fmt::Debug for WsReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WsReader").field("positions", &self.positions).finish_non_exhaustive()
    }
}
