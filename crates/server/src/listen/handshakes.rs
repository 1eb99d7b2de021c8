//! The TLS handshakes that have not ended. When there are too many, the oldest one is closed: a client that means it is done
//! within moments, so clients that stay silent make room for it, from whichever address they come.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub(super) struct OpenHandshakes {
    limit: usize,
    open: Arc<Mutex<HandshakeTable>>,
}

#[derive(Default)]
struct HandshakeTable {
    begun: u64,
    /// By number, so the first is the oldest.
    by_number: BTreeMap<u64, CancellationToken>,
}

/// A handshake in progress, until it is dropped.
pub(super) struct OpenHandshake {
    all: OpenHandshakes,
    number: u64,
    closed: CancellationToken,
}

impl OpenHandshakes {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), open: Arc::default() }
    }

    pub(super) fn begin(&self) -> OpenHandshake {
        let closed = CancellationToken::new();
        let mut table = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let number = table.begun;
        table.begun += 1;
        table.by_number.insert(number, closed.clone());
        if table.by_number.len() > self.limit
            && let Some((_, oldest)) = table.by_number.pop_first()
        {
            oldest.cancel();
        }
        drop(table);
        OpenHandshake { all: self.clone(), number, closed }
    }
}

impl OpenHandshake {
    /// Waits until this handshake has to make room for others.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

impl Drop for OpenHandshake {
    fn drop(&mut self) {
        self.all.open.lock().unwrap_or_else(PoisonError::into_inner).by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::OpenHandshakes;

    #[test]
    fn the_oldest_handshake_makes_room() {
        let all = OpenHandshakes::new(2);
        let is_closed = |handshake: &super::OpenHandshake| handshake.closed.is_cancelled();
        let (first, second) = (all.begin(), all.begin());
        assert!(!is_closed(&first) && !is_closed(&second));
        let third = all.begin();
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
        drop((first, second));
        let fourth = all.begin();
        assert!(!is_closed(&third) && !is_closed(&fourth), "what has ended takes no room");
        assert_eq!(all.open.lock().unwrap().by_number.len(), 2);
    }
}
