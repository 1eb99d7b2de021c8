//! How many uploads and downloads of archives there may be at once. Each occupies a thread for as long as its client takes.

use domain::owner::Owner;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Of one workspace.
pub const MAX_TRANSFERS: usize = 8;
/// Of all workspaces, well below the threads of the server.
const MAX_OF_ALL: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Transfers(Mutex<HashMap<Owner, usize>>);

impl Transfers {
    pub(super) fn start(self: &Arc<Self>, owner: &Owner) -> Option<Transfer> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_owner = running.get(owner).copied().unwrap_or_default();
        if of_owner >= MAX_TRANSFERS || running.values().sum::<usize>() >= MAX_OF_ALL {
            return None;
        }
        running.insert(owner.clone(), of_owner + 1);
        Some(Transfer { transfers: Arc::clone(self), owner: owner.clone() })
    }
}

/// One upload or archive. Dropping it ends it.
#[derive(Debug)]
pub struct Transfer {
    transfers: Arc<Transfers>,
    owner: Owner,
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let mut running = self.transfers.0.lock().unwrap_or_else(PoisonError::into_inner);
        match running.get_mut(&self.owner) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(running.remove(&self.owner)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_TRANSFERS, Transfers};
    use domain::{name::Name, owner::Owner};
    use std::sync::Arc;

    #[test]
    fn a_workspace_has_a_limit_of_its_own() {
        let transfers = Arc::new(Transfers::default());
        let owner = |name: &str| Owner::new(Name::parse(name).unwrap());
        let (one, other) = (owner("one"), owner("other"));
        let mut running: Vec<_> = (0..MAX_TRANSFERS).map(|_| transfers.start(&one).unwrap()).collect();
        assert!(transfers.start(&one).is_none());
        assert!(transfers.start(&other).is_some(), "another workspace is not affected");
        running.pop();
        running.push(transfers.start(&one).unwrap());
        drop(running);
        assert!(transfers.0.lock().unwrap().is_empty());
    }
}
