//! A cache of facts from the writer's own transactions. A server on SQLite is the only one that assigns seqs, claims
//! runs and ends them, so it need not read what it has just stored: a delta takes one round trip to the database
//! instead of two.
//!
//! A stale cache cannot corrupt the journal. Every other write through this store is counted and clears the cache; a
//! failed transaction clears it; and the database rejects a duplicate seq or event, after which the commit is retried
//! with a read.

use super::plan::{CommitSubjects, JournalFacts};
use std::collections::{HashMap, HashSet};

/// The limit of each map. Beyond it, the cache is cleared.
const MAX_ENTRIES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct FactCache {
    /// Whether no other server writes to the database.
    is_sole_writer: bool,
    facts: JournalFacts,
    /// The number of writes by anything but the journal writer, at the last update.
    external_writes: u64,
}

impl FactCache {
    pub(super) fn new(is_sole_writer: bool) -> Self {
        Self { is_sole_writer, ..Self::default() }
    }

    /// Takes the facts out of the cache; [`Self::put_back`] returns them after the transaction. The flag says whether
    /// they cover all of the subjects.
    pub(super) fn take(&mut self, about: &CommitSubjects, external_writes: u64) -> (JournalFacts, bool) {
        let facts = std::mem::take(&mut self.facts);
        if !self.is_sole_writer || self.external_writes != external_writes {
            return (JournalFacts::default(), false);
        }
        let is_all = about.keys.is_empty()
            && about.rooms.iter().all(|room| facts.heads.contains_key(room))
            && about.idle_checks.iter().all(|room| facts.unfinished.contains_key(room))
            && about.tape_rooms.iter().all(|room| facts.tapes.contains_key(room))
            && about.signal_runs.iter().all(|run| facts.pending_signals.contains_key(run))
            && about.runs.iter().all(|run| facts.leases.contains_key(run) || about.offered_runs.contains(run));
        (facts, is_all)
    }

    pub(super) fn put_back(&mut self, facts: JournalFacts, external_writes: u64) {
        self.external_writes = external_writes;
        let JournalFacts { heads, unfinished, leases, pending_signals, tapes, .. } = &facts;
        let counts = [heads.len(), unfinished.len(), leases.len(), pending_signals.len(), tapes.len()];
        if counts.into_iter().all(|count| count <= MAX_ENTRIES) {
            // Stored events and used keys are read each time.
            self.facts = JournalFacts { stored_events: HashMap::new(), used_keys: HashSet::new(), ..facts };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FactCache, MAX_ENTRIES};
    use crate::journal::plan::{CommitSubjects, JournalFacts, LeaseState};
    use domain::ids::{RoomId, RunId};
    use std::collections::HashMap;

    struct Scene {
        room: RoomId,
        run: RunId,
    }

    impl Scene {
        fn new() -> Self {
            Self { room: RoomId::generate(), run: RunId::generate() }
        }

        fn facts(&self) -> JournalFacts {
            let mut facts = JournalFacts::default();
            facts.heads.insert(self.room, 7);
            facts.unfinished.insert(self.room, 1);
            facts.leases.insert(self.run, LeaseState { fence: 1, holder: None });
            facts.pending_signals.insert(self.run, HashMap::new());
            facts.tapes.insert(self.room, 0);
            facts
        }

        fn subjects(&self) -> CommitSubjects {
            CommitSubjects {
                rooms: vec![self.room],
                idle_checks: vec![self.room],
                runs: vec![self.run],
                signal_runs: vec![self.run],
                tape_rooms: vec![self.room],
                ..CommitSubjects::default()
            }
        }

        /// A cache after one transaction and two external writes.
        fn memory(&self) -> FactCache {
            let mut memory = FactCache::new(true);
            memory.put_back(self.facts(), 2);
            memory
        }
    }

    fn knows(memory: &mut FactCache, about: &CommitSubjects, external_writes: u64) -> bool {
        memory.take(about, external_writes).1
    }

    #[test]
    fn facts_are_lost_unless_they_are_put_back() {
        let scene = Scene::new();
        let mut memory = scene.memory();
        let (facts, is_all) = memory.take(&scene.subjects(), 2);
        assert!(is_all && facts.heads[&scene.room] == 7);
        assert!(!knows(&mut memory, &scene.subjects(), 2), "the transaction did not finish");
        memory.put_back(facts, 2);
        assert!(knows(&mut memory, &scene.subjects(), 2));
    }

    #[test]
    fn invariant_11_fence_an_external_write_clears_the_cache() {
        let scene = Scene::new();
        let mut memory = scene.memory();
        let (facts, is_all) = memory.take(&scene.subjects(), 3);
        assert!(!is_all && facts.leases.is_empty(), "a lease may have a new holder");
        let mut shared = FactCache::new(false);
        shared.put_back(scene.facts(), 0);
        assert!(!knows(&mut shared, &scene.subjects(), 0), "writes of other servers are not counted");
    }

    #[test]
    fn unknown_subjects_need_a_read() {
        let scene = Scene::new();
        let other = Scene::new();
        let with = |change: fn(&mut CommitSubjects, &Scene)| {
            let mut subjects = scene.subjects();
            change(&mut subjects, &other);
            knows(&mut scene.memory(), &subjects, 2)
        };
        assert!(with(|_, _| {}));
        assert!(!with(|subjects, other| subjects.rooms.push(other.room)));
        assert!(!with(|subjects, other| subjects.idle_checks.push(other.room)));
        assert!(!with(|subjects, other| subjects.runs.push(other.run)));
        assert!(!with(|subjects, other| subjects.signal_runs.push(other.run)));
        assert!(!with(|subjects, other| subjects.tape_rooms.push(other.room)));
        assert!(!with(|subjects, _| subjects.keys.push(("me".into(), "key".into()))));
        let new = |subjects: &mut CommitSubjects, other: &Scene| {
            subjects.runs.push(other.run);
            subjects.offered_runs.push(other.run);
        };
        assert!(with(new), "a new run has no lease yet");
    }

    #[test]
    fn the_cache_is_bounded() {
        let scene = Scene::new();
        let lease = LeaseState { fence: 1, holder: None };
        let too_many: [fn(&mut JournalFacts, &LeaseState); 5] = [
            |facts, _| facts.heads.extend((0..MAX_ENTRIES).map(|_| (RoomId::generate(), 1))),
            |facts, _| facts.tapes.extend((0..MAX_ENTRIES).map(|_| (RoomId::generate(), 0))),
            |facts, _| facts.unfinished.extend((0..MAX_ENTRIES).map(|_| (RoomId::generate(), 0))),
            |facts, _| {
                facts.pending_signals.extend((0..MAX_ENTRIES).map(|_| (RunId::generate(), HashMap::new())));
            },
            |facts, lease| facts.leases.extend((0..MAX_ENTRIES).map(|_| (RunId::generate(), lease.clone()))),
        ];
        for fill in too_many {
            let (mut memory, mut facts) = (FactCache::new(true), scene.facts());
            fill(&mut facts, &lease);
            memory.put_back(facts, 2);
            assert!(!knows(&mut memory, &scene.subjects(), 2));
        }
    }
}
