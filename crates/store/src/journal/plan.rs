//! Plans a group of commits: checks each guard, assigns seqs, and lists what to store. Pure: the facts about the
//! subjects are read before (`CommitSubjects`, `JournalFacts`), and the plan is stored in one go (`CommitPlan`).

use super::changes;
use crate::{
    StoreError,
    commit::{ChangeContext, ClaimOffer, Commit, Committed, FIRST_FENCE, Guard, RowChange, SeqRef, Statement},
};
use domain::{
    event::{Event, NewEvent},
    ids::{EventId, RoomId, RunId, SignalId},
    owner::Owner,
    position::Seq,
    signal::{MAX_PENDING_SIGNALS, SignalKind},
    time::Timestamp,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use uuid::Uuid;

/// The rooms, events, runs and keys that a group of commits refers to. Rooms and runs are sorted, so that two servers
/// that lock several of them cannot deadlock.
#[derive(Debug, Default)]
pub(crate) struct CommitSubjects {
    pub rooms: Vec<RoomId>,
    /// The first event of each commit, to detect commits that are already stored.
    pub first_events: Vec<EventId>,
    pub runs: Vec<RunId>,
    /// Runs with a claim offer. They are new, unless the commit is already stored.
    pub offered_runs: Vec<RunId>,
    /// Rooms whose number of unfinished runs matters.
    pub idle_checks: Vec<RoomId>,
    /// Runs whose pending signals matter.
    pub signal_runs: Vec<RunId>,
    /// Rooms whose plan matters.
    pub tape_rooms: Vec<RoomId>,
    /// Rooms whose unfinished runs are all requested to stop.
    pub stopping: Vec<RoomId>,
    /// Idempotency keys, as (owner, key).
    pub keys: Vec<(String, String)>,
}

/// The state of the subjects before the commits. It stays valid until the transaction ends: nobody else assigns seqs,
/// changes leases, or queues or ends runs.
#[derive(Debug, Default)]
pub(crate) struct JournalFacts {
    pub heads: HashMap<RoomId, Seq>,
    pub stored_events: HashMap<EventId, Seq>,
    pub leases: HashMap<RunId, LeaseState>,
    /// The number of unfinished runs, for rooms where that matters.
    pub unfinished: HashMap<RoomId, u64>,
    /// The signals that are not settled, for runs where that matters.
    pub pending_signals: HashMap<RunId, HashMap<SignalId, SignalKind>>,
    /// The version of what is planned behind the queued runs, for rooms where that matters; 0 if there is no plan.
    pub tapes: HashMap<RoomId, Seq>,
    pub used_keys: HashSet<(String, String)>,
}

impl JournalFacts {
    /// Creates empty facts. A room without queue rows has no unfinished run; a run without rows has no signal.
    pub(crate) fn for_subjects(subjects: &CommitSubjects) -> Self {
        Self {
            unfinished: subjects.idle_checks.iter().map(|room| (*room, 0)).collect(),
            pending_signals: subjects.signal_runs.iter().map(|run| (*run, HashMap::new())).collect(),
            tapes: subjects.tape_rooms.iter().map(|room| (*room, 0)).collect(),
            ..Self::default()
        }
    }

    /// Adds a pending signal. A kind that this version does not know is settled with its run.
    pub(crate) fn add_signal(&mut self, run: RunId, signal: Uuid, kind: &str) {
        if let Some(kind) = SignalKind::parse(kind) {
            self.pending_signals.entry(run).or_default().insert(SignalId(signal), kind);
        }
    }

    pub(crate) fn merge(&mut self, seen: Self) {
        let Self { heads, stored_events: known, leases, unfinished, pending_signals, tapes, used_keys: used } = seen;
        self.heads.extend(heads);
        self.stored_events.extend(known);
        self.leases.extend(leases);
        self.unfinished.extend(unfinished);
        self.pending_signals.extend(pending_signals);
        self.tapes.extend(tapes);
        self.used_keys.extend(used);
    }
}

#[derive(Debug, Clone)]
pub(crate) struct LeaseState {
    pub fence: u64,
    /// `None` while the run is queued.
    pub holder: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct AppliedGroup {
    /// Per commit of the group: its receipt, or why it was rejected.
    pub outcomes: Vec<Result<Committed, StoreError>>,
    /// All appended events, per room in seq order.
    pub events: BTreeMap<RoomId, Vec<Event>>,
    /// The rooms of accepted commits with their heads. Of a commit that was already stored, the events may not have
    /// been published.
    pub heads: BTreeMap<RoomId, Seq>,
}

/// A room's new head, and by how many bytes its journal grows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrownJournal {
    pub room: RoomId,
    pub head: Seq,
    pub bytes: u64,
}

/// What to store, and what to publish afterwards.
#[derive(Debug, Default)]
pub(crate) struct CommitPlan {
    pub applied: AppliedGroup,
    /// Row changes, in order.
    pub statements: Vec<Statement>,
    /// The rooms whose journal grows.
    pub grown: Vec<GrownJournal>,
    /// The facts after the commit.
    pub facts: JournalFacts,
}

impl CommitSubjects {
    pub(crate) fn from_commits(commits: &[Commit]) -> Self {
        let mut subjects = Self::default();
        for commit in commits {
            subjects.rooms.push(commit.room_id);
            subjects.first_events.extend(commit.events.first().map(|event| event.id));
            match commit.guard {
                Guard::Lease { run_id, .. } | Guard::Unclaimed { run_id } => subjects.runs.push(run_id),
                Guard::RoomIdle => subjects.idle_checks.push(commit.room_id),
                Guard::None => {}
            }
            if let Some((run_id, _)) = offer(commit) {
                subjects.runs.push(run_id);
                subjects.offered_runs.push(run_id);
                subjects.idle_checks.push(commit.room_id);
                subjects.tape_rooms.push(commit.room_id);
            }
            for change in &commit.changes {
                match change {
                    RowChange::EndRun { run_id, .. } => {
                        subjects.runs.push(*run_id);
                        subjects.signal_runs.push(*run_id);
                        subjects.tape_rooms.push(commit.room_id);
                    }
                    RowChange::PutTape { .. } => subjects.tape_rooms.push(commit.room_id),
                    RowChange::StoreSignal { signal } => {
                        subjects.runs.push(signal.run_id);
                        subjects.signal_runs.push(signal.run_id);
                    }
                    // Locked in order with the others.
                    RowChange::QueueRun { place: Some(place), .. } => {
                        subjects.runs.extend([place.root_id, place.parent_id]);
                    }
                    RowChange::MoveRun { run_id, .. } => subjects.runs.push(*run_id),
                    RowChange::StopEarlierRuns { .. } => subjects.stopping.push(commit.room_id),
                    _ => {}
                }
            }
            subjects.keys.extend(key(commit));
        }
        let CommitSubjects { rooms, idle_checks, stopping, tape_rooms, .. } = &mut subjects;
        for rooms in [rooms, idle_checks, stopping, tape_rooms] {
            rooms.sort_unstable();
            rooms.dedup();
        }
        for runs in [&mut subjects.runs, &mut subjects.signal_runs] {
            runs.sort_unstable();
            runs.dedup();
        }
        subjects
    }
}

impl CommitPlan {
    pub(crate) fn build(commits: &[Commit], facts: JournalFacts, now: Timestamp) -> Result<Self, StoreError> {
        let mut planner = Planner { facts, plan: Self::default() };
        for commit in commits {
            let outcome = planner.plan_commit(commit, now)?;
            planner.plan.applied.outcomes.push(outcome);
        }
        Ok(Self { facts: planner.facts, ..planner.plan })
    }

    pub(crate) fn events(&self) -> Vec<&Event> {
        self.applied.events.values().flatten().collect()
    }
}

/// The run with a claim offer: the first of the commit. Other runs of its cell are claimed from the queue.
fn offer(commit: &Commit) -> Option<(RunId, &ClaimOffer)> {
    commit.changes.iter().find_map(|change| match change {
        RowChange::QueueRun { run_id, claim: Some(claim), .. } => Some((*run_id, claim)),
        _ => None,
    })
}

/// The events that a commit appends: its own, and the start of a run whose claim is granted.
fn appended(commit: &Commit, grants: bool) -> impl Iterator<Item = &NewEvent> {
    let start = offer(commit).filter(|_| grants).map(|(_, claim)| &claim.start_events);
    commit.events.iter().chain(start.into_iter().flatten())
}

/// The idempotency key of a commit.
fn key(commit: &Commit) -> Option<(String, String)> {
    commit.changes.iter().find_map(|change| match change {
        RowChange::StoreIdempotencyKey { owner, attempt, .. } => {
            Some((Owner::as_str(owner).to_owned(), attempt.key.clone()))
        }
        _ => None,
    })
}

/// Plans the commits of a group one after another, keeping the facts up to date.
struct Planner {
    facts: JournalFacts,
    plan: CommitPlan,
}

impl Planner {
    fn plan_commit(&mut self, commit: &Commit, now: Timestamp) -> Result<Result<Committed, StoreError>, StoreError> {
        if let Some(&first) = commit.events.first().and_then(|event| self.facts.stored_events.get(&event.id)) {
            // The same events are already stored at this seq (invariant 7).
            self.report_head(commit.room_id);
            return Ok(Ok(Committed { first_seq: first, at: now, claimed_fence: self.earlier_claim(commit) }));
        }
        let first = match self.admit(commit) {
            Ok(first) => first,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let grants = offer(commit).is_some() && self.is_idle(commit.room_id) && !self.has_plan(commit.room_id);
        let context = ChangeContext { room: commit.room_id, first_seq: first, now, grants_claim: grants };
        for change in &commit.changes {
            self.plan.statements.extend(changes::statements(&context, change)?);
        }
        self.append(commit, context);
        self.record(commit, context);
        self.report_head(commit.room_id);
        Ok(Ok(Committed { first_seq: first, at: now, claimed_fence: grants.then_some(FIRST_FENCE) }))
    }

    /// Returns the seq of the commit's first event, or why the commit is rejected.
    fn admit(&self, commit: &Commit) -> Result<Seq, StoreError> {
        let creates = commit.changes.iter().any(|change| matches!(change, RowChange::CreateRoom { .. }));
        let head = match self.facts.heads.get(&commit.room_id) {
            Some(&head) => head,
            None if creates => 0,
            None => return Err(StoreError::NotFound),
        };
        match commit.guard {
            Guard::None => {}
            Guard::Lease { run_id, fence } => match self.facts.leases.get(&run_id) {
                Some(lease) if lease.holder.is_some() && lease.fence == fence => {}
                _ => return Err(StoreError::Fenced),
            },
            Guard::Unclaimed { run_id } => match self.facts.leases.get(&run_id) {
                Some(lease) if lease.holder.is_none() => {}
                _ => return Err(StoreError::Fenced),
            },
            Guard::RoomIdle if self.is_idle(commit.room_id) => {}
            Guard::RoomIdle => return Err(StoreError::RoomBusy),
        }
        self.admit_moves(commit)?;
        self.admit_signals(commit)?;
        self.admit_tape(commit)?;
        if key(commit).is_some_and(|key| self.facts.used_keys.contains(&key)) {
            return Err(StoreError::KeyUsed);
        }
        Ok(if commit.events.is_empty() { head } else { head + 1 })
    }

    /// Only runs that nobody holds are moved.
    fn admit_moves(&self, commit: &Commit) -> Result<(), StoreError> {
        let is_held = |run: &RunId| self.facts.leases.get(run).is_none_or(|lease| lease.holder.is_some());
        let mut changes = commit.changes.iter();
        match changes.any(|change| matches!(change, RowChange::MoveRun { run_id, .. } if is_held(run_id))) {
            true => Err(StoreError::Fenced),
            false => Ok(()),
        }
    }

    fn admit_signals(&self, commit: &Commit) -> Result<(), StoreError> {
        let settles = |id: &SignalId| {
            let mut changes = commit.changes.iter();
            changes.any(|change| matches!(change, RowChange::SettleSignal { signal_id, .. } if signal_id == id))
        };
        for change in &commit.changes {
            match change {
                RowChange::StoreSignal { signal } => {
                    if !self.facts.leases.contains_key(&signal.run_id) {
                        return Err(StoreError::Fenced);
                    }
                    if self.facts.pending_signals.get(&signal.run_id).map_or(0, HashMap::len) >= MAX_PENDING_SIGNALS {
                        return Err(StoreError::LimitReached(format!(
                            "{MAX_PENDING_SIGNALS} requests to the run are waiting already; try again later"
                        )));
                    }
                }
                RowChange::EndRun { run_id, .. } => {
                    let mut pending = self.facts.pending_signals.get(run_id).into_iter().flatten();
                    if pending.any(|(id, kind)| kind.outlives_its_run() && !settles(id)) {
                        return Err(StoreError::UnsettledSignals);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A run ends only with a decision on what is planned behind it.
    fn admit_tape(&self, commit: &Commit) -> Result<(), StoreError> {
        let mut based_on = None;
        for change in &commit.changes {
            match change {
                RowChange::PutTape { based_on: version, .. } => based_on = Some(*version),
                RowChange::EndRun { .. } => based_on = based_on.or(Some(0)),
                _ => {}
            }
        }
        let version = self.facts.tapes.get(&commit.room_id).copied().unwrap_or_default();
        if based_on.is_none_or(|based_on| based_on == version) { Ok(()) } else { Err(StoreError::TapeChanged) }
    }

    fn report_head(&mut self, room: RoomId) {
        self.plan.applied.heads.extend(self.facts.heads.get(&room).map(|&head| (room, head)));
    }

    /// A room with a plan may be paused.
    fn has_plan(&self, room: RoomId) -> bool {
        self.facts.tapes.get(&room).is_some_and(|&version| version > 0)
    }

    fn is_idle(&self, room: RoomId) -> bool {
        self.facts.unfinished.get(&room) == Some(&0)
    }

    /// The claim of a commit that was already stored, if its offer was granted and is still held.
    fn earlier_claim(&self, commit: &Commit) -> Option<u64> {
        let (run_id, claim) = offer(commit)?;
        let lease = self.facts.leases.get(&run_id)?;
        (lease.holder.as_ref() == Some(&claim.holder)).then_some(lease.fence)
    }

    fn append(&mut self, commit: &Commit, context: ChangeContext) {
        if commit.events.is_empty() {
            return;
        }
        let room = self.plan.applied.events.entry(commit.room_id).or_default();
        for (index, new) in appended(commit, context.grants_claim).enumerate() {
            room.push(Event {
                id: new.id,
                room_id: commit.room_id,
                seq: context.seq(SeqRef::Event(index)),
                kind: new.kind,
                run_id: new.run_id,
                agent_id: new.agent_id,
                data: new.data.clone(),
                raw: new.raw.clone(),
                created_at: context.now,
            });
        }
    }

    fn record(&mut self, commit: &Commit, context: ChangeContext) {
        let facts = &mut self.facts;
        if let Some(event) = commit.events.first() {
            facts.stored_events.insert(event.id, context.first_seq);
            let head = context.first_seq + appended(commit, context.grants_claim).count() as Seq - 1;
            facts.heads.insert(commit.room_id, head);
            let added = appended(commit, context.grants_claim).map(NewEvent::stored_bytes).sum::<usize>() as u64;
            match self.plan.grown.iter_mut().find(|journal| journal.room == commit.room_id) {
                Some(journal) => *journal = GrownJournal { head, bytes: journal.bytes + added, ..*journal },
                None => self.plan.grown.push(GrownJournal { room: commit.room_id, head, bytes: added }),
            }
        }
        for change in &commit.changes {
            match change {
                RowChange::CreateRoom { .. } => {
                    facts.heads.entry(commit.room_id).or_insert(0);
                }
                RowChange::QueueRun { run_id, claim, .. } => {
                    let holder = context.granted_claim(claim.as_ref()).map(|claim| claim.holder.clone());
                    let fence = if holder.is_some() { FIRST_FENCE } else { 0 };
                    facts.leases.insert(*run_id, LeaseState { fence, holder });
                    facts.pending_signals.insert(*run_id, HashMap::new());
                    if let Some(unfinished) = facts.unfinished.get_mut(&commit.room_id) {
                        *unfinished += 1;
                    }
                }
                RowChange::PutTape { state, .. } => {
                    facts.tapes.insert(commit.room_id, if state.is_some() { context.first_seq } else { 0 });
                }
                RowChange::StoreSignal { signal } => {
                    if let Some(pending) = facts.pending_signals.get_mut(&signal.run_id) {
                        pending.insert(signal.id, signal.body.kind());
                    }
                }
                RowChange::SettleSignal { run_id, signal_id, .. } => {
                    if let Some(pending) = facts.pending_signals.get_mut(run_id) {
                        pending.remove(signal_id);
                    }
                }
                RowChange::EndRun { run_id, .. } => {
                    facts.pending_signals.remove(run_id);
                    if facts.leases.remove(run_id).is_some()
                        && let Some(unfinished) = facts.unfinished.get_mut(&commit.room_id)
                    {
                        *unfinished = unfinished.saturating_sub(1);
                    }
                }
                _ => {}
            }
        }
        facts.used_keys.extend(key(commit));
    }
}
