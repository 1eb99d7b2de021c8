//! What becomes of a group of commits: checks each guard, gives out seqs, and says what is to be stored. Pure: what is true
//! was asked before ([`Subjects`], [`Facts`]), and all that follows from it is stored in one go ([`Plan`]).

use super::{
    commit::{Change, ClaimFor, Commit, Committed, Guard, SeqOf},
    statement::Statement,
};
use crate::{Error, catalog::changes};
use domain::{
    event::{Event, NewEvent},
    ids::{EventId, RoomId, RunId},
    owner::Owner,
    position::Seq,
    time::Timestamp,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a group of commits is about. Each in one order everywhere, so that two servers that hold several of them cannot wait
/// for each other in a ring.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    pub rooms: Vec<RoomId>,
    /// The first of each commit: whether the commit was stored before.
    pub events: Vec<EventId>,
    pub runs: Vec<RunId>,
    /// Those of them that are new, unless the commit was stored before.
    pub offered: Vec<RunId>,
    /// Rooms of which it matters whether they are idle.
    pub idle: Vec<RoomId>,
    /// Rooms of which every unfinished run is meant.
    pub stopping: Vec<RoomId>,
    /// Keys that may have been used, and whose they are.
    pub keys: Vec<(String, String)>,
}

/// What is true of them before anything is changed, and stays so until the transaction ends: nobody else gives out the same
/// seq, no lease changes hands, and no run is queued or ended.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub heads: HashMap<RoomId, Seq>,
    pub known: HashMap<EventId, Seq>,
    pub leases: HashMap<RunId, Lease>,
    /// How many runs are unfinished, of rooms where that matters.
    pub unfinished: HashMap<RoomId, u64>,
    pub used: HashSet<(String, String)>,
}

impl Facts {
    /// Nothing is known yet. Where no run is found, none is unfinished.
    pub(crate) fn about(subjects: &Subjects) -> Self {
        Self { unfinished: subjects.idle.iter().map(|room| (*room, 0)).collect(), ..Self::default() }
    }

    pub(crate) fn learn(&mut self, seen: Self) {
        let Self { heads, known, leases, unfinished, used } = seen;
        self.heads.extend(heads);
        self.known.extend(known);
        self.leases.extend(leases);
        self.unfinished.extend(unfinished);
        self.used.extend(used);
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub fence: u64,
    /// `None`: the run waits.
    pub holder: Option<String>,
}

/// A run that waits has fence 0; every claim counts it up.
pub(crate) const FIRST_FENCE: u64 = 1;

/// Where and when a change happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub room: RoomId,
    /// The seq of the commit's first event.
    pub first: Seq,
    pub now: Timestamp,
    /// Whoever offers to begin with a run at once may.
    pub grants: bool,
}

impl Context {
    pub(crate) fn seq(&self, of: SeqOf) -> Seq {
        match of {
            SeqOf::Known(seq) => seq,
            SeqOf::Event(index) => self.first + index as Seq,
        }
    }

    pub(crate) fn granted<'a>(&self, offer: Option<&'a ClaimFor>) -> Option<&'a ClaimFor> {
        offer.filter(|_| self.grants)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Per commit of the group: its receipt, or why nothing of it is stored.
    pub outcomes: Vec<Result<Committed, Error>>,
    /// Everything the group appends, per room in seq order.
    pub events: BTreeMap<RoomId, Vec<Event>>,
    /// Rooms of commits that had been stored before, with their heads: nobody may have been told of that.
    pub known: Vec<(RoomId, Seq)>,
}

/// What is to be stored, and what may be said when it is.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub applied: Applied,
    /// Row changes, in their order.
    pub statements: Vec<Statement>,
    /// How far rooms have moved.
    pub heads: Vec<(RoomId, Seq)>,
    /// What is true then.
    pub facts: Facts,
}

impl Subjects {
    pub(crate) fn of(commits: &[Commit]) -> Self {
        let mut subjects = Self::default();
        for commit in commits {
            subjects.rooms.push(commit.room_id);
            subjects.events.extend(commit.events.first().map(|event| event.id));
            match commit.guard {
                Guard::Lease { run_id, .. } | Guard::Unclaimed { run_id } => subjects.runs.push(run_id),
                Guard::RoomIdle => subjects.idle.push(commit.room_id),
                Guard::None => {}
            }
            if let Some((run_id, _)) = offer(commit) {
                subjects.runs.push(run_id);
                subjects.offered.push(run_id);
                subjects.idle.push(commit.room_id);
            }
            for change in &commit.changes {
                match change {
                    Change::EndRun { run_id, .. } => subjects.runs.push(*run_id),
                    Change::StopEarlier { .. } => subjects.stopping.push(commit.room_id),
                    _ => {}
                }
            }
            subjects.keys.extend(key(commit));
        }
        for rooms in [&mut subjects.rooms, &mut subjects.idle, &mut subjects.stopping] {
            rooms.sort_unstable();
            rooms.dedup();
        }
        subjects.runs.sort_unstable();
        subjects.runs.dedup();
        subjects
    }
}

impl Plan {
    pub(crate) fn of(commits: &[Commit], facts: Facts, now: Timestamp) -> Result<Self, Error> {
        let mut book = Book { facts, plan: Self::default() };
        for commit in commits {
            let outcome = book.enter(commit, now)?;
            book.plan.applied.outcomes.push(outcome);
        }
        Ok(Self { facts: book.facts, ..book.plan })
    }

    pub(crate) fn events(&self) -> Vec<&Event> {
        self.applied.events.values().flatten().collect()
    }
}

/// The run that somebody would begin with at once: the first of a commit, since those of a room are one after another.
fn offer(commit: &Commit) -> Option<(RunId, &ClaimFor)> {
    commit.changes.iter().find_map(|change| match change {
        Change::QueueRun { run_id, claim: Some(claim), .. } => Some((*run_id, claim)),
        _ => None,
    })
}

/// What a commit appends: its own events, and the start of a run that somebody may begin with.
fn appended(commit: &Commit, grants: bool) -> impl Iterator<Item = &NewEvent> {
    let start = offer(commit).filter(|_| grants).map(|(_, claim)| &claim.start);
    commit.events.iter().chain(start.into_iter().flatten())
}

/// The key under which a commit wants to be remembered.
fn key(commit: &Commit) -> Option<(String, String)> {
    commit.changes.iter().find_map(|change| match change {
        Change::Remember { owner, attempt, .. } => Some((Owner::as_str(owner).to_owned(), attempt.key.clone())),
        _ => None,
    })
}

/// What is true inside the transaction, kept up to date as the group's commits are entered one after another.
struct Book {
    facts: Facts,
    plan: Plan,
}

impl Book {
    fn enter(&mut self, commit: &Commit, now: Timestamp) -> Result<Result<Committed, Error>, Error> {
        if let Some(&first) = commit.events.first().and_then(|event| self.facts.known.get(&event.id)) {
            // The same events were stored before; this is where (invariant 7).
            self.plan.applied.known.extend(self.facts.heads.get(&commit.room_id).map(|&head| (commit.room_id, head)));
            return Ok(Ok(Committed { first, at: now, claimed: self.held_already(commit) }));
        }
        let first = match self.admit(commit) {
            Ok(first) => first,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let grants = offer(commit).is_some() && self.is_idle(commit.room_id);
        let context = Context { room: commit.room_id, first, now, grants };
        for change in &commit.changes {
            self.plan.statements.extend(changes::statements(context, change)?);
        }
        self.append(commit, context);
        self.record(commit, context);
        Ok(Ok(Committed { first, at: now, claimed: grants.then_some(FIRST_FENCE) }))
    }

    /// The seq of its first event, or why nothing of it may be stored.
    fn admit(&self, commit: &Commit) -> Result<Seq, Error> {
        let creates = commit.changes.iter().any(|change| matches!(change, Change::CreateRoom { .. }));
        let head = match self.facts.heads.get(&commit.room_id) {
            Some(&head) => head,
            None if creates => 0,
            None => return Err(Error::NotFound),
        };
        match commit.guard {
            Guard::None => {}
            Guard::Lease { run_id, fence } => match self.facts.leases.get(&run_id) {
                Some(lease) if lease.holder.is_some() && lease.fence == fence => {}
                _ => return Err(Error::Fenced),
            },
            Guard::Unclaimed { run_id } => match self.facts.leases.get(&run_id) {
                Some(lease) if lease.holder.is_none() => {}
                _ => return Err(Error::Fenced),
            },
            Guard::RoomIdle if self.is_idle(commit.room_id) => {}
            Guard::RoomIdle => return Err(Error::RoomBusy),
        }
        if key(commit).is_some_and(|key| self.facts.used.contains(&key)) {
            return Err(Error::KeyUsed);
        }
        Ok(if commit.events.is_empty() { head } else { head + 1 })
    }

    fn is_idle(&self, room: RoomId) -> bool {
        self.facts.unfinished.get(&room) == Some(&0)
    }

    /// What became of the offer of a commit that was stored before.
    fn held_already(&self, commit: &Commit) -> Option<u64> {
        let (run_id, claim) = offer(commit)?;
        let lease = self.facts.leases.get(&run_id)?;
        (lease.holder.as_ref() == Some(&claim.holder)).then_some(lease.fence)
    }

    fn append(&mut self, commit: &Commit, context: Context) {
        if commit.events.is_empty() {
            return;
        }
        let room = self.plan.applied.events.entry(commit.room_id).or_default();
        for (index, new) in appended(commit, context.grants).enumerate() {
            room.push(Event {
                id: new.id,
                room_id: commit.room_id,
                seq: context.seq(SeqOf::Event(index)),
                kind: new.kind,
                run_id: new.run_id,
                agent_id: new.agent_id,
                data: new.data.clone(),
                raw: new.raw.clone(),
                created_at: context.now,
            });
        }
    }

    fn record(&mut self, commit: &Commit, context: Context) {
        let facts = &mut self.facts;
        if let Some(event) = commit.events.first() {
            facts.known.insert(event.id, context.first);
            let head = context.first + appended(commit, context.grants).count() as Seq - 1;
            facts.heads.insert(commit.room_id, head);
            match self.plan.heads.iter_mut().find(|(room, _)| *room == commit.room_id) {
                Some((_, moved)) => *moved = head,
                None => self.plan.heads.push((commit.room_id, head)),
            }
        }
        for change in &commit.changes {
            match change {
                Change::CreateRoom { .. } => {
                    facts.heads.entry(commit.room_id).or_insert(0);
                }
                Change::QueueRun { run_id, claim, .. } => {
                    let holder = context.granted(claim.as_ref()).map(|claim| claim.holder.clone());
                    let fence = if holder.is_some() { FIRST_FENCE } else { 0 };
                    facts.leases.insert(*run_id, Lease { fence, holder });
                    if let Some(unfinished) = facts.unfinished.get_mut(&commit.room_id) {
                        *unfinished += 1;
                    }
                }
                Change::EndRun { run_id, .. } => {
                    if facts.leases.remove(run_id).is_some()
                        && let Some(unfinished) = facts.unfinished.get_mut(&commit.room_id)
                    {
                        *unfinished = unfinished.saturating_sub(1);
                    }
                }
                _ => {}
            }
        }
        facts.used.extend(key(commit));
    }
}
