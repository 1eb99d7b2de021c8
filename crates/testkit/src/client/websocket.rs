//! Follows one or many rooms over one WebSocket.

use super::{Api, Error, Place, Said, SeenEvent, event::written};
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
    tungstenite::{Message, client::IntoClientRequest as _},
};

/// Three heartbeats missed.
const IDLE: Duration = Duration::from_secs(45);
const CONNECT: Duration = Duration::from_secs(30);

pub struct WsReader {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    positions: BTreeMap<RoomId, Position>,
    ready: VecDeque<(RoomId, Said)>,
    idle: Duration,
}

/// All that a server may say, one struct because the words share their fields.
#[derive(Deserialize)]
struct Spoken<'a> {
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

impl WsReader {
    pub async fn connect(api: &Api) -> Result<Self, Error> {
        let url = format!("{}/api/ws", api.base().replacen("http", "ws", 1));
        let mut request = url.as_str().into_client_request()?;
        if let Some(token) = api.token() {
            let value =
                format!("Bearer {token}").parse().map_err(|_| Error::shape("a token that is no header value"))?;
            request.headers_mut().insert("authorization", value);
        }
        let connecting = tokio_tungstenite::connect_async(request);
        let (socket, _) = tokio::time::timeout(CONNECT, connecting).await.map_err(|_| Error::Silence(CONNECT))??;
        Ok(Self { socket, positions: BTreeMap::new(), ready: VecDeque::new(), idle: IDLE })
    }

    #[must_use]
    pub fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    pub async fn subscribe(&mut self, room: RoomId, after: &Position) -> Result<(), Error> {
        self.positions.insert(room, after.clone());
        self.say(&json!({"type": "subscribe", "room": room, "after": written(after)})).await
    }

    pub async fn unsubscribe(&mut self, room: RoomId) -> Result<(), Error> {
        self.positions.remove(&room);
        self.say(&json!({"type": "unsubscribe", "room": room})).await
    }

    pub async fn ping(&mut self) -> Result<(), Error> {
        self.say(&json!({"type": "ping"})).await
    }

    async fn say(&mut self, message: &serde_json::Value) -> Result<(), Error> {
        let sending = self.socket.send(Message::text(message.to_string()));
        tokio::time::timeout(CONNECT, sending).await.map_err(|_| Error::Silence(CONNECT))??;
        Ok(())
    }

    /// The last event that was shown of a room: where to resume.
    pub fn position(&self, room: RoomId) -> Option<&Position> {
        self.positions.get(&room)
    }

    /// The next thing said about any room; `None` when the server closed.
    pub async fn next(&mut self) -> Result<Option<(RoomId, Said)>, Error> {
        loop {
            if let Some(said) = self.ready.pop_front() {
                return Ok(Some(said));
            }
            let received = tokio::time::timeout(self.idle, self.socket.next()).await;
            match received.map_err(|_| Error::Silence(self.idle))?.transpose()? {
                Some(Message::Text(text)) => self.read(text.as_str())?,
                Some(Message::Close(_)) | None => return Ok(None),
                Some(_) => {}
            }
        }
    }

    fn read(&mut self, text: &str) -> Result<(), Error> {
        let bad = |what: &str| Error::shape(format!("{what} in {text}"));
        let spoken: Spoken<'_> = serde_json::from_str(text).map_err(|error| bad(&error.to_string()))?;
        match spoken.kind {
            "event" => {
                let event = SeenEvent::parse(spoken.event.ok_or_else(|| bad("no event"))?.get())?;
                let position = self.positions.entry(event.room_id).or_insert(Position::START);
                position.seq = event.seq;
                self.ready.push_back((event.room_id, Said::Event(event)));
            }
            "subscribed" | "reset" => {
                let room = spoken.room.ok_or_else(|| bad("no room"))?;
                let epoch = spoken.epoch.ok_or_else(|| bad("no epoch"))?;
                let head = spoken.head.ok_or_else(|| bad("no head"))?;
                let position = self.positions.entry(room).or_insert(Position::START);
                position.epoch = Some(epoch.clone());
                let place = Place { epoch, head };
                if spoken.kind == "reset" {
                    position.seq = 0;
                    self.ready.push_back((room, Said::Reset(place)));
                } else {
                    self.ready.push_back((room, Said::Heartbeat(place)));
                }
            }
            "heartbeat" => {
                let epoch = spoken.epoch.ok_or_else(|| bad("no epoch"))?;
                for (room, head) in spoken.heads.unwrap_or_default() {
                    self.ready.push_back((room, Said::Heartbeat(Place { epoch: epoch.clone(), head })));
                }
            }
            "pong" => {}
            "error" => {
                let code = spoken.code.unwrap_or_default();
                return Err(Error::Problem { status: 0, code, detail: spoken.detail.unwrap_or_default() });
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
