//! The end of a program's stderr, kept for error messages.

use crate::outside::OutsideSource;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

const KEPT_BYTES: usize = OutsideSource::ProgramStderr.max_bytes();

/// A cheap handle. The pipe reader appends to it; error reporting reads it.
#[derive(Clone, Debug, Default)]
pub struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    fn bytes(&self) -> MutexGuard<'_, VecDeque<u8>> {
        // Plain bytes, which no panic can leave inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, new: &[u8]) {
        let mut bytes = self.bytes();
        bytes.extend(&new[new.len().saturating_sub(KEPT_BYTES)..]);
        let over = bytes.len().saturating_sub(KEPT_BYTES);
        bytes.drain(..over);
    }

    /// Returns the end of the output as text.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes().iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_BYTES, StderrTail};

    #[test]
    fn invariant_14_limits_only_the_end_of_stderr_is_kept() {
        let stderr = StderrTail::default();
        for _ in 0..100 {
            stderr.push(&[b'x'; 1000]);
        }
        stderr.push(b"the end");
        let tail = stderr.text();
        assert!(tail.ends_with("the end") && tail.len() == KEPT_BYTES);
    }
}
