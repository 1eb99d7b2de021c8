//! The start of a run in the journal. If a worker slot is free, the start is stored in the commit of the message, which
//! saves a commit before the first output; otherwise `drive` stores it.

use domain::{
    agent::Agent,
    event::{NewEvent, RunStarted, StreamStart},
    ids::{MessageId, RunId},
    position::Seq,
    time::Timestamp,
};

/// The start of a run before it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingStart {
    stream_id: MessageId,
}

/// The start of a run after it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredStart {
    pub(crate) stream_id: MessageId,
    /// The seq of the `stream_start` event; the answer begins there.
    pub(crate) stream_seq: Seq,
    pub(crate) started_at: Timestamp,
}

impl PendingStart {
    pub(crate) fn new() -> Self {
        Self { stream_id: MessageId::generate() }
    }

    pub(crate) fn events(self, run: RunId, agent: &Agent) -> Vec<NewEvent> {
        let started = RunStarted { provider: agent.spec.provider.clone(), model: agent.spec.model.clone() };
        let stream = StreamStart { stream_id: self.stream_id };
        [NewEvent::new(started), NewEvent::new(stream)].map(|event| event.of_run(run, agent.id)).into()
    }

    /// `first` is the seq of the first of these events.
    pub(crate) fn into_stored(self, first: Seq, at: Timestamp) -> StoredStart {
        StoredStart { stream_id: self.stream_id, stream_seq: first + 1, started_at: at }
    }
}
