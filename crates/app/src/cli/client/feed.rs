//! Follows the journal of one room. The connection may break as often as it likes: each event is given out exactly once
//! and in order, because the next connection asks for what comes after the last one and seqs have no gaps.

use super::{Client, Error};
use bytes::Bytes;
use domain::{
    event::{EventBody, EventType},
    ids::{AgentId, EventId, RoomId, RunId},
    position::Seq,
};
use futures_util::{StreamExt as _, stream::BoxStream};
use serde::Deserialize;
use serde_json::value::RawValue;
use sse_stream::{Sse, SseByteStream};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// Longer than any heartbeat that can be configured: a connection this quiet is dead.
const SILENCE: Duration = Duration::from_secs(90);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// An answer's end repeats its whole text; no event is longer than this.
const MAX_FRAME_BYTES: usize = 256 * 1024 * 1024;

pub enum Item {
    Event(Event),
    /// The store was restored: the journal starts over with the next event.
    Reset,
}

pub struct Event {
    pub id: EventId,
    /// `None` for a type that only newer versions know.
    pub kind: Option<EventType>,
    /// `None` when a newer version wrote it in another shape.
    pub body: Option<EventBody>,
    pub run_id: Option<RunId>,
    pub agent_id: Option<AgentId>,
    /// As the server sent it.
    pub json: String,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    id: EventId,
    seq: Seq,
    #[serde(rename = "type")]
    kind: String,
    run_id: Option<RunId>,
    agent_id: Option<AgentId>,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct Head {
    epoch: String,
    head: Seq,
}

type Frames = SseByteStream<BoxStream<'static, io::Result<Bytes>>>;

pub struct Feed {
    client: Client,
    path: String,
    /// What the next connection asks to continue after: `SEQ` or `EPOCH-SEQ`.
    position: String,
    seq: Seq,
    live: Option<Frames>,
    /// Bytes since the last frame began.
    pending: Arc<AtomicUsize>,
    pause: Duration,
    broken_since: Option<Instant>,
    broken: Arc<AtomicBool>,
    /// A server that stays away for longer than this is not waited for.
    patience: Duration,
    /// The last heartbeat told of an event that has not come.
    behind: bool,
}

impl Feed {
    pub fn after(client: Client, room: RoomId, position: String, seq: Seq, patience: Duration) -> Self {
        Self {
            client,
            path: format!("/api/rooms/{room}/events"),
            position,
            seq,
            live: None,
            pending: Arc::default(),
            pause: Duration::ZERO,
            broken_since: None,
            broken: Arc::default(),
            patience,
            behind: false,
        }
    }

    /// Set while there is no connection: worth telling a person who waits in [`Self::next`].
    pub fn broken(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.broken)
    }

    /// The position to continue at, as a person may type it.
    pub fn position(&self) -> &str {
        &self.position
    }

    /// The next event. Dropping the future loses no event; a reconnection under way starts anew.
    pub async fn next(&mut self) -> Result<Item, Error> {
        loop {
            let outcome = match self.frame().await {
                Ok(frame) => self.take(frame),
                Err(error) => Err(error),
            };
            match outcome {
                Ok(Some(item)) => return Ok(item),
                Ok(None) => {}
                Err(error) => self.broke(error)?,
            }
        }
    }

    async fn frame(&mut self) -> Result<Sse, Error> {
        if self.live.is_none() {
            sleep(self.pause).await;
            let query = [("after", self.position.as_str())];
            let answer = self.client.stream(&self.path, &query, &self.position).await?;
            self.pending.store(0, Ordering::Relaxed);
            self.live = Some(frames(answer, Arc::clone(&self.pending)));
        }
        let server = self.client.server();
        let Some(live) = &mut self.live else { return Err(Error::lost(server, "it was not opened")) };
        match timeout(SILENCE, live.next()).await {
            Ok(Some(Ok(frame))) => {
                self.pending.store(0, Ordering::Relaxed);
                Ok(frame)
            }
            Ok(Some(Err(error))) => Err(Error::lost(server, &error.to_string())),
            Ok(None) => Err(Error::lost(server, "the server closed it")),
            Err(_) => Err(Error::lost(server, "it was silent for too long")),
        }
    }

    fn take(&mut self, frame: Sse) -> Result<Option<Item>, Error> {
        let (Some(kind), Some(data)) = (frame.event, frame.data) else { return Ok(None) };
        match kind.as_str() {
            "heartbeat" => {
                let head: Head = self.parsed(&data)?;
                let missing = head.head > self.seq;
                // One such heartbeat can overtake events that are on their way; the second cannot.
                if missing && self.behind {
                    return Err(Error::lost(self.client.server(), "events are missing"));
                }
                self.behind = missing;
                self.healthy();
                Ok(None)
            }
            "reset" => {
                let head: Head = self.parsed(&data)?;
                self.seq = 0;
                self.position = format!("{}-0", head.epoch);
                self.healthy();
                Ok(Some(Item::Reset))
            }
            _ => self.take_event(frame.id, data),
        }
    }

    fn take_event(&mut self, id: Option<String>, json: String) -> Result<Option<Item>, Error> {
        let envelope: Envelope<'_> = self.parsed(&json)?;
        if envelope.seq <= self.seq {
            return Ok(None);
        }
        if envelope.seq != self.seq + 1 {
            let detail = format!("event {} came after event {}", envelope.seq, self.seq);
            return Err(Error::lost(self.client.server(), &detail));
        }
        let kind = envelope.kind.parse::<EventType>().ok();
        let body = kind.and_then(|kind| EventBody::parse(kind, envelope.data.get()).ok());
        let Envelope { id: event_id, seq, run_id, agent_id, .. } = envelope;
        self.seq = seq;
        self.position = id.unwrap_or_else(|| seq.to_string());
        self.behind = false;
        self.healthy();
        Ok(Some(Item::Event(Event { id: event_id, kind, body, run_id, agent_id, json })))
    }

    fn parsed<'de, T: Deserialize<'de>>(&self, data: &'de str) -> Result<T, Error> {
        serde_json::from_str(data)
            .map_err(|error| Error::foreign(self.client.server(), &format!("its events have another shape ({error})")))
    }

    /// Something came, so the next break is a new one.
    fn healthy(&mut self) {
        self.pause = Duration::ZERO;
        self.broken_since = None;
        self.broken.store(false, Ordering::Relaxed);
    }

    fn broke(&mut self, error: Error) -> Result<(), Error> {
        self.live = None;
        self.behind = false;
        self.broken.store(true, Ordering::Relaxed);
        let since = *self.broken_since.get_or_insert_with(Instant::now);
        if !error.passes() || since.elapsed() > self.patience {
            return Err(error);
        }
        let wanted = match &error {
            Error::Busy { retry_after: Some(wanted), .. } => *wanted,
            _ => Duration::ZERO,
        };
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE).max(wanted);
        Ok(())
    }
}

/// The frames of a body, each of limited length.
fn frames(answer: reqwest::Response, pending: Arc<AtomicUsize>) -> Frames {
    let limited = answer.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        if pending.fetch_add(chunk.len(), Ordering::Relaxed) > MAX_FRAME_BYTES {
            return Err(io::Error::other("a frame does not end"));
        }
        Ok(chunk)
    });
    SseByteStream::new(limited.boxed())
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};
    use sse_stream::SseByteStream;
    use std::{convert::Infallible, io::Cursor};

    /// What the decoder makes of the bytes when they arrive in pieces of `size`.
    async fn decoded(bytes: &[u8], size: usize) -> Vec<(Option<String>, Option<String>, Option<String>)> {
        let pieces: Vec<Result<Cursor<Vec<u8>>, Infallible>> =
            bytes.chunks(size).map(|piece| Ok(Cursor::new(piece.to_vec()))).collect();
        let frames = SseByteStream::new(stream::iter(pieces)).map(|frame| frame.unwrap());
        frames.map(|frame| (frame.id, frame.event, frame.data)).collect().await
    }

    #[tokio::test]
    async fn splits_inside_characters_and_line_ends_change_nothing() {
        let lf =
            ": hi\n\nid: e-1\nevent: content_delta\ndata: {\"d\":\"é🦀\"}\n\nevent: heartbeat\ndata: a\ndata: b\n\n";
        for text in [lf.to_owned(), lf.replace('\n', "\r\n"), lf.replace('\n', "\r")] {
            let whole = decoded(text.as_bytes(), text.len()).await;
            assert_eq!(whole.len(), 2);
            assert_eq!(whole[0].0.as_deref(), Some("e-1"));
            assert_eq!(whole[0].2.as_deref(), Some("{\"d\":\"é🦀\"}"));
            assert_eq!(whole[1], (None, Some("heartbeat".into()), Some("a\nb".into())));
            for size in 1..12 {
                assert_eq!(decoded(text.as_bytes(), size).await, whole, "pieces of {size}");
            }
        }
    }

    #[tokio::test]
    async fn a_frame_that_was_cut_off_is_not_given_out() {
        let text = "id: e-1\nevent: a\ndata: 1\n\nid: e-2\nevent: a\ndata: 2\n";
        for end in 0..text.len() {
            let frames = decoded(&text.as_bytes()[..end], 3).await;
            assert!(frames.len() <= 1 && frames.iter().all(|frame| frame.2.as_deref() == Some("1")), "{end}");
        }
    }
}
