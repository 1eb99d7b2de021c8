//! Takes what the client writes, line by line, and has it carried. Requests go side by side; what has no answer goes in
//! the order it was written. While the two sides greet each other everything else waits.

use super::{
    carrier::Carrier,
    lines::{Line, Lines},
    message::{self, INVALID_REQUEST, Kind, Message, NOT_CARRIED, Request},
    open::{Cancellation, Open},
};
use bytes::Bytes;
use std::{
    io::{self, BufRead},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
/// Notifications that wait for the server; when there are more, reading waits.
const QUEUE: usize = 64;
/// After the client has said all it had to say, open answers have this long to come.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

pub struct Reader {
    carrier: Arc<Carrier>,
    input: mpsc::Receiver<io::Result<Line>>,
    _reading: JoinSet<()>,
    carrying: JoinSet<Carried>,
    listening: JoinSet<()>,
    is_greeting: bool,
}

/// What was carried.
enum Carried {
    Message,
    /// The client's first words.
    Greeting,
    /// Its last word of the greeting: from here on the server may speak by itself.
    Initialized,
}

/// Something without an answer; a cancellation comes with what it cancels.
type Late = (Message, Option<Arc<Open>>);

impl Reader {
    pub fn new(carrier: Arc<Carrier>, input: impl BufRead + Send + 'static) -> Self {
        let (lines, taken) = mpsc::channel(1);
        let mut reading = JoinSet::new();
        // On a thread of its own, which ends with the input or with the process.
        reading.spawn_blocking(move || read(input, &lines));
        let (carrying, listening) = (JoinSet::new(), JoinSet::new());
        Self { carrier, input: taken, _reading: reading, carrying, listening, is_greeting: false }
    }

    /// Returns when the input has ended and the answers that were open have come, or had their time.
    pub async fn run(&mut self) -> io::Result<()> {
        let (lane, late) = mpsc::channel(QUEUE);
        self.carrying.spawn(tell_in_order(Arc::clone(&self.carrier), late));
        loop {
            tokio::select! {
                Some(carried) = self.carrying.join_next() => self.carried(carried.unwrap_or(Carried::Greeting)),
                Some((place, line)) = next(&lane, &mut self.input), if !self.is_greeting => match line {
                    Some(line) => self.take(line?, place).await,
                    None => break,
                },
                else => break,
            }
        }
        drop(lane);
        self.carrier.requests.end_unawaited();
        let all = async { while self.carrying.join_next().await.is_some() {} };
        if timeout(LAST_ANSWERS, all).await.is_err() {
            super::note("some answers have not come in time");
        }
        Ok(())
    }

    /// Ends whatever is still under way.
    pub async fn close(mut self) {
        self.listening.shutdown().await;
        self.carrying.shutdown().await;
    }

    fn carried(&mut self, carried: Carried) {
        match carried {
            Carried::Message => return,
            Carried::Greeting => {}
            Carried::Initialized => {
                self.listening.abort_all();
                let carrier = Arc::clone(&self.carrier);
                self.listening.spawn(async move { carrier.listen().await });
            }
        }
        self.is_greeting = false;
    }

    async fn take(&mut self, line: Line, place: Place<'_>) {
        let parsed = match line {
            Line::Whole(line) => Message::parse(line),
            Line::TooLong => {
                let text = format!("a message has at most {MAX_LINE_BYTES} bytes; this one was thrown away");
                Err(message::error("null", INVALID_REQUEST, &text))
            }
        };
        match parsed {
            Err(answer) => self.carrier.write(&answer).await,
            Ok(Message { bytes, kind: Kind::Request(request) }) => self.ask(bytes, request).await,
            Ok(message) => self.tell(message, place),
        }
    }

    async fn ask(&mut self, bytes: Bytes, request: Request) {
        let open = match self.carrier.requests.begin(&request, bytes.len()) {
            Ok(open) => open,
            Err(why) => return self.carrier.write(&message::error(&request.id, NOT_CARRIED, why)).await,
        };
        let carrier = Arc::clone(&self.carrier);
        let is_greeting = request.method == "initialize" && !request.is_modern();
        self.is_greeting = is_greeting;
        self.carrying.spawn(async move {
            carrier.carry(bytes, &request, &open).await;
            if is_greeting { Carried::Greeting } else { Carried::Message }
        });
    }

    fn tell(&mut self, message: Message, place: Place<'_>) {
        let Kind::Notification { method, params } = &message.kind else { return place.send((message, None)) };
        match (method.as_str(), &params.request) {
            ("notifications/cancelled", Some(id)) => match self.carrier.requests.cancel(id) {
                Cancellation::Forward(open) if params.version.is_none() => place.send((message, open)),
                _ => {}
            },
            ("notifications/initialized", _) => {
                self.is_greeting = true;
                let carrier = Arc::clone(&self.carrier);
                self.carrying.spawn(async move {
                    carrier.tell(&message).await;
                    Carried::Initialized
                });
            }
            _ => place.send((message, None)),
        }
    }
}

fn read(input: impl BufRead, lines: &mpsc::Sender<io::Result<Line>>) {
    let mut input = Lines::new(input, MAX_LINE_BYTES);
    while let Some(line) = input.next().transpose() {
        let is_last = line.is_err();
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

type Place<'a> = mpsc::Permit<'a, Late>;

/// The next line, when there is a place for what may be in it. Dropping the future loses nothing.
async fn next<'a>(
    lane: &'a mpsc::Sender<Late>,
    input: &mut mpsc::Receiver<io::Result<Line>>,
) -> Option<(Place<'a>, Option<io::Result<Line>>)> {
    let place = lane.reserve().await.ok()?;
    Some((place, input.recv().await))
}

async fn tell_in_order(carrier: Arc<Carrier>, mut late: mpsc::Receiver<Late>) -> Carried {
    while let Some((message, cancelled)) = late.recv().await {
        if let Some(open) = cancelled {
            open.known().await;
        }
        carrier.tell(&message).await;
    }
    Carried::Message
}
