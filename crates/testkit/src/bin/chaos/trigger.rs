//! Kills the server at the worst moment: right after an event was delivered or a post was acknowledged.

use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KillMoment {
    /// A reader has just received an event.
    Shown,
    /// A writer has just received an acknowledgement.
    Acknowledged,
}

#[derive(Debug, Default)]
pub struct KillTrigger {
    /// The process to kill; 0 if not armed.
    pid: AtomicI32,
    moment: AtomicU8,
}

impl KillTrigger {
    /// The next such moment kills the process. Its owner must not reap it before [`Self::disarm`], because the id could
    /// be reused.
    pub fn arm(&self, pid: u32, moment: KillMoment) {
        self.moment.store(moment as u8, Ordering::SeqCst);
        self.pid.store(i32::try_from(pid).unwrap_or(0), Ordering::SeqCst);
    }

    pub fn disarm(&self) {
        self.pid.store(0, Ordering::SeqCst);
    }

    /// Called by readers and writers. Does nothing unless armed for this moment.
    pub fn fire(&self, moment: KillMoment) {
        if self.pid.load(Ordering::SeqCst) == 0 || self.moment.load(Ordering::SeqCst) != moment as u8 {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.pid.swap(0, Ordering::SeqCst)) {
            // The process may be dead already; the caller of `arm` waits for its end in any case.
            kill_process(pid, Signal::KILL).ok();
        }
    }
}
