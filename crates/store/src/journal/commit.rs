//! One atomic write to one room: what must hold, what is appended, and what else changes with it.

use crate::catalog::{idempotency::Attempt, sessions::ProviderSession};
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
    pub changes: Vec<Change>,
}

/// Checked inside the transaction; when it does not hold, nothing of the commit is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    None,
    /// The writer holds the run's current lease (invariant 11).
    Lease {
        run_id: RunId,
        fence: u64,
    },
    /// The run waits in the queue and nobody has claimed it.
    Unclaimed {
        run_id: RunId,
    },
    /// No run of the room is unfinished.
    RoomIdle,
}

/// Rows that change in the same transaction as the events.
#[derive(Debug, Clone)]
pub enum Change {
    CreateRoom {
        owner: Owner,
        room: Room,
    },
    /// Someone sits down at the end of the row, or again where they were.
    Join {
        agent_id: AgentId,
    },
    Leave {
        agent_id: AgentId,
    },
    PutMessage {
        message: Message,
        seq: SeqOf,
    },
    QueueRun {
        owner: Owner,
        run_id: RunId,
        agent_id: AgentId,
        message_id: MessageId,
        seq: SeqOf,
        /// Who begins with it at once. Granted where no run of the room is unfinished; else it waits for its turn.
        claim: Option<ClaimFor>,
    },
    /// Asks every unfinished run of the room that was queued before this commit to stop.
    StopEarlier {
        stop: Stop,
    },
    RunStatus {
        run_id: RunId,
        status: RunStatus,
    },
    /// The run's one end; takes it out of the queue.
    EndRun {
        run_id: RunId,
        ending: Ending,
    },
    PutSession {
        agent_id: AgentId,
        provider: String,
        session: ProviderSession,
    },
    /// The tool is allowed for this agent in this room from now on.
    RememberTool {
        agent_id: AgentId,
        tool: String,
    },
    /// Made before all others: a key that was used before rejects the commit.
    Remember {
        owner: Owner,
        attempt: Attempt,
        result: String,
    },
}

/// A worker that has room for a run as soon as it is queued.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimFor {
    pub holder: String,
    pub lease: Duration,
    /// What the journal then says of the run's start, right after the commit's own events.
    pub start: Vec<NewEvent>,
}

/// A seq that a row needs: known already, or that of the commit's n-th event.
#[derive(Debug, Clone, Copy)]
pub enum SeqOf {
    Known(Seq),
    Event(usize),
}

#[derive(Debug, Clone)]
pub struct Ending {
    pub status: RunStatus,
    pub usage: Usage,
    pub cost: Option<Cost>,
    pub model: Option<String>,
    pub duration_ms: u64,
    pub error: Option<RunError>,
    pub receipt: Option<Receipt>,
}

/// Why an unfinished run is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Cancel,
    Interrupt,
}

impl Stop {
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
    /// The seq of the first event; of the room's newest one when the commit had none.
    pub first: Seq,
    pub at: Timestamp,
    /// The worker that offered to begin with a run of this commit holds it now, with this fence, and the run has started.
    pub claimed: Option<u64>,
}
