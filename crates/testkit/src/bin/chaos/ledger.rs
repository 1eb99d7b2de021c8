//! What was promised, kept outside the server: what each reader was shown and what each writer was told is stored.

use domain::{
    event::EventType,
    ids::{MessageId, RoomId, RunId},
    position::Seq,
    run::RunStatus,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};
use testkit::client::{Posted, SeenEvent};
use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Door {
    Sse,
    WebSocket,
    Page,
}

impl Door {
    pub const ALL: [Self; 3] = [Self::Sse, Self::WebSocket, Self::Page];

    fn index(self) -> usize {
        self as usize
    }
}

/// A post that was answered with 202.
#[derive(Clone, Debug)]
pub struct Acknowledged {
    pub message: MessageId,
    pub seq: Seq,
    pub text: String,
    pub runs: Vec<RunId>,
}

/// What one reader went through.
#[derive(Clone, Debug, Default)]
pub struct Journey {
    /// The last seq it was shown.
    pub position: Seq,
    pub connections: usize,
    /// Steps that were not from n to n + 1, resets, and answers that the API does not allow.
    pub faults: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Entries {
    /// The bytes first shown for each seq, by whichever door.
    pub shown: BTreeMap<Seq, Box<str>>,
    /// Other bytes that were shown for a seq that had been shown before.
    pub contradictions: Vec<(Seq, Box<str>)>,
    pub acknowledged: Vec<Acknowledged>,
    /// Runs that a cancel said to have ended, and how.
    pub ended_by_cancel: Vec<(RunId, RunStatus)>,
    pub journeys: [Journey; 3],
    /// What a writer was told that the API does not allow.
    pub writer_faults: Vec<String>,
    open_runs: BTreeSet<RunId>,
    ended_runs: BTreeSet<RunId>,
}

impl Entries {
    /// The highest seq that anyone was shown or told of.
    pub fn highest_promise(&self) -> Seq {
        let shown = self.shown.last_key_value().map_or(0, |(seq, _)| *seq);
        let acknowledged = self.acknowledged.iter().map(|promise| promise.seq).max().unwrap_or(0);
        shown.max(acknowledged)
    }
}

/// The ledger of one room, shared by its readers and its writer.
#[derive(Debug)]
pub struct Ledger {
    pub room: RoomId,
    entries: Mutex<Entries>,
    pulse: watch::Sender<Pulse>,
}

/// What others wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pulse {
    pub open_runs: usize,
    /// Text deltas shown so far.
    pub deltas: u64,
    pub events: u64,
}

impl Ledger {
    pub fn new(room: RoomId) -> Self {
        Self { room, entries: Mutex::default(), pulse: watch::Sender::new(Pulse::default()) }
    }

    pub fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn pulse(&self) -> watch::Receiver<Pulse> {
        self.pulse.subscribe()
    }

    pub fn connected(&self, door: Door) {
        self.entries().journeys[door.index()].connections += 1;
    }

    pub fn reader_fault(&self, door: Door, fault: String) {
        self.entries().journeys[door.index()].faults.push(fault);
    }

    /// A reader was told to start over.
    pub fn reset(&self, door: Door, fault: String) {
        let mut entries = self.entries();
        let journey = &mut entries.journeys[door.index()];
        journey.faults.push(fault);
        journey.position = 0;
    }

    pub fn show(&self, door: Door, event: &SeenEvent) {
        let mut entries = self.entries();
        let journey = &mut entries.journeys[door.index()];
        if event.seq != journey.position + 1 {
            let fault = format!("{door:?}: {} came after {}", event.seq, journey.position);
            journey.faults.push(fault);
        }
        journey.position = event.seq;
        match entries.shown.get(&event.seq) {
            Some(first) if **first == *event.json => return,
            Some(_) => {
                entries.contradictions.push((event.seq, event.json.clone()));
                return;
            }
            None => {
                entries.shown.insert(event.seq, event.json.clone());
            }
        }
        if let Some(run) = event.run_id {
            if event.kind == EventType::RunQueued && !entries.ended_runs.contains(&run) {
                entries.open_runs.insert(run);
            } else if event.kind.ends_a_run() {
                entries.open_runs.remove(&run);
                entries.ended_runs.insert(run);
            }
        }
        let open_runs = entries.open_runs.len();
        let is_delta = matches!(event.kind, EventType::ContentDelta | EventType::ThinkingDelta);
        drop(entries);
        self.pulse.send_modify(|pulse| {
            pulse.open_runs = open_runs;
            pulse.events += 1;
            pulse.deltas += u64::from(is_delta);
        });
    }

    pub fn acknowledge(&self, text: &str, posted: &Posted) {
        let runs = posted.runs.iter().map(|run| run.id).collect();
        self.entries().acknowledged.push(Acknowledged {
            message: posted.message.id,
            seq: posted.message.seq,
            text: text.to_owned(),
            runs,
        });
    }

    /// A run that has not ended as far as any reader knows.
    pub fn some_open_run(&self, which: u64) -> Option<RunId> {
        let entries = self.entries();
        let count = u64::try_from(entries.open_runs.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(which.checked_rem(count)?).ok()?;
        entries.open_runs.iter().nth(index).copied()
    }
}
