//! Where what the server says in a session waits for who reads it. There is one stream for each call that has one, and a common
//! one for all else; each may have several readers, and the newest of them gets what is said.
//!
//! Nothing is lost on the way: what nobody has read yet is bounded by making the sender wait, and a client that does not read
//! for long loses its session rather than a message. News that say the same as others that still wait take their place. What
//! was read is kept for a while, for a reader that comes back because its connection did not bring it.

mod queue;
#[cfg(test)]
mod tests;

use queue::{Queue, Said};
use rmcp::{
    model::{GetExtensions as _, ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification},
    service::OriginatingRequestId,
    transport::streamable_http_server::session::ServerSseMessage,
};
use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

/// What waits to be read: more than all news that a session can subscribe to.
const UNREAD: usize = 512;
const UNREAD_BYTES: usize = 8 * 1024 * 1024;
/// How long a sender waits for room.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Calls that have ended and are kept for readers that come back: how many, how large, for how long.
const KEPT_CALLS: usize = 16;
const KEPT_BYTES: usize = 1024 * 1024;
const KEPT_FOR: Duration = Duration::from_secs(60);
/// How soon a client should come back.
const RETRY: Duration = Duration::from_secs(3);

#[derive(Default)]
pub struct Outbox {
    state: Mutex<State>,
    /// Something was taken out, or a reader came or went.
    moved: Notify,
    /// Cancelled when the session ends, and when something could not be said for long: what would come after it makes no sense
    /// without it.
    pub over: CancellationToken,
}

#[derive(Default)]
struct State {
    /// Takes the very first message.
    greeting: Option<oneshot::Sender<ServerJsonRpcMessage>>,
    common: Queue,
    /// In the order in which they began.
    calls: Vec<Call>,
    next_call: u64,
    /// Something had no room, and nothing was taken out since.
    is_full: bool,
    is_stuck: bool,
}

struct Call {
    number: u64,
    request: RequestId,
    token: Option<ProgressToken>,
    queue: Queue,
    ended: Option<Instant>,
}

impl Call {
    /// Nobody waits for what is in it.
    fn is_kept(&self) -> bool {
        self.ended.is_some() && (!self.queue.has_reader() || self.queue.unread() == 0)
    }
}

/// Which stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Common,
    Call(u64),
}

#[derive(Debug)]
pub enum Trouble {
    Over,
    /// The client does not read what it is sent.
    Stuck,
    /// A request with that id is under way.
    InUse,
    /// There is no such event, or not any more.
    UnknownEvent,
    Unwritable(serde_json::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over => f.write_str("the session has ended"),
            Self::Stuck => f.write_str("the client does not read what it is sent"),
            Self::InUse => f.write_str("a request with that id is under way"),
            Self::UnknownEvent => f.write_str("there is no such event, or not any more"),
            Self::Unwritable(error) => write!(f, "a message could not be written: {error}"),
        }
    }
}

impl std::error::Error for Trouble {}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where there is room it is taken now: messages go out in the order in which they were said.
    pub fn say(
        self: &Arc<Self>,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Trouble>> + Send + use<> {
        let outbox = Arc::clone(self);
        let put = match self.over.is_cancelled() {
            true => Err(Trouble::Over),
            false => Said::new(message).map(|said| self.put(said)),
        };
        async move {
            let Err(mut unsaid) = put? else { return Ok(()) };
            let room = async {
                loop {
                    let moved = outbox.moved.notified();
                    tokio::pin!(moved);
                    // Registered before looking: room that is made in between wakes us.
                    moved.as_mut().enable();
                    match outbox.put(unsaid) {
                        Ok(()) => return,
                        Err(back) => unsaid = back,
                    }
                    moved.await;
                }
            };
            tokio::select! {
                put = timeout(PATIENCE, room) => put.map_err(|_| {
                    outbox.lock().is_stuck = true;
                    outbox.end();
                    Trouble::Stuck
                }),
                () = outbox.over.cancelled() => Err(Trouble::Over),
            }
        }
    }

    /// It is given back if there is no room.
    fn put(&self, said: Said) -> Result<(), Said> {
        let mut state = self.lock();
        if let Some(greeting) = state.greeting.take() {
            // Who does not wait for it has gone.
            drop(greeting.send(said.into_message()));
            return Ok(());
        }
        let put = state.put(said);
        state.is_full |= put.is_err();
        put
    }

    /// The very first message, which is the answer to `initialize`.
    pub fn greeting(&self) -> oneshot::Receiver<ServerJsonRpcMessage> {
        let (sender, receiver) = oneshot::channel();
        self.lock().greeting = Some(sender);
        receiver
    }

    /// For all that belongs to no call.
    pub fn read(self: &Arc<Self>) -> Reading {
        let mut state = self.lock();
        let reader = state.common.attach();
        let first = state.common.notice().into_iter().collect();
        drop(state);
        Reading { outbox: Arc::clone(self), place: Place::Common, reader, first }
    }

    /// The same, for those who come back with the id of the last event that they have.
    pub fn read_resumably(self: &Arc<Self>) -> Reading {
        let mut reading = self.read();
        let last = self.lock().common.taken();
        reading.first.push_front(ServerSseMessage::priming(Place::Common.event(last), RETRY));
        reading
    }

    /// A call begins, with a stream of its own.
    pub fn begin(self: &Arc<Self>, request: RequestId, token: Option<ProgressToken>) -> Result<Reading, Trouble> {
        let mut state = self.lock();
        if state.under_way(&request).is_some() {
            return Err(Trouble::InUse);
        }
        let (number, mut queue) = (state.next_call, Queue::default());
        state.next_call += 1;
        let reader = queue.attach();
        state.calls.push(Call { number, request, token, queue, ended: None });
        drop(state);
        let place = Place::Call(number);
        let first = VecDeque::from([ServerSseMessage::priming(place.event(0), RETRY)]);
        Ok(Reading { outbox: Arc::clone(self), place, reader, first })
    }

    /// What was said after that event, and what will be.
    pub fn resume(self: &Arc<Self>, last_event: &str) -> Result<Reading, Trouble> {
        let (place, last) = Place::parse(last_event).ok_or(Trouble::UnknownEvent)?;
        let mut state = self.lock();
        let queue = state.queue(place).ok_or(Trouble::UnknownEvent)?;
        let again = queue.after(last).ok_or(Trouble::UnknownEvent)?;
        let again = again.map(|(number, said)| said.event(place.event(number))).collect::<Vec<_>>();
        let reader = queue.attach();
        let mut first: VecDeque<_> = queue.notice().into_iter().collect();
        first.extend(again);
        drop(state);
        Ok(Reading { outbox: Arc::clone(self), place, reader, first })
    }

    pub fn is_under_way(&self, request: &RequestId) -> bool {
        self.lock().under_way(request).is_some()
    }

    /// Nothing more will be said in that call.
    pub fn cancelled(&self, request: &RequestId) {
        let mut state = self.lock();
        if let Some(call) = state.under_way(request) {
            call.ended = Some(Instant::now());
            call.queue.wake_all();
        }
    }

    /// Ends the stream of a call that goes on: its reader comes back.
    #[cfg(feature = "conformance")]
    pub fn hang_up(&self, request: &RequestId) -> bool {
        self.lock().under_way(request).map(|call| call.queue.detach_all()).is_some()
    }

    /// Forgets what was kept for long enough.
    pub fn tidy(&self) {
        self.lock().shed();
    }

    pub fn end(&self) {
        self.over.cancel();
        let mut state = self.lock();
        state.greeting = None;
        state.common.wake_all();
        for call in &mut state.calls {
            call.queue.wake_all();
        }
    }

    pub fn is_full(&self) -> bool {
        self.lock().is_full
    }

    pub fn is_stuck(&self) -> bool {
        self.lock().is_stuck
    }

    pub fn has_reader(&self) -> bool {
        self.lock().common.has_reader()
    }
}

impl State {
    fn under_way(&mut self, request: &RequestId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.ended.is_none() && call.request == *request)
    }

    fn queue(&mut self, place: Place) -> Option<&mut Queue> {
        match place {
            Place::Common => Some(&mut self.common),
            Place::Call(number) => Some(&mut self.call(number)?.queue),
        }
    }

    fn call(&mut self, number: u64) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.number == number)
    }

    fn put(&mut self, said: Said) -> Result<(), Said> {
        let has_room = self.has_room(&said);
        let Some(call) = self.call_of(said.message()) else {
            if !has_room && (self.common.has_reader() || !said.is_log()) {
                return Err(said);
            }
            self.common.put(said);
            return Ok(());
        };
        // What nobody reads is kept, within bounds of its own.
        if !has_room && call.queue.has_reader() {
            return Err(said);
        }
        if matches!(said.message(), ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)) {
            call.ended = Some(Instant::now());
        }
        call.queue.put(said);
        self.shed();
        Ok(())
    }

    /// One that would never fit goes alone.
    fn has_room(&self, said: &Said) -> bool {
        let read = self.calls.iter().map(|call| &call.queue).filter(|queue| queue.has_reader());
        let (mut unread, mut bytes) = (0, 0);
        for queue in read.chain([&self.common]) {
            unread += queue.unread();
            bytes += queue.unread_bytes();
        }
        unread == 0 || unread < UNREAD && bytes + said.bytes() <= UNREAD_BYTES
    }

    /// Whose stream a message goes out on.
    fn call_of(&mut self, message: &ServerJsonRpcMessage) -> Option<&mut Call> {
        match message {
            ServerJsonRpcMessage::Response(response) => self.under_way(&response.id),
            ServerJsonRpcMessage::Error(error) => self.under_way(error.id.as_ref()?),
            ServerJsonRpcMessage::Request(request) => {
                let of = &request.request.extensions().get::<OriginatingRequestId>()?.0;
                self.under_way(of)
            }
            ServerJsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    let token = &progress.params.progress_token;
                    self.calls.iter_mut().find(|call| call.ended.is_none() && call.token.as_ref() == Some(token))
                }
                _ => None,
            },
        }
    }

    /// Within the bounds of what is kept. The newest is kept whatever its size.
    fn shed(&mut self) {
        self.calls.retain(|call| !call.is_kept() || call.ended.is_some_and(|ended| ended.elapsed() < KEPT_FOR));
        loop {
            let kept = self.calls.iter().filter(|call| call.is_kept());
            let (count, bytes) = kept.fold((0, 0), |(count, bytes), call| (count + 1, bytes + call.queue.bytes()));
            if count <= 1 || count <= KEPT_CALLS && bytes <= KEPT_BYTES {
                return;
            }
            let kept = self.calls.iter().enumerate().filter(|(_, call)| call.is_kept());
            if let Some((oldest, _)) = kept.min_by_key(|(_, call)| call.ended) {
                self.calls.remove(oldest);
            }
        }
    }
}

impl Place {
    fn event(self, number: u64) -> String {
        match self {
            Self::Common => number.to_string(),
            Self::Call(call) => format!("{number}/{call}"),
        }
    }

    fn parse(event: &str) -> Option<(Self, u64)> {
        Some(match event.split_once('/') {
            Some((number, call)) => (Self::Call(call.parse().ok()?), number.parse().ok()?),
            None => (Self::Common, event.parse().ok()?),
        })
    }
}

/// One reader of one stream. Ends with the call, or with the session.
pub struct Reading {
    outbox: Arc<Outbox>,
    place: Place,
    reader: u64,
    first: VecDeque<ServerSseMessage>,
}

impl futures_util::Stream for Reading {
    type Item = ServerSseMessage;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let this = self.get_mut();
        if let Some(event) = this.first.pop_front() {
            return Poll::Ready(Some(event));
        }
        let mut state = this.outbox.lock();
        let has_ended = match this.place {
            Place::Common => false,
            Place::Call(number) => state.call(number).is_none_or(|call| call.ended.is_some()),
        };
        let Some(queue) = state.queue(this.place) else { return Poll::Ready(None) };
        if let Some((number, said)) = queue.take(this.reader) {
            let event = said.event(this.place.event(number));
            if has_ended {
                // Those who read it before, and have nothing to wait for any more.
                queue.wake_all();
            }
            state.is_full = false;
            drop(state);
            this.outbox.moved.notify_waiters();
            return Poll::Ready(Some(event));
        }
        let is_done = has_ended && queue.unread() == 0 || this.outbox.over.is_cancelled();
        match !is_done && queue.wait(this.reader, context.waker()) {
            true => Poll::Pending,
            false => Poll::Ready(None),
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut state = self.outbox.lock();
        if let Some(queue) = state.queue(self.place) {
            queue.detach(self.reader);
        }
        state.shed();
        drop(state);
        self.outbox.moved.notify_waiters();
    }
}
