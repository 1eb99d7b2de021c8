//! Streams of one run in other formats than the journal's events: `deltas`, which `/api/execute` has by default, and
//! `messages`, which other agent servers have. Translation is pure: an event in, frames out.
//!
//! Start at [`stream`], which reads the run and writes the frames; [`position`] is what their `id:` says.

mod deltas;
mod messages;
mod position;
mod stream;

pub use position::StreamPosition;
pub use stream::{StreamFrom, StreamOptions, open_run};

pub(super) use messages::MessagesTranslator;

use deltas::DeltasTranslator;
use domain::{
    event::EventBody,
    ids::{AgentId, RoomId, RunId},
    position::Seq,
    time::Timestamp,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use store::journal::Frame;

/// The format of a run's stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Each piece of an answer as it arrives.
    #[default]
    Deltas,
    /// Whole blocks: each text, thought, tool call and tool result is one message.
    Messages,
}

/// One event of a stream, in a dialect.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct DialectFrame {
    pub(super) event: &'static str,
    pub(super) data: Value,
}

impl DialectFrame {
    fn new(event: &'static str, data: Value) -> Self {
        Self { event, data }
    }
}

/// An event of a run, parsed.
pub(super) struct RunEvent {
    pub(super) seq: Seq,
    pub(super) agent_id: Option<AgentId>,
    created_at: Timestamp,
    body: EventBody,
}

impl RunEvent {
    /// `None` if this version cannot read the event.
    pub(super) fn parse(frame: &Frame) -> Option<Self> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            agent_id: Option<AgentId>,
            created_at: Timestamp,
            #[serde(borrow)]
            data: &'a RawValue,
        }
        let Envelope { agent_id, created_at, data } = serde_json::from_slice(frame.json()).ok()?;
        let body = EventBody::parse(frame.kind, data.get()).ok()?;
        Some(Self { seq: frame.seq, agent_id, created_at, body })
    }
}

enum RunTranslator {
    Deltas(DeltasTranslator),
    Messages(MessagesTranslator),
}

impl RunTranslator {
    fn new(dialect: Dialect, run: RunId, room: RoomId) -> Self {
        match dialect {
            Dialect::Deltas => Self::Deltas(DeltasTranslator::new(run, room)),
            Dialect::Messages => Self::Messages(MessagesTranslator::default()),
        }
    }

    fn translate(&mut self, event: RunEvent) -> Vec<DialectFrame> {
        match self {
            Self::Deltas(deltas) => deltas.translate(event.body).into_iter().collect(),
            Self::Messages(messages) => messages.translate(event),
        }
    }

    /// A stream that ends before its run.
    fn failure(&self, code: &str, message: &str) -> DialectFrame {
        match self {
            Self::Deltas(deltas) => deltas.failure(code, message),
            Self::Messages(_) => MessagesTranslator::failure(code, message),
        }
    }
}
