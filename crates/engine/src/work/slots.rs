//! The slots of a worker: how many runs it executes at once, and how many of them one workspace may take, so that a
//! workspace whose runs all hang leaves slots for the others (invariant 28).
//!
//! Each level of a run tree has slots of its own. A run waits only for runs of the next level, so a run that waits for its
//! children never has the slot that one of them needs, and agents that start agents take no slot of those that people
//! start.

use domain::{owner::Owner, run_tree::MAX_TREE_DEPTH};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use store::queue::ClaimLimits;

/// The slots of every level.
#[derive(Clone)]
pub(crate) struct TreeSlots(Arc<[Arc<WorkerSlots>]>);

impl TreeSlots {
    /// `total` and `per_workspace` are for each level.
    pub(super) fn new(total: usize, per_workspace: usize) -> Self {
        Self((0..=MAX_TREE_DEPTH).map(|depth| WorkerSlots::new(total, per_workspace, depth)).collect())
    }

    /// `None` for a level that no tree has.
    pub(super) fn at(&self, depth: u32) -> Option<&Arc<WorkerSlots>> {
        self.0.get(depth as usize)
    }

    pub(super) fn total(&self) -> usize {
        self.0.iter().map(|level| level.lock().free).sum()
    }
}

pub(crate) struct WorkerSlots {
    depth: u32,
    per_workspace: usize,
    state: Mutex<SlotState>,
}

struct SlotState {
    free: usize,
    taken: HashMap<Owner, usize>,
}

/// A slot that a run of a workspace has. Dropped when the run has ended.
pub(crate) struct TakenSlot {
    owner: Owner,
    slots: Arc<WorkerSlots>,
}

/// The free slots while the worker claims runs for them: nobody else takes one meanwhile.
pub(super) struct ReservedSlots {
    count: usize,
    slots: Arc<WorkerSlots>,
}

impl WorkerSlots {
    fn new(total: usize, per_workspace: usize, depth: u32) -> Arc<Self> {
        Arc::new(Self { depth, per_workspace, state: Mutex::new(SlotState { free: total, taken: HashMap::new() }) })
    }

    /// Takes a slot, if one is free and the workspace has not used up its share.
    pub(super) fn take(self: &Arc<Self>, owner: &Owner) -> Option<TakenSlot> {
        let mut state = self.lock();
        if state.free == 0 || state.taken.get(owner).is_some_and(|taken| *taken >= self.per_workspace) {
            return None;
        }
        state.free -= 1;
        *state.taken.entry(owner.clone()).or_default() += 1;
        Some(TakenSlot { owner: owner.clone(), slots: Arc::clone(self) })
    }

    pub(super) fn reserve_all(self: &Arc<Self>) -> ReservedSlots {
        let count = std::mem::take(&mut self.lock().free);
        ReservedSlots { count, slots: Arc::clone(self) }
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        // Plain data that no panic can leave half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservedSlots {
    pub(super) fn limits(&self) -> ClaimLimits {
        ClaimLimits { total: self.count, per_workspace: self.slots.per_workspace, depth: self.slots.depth }
    }

    /// Gives one of the reserved slots to a claimed run. The claim has checked the share of its workspace.
    pub(super) fn take(&mut self, owner: &Owner) -> Option<TakenSlot> {
        self.count = self.count.checked_sub(1)?;
        *self.slots.lock().taken.entry(owner.clone()).or_default() += 1;
        Some(TakenSlot { owner: owner.clone(), slots: Arc::clone(&self.slots) })
    }
}

impl Drop for ReservedSlots {
    fn drop(&mut self) {
        self.slots.lock().free += self.count;
    }
}

impl Drop for TakenSlot {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        state.free += 1;
        if let Some(taken) = state.taken.get_mut(&self.owner) {
            *taken -= 1;
            if *taken == 0 {
                state.taken.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TreeSlots, WorkerSlots};
    use domain::{name::Name, owner::Owner, run_tree::MAX_TREE_DEPTH};

    fn workspace(name: &str) -> Owner {
        Owner::new(Name::parse(name).unwrap())
    }

    #[test]
    fn a_workspace_takes_no_more_than_its_share_and_slots_come_back() {
        let slots = WorkerSlots::new(4, 3, 0);
        let (ada, bob) = (workspace("ada"), workspace("bob"));
        let mut taken: Vec<_> = (0..3).map(|_| slots.take(&ada).unwrap()).collect();
        assert!(slots.take(&ada).is_none(), "one slot is left for others");
        let others = slots.take(&bob).unwrap();
        assert!(slots.take(&bob).is_none(), "all slots are taken");
        taken.pop();
        assert!(slots.take(&bob).is_some());
        drop((taken, others));
        let state = slots.lock();
        assert_eq!((state.free, state.taken.len()), (4, 0));
    }

    #[test]
    fn each_level_of_a_tree_has_slots_of_its_own() {
        let (slots, ada) = (TreeSlots::new(1, 1), workspace("ada"));
        let levels: Vec<_> = (0..=MAX_TREE_DEPTH).map(|depth| slots.at(depth).unwrap().take(&ada).unwrap()).collect();
        assert_eq!(slots.total(), 0);
        assert!(slots.at(MAX_TREE_DEPTH + 1).is_none());
        drop(levels);
        assert_eq!(slots.total(), MAX_TREE_DEPTH as usize + 1);
    }

    #[test]
    fn slots_that_no_claim_used_are_free_again() {
        let slots = WorkerSlots::new(2, 2, 0);
        let ada = workspace("ada");
        let mut reserved = slots.reserve_all();
        assert!(slots.take(&ada).is_none(), "reserved for the claims");
        let run = reserved.take(&ada).unwrap();
        drop(reserved);
        assert!(slots.take(&ada).is_some());
        drop(run);
        assert_eq!(slots.lock().free, 2);
    }
}
