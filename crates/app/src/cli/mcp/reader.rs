//! Reads the client's messages line by line and forwards them. Requests run concurrently; notifications keep their
//! order. During initialization everything else waits.

use super::{
    forwarder::McpForwarder,
    lines::{InputLine, InputLines},
    message::{self, ClientMessage, ClientMessageKind, ClientRequest, FORWARD_FAILED, INVALID_REQUEST},
    open_requests::{BridgeRequest, Cancellation},
};
use bytes::Bytes;
use std::{
    io::{self, BufRead},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of queued notifications; if the queue is full, reading waits.
const QUEUE: usize = 64;
/// How long open requests may take after the end of the input.
const LAST_ANSWERS_DEADLINE: Duration = Duration::from_secs(5);

pub struct StdinReader {
    forwarder: Arc<McpForwarder>,
    input: mpsc::Receiver<io::Result<InputLine>>,
    _reading: JoinSet<()>,
    forwarding: JoinSet<Forwarded>,
    listening: JoinSet<()>,
    is_initializing: bool,
}

/// What a finished task has forwarded.
enum Forwarded {
    Message,
    /// The `initialize` request.
    Initialize,
    /// The `initialized` notification. From here on the server may send messages of its own.
    Initialized,
}

/// A message that gets no response. A cancellation comes with the request that it cancels.
type QueuedClientMessage = (ClientMessage, Option<Arc<BridgeRequest>>);

impl StdinReader {
    pub fn new(forwarder: Arc<McpForwarder>, input: impl BufRead + Send + 'static) -> Self {
        let (lines, taken) = mpsc::channel(1);
        let mut reading = JoinSet::new();
        // On its own thread, which ends with the input or the process.
        reading.spawn_blocking(move || read(input, &lines));
        let (forwarding, listening) = (JoinSet::new(), JoinSet::new());
        Self { forwarder, input: taken, _reading: reading, forwarding, listening, is_initializing: false }
    }

    /// Runs until the input has ended and the open requests were answered or timed out.
    pub async fn run(&mut self) -> io::Result<()> {
        let (lane, queued) = mpsc::channel(QUEUE);
        self.forwarding.spawn(forward_in_order(Arc::clone(&self.forwarder), queued));
        loop {
            tokio::select! {
                Some(carried) = self.forwarding.join_next() => self.finished(carried.unwrap_or(Forwarded::Initialize)),
                Some((slot, line)) = next(&lane, &mut self.input), if !self.is_initializing => match line {
                    Some(line) => self.take(line?, slot).await,
                    None => break,
                },
                else => break,
            }
        }
        drop(lane);
        self.forwarder.requests.end_unawaited();
        let all = async { while self.forwarding.join_next().await.is_some() {} };
        if timeout(LAST_ANSWERS_DEADLINE, all).await.is_err() {
            super::note("some answers have not come in time");
        }
        Ok(())
    }

    /// Aborts everything that is still running.
    pub async fn close(mut self) {
        self.listening.shutdown().await;
        self.forwarding.shutdown().await;
    }

    fn finished(&mut self, carried: Forwarded) {
        match carried {
            Forwarded::Message => return,
            Forwarded::Initialize => {}
            Forwarded::Initialized => {
                self.listening.abort_all();
                let forwarder = Arc::clone(&self.forwarder);
                self.listening.spawn(async move { forwarder.listen().await });
            }
        }
        self.is_initializing = false;
    }

    async fn take(&mut self, line: InputLine, slot: QueueSlot<'_>) {
        let parsed = match line {
            InputLine::Whole(line) => ClientMessage::parse(line),
            InputLine::TooLong => {
                let text = format!("a message has at most {MAX_LINE_BYTES} bytes; this one was thrown away");
                Err(message::error("null", INVALID_REQUEST, &text))
            }
        };
        match parsed {
            Err(answer) => self.forwarder.write(&answer).await,
            Ok(ClientMessage { bytes, kind: ClientMessageKind::Request(request) }) => {
                self.forward_request(bytes, request).await
            }
            Ok(message) => self.queue(message, slot),
        }
    }

    async fn forward_request(&mut self, bytes: Bytes, request: ClientRequest) {
        let open = match self.forwarder.requests.begin(&request, bytes.len()) {
            Ok(open) => open,
            Err(why) => return self.forwarder.write(&message::error(&request.id, FORWARD_FAILED, why)).await,
        };
        let forwarder = Arc::clone(&self.forwarder);
        let is_initialize = request.method == "initialize" && !request.is_modern();
        self.is_initializing = is_initialize;
        self.forwarding.spawn(async move {
            forwarder.forward_request(bytes, &request, &open).await;
            if is_initialize { Forwarded::Initialize } else { Forwarded::Message }
        });
    }

    fn queue(&mut self, message: ClientMessage, slot: QueueSlot<'_>) {
        let ClientMessageKind::Notification { method, params } = &message.kind else {
            return slot.send((message, None));
        };
        match (method.as_str(), &params.request) {
            ("notifications/cancelled", Some(id)) => match self.forwarder.requests.cancel(id) {
                Cancellation::Forward(open) if params.version.is_none() => slot.send((message, open)),
                _ => {}
            },
            ("notifications/initialized", _) => {
                self.is_initializing = true;
                let forwarder = Arc::clone(&self.forwarder);
                self.forwarding.spawn(async move {
                    forwarder.forward_notification(&message).await;
                    Forwarded::Initialized
                });
            }
            _ => slot.send((message, None)),
        }
    }
}

fn read(input: impl BufRead, lines: &mpsc::Sender<io::Result<InputLine>>) {
    let mut input = InputLines::new(input, MAX_LINE_BYTES);
    while let Some(line) = input.next().transpose() {
        let is_last = line.is_err();
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

type QueueSlot<'a> = mpsc::Permit<'a, QueuedClientMessage>;

/// Waits for a free slot in the queue and then for the next line. Dropping the future loses nothing.
async fn next<'a>(
    lane: &'a mpsc::Sender<QueuedClientMessage>,
    input: &mut mpsc::Receiver<io::Result<InputLine>>,
) -> Option<(QueueSlot<'a>, Option<io::Result<InputLine>>)> {
    let slot = lane.reserve().await.ok()?;
    Some((slot, input.recv().await))
}

async fn forward_in_order(forwarder: Arc<McpForwarder>, mut queued: mpsc::Receiver<QueuedClientMessage>) -> Forwarded {
    while let Some((message, cancelled)) = queued.recv().await {
        if let Some(open) = cancelled {
            open.wait_until_received().await;
        }
        forwarder.forward_notification(&message).await;
    }
    Forwarded::Message
}
