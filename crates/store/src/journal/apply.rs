//! Applies a group of commits inside one transaction: checks each guard, gives out seqs, makes the changes, and then
//! writes all events of the group together. Pure bookkeeping over [`Connection`]; the statements are elsewhere.

use super::commit::{Change, ClaimFor, Commit, Committed, Guard, SeqOf};
use crate::Error;
use domain::{
    event::Event,
    ids::{EventId, RoomId, RunId},
    position::Seq,
    time::Timestamp,
};
use std::collections::{BTreeMap, HashMap};

/// What the two engines do each in their own way, batched, and the row changes they share (`catalog::changes`).
pub(crate) trait Connection: Send {
    /// What is true of these before anything is changed, and stays so until the transaction ends: nobody else gives out
    /// the same seq, and no lease changes hands.
    fn look(&mut self, at: &Subjects) -> impl Future<Output = Result<Facts, Error>> + Send;
    fn is_idle(&mut self, room: RoomId) -> impl Future<Output = Result<bool, Error>> + Send;
    /// Stores events, and how far they move the heads of their rooms.
    fn append(&mut self, events: &[Event], heads: &[(RoomId, Seq)]) -> impl Future<Output = Result<(), Error>> + Send;
    fn change(&mut self, context: Context, change: &Change) -> impl Future<Output = Result<(), Error>> + Send;
}

/// What a group of commits is about. Each in one order everywhere, so that two servers that hold several of them cannot wait
/// for each other in a ring.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    pub rooms: Vec<RoomId>,
    /// The first of each commit: whether the commit was stored before.
    pub events: Vec<EventId>,
    pub runs: Vec<RunId>,
    /// Rooms of which every unfinished run is meant.
    pub stopping: Vec<RoomId>,
}

impl Subjects {
    fn of(commits: &[Commit]) -> Self {
        let mut subjects = Self::default();
        for commit in commits {
            subjects.rooms.push(commit.room_id);
            subjects.events.extend(commit.events.first().map(|event| event.id));
            subjects.runs.extend(match commit.guard {
                Guard::Lease { run_id, .. } | Guard::Unclaimed { run_id } => Some(run_id),
                Guard::None | Guard::RoomIdle => None,
            });
            for change in &commit.changes {
                match change {
                    Change::EndRun { run_id, .. } => subjects.runs.push(*run_id),
                    Change::StopEarlier { .. } => subjects.stopping.push(commit.room_id),
                    _ => {}
                }
            }
        }
        for rooms in [&mut subjects.rooms, &mut subjects.stopping] {
            rooms.sort_unstable();
            rooms.dedup();
        }
        subjects.runs.sort_unstable();
        subjects.runs.dedup();
        subjects
    }
}

#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub heads: HashMap<RoomId, Seq>,
    pub known: HashMap<EventId, Seq>,
    pub leases: HashMap<RunId, Lease>,
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
    /// Per commit of the group: its receipt, or why nothing of it was stored.
    pub outcomes: Vec<Result<Committed, Error>>,
    /// Everything the group appended, per room in seq order.
    pub events: BTreeMap<RoomId, Vec<Event>>,
    /// Rooms of commits that had been stored before, with their heads: nobody may have been told of that.
    pub known: Vec<(RoomId, Seq)>,
}

pub(crate) async fn group<C: Connection>(
    connection: &mut C,
    commits: &[Commit],
    now: Timestamp,
) -> Result<Applied, Error> {
    let mut book = Book::open(connection, commits).await?;
    let mut applied = Applied::default();
    for commit in commits {
        let outcome = match book.admit(connection, commit).await? {
            Admission::Refused(error) => Err(error),
            Admission::Known(first) => {
                applied.known.extend(book.facts.heads.get(&commit.room_id).map(|&head| (commit.room_id, head)));
                Ok(Committed { first, at: now, claimed: held_already(connection, commit).await? })
            }
            Admission::At(first) => {
                let grants = offer(commit).is_some() && connection.is_idle(commit.room_id).await?;
                let context = Context { room: commit.room_id, first, now, grants };
                match make_changes(connection, context, &commit.changes).await {
                    Ok(()) => {
                        book.record(commit, context);
                        append(&mut applied.events, commit, context);
                        Ok(Committed { first, at: now, claimed: grants.then_some(FIRST_FENCE) })
                    }
                    // Refused by the change that is made first, so nothing of it was done.
                    Err(Error::KeyUsed) => Err(Error::KeyUsed),
                    Err(error) => return Err(error),
                }
            }
        };
        applied.outcomes.push(outcome);
    }
    let events: Vec<Event> = applied.events.values().flatten().cloned().collect();
    if !events.is_empty() {
        connection.append(&events, &book.moved).await?;
    }
    Ok(applied)
}

/// The run that somebody would begin with at once: the first of a commit, since those of a room are one after another.
fn offer(commit: &Commit) -> Option<(RunId, &ClaimFor)> {
    commit.changes.iter().find_map(|change| match change {
        Change::QueueRun { run_id, claim: Some(claim), .. } => Some((*run_id, claim)),
        _ => None,
    })
}

/// What became of the offer of a commit that was stored before.
async fn held_already<C: Connection>(connection: &mut C, commit: &Commit) -> Result<Option<u64>, Error> {
    let Some((run_id, claim)) = offer(commit) else { return Ok(None) };
    let subjects = Subjects { runs: vec![run_id], ..Subjects::default() };
    let lease = connection.look(&subjects).await?.leases.remove(&run_id);
    Ok(lease.filter(|lease| lease.holder.as_ref() == Some(&claim.holder)).map(|lease| lease.fence))
}

async fn make_changes<C: Connection>(connection: &mut C, context: Context, changes: &[Change]) -> Result<(), Error> {
    let remembers = |change: &&Change| matches!(change, Change::Remember { .. });
    let (first, then): (Vec<_>, Vec<_>) = changes.iter().partition(remembers);
    for change in first.into_iter().chain(then) {
        connection.change(context, change).await?;
    }
    Ok(())
}

fn append(events: &mut BTreeMap<RoomId, Vec<Event>>, commit: &Commit, context: Context) {
    let room = events.entry(commit.room_id).or_default();
    for (index, new) in commit.events.iter().enumerate() {
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

enum Admission {
    At(Seq),
    /// The same events were stored before; this is where (invariant 7).
    Known(Seq),
    Refused(Error),
}

/// What is true inside the transaction, kept up to date as the group's commits are admitted one after another.
struct Book {
    facts: Facts,
    moved: Vec<(RoomId, Seq)>,
}

impl Book {
    async fn open<C: Connection>(connection: &mut C, commits: &[Commit]) -> Result<Self, Error> {
        let facts = connection.look(&Subjects::of(commits)).await?;
        Ok(Self { facts, moved: Vec::new() })
    }

    async fn admit<C: Connection>(&self, connection: &mut C, commit: &Commit) -> Result<Admission, Error> {
        if let Some(&first) = commit.events.first().and_then(|event| self.facts.known.get(&event.id)) {
            return Ok(Admission::Known(first));
        }
        let creates = commit.changes.iter().any(|change| matches!(change, Change::CreateRoom { .. }));
        let head = match self.facts.heads.get(&commit.room_id) {
            Some(&head) => head,
            None if creates => 0,
            None => return Ok(Admission::Refused(Error::NotFound)),
        };
        let holds = match commit.guard {
            Guard::None => Ok(()),
            Guard::Lease { run_id, fence } => match self.facts.leases.get(&run_id) {
                Some(lease) if lease.holder.is_some() && lease.fence == fence => Ok(()),
                _ => Err(Error::Fenced),
            },
            Guard::Unclaimed { run_id } => match self.facts.leases.get(&run_id) {
                Some(lease) if lease.holder.is_none() => Ok(()),
                _ => Err(Error::Fenced),
            },
            Guard::RoomIdle if connection.is_idle(commit.room_id).await? => Ok(()),
            Guard::RoomIdle => Err(Error::RoomBusy),
        };
        Ok(match holds {
            Ok(()) if commit.events.is_empty() => Admission::At(head),
            Ok(()) => Admission::At(head + 1),
            Err(error) => Admission::Refused(error),
        })
    }

    fn record(&mut self, commit: &Commit, context: Context) {
        let first = context.first;
        if let Some(event) = commit.events.first() {
            self.facts.known.insert(event.id, first);
            let head = first + commit.events.len() as Seq - 1;
            self.facts.heads.insert(commit.room_id, head);
            match self.moved.iter_mut().find(|(room, _)| *room == commit.room_id) {
                Some((_, moved)) => *moved = head,
                None => self.moved.push((commit.room_id, head)),
            }
        }
        for change in &commit.changes {
            match change {
                Change::CreateRoom { .. } => {
                    self.facts.heads.entry(commit.room_id).or_insert(0);
                }
                Change::QueueRun { run_id, claim, .. } => {
                    let holder = context.granted(claim.as_ref()).map(|claim| claim.holder.clone());
                    let fence = if holder.is_some() { FIRST_FENCE } else { 0 };
                    self.facts.leases.insert(*run_id, Lease { fence, holder });
                }
                Change::EndRun { run_id, .. } => {
                    self.facts.leases.remove(run_id);
                }
                _ => {}
            }
        }
    }
}
