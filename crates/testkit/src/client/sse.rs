//! Follows one room over SSE.

use super::{Api, Error, Frame, FrameParser, Place, Said, SeenEvent, api::problem, event::written};
use bytes::Bytes;
use domain::{
    ids::RoomId,
    position::{Position, Seq},
};
use futures_util::{Stream, StreamExt as _};
use reqwest::{Method, header};
use std::{collections::VecDeque, pin::Pin, time::Duration};

/// Three heartbeats missed.
const IDLE: Duration = Duration::from_secs(45);
const CONNECT: Duration = Duration::from_secs(30);

pub struct SseReader {
    body: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    parser: FrameParser,
    frames: Vec<Frame>,
    ready: VecDeque<Frame>,
    position: Position,
    idle: Duration,
}

impl SseReader {
    /// Connects, resuming after `position` with `Last-Event-ID` as a browser does.
    pub async fn connect(api: &Api, room: RoomId, position: &Position) -> Result<Self, Error> {
        Self::open(api, &format!("/api/rooms/{room}/events"), position).await
    }

    /// Any path that answers with events.
    pub async fn open(api: &Api, path: &str, position: &Position) -> Result<Self, Error> {
        let mut request = api.request(Method::GET, path).header(header::ACCEPT, "text/event-stream");
        if *position != Position::START {
            request = request.header("last-event-id", written(position));
        }
        let answer = tokio::time::timeout(CONNECT, request.send()).await.map_err(|_| Error::Silence(CONNECT))??;
        let status = answer.status();
        if !status.is_success() {
            return Err(problem(status.as_u16(), &answer.text().await?));
        }
        let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(Error::shape(format!("asked for text/event-stream, got {kind:?}")));
        }
        Ok(Self {
            body: Box::pin(answer.bytes_stream()),
            parser: FrameParser::default(),
            frames: Vec::new(),
            ready: VecDeque::new(),
            position: position.clone(),
            idle: IDLE,
        })
    }

    /// How long a silence (heartbeats count as sound) is taken for a dead connection.
    #[must_use]
    pub fn with_idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// The last event that was shown: where to resume.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// The next thing said about the room; `None` when the server ended the stream.
    pub async fn next(&mut self) -> Result<Option<Said>, Error> {
        loop {
            let Some(frame) = self.next_frame().await? else { return Ok(None) };
            if let Some(said) = self.read(&frame)? {
                return Ok(Some(said));
            }
        }
    }

    /// The next event, passing over heartbeats; a reset is an error here.
    pub async fn next_event(&mut self) -> Result<Option<SeenEvent>, Error> {
        loop {
            match self.next().await? {
                Some(Said::Event(event)) => return Ok(Some(event)),
                Some(Said::Heartbeat(_)) => {}
                Some(Said::Reset(place)) => return Err(Error::shape(format!("unexpected reset to {place:?}"))),
                None => return Ok(None),
            }
        }
    }

    /// The next frame as it came, for streams that do not speak in events.
    pub async fn next_frame(&mut self) -> Result<Option<Frame>, Error> {
        while self.ready.is_empty() {
            let chunk =
                tokio::time::timeout(self.idle, self.body.next()).await.map_err(|_| Error::Silence(self.idle))?;
            match chunk {
                Some(bytes) => self.parser.push(&bytes?, &mut self.frames)?,
                None => return Ok(None),
            }
            self.ready.extend(self.frames.drain(..));
        }
        Ok(self.ready.pop_front())
    }

    fn read(&mut self, frame: &Frame) -> Result<Option<Said>, Error> {
        let name = frame.event.as_deref().unwrap_or("message");
        match name {
            "heartbeat" => place(frame).map(|place| Some(Said::Heartbeat(place))),
            "reset" => {
                let place = place(frame)?;
                self.position = Position { epoch: Some(place.epoch.clone()), seq: 0 };
                Ok(Some(Said::Reset(place)))
            }
            _ => {
                let event = SeenEvent::parse(&frame.data)?;
                if event.kind.as_str() != name {
                    return Err(Error::shape(format!("frame named {name} holds {}", event.json)));
                }
                self.advance(frame, event.seq)?;
                Ok(Some(Said::Event(event)))
            }
        }
    }

    fn advance(&mut self, frame: &Frame, seq: Seq) -> Result<(), Error> {
        let id = frame.id.as_deref().ok_or_else(|| Error::shape("an event's frame has no id"))?;
        let position: Position = id.parse().map_err(|error| Error::shape(format!("frame id {id:?}: {error}")))?;
        if position.epoch.is_none() || position.seq != seq {
            return Err(Error::shape(format!("frame id {id:?} on event {seq}")));
        }
        self.position = position;
        Ok(())
    }
}

fn place(frame: &Frame) -> Result<Place, Error> {
    serde_json::from_str(&frame.data).map_err(|error| Error::shape(format!("{error} in {}", frame.data)))
}

impl std::fmt::Debug for SseReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SseReader").field("position", &self.position).finish_non_exhaustive()
    }
}
