//! The rows that change together with events.

use super::{SeqRef, statement::without_nul};
use domain::{
    approval::RememberedRule,
    audit::AuditEntry,
    event::NewEvent,
    ids::{AgentId, MessageId, RunId, SignalId},
    message::Message,
    name::Name,
    owner::Owner,
    position::Seq,
    project::Project,
    room::{Room, RoomPlacementPatch, RoomPolicy},
    run::{Receipt, RunError, RunStatus},
    run_tree::TreePlace,
    signal::{Signal, SignalOutcome},
    usage::{Cost, Usage},
};
use std::time::Duration;

/// Rows that change in the same transaction as the events.
#[derive(Debug, Clone)]
pub enum RowChange {
    /// Before the room that is created in it. Rejects the commit if the workspace has `limit` projects.
    CreateProject {
        owner: Owner,
        project: Project,
        limit: usize,
    },
    CreateRoom {
        owner: Owner,
        room: Room,
    },
    /// Moves the room in people's lists. This is no activity: the room's time stays.
    PlaceRoom {
        owner: Owner,
        patch: RoomPlacementPatch,
    },
    /// Replaces what is given. A room that was deleted meanwhile rejects the commit.
    UpdateRoom {
        owner: Owner,
        name: Option<Name>,
        policy: Option<RoomPolicy>,
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
    /// Stores an agent's answer, which begins at `message.seq`.
    PutAnswer {
        message: Message,
        /// The event that ends the run.
        ended: SeqRef,
    },
    QueueRun {
        owner: Owner,
        run_id: RunId,
        agent_id: AgentId,
        message_id: MessageId,
        /// For a run that another run starts. Rejected if that run has ended or is requested to stop, and if its tree has
        /// too many runs.
        place: Option<TreePlace>,
        seq: SeqRef,
        /// The seq at which the first run of its cell was queued: the run waits for the unfinished runs of lower cells.
        cell: SeqRef,
        /// A worker's offer to start the run at once, for the first run of the commit. Granted if the room has no
        /// unfinished run.
        claim: Option<ClaimOffer>,
    },
    /// Moves a queued run to another cell. Rejects the commit if a worker holds the run, or it has ended.
    MoveRun {
        run_id: RunId,
        cell: Seq,
    },
    /// Requests every unfinished run of the room that was queued before this commit to stop.
    StopEarlierRuns {
        stop: StopRequest,
    },
    RunStatus {
        run_id: RunId,
        status: RunStatus,
    },
    /// What an unfinished run has used so far.
    MeterRun {
        run_id: RunId,
        usage: Usage,
        cost: Option<Cost>,
    },
    /// Stores a request to an unfinished run. Rejects the commit if the run has ended, or if too many signals wait.
    StoreSignal {
        signal: Signal,
    },
    /// Settles a signal of the run that the commit's guard names.
    SettleSignal {
        run_id: RunId,
        signal_id: SignalId,
        outcome: SignalOutcome,
    },
    /// Replaces or removes what is planned behind the queued runs. Rejected if `based_on` is not the current version; 0 is
    /// the version of a room without a plan.
    PutTape {
        based_on: Seq,
        state: Option<String>,
        hold: TapeHold,
    },
    /// Ends the run, removes it from the queue, settles its signals, and requests its children to stop. Rejected while a signal that outlives the run
    /// is not settled, and if the room has a plan that the commit does not take on.
    EndRun {
        run_id: RunId,
        ending: RunEnding,
    },
    PutSession {
        agent_id: AgentId,
        provider: String,
        session: ProviderSessionRecord,
    },
    /// What a run was given; the first one stays.
    PutRunContext {
        run_id: RunId,
        context: String,
    },
    /// Always allows these calls for this agent in this room.
    RememberTool {
        agent_id: AgentId,
        rule: RememberedRule,
    },
    /// Stores an idempotency key. A key that was used before rejects the commit.
    StoreIdempotencyKey {
        owner: Owner,
        attempt: IdempotentRequest,
        result: String,
    },
    /// Who made this commit, for the audit log.
    Audit(AuditEntry),
}

/// Which queued runs of a room may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TapeHold {
    /// All, in the order of their cells.
    #[default]
    Nothing,
    /// None: the room is paused.
    All,
    /// Those of one cell: a person lets a paused room make one step.
    AllBut(SeqRef),
}

/// An offer of a worker with a free slot to start a run as soon as it is queued.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimOffer {
    pub holder: String,
    pub lease: Duration,
    /// The events of the run's start, appended after the commit's own events.
    pub start_events: Vec<NewEvent>,
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

/// A write request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    pub key: String,
    /// Identifies the request: a hash of method, path and body.
    pub fingerprint: [u8; 32],
}

/// A provider's conversation, and how much of the room it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSessionRecord {
    pub id: String,
    /// The session knows all posts up to this seq.
    pub heard_seq: Seq,
    /// The session knows all answers that had ended at this seq.
    pub spoke_seq: Option<Seq>,
    /// The session knows its own answer that begins at this seq.
    pub answer_seq: Option<Seq>,
}

impl ProviderSessionRecord {
    /// Creates a session that knows nothing yet. PostgreSQL text cannot contain NUL, so NUL is removed here: the stored
    /// id can then be compared with the provider's.
    pub fn new(id: &str) -> Self {
        Self { id: without_nul(id), heard_seq: 0, spoke_seq: None, answer_seq: None }
    }
}
