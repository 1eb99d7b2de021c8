//! The record of promises, kept outside the server: the events delivered to each reader and the posts acknowledged to
//! each writer.

use domain::{
    event::{EventBody, EventType},
    ids::{ApprovalId, MessageId, RoomId, RunId},
    position::Seq,
    run::RunStatus,
    tape::TapeChange,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};
use testkit::client::{PostReply, SeenEvent};
use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReaderTransport {
    Sse,
    WebSocket,
    Page,
}

impl ReaderTransport {
    pub const ALL: [Self; 3] = [Self::Sse, Self::WebSocket, Self::Page];

    fn index(self) -> usize {
        self as usize
    }
}

/// How the agents of a room answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChaosRoomKind {
    OneAgent,
    /// Several agents, all at once.
    Together,
    /// Several agents, one after another, by the room's tape.
    InTurn,
}

impl ChaosRoomKind {
    /// Each kind gets a third of the rooms.
    pub fn of_room(number: u64) -> Self {
        match number % 3 {
            1 => Self::OneAgent,
            2 => Self::Together,
            _ => Self::InTurn,
        }
    }

    /// Whether the agents of two messages, or of one, never answer at the same time.
    pub fn is_sequential(self) -> bool {
        self != Self::Together
    }
}

/// A post that was answered with 202.
#[derive(Clone, Debug)]
pub struct AcknowledgedPost {
    pub message: MessageId,
    pub seq: Seq,
    pub text: String,
    pub runs: Vec<RunId>,
}

/// The history of one reader.
#[derive(Clone, Debug, Default)]
pub struct ReaderRecord {
    /// The last seq delivered to the reader.
    pub position: Seq,
    pub connections: usize,
    /// Steps other than n to n + 1, resets, and responses that violate the API.
    pub faults: Vec<String>,
}

#[derive(Debug, Default)]
pub struct LedgerEntries {
    /// The first bytes delivered for each seq, over any transport.
    pub delivered: BTreeMap<Seq, Box<str>>,
    /// Different bytes that were later delivered for the same seq.
    pub contradictions: Vec<(Seq, Box<str>)>,
    pub acknowledged: Vec<AcknowledgedPost>,
    /// Approvals that were requested and that nobody has answered.
    pub requested_approvals: Vec<(RunId, ApprovalId)>,
    /// Approvals whose answer was accepted with 204.
    pub allowed: Vec<ApprovalId>,
    /// Runs that a cancel request reported as ended, with their status.
    pub ended_by_cancel: Vec<(RunId, RunStatus)>,
    /// Commands to the tape that were accepted with 200.
    pub tape_changes: Vec<TapeChange>,
    pub readers: [ReaderRecord; 3],
    /// Requests that the server refused for now, because it could not store anything.
    pub refused: usize,
    /// Responses to a writer that violate the API.
    pub writer_faults: Vec<String>,
    open_runs: BTreeSet<RunId>,
    ended_runs: BTreeSet<RunId>,
}

impl LedgerEntries {
    /// The highest seq delivered or acknowledged.
    pub fn highest_seen_seq(&self) -> Seq {
        let shown = self.delivered.last_key_value().map_or(0, |(seq, _)| *seq);
        let acknowledged = self.acknowledged.iter().map(|promise| promise.seq).max().unwrap_or(0);
        shown.max(acknowledged)
    }
}

/// The ledger of one room, shared by its readers and its writer.
#[derive(Debug)]
pub struct RoomLedger {
    pub room: RoomId,
    pub kind: ChaosRoomKind,
    entries: Mutex<LedgerEntries>,
    progress: watch::Sender<RoomProgress>,
}

/// Progress that other tasks wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoomProgress {
    pub open_runs: usize,
    /// Text deltas delivered so far.
    pub deltas: u64,
    pub events: u64,
}

impl RoomLedger {
    pub fn new(room: RoomId, kind: ChaosRoomKind) -> Self {
        Self { room, kind, entries: Mutex::default(), progress: watch::Sender::new(RoomProgress::default()) }
    }

    pub fn entries(&self) -> MutexGuard<'_, LedgerEntries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn progress(&self) -> watch::Receiver<RoomProgress> {
        self.progress.subscribe()
    }

    pub fn record_connection(&self, transport: ReaderTransport) {
        self.entries().readers[transport.index()].connections += 1;
    }

    pub fn record_reader_fault(&self, transport: ReaderTransport, fault: String) {
        self.entries().readers[transport.index()].faults.push(fault);
    }

    /// Records that a reader had to start over.
    pub fn record_reset(&self, transport: ReaderTransport, fault: String) {
        let mut entries = self.entries();
        let reader = &mut entries.readers[transport.index()];
        reader.faults.push(fault);
        reader.position = 0;
    }

    pub fn record_event(&self, transport: ReaderTransport, event: &SeenEvent) {
        let mut entries = self.entries();
        let reader = &mut entries.readers[transport.index()];
        if event.seq != reader.position + 1 {
            let fault = format!("{transport:?}: {} came after {}", event.seq, reader.position);
            reader.faults.push(fault);
        }
        reader.position = event.seq;
        match entries.delivered.get(&event.seq) {
            Some(first) if **first == *event.json => return,
            Some(_) => {
                entries.contradictions.push((event.seq, event.json.clone()));
                return;
            }
            None => {
                entries.delivered.insert(event.seq, event.json.clone());
            }
        }
        if let Some(run) = event.run_id {
            if event.kind == EventType::RunQueued && !entries.ended_runs.contains(&run) {
                entries.open_runs.insert(run);
            } else if event.kind.ends_a_run() {
                entries.open_runs.remove(&run);
                entries.ended_runs.insert(run);
            } else if let (EventType::ApprovalRequested, Ok(EventBody::ApprovalRequested(request))) =
                (event.kind, event.body())
            {
                entries.requested_approvals.push((run, request.approval_id));
            }
        }
        let open_runs = entries.open_runs.len();
        let is_delta = matches!(event.kind, EventType::ContentDelta | EventType::ThinkingDelta);
        drop(entries);
        self.progress.send_modify(|progress| {
            progress.open_runs = open_runs;
            progress.events += 1;
            progress.deltas += u64::from(is_delta);
        });
    }

    pub fn record_post(&self, text: &str, posted: &PostReply) {
        let runs = posted.runs.iter().map(|run| run.id).collect();
        self.entries().acknowledged.push(AcknowledgedPost {
            message: posted.message.id,
            seq: posted.message.seq,
            text: text.to_owned(),
            runs,
        });
    }

    pub fn take_requested_approval(&self) -> Option<(RunId, ApprovalId)> {
        self.entries().requested_approvals.pop()
    }

    /// Returns a run whose end no reader has seen.
    pub fn pick_open_run(&self, which: u64) -> Option<RunId> {
        let entries = self.entries();
        let count = u64::try_from(entries.open_runs.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(which.checked_rem(count)?).ok()?;
        entries.open_runs.iter().nth(index).copied()
    }
}
