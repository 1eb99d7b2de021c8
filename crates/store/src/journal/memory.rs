//! What the writer knows from its own transactions. A server on SQLite is the only one that gives out seqs, claims runs and
//! ends them, so it need not ask for what it has just stored: a token is then one trip to the database instead of two.
//!
//! Nothing here can make a wrong commit right. Whatever else is written through this store is counted, and makes it forget;
//! it forgets whenever a transaction does not come to its end; and the database refuses a seq or an event twice, which
//! brings the commit back by the way that looks first.

use super::plan::{Facts, Subjects};
use std::collections::{HashMap, HashSet};

/// Rooms, and runs. Beyond it everything is looked up once more.
const MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Nobody but this server writes to the database.
    is_alone: bool,
    facts: Facts,
    /// How often the database had been written by others than the journal.
    meddled: u64,
}

impl Memory {
    pub(super) fn of(is_alone: bool) -> Self {
        Self { is_alone, ..Self::default() }
    }

    /// Takes out what is known; [`Self::keep`] gives it back when the transaction is over. Whether it is all that has to be
    /// known of these.
    pub(super) fn recall(&mut self, about: &Subjects, meddled: u64) -> (Facts, bool) {
        let facts = std::mem::take(&mut self.facts);
        if !self.is_alone || self.meddled != meddled {
            return (Facts::default(), false);
        }
        let is_all = about.keys.is_empty()
            && about.rooms.iter().all(|room| facts.heads.contains_key(room))
            && about.idle.iter().all(|room| facts.unfinished.contains_key(room))
            && about.runs.iter().all(|run| facts.leases.contains_key(run) || about.offered.contains(run));
        (facts, is_all)
    }

    pub(super) fn keep(&mut self, facts: Facts, meddled: u64) {
        self.meddled = meddled;
        if [facts.heads.len(), facts.unfinished.len(), facts.leases.len()].into_iter().all(|count| count <= MOST) {
            // Whether a commit or a key was there before is asked each time that it matters.
            self.facts = Facts { known: HashMap::new(), used: HashSet::new(), ..facts };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Memory};
    use crate::journal::plan::{Facts, Lease, Subjects};
    use domain::ids::{RoomId, RunId};

    struct Scene {
        room: RoomId,
        run: RunId,
    }

    impl Scene {
        fn new() -> Self {
            Self { room: RoomId::generate(), run: RunId::generate() }
        }

        fn facts(&self) -> Facts {
            let mut facts = Facts::default();
            facts.heads.insert(self.room, 7);
            facts.unfinished.insert(self.room, 1);
            facts.leases.insert(self.run, Lease { fence: 1, holder: None });
            facts
        }

        fn subjects(&self) -> Subjects {
            Subjects { rooms: vec![self.room], idle: vec![self.room], runs: vec![self.run], ..Subjects::default() }
        }

        /// After one transaction, at a time when others had written twice.
        fn memory(&self) -> Memory {
            let mut memory = Memory::of(true);
            memory.keep(self.facts(), 2);
            memory
        }
    }

    fn knows(memory: &mut Memory, about: &Subjects, meddled: u64) -> bool {
        memory.recall(about, meddled).1
    }

    #[test]
    fn what_was_stored_is_known_once_and_lost_unless_it_is_given_back() {
        let scene = Scene::new();
        let mut memory = scene.memory();
        let (facts, is_all) = memory.recall(&scene.subjects(), 2);
        assert!(is_all && facts.heads[&scene.room] == 7);
        assert!(!knows(&mut memory, &scene.subjects(), 2), "the transaction did not come to its end");
        memory.keep(facts, 2);
        assert!(knows(&mut memory, &scene.subjects(), 2));
    }

    #[test]
    fn invariant_11_fence_whatever_others_write_makes_it_forget() {
        let scene = Scene::new();
        let mut memory = scene.memory();
        let (facts, is_all) = memory.recall(&scene.subjects(), 3);
        assert!(!is_all && facts.leases.is_empty(), "a lease may have changed hands");
        let mut beside = Memory::of(false);
        beside.keep(scene.facts(), 0);
        assert!(!knows(&mut beside, &scene.subjects(), 0), "others write and are not counted");
    }

    #[test]
    fn what_it_does_not_know_is_looked_up() {
        let scene = Scene::new();
        let other = Scene::new();
        let with = |change: fn(&mut Subjects, &Scene)| {
            let mut subjects = scene.subjects();
            change(&mut subjects, &other);
            knows(&mut scene.memory(), &subjects, 2)
        };
        assert!(with(|_, _| {}));
        assert!(!with(|subjects, other| subjects.rooms.push(other.room)));
        assert!(!with(|subjects, other| subjects.idle.push(other.room)));
        assert!(!with(|subjects, other| subjects.runs.push(other.run)));
        assert!(!with(|subjects, _| subjects.keys.push(("me".into(), "key".into()))));
        let new = |subjects: &mut Subjects, other: &Scene| {
            subjects.runs.push(other.run);
            subjects.offered.push(other.run);
        };
        assert!(with(new), "a run that is only about to be queued is nowhere yet");
    }

    #[test]
    fn it_has_a_bound() {
        let scene = Scene::new();
        let lease = Lease { fence: 1, holder: None };
        let too_many: [fn(&mut Facts, &Lease); 3] = [
            |facts, _| facts.heads.extend((0..MOST).map(|_| (RoomId::generate(), 1))),
            |facts, _| facts.unfinished.extend((0..MOST).map(|_| (RoomId::generate(), 0))),
            |facts, lease| facts.leases.extend((0..MOST).map(|_| (RunId::generate(), lease.clone()))),
        ];
        for fill in too_many {
            let (mut memory, mut facts) = (Memory::of(true), scene.facts());
            fill(&mut facts, &lease);
            memory.keep(facts, 2);
            assert!(!knows(&mut memory, &scene.subjects(), 2));
        }
    }
}
