//! The start of a run in the journal. If a worker slot is free, the start is stored in the commit of the message, which
//! saves a commit before the first output; otherwise `drive` stores it.

use domain::{
    agent::Agent,
    event::{NewEvent, RunStarted, StreamStart},
    ids::{MessageId, RunId},
    position::Seq,
    time::Timestamp,
};

/// The start of a run as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredStart {
    pub(crate) stream_id: MessageId,
    /// The seq of the `stream_start` event; the answer begins there.
    pub(crate) stream_seq: Seq,
    pub(crate) started_at: Timestamp,
}

impl StoredStart {
    /// `first` is the seq of the first of `start_events`.
    pub(crate) fn new(stream_id: MessageId, first: Seq, at: Timestamp) -> Self {
        Self { stream_id, stream_seq: first + 1, started_at: at }
    }
}

/// The events of the start of a run whose answer will have the id `stream_id`.
pub(crate) fn start_events(run: RunId, agent: &Agent, stream_id: MessageId) -> Vec<NewEvent> {
    let started = RunStarted { provider: agent.spec.provider.clone(), model: agent.spec.model.clone() };
    [NewEvent::new(started), NewEvent::new(StreamStart { stream_id })].map(|event| event.of_run(run, agent.id)).into()
}
