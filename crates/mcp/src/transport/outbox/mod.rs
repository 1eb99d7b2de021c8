//! Outgoing messages of a session. Each call may have its own stream; a common stream carries everything else. A stream
//! may have several readers, and the newest of them gets the messages.
//!
//! No message is lost: unread messages are bounded by making the sender wait, and a client that does not read for too
//! long loses its session rather than a message. A notification replaces an unread one of the same content. Messages
//! that were read are kept for a while, for a reader that reconnects.

mod queue;
#[cfg(test)]
mod tests;

use queue::{MessageQueue, OutboxMessage};
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

/// Unread messages: more than all notifications that a session can subscribe to.
const MAX_UNREAD: usize = 512;
const MAX_UNREAD_BYTES: usize = 8 * 1024 * 1024;
/// How long a sender waits for space.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Ended calls that are kept for readers that reconnect: how many, how large, for how long.
const MAX_KEPT_CALLS: usize = 16;
const MAX_KEPT_BYTES: usize = 1024 * 1024;
const KEPT_FOR: Duration = Duration::from_secs(60);
/// When a client should reconnect.
const RETRY_AFTER: Duration = Duration::from_secs(3);

#[derive(Default)]
pub struct Outbox {
    state: Mutex<OutboxState>,
    /// A message was taken, or a reader was added or removed.
    changed: Notify,
    /// Cancelled when the session ends, and when a message could not be delivered in time: later messages make no sense
    /// without it.
    pub ended: CancellationToken,
}

#[derive(Default)]
struct OutboxState {
    /// Receives the first message.
    initialize_response: Option<oneshot::Sender<ServerJsonRpcMessage>>,
    common: MessageQueue,
    /// In the order of their start.
    calls: Vec<OutboxCall>,
    next_call: u64,
    /// A message did not fit, and none was taken since.
    is_full: bool,
    is_stuck: bool,
}

struct OutboxCall {
    number: u64,
    request: RequestId,
    token: Option<ProgressToken>,
    queue: MessageQueue,
    ended: Option<Instant>,
}

impl OutboxCall {
    /// Returns whether the call has ended and no reader waits for it.
    fn is_kept(&self) -> bool {
        self.ended.is_some() && (!self.queue.has_reader() || self.queue.unread() == 0)
    }
}

/// Identifies a stream of the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StreamId {
    Common,
    Call(u64),
}

#[derive(Debug)]
pub enum OutboxError {
    SessionEnded,
    /// The client does not read its messages.
    ClientNotReading,
    /// A request with that id is already open.
    DuplicateRequest,
    /// The event never existed, or is no longer kept.
    UnknownEvent,
    Serialize(serde_json::Error),
}

impl fmt::Display for OutboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionEnded => f.write_str("the session has ended"),
            Self::ClientNotReading => f.write_str("the client does not read its messages"),
            Self::DuplicateRequest => f.write_str("a request with that id is already in progress"),
            Self::UnknownEvent => f.write_str("the event is unknown or no longer available"),
            Self::Serialize(error) => write!(f, "could not serialize a message: {error}"),
        }
    }
}

impl std::error::Error for OutboxError {}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If there is space, the message is queued before this returns, which keeps messages in order.
    pub fn send(
        self: &Arc<Self>,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), OutboxError>> + Send + use<> {
        let outbox = Arc::clone(self);
        let put = match self.ended.is_cancelled() {
            true => Err(OutboxError::SessionEnded),
            false => OutboxMessage::new(message).map(|queued| self.put(queued)),
        };
        async move {
            let Err(mut unsent) = put? else { return Ok(()) };
            let space = async {
                loop {
                    let moved = outbox.changed.notified();
                    tokio::pin!(moved);
                    // Registers before it checks, so that space freed in between wakes it.
                    moved.as_mut().enable();
                    match outbox.put(unsent) {
                        Ok(()) => return,
                        Err(back) => unsent = back,
                    }
                    moved.await;
                }
            };
            tokio::select! {
                put = timeout(SEND_TIMEOUT, space) => put.map_err(|_| {
                    outbox.lock().is_stuck = true;
                    outbox.end();
                    OutboxError::ClientNotReading
                }),
                () = outbox.ended.cancelled() => Err(OutboxError::SessionEnded),
            }
        }
    }

    /// Returns the message if there is no space.
    fn put(&self, queued: OutboxMessage) -> Result<(), OutboxMessage> {
        let mut state = self.lock();
        if let Some(greeting) = state.initialize_response.take() {
            // A closed receiver means that the client is gone.
            drop(greeting.send(queued.into_message()));
            return Ok(());
        }
        let put = state.put(queued);
        state.is_full |= put.is_err();
        put
    }

    /// Returns a receiver of the first message, which is the answer to `initialize`.
    pub fn initialize_response(&self) -> oneshot::Receiver<ServerJsonRpcMessage> {
        let (sender, receiver) = oneshot::channel();
        self.lock().initialize_response = Some(sender);
        receiver
    }

    /// Reads the common stream.
    pub fn reader(self: &Arc<Self>) -> OutboxReader {
        let mut state = self.lock();
        let reader = state.common.attach();
        let first = state.common.left_out_notice().into_iter().collect();
        drop(state);
        OutboxReader { outbox: Arc::clone(self), stream_id: StreamId::Common, reader, first }
    }

    /// Reads the common stream, beginning with an event from which the client can resume.
    pub fn resumable_reader(self: &Arc<Self>) -> OutboxReader {
        let mut reading = self.reader();
        let last = self.lock().common.taken();
        reading.first.push_front(ServerSseMessage::priming(StreamId::Common.event(last), RETRY_AFTER));
        reading
    }

    /// Begins a call with its own stream.
    pub fn begin_call(
        self: &Arc<Self>,
        request: RequestId,
        token: Option<ProgressToken>,
    ) -> Result<OutboxReader, OutboxError> {
        let mut state = self.lock();
        if state.open_call(&request).is_some() {
            return Err(OutboxError::DuplicateRequest);
        }
        let (number, mut queue) = (state.next_call, MessageQueue::default());
        state.next_call += 1;
        let reader = queue.attach();
        state.calls.push(OutboxCall { number, request, token, queue, ended: None });
        drop(state);
        let stream = StreamId::Call(number);
        let first = VecDeque::from([ServerSseMessage::priming(stream.event(0), RETRY_AFTER)]);
        Ok(OutboxReader { outbox: Arc::clone(self), stream_id: stream, reader, first })
    }

    /// Resumes a stream after an event.
    pub fn resume(self: &Arc<Self>, last_event: &str) -> Result<OutboxReader, OutboxError> {
        let (stream, last) = StreamId::parse(last_event).ok_or(OutboxError::UnknownEvent)?;
        let mut state = self.lock();
        let queue = state.queue(stream).ok_or(OutboxError::UnknownEvent)?;
        let again = queue.after(last).ok_or(OutboxError::UnknownEvent)?;
        let again = again.map(|(number, queued)| queued.event(stream.event(number))).collect::<Vec<_>>();
        let reader = queue.attach();
        let mut first: VecDeque<_> = queue.left_out_notice().into_iter().collect();
        first.extend(again);
        drop(state);
        Ok(OutboxReader { outbox: Arc::clone(self), stream_id: stream, reader, first })
    }

    pub fn has_open_call(&self, request: &RequestId) -> bool {
        self.lock().open_call(request).is_some()
    }

    /// Ends a call that was cancelled.
    pub fn cancel_call(&self, request: &RequestId) {
        let mut state = self.lock();
        if let Some(call) = state.open_call(request) {
            call.ended = Some(Instant::now());
            call.queue.wake_all();
        }
    }

    /// Ends the stream of an open call, so that its reader reconnects.
    #[cfg(feature = "test-hooks")]
    pub fn hang_up(&self, request: &RequestId) -> bool {
        self.lock().open_call(request).map(|call| call.queue.detach_all()).is_some()
    }

    /// Drops ended calls that have expired.
    pub fn drop_expired(&self) {
        self.lock().enforce_limits();
    }

    pub fn end(&self) {
        self.ended.cancel();
        let mut state = self.lock();
        state.initialize_response = None;
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

impl OutboxState {
    fn open_call(&mut self, request: &RequestId) -> Option<&mut OutboxCall> {
        self.calls.iter_mut().find(|call| call.ended.is_none() && call.request == *request)
    }

    fn queue(&mut self, stream: StreamId) -> Option<&mut MessageQueue> {
        match stream {
            StreamId::Common => Some(&mut self.common),
            StreamId::Call(number) => Some(&mut self.call(number)?.queue),
        }
    }

    fn call(&mut self, number: u64) -> Option<&mut OutboxCall> {
        self.calls.iter_mut().find(|call| call.number == number)
    }

    fn put(&mut self, queued: OutboxMessage) -> Result<(), OutboxMessage> {
        let has_space = self.has_room(&queued);
        let Some(call) = self.call_of(queued.message()) else {
            if !has_space && (self.common.has_reader() || !queued.is_log()) {
                return Err(queued);
            }
            self.common.put(queued);
            return Ok(());
        };
        // Messages without a reader are kept, within their own limits.
        if !has_space && call.queue.has_reader() {
            return Err(queued);
        }
        if matches!(queued.message(), ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)) {
            call.ended = Some(Instant::now());
        }
        call.queue.put(queued);
        self.enforce_limits();
        Ok(())
    }

    /// A message larger than the limit is accepted when the outbox is empty.
    fn has_room(&self, queued: &OutboxMessage) -> bool {
        let read = self.calls.iter().map(|call| &call.queue).filter(|queue| queue.has_reader());
        let (mut unread, mut bytes) = (0, 0);
        for queue in read.chain([&self.common]) {
            unread += queue.unread();
            bytes += queue.unread_bytes();
        }
        unread == 0 || unread < MAX_UNREAD && bytes + queued.bytes() <= MAX_UNREAD_BYTES
    }

    /// Returns the call whose stream carries a message.
    fn call_of(&mut self, message: &ServerJsonRpcMessage) -> Option<&mut OutboxCall> {
        match message {
            ServerJsonRpcMessage::Response(response) => self.open_call(&response.id),
            ServerJsonRpcMessage::Error(error) => self.open_call(error.id.as_ref()?),
            ServerJsonRpcMessage::Request(request) => {
                let of = &request.request.extensions().get::<OriginatingRequestId>()?.0;
                self.open_call(of)
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

    /// Drops ended calls beyond the limits. The newest is kept regardless of its size.
    fn enforce_limits(&mut self) {
        self.calls.retain(|call| !call.is_kept() || call.ended.is_some_and(|ended| ended.elapsed() < KEPT_FOR));
        loop {
            let kept = self.calls.iter().filter(|call| call.is_kept());
            let (count, bytes) = kept.fold((0, 0), |(count, bytes), call| (count + 1, bytes + call.queue.bytes()));
            if count <= 1 || count <= MAX_KEPT_CALLS && bytes <= MAX_KEPT_BYTES {
                return;
            }
            let kept = self.calls.iter().enumerate().filter(|(_, call)| call.is_kept());
            if let Some((oldest, _)) = kept.min_by_key(|(_, call)| call.ended) {
                self.calls.remove(oldest);
            }
        }
    }
}

impl StreamId {
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

/// A reader of one stream. Ends with the call or the session.
pub struct OutboxReader {
    outbox: Arc<Outbox>,
    stream_id: StreamId,
    reader: u64,
    first: VecDeque<ServerSseMessage>,
}

impl futures_util::Stream for OutboxReader {
    type Item = ServerSseMessage;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let this = self.get_mut();
        if let Some(event) = this.first.pop_front() {
            return Poll::Ready(Some(event));
        }
        let mut state = this.outbox.lock();
        let has_ended = match this.stream_id {
            StreamId::Common => false,
            StreamId::Call(number) => state.call(number).is_none_or(|call| call.ended.is_some()),
        };
        let Some(queue) = state.queue(this.stream_id) else { return Poll::Ready(None) };
        if let Some((number, queued)) = queue.take(this.reader) {
            let event = queued.event(this.stream_id.event(number));
            if has_ended {
                // Wakes earlier readers, which have nothing left to wait for.
                queue.wake_all();
            }
            state.is_full = false;
            drop(state);
            this.outbox.changed.notify_waiters();
            return Poll::Ready(Some(event));
        }
        let is_done = has_ended && queue.unread() == 0 || this.outbox.ended.is_cancelled();
        match !is_done && queue.wait(this.reader, context.waker()) {
            true => Poll::Pending,
            false => Poll::Ready(None),
        }
    }
}

impl Drop for OutboxReader {
    fn drop(&mut self) {
        let mut state = self.outbox.lock();
        if let Some(queue) = state.queue(self.stream_id) {
            queue.detach(self.reader);
        }
        state.enforce_limits();
        drop(state);
        self.outbox.changed.notify_waiters();
    }
}
