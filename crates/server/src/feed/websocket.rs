//! WebSocket: many rooms on one connection, each followed from a position, and the list of all of them.

use super::{
    agent_feed::AgentFeed,
    client_socket::ClientSocket,
    room_list_feed::{RoomListChange, RoomListFeed},
    socket_protocol::{SocketMessage, SocketRequest},
};
use crate::{
    App,
    auth::{access_changes::AccessWatch, rate_limit::RateLimitKey},
    error::Problem,
    extract::json,
    shares::{StreamPermit, SubscriptionPermits, UserKey},
};
use bytes::Bytes;
use domain::{actor::Actor, ids::RoomId, position::Seq};
use futures_util::FutureExt as _;
use std::{collections::BTreeMap, sync::Arc};
use store::{
    journal::{Batch, Follower},
    notify::Notifier,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_tungstenite::tungstenite::{self, Message, protocol::frame::coding::CloseCode};

/// Rooms that one connection may follow.
const MAX_ROOMS: usize = 1000;

/// One room that this connection follows.
struct RoomSubscription {
    follower: Follower,
    caught_up: bool,
}

struct SocketConnection {
    app: App,
    actor: Actor,
    socket: ClientSocket,
    notifier: Arc<Notifier>,
    /// Boxed, because a map has space for eleven from the first one on.
    rooms: BTreeMap<RoomId, Box<RoomSubscription>>,
    /// Set if the client watches the list of rooms.
    room_list: Option<RoomListFeed>,
    /// Set if the client follows agents. Boxed, because few do.
    agents: Option<Box<AgentFeed>>,
    /// A ping was sent and nothing was received since.
    awaiting_pong: bool,
    access: AccessWatch,
    subscriptions: SubscriptionPermits,
    permit: StreamPermit,
}

/// Why a connection ends.
enum SocketEnd {
    /// The client closed the connection, or it was lost.
    Disconnected,
    Close(CloseCode, &'static str),
}

impl From<tungstenite::Error> for SocketEnd {
    fn from(_: tungstenite::Error) -> Self {
        Self::Disconnected
    }
}

/// Not an `async fn`, which would hold the socket twice: as its argument and in the connection.
pub fn serve(app: App, actor: Actor, permit: StreamPermit, socket: ClientSocket) -> impl Future<Output = ()> + Send {
    let access = app.access_changes.watch();
    let mut connection = SocketConnection {
        access,
        app,
        actor,
        socket,
        notifier: Arc::new(Notifier::default()),
        rooms: BTreeMap::new(),
        room_list: None,
        agents: None,
        awaiting_pong: false,
        subscriptions: permit.subscriptions(),
        permit,
    };
    async move {
        let Err(end) = connection.run().await;
        if let SocketEnd::Close(code, reason) = end
            && connection.socket.close(code, reason).await.is_err()
        {
            tracing::debug!("a WebSocket client disconnected before it got the close reason");
        }
    }
}

/// A connection waits in [`Self::run`], and a future is as large as its largest part. What runs rarely and reads the
/// store is boxed there, so that an idle connection does not hold space for it.
impl SocketConnection {
    async fn run(&mut self) -> Result<std::convert::Infallible, SocketEnd> {
        let every = self.app.config.heartbeat;
        let mut heartbeat = interval_at(Instant::now() + every, every);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stopping = self.app.stopping.clone().cancelled_owned();
        tokio::pin!(stopping);
        let mut checked = Instant::now();
        loop {
            let more = self.deliver().await?;
            // A connection that always has more to send does not reach its heartbeat below.
            let is_due = more && checked.elapsed() > every;
            if self.access.take() || is_due {
                Box::pin(self.recheck_access()).await?;
                checked = Instant::now();
            }
            // While there is more to send, client messages are polled but not awaited.
            let incoming = if more {
                self.socket.next().now_or_never()
            } else {
                tokio::select! {
                    biased;
                    () = &mut stopping => {
                        // The last events of runs that the stop interrupted may be in the journal; they are sent first.
                        self.mark_rooms_behind();
                        while self.deliver().await? {}
                        let reason = "the server is stopping; reconnect in a second";
                        return Err(SocketEnd::Close(CloseCode::Restart, reason));
                    }
                    _ = heartbeat.tick() => {
                        Box::pin(self.heartbeat()).await?;
                        None
                    }
                    incoming = self.socket.next() => Some(incoming),
                    () = self.notifier.notified() => {
                        self.mark_rooms_behind();
                        None
                    }
                    // Checked at the beginning of the loop.
                    () = self.access.wait() => None,
                    () = room_list_changed(&mut self.room_list) => {
                        Box::pin(self.send_room_changes(false)).await?;
                        None
                    }
                    () = agents_changed(self.agents.as_deref()) => {
                        Box::pin(self.send_agent_news(false)).await?;
                        None
                    }
                }
            };
            match incoming {
                Some(Some(message)) => self.receive(message?).await?,
                Some(None) => return Err(SocketEnd::Disconnected),
                None => {}
            }
        }
    }

    /// Marks the rooms that have new events.
    fn mark_rooms_behind(&mut self) {
        for subscription in self.rooms.values_mut() {
            subscription.caught_up &= !subscription.follower.is_behind();
        }
    }

    /// Sends one batch for each room that is behind, in one write. Returns whether there is more to send.
    async fn deliver(&mut self) -> Result<bool, SocketEnd> {
        let (mut sent, mut failed) = (false, Vec::new());
        let epoch = self.app.engine.queries().epoch().clone();
        for (room, subscription) in self.rooms.iter_mut().filter(|(_, subscription)| !subscription.caught_up) {
            let batch = match subscription.follower.next().await {
                // Boxed, because few events are large.
                Ok(Batch::Large { bytes }) => {
                    let large = Box::pin(send_large(&mut self.socket, subscription, &self.permit, bytes)).await?;
                    large.map(|()| Batch::Frames(Vec::new()))
                }
                batch => batch.map_err(|error| Problem::from(engine::EngineError::from(error))),
            };
            match batch {
                Ok(Batch::Frames(frames)) => {
                    for frame in frames {
                        self.socket.feed_event(&frame).await?;
                    }
                    sent = true;
                }
                // It was sent above.
                Ok(Batch::Large { .. }) => {}
                Ok(Batch::Reset { head }) => {
                    let reset = SocketMessage::Reset { room: *room, epoch: epoch.clone(), head };
                    self.socket.feed(reset.into()).await?;
                    sent = true;
                }
                Ok(Batch::CaughtUp) => subscription.caught_up = true,
                Err(problem) => failed.push((*room, problem)),
            }
        }
        for (room, problem) in failed {
            self.unsubscribe(room);
            problem.log("websocket");
            self.send_error(&problem, Some(room)).await?;
        }
        if sent {
            self.socket.flush().await?;
        }
        // A wake-up that came meanwhile may be for a room that had just caught up.
        self.mark_rooms_behind();
        Ok(self.rooms.values().any(|subscription| !subscription.caught_up))
    }

    /// Sends the changes in the list of rooms.
    async fn send_room_changes(&mut self, all: bool) -> Result<(), SocketEnd> {
        let Some(room_list) = &mut self.room_list else { return Ok(()) };
        let changes = match room_list.changes(all).await {
            Ok(changes) => changes,
            Err(error) => {
                // The changes are sent with the next heartbeat or the next wake-up.
                Problem::from(error).log("websocket");
                return Ok(());
            }
        };
        if changes.is_empty() {
            return Ok(());
        }
        for change in changes {
            let message = match change {
                RoomListChange::Updated(room) => SocketMessage::Room { room },
                RoomListChange::Deleted(id) => SocketMessage::RoomGone { id },
            };
            self.feed(message).await?;
        }
        Ok(self.socket.flush().await?)
    }

    /// Sends what the followed agents have said, and how they have changed.
    async fn send_agent_news(&mut self, all: bool) -> Result<(), SocketEnd> {
        let Some(agents) = &mut self.agents else { return Ok(()) };
        let news = match agents.news(all, &self.permit).await {
            Ok(news) => news,
            Err(problem) => {
                self.agents = None;
                return self.send_error(&problem, None).await;
            }
        };
        if news.messages.is_empty() {
            return Ok(());
        }
        for message in news.messages {
            match &news.memory {
                Some(_) => self.socket.feed(message.into()).await?,
                None => self.feed(message).await?,
            }
        }
        Ok(self.socket.flush().await?)
    }

    /// Writes a message. A large one takes memory of the user until the client has received it, and is refused if that is
    /// not left: to wait would keep it in memory.
    async fn feed(&mut self, message: SocketMessage) -> Result<(), SocketEnd> {
        let text = Bytes::from(message);
        match self.permit.try_memory(text.len()) {
            Ok(None) => Ok(self.socket.feed(text).await?),
            Ok(Some(_memory)) => Ok(Box::pin(self.socket.send(text)).await?),
            Err(problem) => {
                drop(text);
                Box::pin(self.send_error(&problem, None)).await
            }
        }
    }

    async fn send(&mut self, message: SocketMessage) -> Result<(), SocketEnd> {
        self.feed(message).await?;
        Ok(self.socket.flush().await?)
    }

    async fn heartbeat(&mut self) -> Result<(), SocketEnd> {
        if std::mem::replace(&mut self.awaiting_pong, true) {
            return Err(SocketEnd::Close(CloseCode::Policy, "no response to a ping"));
        }
        self.recheck_access().await?;
        let rooms: Vec<RoomId> = self.rooms.keys().copied().collect();
        for room in rooms {
            let Some(subscription) = self.rooms.get(&room) else { continue };
            if let Err(error) = subscription.follower.refresh().await {
                self.unsubscribe(room);
                self.send_error(&Problem::from(error), Some(room)).await?;
            }
        }
        self.mark_rooms_behind();
        self.send_room_changes(true).await?;
        self.send_agent_news(true).await?;
        let heads: BTreeMap<RoomId, Seq> = self.rooms.iter().map(|(room, s)| (*room, s.follower.head())).collect();
        let epoch = self.app.engine.queries().epoch().clone();
        self.socket.feed(SocketMessage::Heartbeat { epoch, heads }.into()).await?;
        self.socket.ping().await?;
        Ok(self.socket.flush().await?)
    }

    /// A connection outlives the checks of its request: the token may be revoked meanwhile.
    async fn recheck_access(&mut self) -> Result<(), SocketEnd> {
        let Err(problem) = self.app.authenticator.recheck(&self.actor).await else { return Ok(()) };
        self.send_error(&problem, None).await?;
        Err(SocketEnd::Close(CloseCode::Policy, "access was lost; see the error before this"))
    }

    fn unsubscribe(&mut self, room: RoomId) {
        if self.rooms.remove(&room).is_some() {
            self.subscriptions.remove();
        }
    }

    /// Ends a connection whose user sends too much: to answer every message that says so would cost as much as they do.
    async fn check_rate(&mut self) -> Result<(), SocketEnd> {
        let key = RateLimitKey::User(UserKey::of(&self.actor));
        let Err(problem) = self.app.socket_rate_limiter.check(&key) else { return Ok(()) };
        self.send_error(&problem, None).await?;
        Err(SocketEnd::Close(CloseCode::Policy, "too many messages; reconnect and send fewer"))
    }

    async fn receive(&mut self, message: Message) -> Result<(), SocketEnd> {
        self.awaiting_pong = false;
        if !matches!(message, Message::Pong(_) | Message::Close(_)) {
            Box::pin(self.check_rate()).await?;
        }
        match message {
            Message::Text(text) => match json::parse(text.as_bytes()) {
                Ok(request) => Box::pin(self.handle(request)).await,
                Err(problem) => {
                    let what = format!(
                        "invalid request: {}; send subscribe, unsubscribe, watch_rooms, unwatch_rooms, \
                         subscribe_agents, unsubscribe_agents or ping",
                        problem.detail().trim_end_matches('.')
                    );
                    self.send_error(&Problem::invalid(what), None).await
                }
            },
            Message::Binary(_) => self.send_error(&Problem::invalid("send text, not binary"), None).await,
            Message::Close(_) => Err(SocketEnd::Disconnected),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(()),
        }
    }

    async fn handle(&mut self, request: SocketRequest) -> Result<(), SocketEnd> {
        match request {
            SocketRequest::WatchRooms {} => {
                match RoomListFeed::open(self.app.engine.queries(), &self.actor.workspace).await {
                    Ok((room_list, rooms)) => {
                        self.room_list = Some(room_list);
                        self.send(SocketMessage::Rooms { rooms }).await
                    }
                    Err(error) => self.send_error(&Problem::from(error), None).await,
                }
            }
            SocketRequest::UnwatchRooms {} => {
                self.room_list = None;
                self.send(SocketMessage::UnwatchedRooms {}).await
            }
            SocketRequest::SubscribeAgents { agents } => {
                // The rooms of an earlier request do not count twice.
                self.agents = None;
                let (queries, subscriptions) = (self.app.engine.queries(), self.permit.subscriptions());
                match AgentFeed::open(queries, &self.actor.workspace, agents, subscriptions).await {
                    Ok((feed, agents)) => {
                        self.agents = Some(Box::new(feed));
                        self.send(SocketMessage::SubscribedAgents { agents }).await
                    }
                    Err(problem) => self.send_error(&problem, None).await,
                }
            }
            SocketRequest::UnsubscribeAgents {} => {
                self.agents = None;
                self.send(SocketMessage::UnsubscribedAgents {}).await
            }
            SocketRequest::Ping {} => self.send(SocketMessage::Pong {}).await,
            SocketRequest::Unsubscribe { room } => {
                self.unsubscribe(room);
                self.send(SocketMessage::Unsubscribed { room }).await
            }
            SocketRequest::Subscribe { room, .. }
                if self.rooms.len() >= MAX_ROOMS && !self.rooms.contains_key(&room) =>
            {
                let what = format!("one connection follows at most {MAX_ROOMS} rooms");
                self.send_error(&Problem::invalid(what), Some(room)).await
            }
            SocketRequest::Subscribe { room, after } => {
                if !self.rooms.contains_key(&room)
                    && let Err(problem) = self.subscriptions.add()
                {
                    return self.send_error(&problem, Some(room)).await;
                }
                let queries = self.app.engine.queries().clone();
                match queries.follow(&self.actor.workspace, room, &after, self.notifier.clone()).await {
                    Ok(follower) => {
                        let (epoch, head) = (queries.epoch().clone(), follower.head());
                        self.send(SocketMessage::Subscribed { room, epoch, head }).await?;
                        self.rooms.insert(room, Box::new(RoomSubscription { follower, caught_up: false }));
                        Ok(())
                    }
                    Err(error) => {
                        if !self.rooms.contains_key(&room) {
                            self.subscriptions.remove();
                        }
                        self.send_error(&Problem::from(engine::EngineError::from(error)), Some(room)).await
                    }
                }
            }
        }
    }

    async fn send_error(&mut self, problem: &Problem, room: Option<RoomId>) -> Result<(), SocketEnd> {
        let error = SocketMessage::Error { code: problem.code(), detail: problem.detail().to_owned(), room };
        Ok(self.socket.send(error.into()).await?)
    }
}

async fn room_list_changed(room_list: &mut Option<RoomListFeed>) {
    match room_list {
        Some(room_list) => room_list.wait().await,
        None => std::future::pending().await,
    }
}

async fn agents_changed(agents: Option<&AgentFeed>) {
    match agents {
        Some(agents) => agents.wait().await,
        None => std::future::pending().await,
    }
}

/// Sends the next event of a room, which is large. It is read when the user has memory for it, and that is given back when the
/// client has received it.
async fn send_large(
    socket: &mut ClientSocket,
    subscription: &mut RoomSubscription,
    permit: &StreamPermit,
    bytes: usize,
) -> Result<Result<(), Problem>, SocketEnd> {
    let memory = match permit.take_memory(bytes).await {
        Ok(memory) => memory,
        Err(problem) => return Ok(Err(problem)),
    };
    match subscription.follower.next_large().await {
        Ok(Batch::Frames(frames)) => {
            for frame in frames {
                socket.feed_event(&frame).await?;
            }
            socket.flush().await?;
        }
        Ok(Batch::Large { .. } | Batch::Reset { .. } | Batch::CaughtUp) => {}
        Err(error) => return Ok(Err(Problem::from(engine::EngineError::from(error)))),
    }
    drop(memory);
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::{RoomSubscription, serve};
    use crate::{
        App,
        feed::{client_socket::ClientSocket, size_of_result},
        shares::StreamPermit,
    };
    use domain::actor::Actor;

    #[test]
    fn an_idle_websocket_takes_less_than_3_kib_and_a_room_of_it_less_than_128_bytes() {
        let size = size_of_result(|(app, actor, permit, socket): (App, Actor, StreamPermit, ClientSocket)| {
            serve(app, actor, permit, socket)
        });
        assert!(size < 3 * 1024, "{size} bytes; box what runs rarely");
        let size = size_of::<RoomSubscription>();
        assert!(size < 128, "{size} bytes");
    }
}
