//! One atomic write to one room: a guard, the events to append, and the row changes that go with them.

use crate::catalog::{idempotency::IdempotentRequest, provider_sessions::ProviderSessionRecord};
use domain::{
    event::NewEvent,
    ids::{AgentId, MessageId, RoomId, RunId},
    message::Message,
    owner::Owner,
    position::Seq,
    room::Room,
    run::{Receipt, RunError, RunStatus},
    time::Timestamp,
    usage::{Cost, Usage},
};
use std::time::Duration;

#[derive(Debug)]
pub struct Commit {
    pub room_id: RoomId,
    pub guard: Guard,
    pub events: Vec<NewEvent>,
    pub changes: Vec<RowChange>,
}

/// Checked inside the transaction; if it fails, nothing of the commit is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    None,
    /// The writer holds the run's current lease (invariant 11).
    Lease {
        run_id: RunId,
        fence: u64,
    },
    /// The run is queued and not claimed.
    Unclaimed {
        run_id: RunId,
    },
    /// The room has no unfinished run.
    RoomIdle,
}

/// Rows that change in the same transaction as the events.
#[derive(Debug, Clone)]
pub enum RowChange {
    CreateRoom {
        owner: Owner,
        room: Room,
    },
    /// Adds the agent as the last participant; a participant keeps its position.
    Join {
        agent_id: AgentId,
    },
    Leave {
        agent_id: AgentId,
    },
    PutMessage {
        message: Message,
        seq: SeqRef,
    },
    QueueRun {
        owner: Owner,
        run_id: RunId,
        agent_id: AgentId,
        message_id: MessageId,
        seq: SeqRef,
        /// A worker's offer to start the run at once. Granted if the room has no unfinished run.
        claim: Option<ClaimOffer>,
    },
    /// Requests every unfinished run of the room that was queued before this commit to stop.
    StopEarlierRuns {
        stop: StopRequest,
    },
    RunStatus {
        run_id: RunId,
        status: RunStatus,
    },
    /// Ends the run and removes it from the queue.
    EndRun {
        run_id: RunId,
        ending: RunEnding,
    },
    PutSession {
        agent_id: AgentId,
        provider: String,
        session: ProviderSessionRecord,
    },
    /// Always allows the tool for this agent in this room.
    RememberTool {
        agent_id: AgentId,
        tool: String,
    },
    /// Stores an idempotency key. A key that was used before rejects the commit.
    StoreIdempotencyKey {
        owner: Owner,
        attempt: IdempotentRequest,
        result: String,
    },
}

/// An offer of a worker with a free slot to start a run as soon as it is queued.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimOffer {
    pub holder: String,
    pub lease: Duration,
    /// The events of the run's start, appended after the commit's own events.
    pub start_events: Vec<NewEvent>,
}

/// A seq that a row refers to: a known one, or that of the commit's n-th event.
#[derive(Debug, Clone, Copy)]
pub enum SeqRef {
    Known(Seq),
    Event(usize),
}

#[derive(Debug, Clone)]
pub struct RunEnding {
    pub status: RunStatus,
    pub usage: Usage,
    pub cost: Option<Cost>,
    pub model: Option<String>,
    pub duration_ms: u64,
    pub error: Option<RunError>,
    pub receipt: Option<Receipt>,
}

/// Why an unfinished run is requested to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    Cancel,
    Interrupt,
}

impl StopRequest {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Interrupt => "interrupt",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Cancel, Self::Interrupt].into_iter().find(|stop| stop.as_str() == text)
    }
}

/// The receipt of a commit: its events are on disk as `first..first + count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The seq of the first event; the room's head if the commit has no events.
    pub first_seq: Seq,
    pub at: Timestamp,
    /// The fence of the claim, if the worker's offer was granted: it now holds the run, and the run has started.
    pub claimed_fence: Option<u64>,
}
