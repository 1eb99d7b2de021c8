//! Follows one room over SSE.

use super::{
    ReceivedFrame, ReceivedFrameParser, SeenEvent, SeenHead, SeenItem, TestClient, TestClientError, api::problem,
    event::position_text,
};
use bytes::Bytes;
use domain::{
    ids::RoomId,
    position::{Position, Seq},
};
use futures_util::{Stream, StreamExt as _};
use reqwest::{Method, header};
use std::{collections::VecDeque, pin::Pin, time::Duration};

/// Three missed heartbeats.
const IDLE: Duration = Duration::from_secs(45);
const CONNECT: Duration = Duration::from_secs(30);

pub struct SseReader {
    body: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    parser: ReceivedFrameParser,
    frames: Vec<ReceivedFrame>,
    ready: VecDeque<ReceivedFrame>,
    position: Position,
    idle: Duration,
}

impl SseReader {
    /// Connects, resuming after `position` with `Last-Event-ID` as a browser does.
    pub async fn connect(api: &TestClient, room: RoomId, position: &Position) -> Result<Self, TestClientError> {
        Self::open(api, &format!("/api/rooms/{room}/events"), position).await
    }

    /// Opens any path that returns an event stream.
    pub async fn open(api: &TestClient, path: &str, position: &Position) -> Result<Self, TestClientError> {
        let mut request = api.request(Method::GET, path).header(header::ACCEPT, "text/event-stream");
        if *position != Position::START {
            request = request.header("last-event-id", position_text(position));
        }
        let answer =
            tokio::time::timeout(CONNECT, request.send()).await.map_err(|_| TestClientError::Timeout(CONNECT))??;
        let status = answer.status();
        if !status.is_success() {
            return Err(problem(status.as_u16(), &answer.text().await?));
        }
        let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(TestClientError::unexpected(format!("expected text/event-stream, got {kind:?}")));
        }
        Ok(Self {
            body: Box::pin(answer.bytes_stream()),
            parser: ReceivedFrameParser::default(),
            frames: Vec::new(),
            ready: VecDeque::new(),
            position: position.clone(),
            idle: IDLE,
        })
    }

    /// Sets how long without any frame, heartbeats included, until the connection counts as dead.
    #[must_use]
    pub fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// The position of the last received event, to resume from.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Returns the next item; `None` if the server ended the stream.
    pub async fn next(&mut self) -> Result<Option<SeenItem>, TestClientError> {
        loop {
            let Some(frame) = self.next_frame().await? else { return Ok(None) };
            if let Some(item) = self.read(&frame)? {
                return Ok(Some(item));
            }
        }
    }

    /// Returns the next event and skips heartbeats; a reset is an error.
    pub async fn next_event(&mut self) -> Result<Option<SeenEvent>, TestClientError> {
        loop {
            match self.next().await? {
                Some(SeenItem::Event(event)) => return Ok(Some(event)),
                Some(SeenItem::Heartbeat(_)) => {}
                Some(SeenItem::Reset(head)) => {
                    return Err(TestClientError::unexpected(format!("unexpected reset to {head:?}")));
                }
                None => return Ok(None),
            }
        }
    }

    /// Returns the next raw frame, for streams that do not contain room events.
    pub async fn next_frame(&mut self) -> Result<Option<ReceivedFrame>, TestClientError> {
        while self.ready.is_empty() {
            let chunk = tokio::time::timeout(self.idle, self.body.next())
                .await
                .map_err(|_| TestClientError::Timeout(self.idle))?;
            match chunk {
                Some(bytes) => self.parser.push(&bytes?, &mut self.frames)?,
                None => return Ok(None),
            }
            self.ready.extend(self.frames.drain(..));
        }
        Ok(self.ready.pop_front())
    }

    fn read(&mut self, frame: &ReceivedFrame) -> Result<Option<SeenItem>, TestClientError> {
        let name = frame.event.as_deref().unwrap_or("message");
        match name {
            "heartbeat" => parse_head(frame).map(|head| Some(SeenItem::Heartbeat(head))),
            "reset" => {
                let head = parse_head(frame)?;
                self.position = Position { epoch: Some(head.epoch.clone()), seq: 0 };
                Ok(Some(SeenItem::Reset(head)))
            }
            _ => {
                let event = SeenEvent::parse(&frame.data)?;
                if store::journal::sse_name(event.kind) != name {
                    return Err(TestClientError::unexpected(format!("frame named {name} contains {}", event.json)));
                }
                self.advance(frame, event.seq)?;
                Ok(Some(SeenItem::Event(event)))
            }
        }
    }

    fn advance(&mut self, frame: &ReceivedFrame, seq: Seq) -> Result<(), TestClientError> {
        let id = frame.id.as_deref().ok_or_else(|| TestClientError::unexpected("an event's frame has no id"))?;
        let position: Position =
            id.parse().map_err(|error| TestClientError::unexpected(format!("frame id {id:?}: {error}")))?;
        if position.epoch.is_none() || position.seq != seq {
            return Err(TestClientError::unexpected(format!("frame id {id:?} on event {seq}")));
        }
        self.position = position;
        Ok(())
    }
}

fn parse_head(frame: &ReceivedFrame) -> Result<SeenHead, TestClientError> {
    serde_json::from_str(&frame.data).map_err(|error| TestClientError::unexpected(format!("{error} in {}", frame.data)))
}

impl std::fmt::Debug for SseReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SseReader").field("position", &self.position).finish_non_exhaustive()
    }
}
