//! The start of a run in the journal. Where a worker can begin at once, whoever queues the run stores it along with the
//! message, and whoever waits for the first word waits for one commit less; else whoever drives the run stores it.

use domain::{
    agent::Agent,
    event::{NewEvent, RunStarted, StreamStart},
    ids::{MessageId, RunId},
    position::Seq,
    time::Timestamp,
};

/// About to be stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    stream_id: MessageId,
}

/// Stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(super) stream_id: MessageId,
    /// Where the answer begins.
    pub(super) stream_seq: Seq,
    pub(crate) at: Timestamp,
}

impl Start {
    pub(crate) fn new() -> Self {
        Self { stream_id: MessageId::generate() }
    }

    pub(crate) fn events(self, run: RunId, agent: &Agent) -> Vec<NewEvent> {
        let started = RunStarted { provider: agent.spec.provider.clone(), model: agent.spec.model.clone() };
        let stream = StreamStart { stream_id: self.stream_id };
        [NewEvent::new(started), NewEvent::new(stream)].map(|event| event.of_run(run, agent.id)).into()
    }

    /// With the first of these events at this seq.
    pub(crate) fn stored(self, first: Seq, at: Timestamp) -> Started {
        Started { stream_id: self.stream_id, stream_seq: first + 1, at }
    }
}
