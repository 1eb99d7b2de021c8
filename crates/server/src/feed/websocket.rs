//! WebSocket: many rooms on one connection, each followed from a position, and the list of all of them.

use super::roster::{News, Roster};
use crate::{App, error::Problem};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::Bytes;
use domain::{
    ids::RoomId,
    owner::Principal,
    position::{Position, Seq},
};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use store::journal::{Batch, Bell, Follower};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Rooms one connection may follow.
const MAX_ROOMS: usize = 1000;
/// What a client has to say is small.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// Small buffers: the default ones cost 134 KiB for every idle reader.
pub const READ_BUFFER_BYTES: usize = 2 * 1024;
pub const WRITE_BUFFER_BYTES: usize = 4 * 1024;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    Subscribe {
        room: RoomId,
        #[serde(default = "start", deserialize_with = "position")]
        after: Position,
    },
    Unsubscribe {
        room: RoomId,
    },
    WatchRooms {},
    UnwatchRooms {},
    Ping {},
}

fn start() -> Position {
    Position::START
}

/// `17`, `"17"` or `"7c9e6f2a-17"`.
fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Position, D::Error> {
    let text = match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => return Err(de::Error::custom("after: a number or a text")),
    };
    text.parse().map_err(de::Error::custom)
}

/// One room this connection follows.
struct Subscription {
    follower: Follower,
    caught_up: bool,
}

struct Connection {
    app: App,
    principal: Principal,
    socket: WebSocket,
    bell: Arc<Bell>,
    rooms: BTreeMap<RoomId, Subscription>,
    /// Where the client watches the list of rooms.
    roster: Option<Roster>,
    /// A ping was sent and nothing has come since.
    silent: bool,
}

/// Why a connection ends.
enum End {
    /// The client left or the line broke.
    Gone,
    Tell(CloseFrame),
}

impl From<axum::Error> for End {
    fn from(_: axum::Error) -> Self {
        Self::Gone
    }
}

pub async fn serve(app: App, principal: Principal, socket: WebSocket) {
    let bell = Arc::new(Bell::default());
    let mut connection =
        Connection { app, principal, socket, bell, rooms: BTreeMap::new(), roster: None, silent: false };
    let Err(end) = connection.run().await;
    if let End::Tell(frame) = end
        && connection.socket.send(Message::Close(Some(frame))).await.is_err()
    {
        tracing::debug!("a WebSocket client had gone before it could be told why it is closed");
    }
}

impl Connection {
    async fn run(&mut self) -> Result<std::convert::Infallible, End> {
        let every = self.app.config.heartbeat;
        let mut heartbeat = interval_at(Instant::now() + every, every);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stopping = self.app.stopping.clone().cancelled_owned();
        tokio::pin!(stopping);
        loop {
            let more = self.deliver().await?;
            // While there is more to send, what the client says is looked at but not waited for.
            let said = if more {
                self.socket.next().now_or_never()
            } else {
                tokio::select! {
                    biased;
                    () = &mut stopping => {
                        // The end of a run that was interrupted for the stop may have come meanwhile: it is shown first.
                        self.look();
                        while self.deliver().await? {}
                        let reason = Utf8Bytes::from_static("the server is stopping; come back in a second");
                        return Err(End::Tell(CloseFrame { code: close_code::RESTART, reason }));
                    }
                    _ = heartbeat.tick() => {
                        self.heartbeat().await?;
                        None
                    }
                    said = self.socket.next() => Some(said),
                    () = self.bell.rung() => {
                        self.look();
                        None
                    }
                    () = due(&mut self.roster) => {
                        self.tell_of_rooms(false).await?;
                        None
                    }
                }
            };
            match said {
                Some(Some(message)) => self.heard(message?).await?,
                Some(None) => return Err(End::Gone),
                None => {}
            }
        }
    }

    /// Marks the rooms that moved.
    fn look(&mut self) {
        for subscription in self.rooms.values_mut() {
            subscription.caught_up &= !subscription.follower.is_behind();
        }
    }

    /// One batch for each room that is behind, in one write. True when there is more.
    async fn deliver(&mut self) -> Result<bool, End> {
        let (mut sent, mut failed) = (false, Vec::new());
        let epoch = self.app.engine.store().epoch().clone();
        for (room, subscription) in self.rooms.iter_mut().filter(|(_, subscription)| !subscription.caught_up) {
            match subscription.follower.next().await {
                Ok(Batch::Frames(frames)) => {
                    for frame in frames {
                        self.socket.feed(text(frame.websocket().clone())).await?;
                    }
                    sent = true;
                }
                Ok(Batch::Reset { head }) => {
                    let reset = json!({"type": "reset", "room": room, "epoch": epoch, "head": head});
                    self.socket.feed(Message::text(reset.to_string())).await?;
                    sent = true;
                }
                Ok(Batch::CaughtUp) => subscription.caught_up = true,
                Err(error) => failed.push((*room, Problem::from(engine::Error::from(error)))),
            }
        }
        for (room, problem) in failed {
            self.rooms.remove(&room);
            problem.log("websocket");
            self.refuse(&problem, Some(room)).await?;
        }
        if sent {
            self.socket.flush().await?;
        }
        // A bell that rang meanwhile may have been for a room that was just caught up.
        self.look();
        Ok(self.rooms.values().any(|subscription| !subscription.caught_up))
    }

    /// What changed in the list of rooms.
    async fn tell_of_rooms(&mut self, all: bool) -> Result<(), End> {
        let Some(roster) = &mut self.roster else { return Ok(()) };
        let news = match roster.news(all).await {
            Ok(news) => news,
            Err(error) => {
                // It is told with the next heartbeat, or with whatever happens before.
                Problem::from(error).log("websocket");
                return Ok(());
            }
        };
        if news.is_empty() {
            return Ok(());
        }
        for one in news {
            let told = match one {
                News::Room(summary) => json!({"type": "room", "room": summary}),
                News::Gone(room) => json!({"type": "room_gone", "id": room}),
            };
            self.socket.feed(Message::text(told.to_string())).await?;
        }
        Ok(self.socket.flush().await?)
    }

    async fn heartbeat(&mut self) -> Result<(), End> {
        if std::mem::replace(&mut self.silent, true) {
            let reason = Utf8Bytes::from_static("no answer to a ping");
            return Err(End::Tell(CloseFrame { code: close_code::POLICY, reason }));
        }
        // A connection outlives the checks at its door: a token may be revoked and a room deleted meanwhile.
        if let Err(problem) = self.app.bearer.recheck(&self.principal).await {
            self.refuse(&problem, None).await?;
            let reason = Utf8Bytes::from_static("this connection may not go on; the error before this says why");
            return Err(End::Tell(CloseFrame { code: close_code::POLICY, reason }));
        }
        let rooms: Vec<RoomId> = self.rooms.keys().copied().collect();
        for room in rooms {
            let Some(subscription) = self.rooms.get(&room) else { continue };
            if let Err(error) = subscription.follower.look_again().await {
                self.rooms.remove(&room);
                self.refuse(&Problem::from(error), Some(room)).await?;
            }
        }
        self.look();
        self.tell_of_rooms(true).await?;
        let heads: BTreeMap<RoomId, Seq> = self.rooms.iter().map(|(room, s)| (*room, s.follower.head())).collect();
        let epoch = self.app.engine.store().epoch();
        let beat = json!({"type": "heartbeat", "epoch": epoch, "heads": heads});
        self.socket.feed(Message::text(beat.to_string())).await?;
        self.socket.feed(Message::Ping(Bytes::new())).await?;
        Ok(self.socket.flush().await?)
    }

    async fn heard(&mut self, message: Message) -> Result<(), End> {
        self.silent = false;
        match message {
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(request) => self.obey(request).await,
                Err(error) => {
                    let what = format!(
                        "not understood: {error}; say subscribe, unsubscribe, watch_rooms, unwatch_rooms or ping"
                    );
                    self.refuse(&Problem::invalid(what), None).await
                }
            },
            Message::Binary(_) => self.refuse(&Problem::invalid("send text, not binary"), None).await,
            Message::Close(_) => Err(End::Gone),
            Message::Ping(_) | Message::Pong(_) => Ok(()),
        }
    }

    async fn obey(&mut self, request: Request) -> Result<(), End> {
        match request {
            Request::WatchRooms {} => match Roster::open(self.app.engine.store(), &self.principal.owner).await {
                Ok((roster, rooms)) => {
                    self.roster = Some(roster);
                    let list = json!({"type": "rooms", "rooms": rooms});
                    Ok(self.socket.send(Message::text(list.to_string())).await?)
                }
                Err(error) => self.refuse(&Problem::from(error), None).await,
            },
            Request::UnwatchRooms {} => {
                self.roster = None;
                Ok(self.socket.send(Message::text(r#"{"type":"unwatched_rooms"}"#)).await?)
            }
            Request::Ping {} => Ok(self.socket.send(Message::text(r#"{"type":"pong"}"#)).await?),
            Request::Unsubscribe { room } => {
                self.rooms.remove(&room);
                let done = json!({"type": "unsubscribed", "room": room});
                Ok(self.socket.send(Message::text(done.to_string())).await?)
            }
            Request::Subscribe { room, .. } if self.rooms.len() >= MAX_ROOMS && !self.rooms.contains_key(&room) => {
                let what = format!("one connection follows at most {MAX_ROOMS} rooms");
                self.refuse(&Problem::invalid(what), Some(room)).await
            }
            Request::Subscribe { room, after } => {
                let store = self.app.engine.store().clone();
                match store.follow(&self.principal.owner, room, &after, self.bell.clone()).await {
                    Ok(follower) => {
                        let done = json!({"type": "subscribed", "room": room, "epoch": store.epoch(),
                                          "head": follower.head()});
                        self.socket.send(Message::text(done.to_string())).await?;
                        self.rooms.insert(room, Subscription { follower, caught_up: false });
                        Ok(())
                    }
                    Err(error) => self.refuse(&Problem::from(engine::Error::from(error)), Some(room)).await,
                }
            }
        }
    }

    async fn refuse(&mut self, problem: &Problem, room: Option<RoomId>) -> Result<(), End> {
        let refusal = json!({"type": "error", "code": problem.code(), "detail": problem.detail(), "room": room});
        Ok(self.socket.send(Message::text(refusal.to_string())).await?)
    }
}

async fn due(roster: &mut Option<Roster>) {
    match roster {
        Some(roster) => roster.due().await,
        None => std::future::pending().await,
    }
}

/// Frames are JSON and so always UTF-8; anything else would be a bug that is better seen than hidden.
fn text(bytes: Bytes) -> Message {
    Utf8Bytes::try_from(bytes).map_or_else(|_| Message::text("{}"), Message::Text)
}
