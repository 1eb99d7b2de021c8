//! The last words of a program, kept for the message that says why it failed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

const KEPT_BYTES: usize = 16 * 1024;

/// A cheap handle; the reader of the pipe writes, whoever reports a failure reads.
#[derive(Clone, Debug, Default)]
pub struct Stderr(Arc<Mutex<VecDeque<u8>>>);

impl Stderr {
    fn bytes(&self) -> MutexGuard<'_, VecDeque<u8>> {
        // Plain bytes that no panic can leave half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, new: &[u8]) {
        let mut bytes = self.bytes();
        bytes.extend(&new[new.len().saturating_sub(KEPT_BYTES)..]);
        let over = bytes.len().saturating_sub(KEPT_BYTES);
        bytes.drain(..over);
    }

    /// The end of what was written, as text.
    pub fn tail(&self) -> String {
        let bytes: Vec<u8> = self.bytes().iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_BYTES, Stderr};

    #[test]
    fn invariant_14_limits_only_the_end_is_kept() {
        let stderr = Stderr::default();
        for _ in 0..100 {
            stderr.push(&[b'x'; 1000]);
        }
        stderr.push(b"the end");
        let tail = stderr.tail();
        assert!(tail.ends_with("the end") && tail.len() == KEPT_BYTES);
    }
}
