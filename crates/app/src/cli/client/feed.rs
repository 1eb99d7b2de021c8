//! Follows the journal of one room and reconnects as needed. Each event is returned exactly once and in order: the next
//! connection resumes after the last event, and seqs have no gaps.

use super::{ApiClient, ClientError};
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

/// Longer than any configurable heartbeat, so a connection that is silent for this long is dead.
const SILENCE: Duration = Duration::from_secs(90);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// No event is longer than this; the last event of an answer contains its whole text.
const MAX_FRAME_BYTES: usize = 256 * 1024 * 1024;

pub enum FeedItem {
    Event(FeedEvent),
    /// The store was restored: the journal starts over with the next event.
    Reset,
}

pub struct FeedEvent {
    pub id: EventId,
    /// `None` if only newer versions know the type.
    pub kind: Option<EventType>,
    /// `None` if a newer version changed its format.
    pub body: Option<EventBody>,
    pub run_id: Option<RunId>,
    pub agent_id: Option<AgentId>,
    /// The original JSON.
    pub json: String,
}

#[derive(Deserialize)]
struct FeedEnvelope<'a> {
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
struct JournalHead {
    epoch: String,
    head: Seq,
}

type SseFrames = SseByteStream<BoxStream<'static, io::Result<Bytes>>>;

pub struct RoomFeed {
    client: ApiClient,
    path: String,
    /// The position that the next connection resumes after: `SEQ` or `EPOCH-SEQ`.
    position: String,
    seq: Seq,
    live: Option<SseFrames>,
    /// Bytes since the start of the current frame.
    pending: Arc<AtomicUsize>,
    pause: Duration,
    disconnected_since: Option<Instant>,
    disconnected: Arc<AtomicBool>,
    /// After an outage of this length, the feed gives up.
    max_outage: Duration,
    /// The last heartbeat named an event that has not arrived.
    behind: bool,
}

impl RoomFeed {
    pub fn after(client: ApiClient, room: RoomId, position: String, seq: Seq, max_outage: Duration) -> Self {
        Self {
            client,
            path: format!("/api/rooms/{room}/events"),
            position,
            seq,
            live: None,
            pending: Arc::default(),
            pause: Duration::ZERO,
            disconnected_since: None,
            disconnected: Arc::default(),
            max_outage,
            behind: false,
        }
    }

    /// A flag that is set while there is no connection, for a message to the user who waits in [`Self::next`].
    pub fn disconnected(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.disconnected)
    }

    /// The position to resume at, as a command line argument.
    pub fn position(&self) -> &str {
        &self.position
    }

    /// The next event. Dropping the future loses no event; a reconnection in progress is restarted.
    pub async fn next(&mut self) -> Result<FeedItem, ClientError> {
        loop {
            let outcome = match self.frame().await {
                Ok(frame) => self.take(frame),
                Err(error) => Err(error),
            };
            match outcome {
                Ok(Some(item)) => return Ok(item),
                Ok(None) => {}
                Err(error) => self.handle_error(error)?,
            }
        }
    }

    async fn frame(&mut self) -> Result<Sse, ClientError> {
        if self.live.is_none() {
            sleep(self.pause).await;
            let query = [("after", self.position.as_str())];
            let answer = self.client.stream(&self.path, &query, &self.position).await?;
            self.pending.store(0, Ordering::Relaxed);
            self.live = Some(frames(answer, Arc::clone(&self.pending)));
        }
        let server = self.client.server();
        let Some(live) = &mut self.live else { return Err(ClientError::connection_lost(server, "it was not opened")) };
        match timeout(SILENCE, live.next()).await {
            Ok(Some(Ok(frame))) => {
                self.pending.store(0, Ordering::Relaxed);
                Ok(frame)
            }
            Ok(Some(Err(error))) => Err(ClientError::connection_lost(server, &error.to_string())),
            Ok(None) => Err(ClientError::connection_lost(server, "the server closed it")),
            Err(_) => Err(ClientError::connection_lost(server, "it was silent for too long")),
        }
    }

    fn take(&mut self, frame: Sse) -> Result<Option<FeedItem>, ClientError> {
        let (Some(kind), Some(data)) = (frame.event, frame.data) else { return Ok(None) };
        match kind.as_str() {
            "heartbeat" => {
                let head: JournalHead = self.parsed(&data)?;
                let missing = head.head > self.seq;
                // One such heartbeat can overtake events in transit; a second one cannot.
                if missing && self.behind {
                    return Err(ClientError::connection_lost(self.client.server(), "events are missing"));
                }
                self.behind = missing;
                self.mark_connected();
                Ok(None)
            }
            "reset" => {
                let head: JournalHead = self.parsed(&data)?;
                self.seq = 0;
                self.position = format!("{}-0", head.epoch);
                self.mark_connected();
                Ok(Some(FeedItem::Reset))
            }
            _ => self.take_event(frame.id, data),
        }
    }

    fn take_event(&mut self, id: Option<String>, json: String) -> Result<Option<FeedItem>, ClientError> {
        let envelope: FeedEnvelope<'_> = self.parsed(&json)?;
        if envelope.seq <= self.seq {
            return Ok(None);
        }
        if envelope.seq != self.seq + 1 {
            let detail = format!("event {} came after event {}", envelope.seq, self.seq);
            return Err(ClientError::connection_lost(self.client.server(), &detail));
        }
        let kind = envelope.kind.parse::<EventType>().ok();
        let body = kind.and_then(|kind| EventBody::parse(kind, envelope.data.get()).ok());
        let FeedEnvelope { id: event_id, seq, run_id, agent_id, .. } = envelope;
        self.seq = seq;
        self.position = id.unwrap_or_else(|| seq.to_string());
        self.behind = false;
        self.mark_connected();
        Ok(Some(FeedItem::Event(FeedEvent { id: event_id, kind, body, run_id, agent_id, json })))
    }

    fn parsed<'de, T: Deserialize<'de>>(&self, data: &'de str) -> Result<T, ClientError> {
        serde_json::from_str(data).map_err(|error| {
            ClientError::incompatible(self.client.server(), &format!("its events have another shape ({error})"))
        })
    }

    /// Something was received, so the next error starts a new outage.
    fn mark_connected(&mut self) {
        self.pause = Duration::ZERO;
        self.disconnected_since = None;
        self.disconnected.store(false, Ordering::Relaxed);
    }

    fn handle_error(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.live = None;
        self.behind = false;
        self.disconnected.store(true, Ordering::Relaxed);
        let since = *self.disconnected_since.get_or_insert_with(Instant::now);
        if !error.is_transient() || since.elapsed() > self.max_outage {
            return Err(error);
        }
        let wanted = match &error {
            ClientError::Busy { retry_after: Some(wanted), .. } => *wanted,
            _ => Duration::ZERO,
        };
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE).max(wanted);
        Ok(())
    }
}

/// The frames of a response, each of limited length.
fn frames(answer: reqwest::Response, pending: Arc<AtomicUsize>) -> SseFrames {
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

    /// Decodes the bytes in chunks of `size`.
    async fn decoded(bytes: &[u8], size: usize) -> Vec<(Option<String>, Option<String>, Option<String>)> {
        let pieces: Vec<Result<Cursor<Vec<u8>>, Infallible>> =
            bytes.chunks(size).map(|piece| Ok(Cursor::new(piece.to_vec()))).collect();
        let frames = SseByteStream::new(stream::iter(pieces)).map(|frame| frame.unwrap());
        frames.map(|frame| (frame.id, frame.event, frame.data)).collect().await
    }

    #[tokio::test]
    async fn chunk_boundaries_and_line_endings_do_not_matter() {
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
    async fn an_incomplete_frame_is_not_returned() {
        let text = "id: e-1\nevent: a\ndata: 1\n\nid: e-2\nevent: a\ndata: 2\n";
        for end in 0..text.len() {
            let frames = decoded(&text.as_bytes()[..end], 3).await;
            assert!(frames.len() <= 1 && frames.iter().all(|frame| frame.2.as_deref() == Some("1")), "{end}");
        }
    }
}
