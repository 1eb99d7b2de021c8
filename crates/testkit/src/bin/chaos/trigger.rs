//! Pulls the plug at the worst moment: right after something was shown to a reader or acknowledged to a writer.

use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// A reader has just been shown an event.
    Shown,
    /// A writer has just been told that its message is stored.
    Acknowledged,
}

#[derive(Debug, Default)]
pub struct Trigger {
    /// The process to kill; 0 while there is none.
    victim: AtomicI32,
    moment: AtomicU8,
}

impl Trigger {
    /// From now on the next such moment kills the process. Its owner must not have reaped it before [`Self::disarm`], or
    /// the id could belong to another by then.
    pub fn arm(&self, pid: u32, moment: Moment) {
        self.moment.store(moment as u8, Ordering::SeqCst);
        self.victim.store(i32::try_from(pid).unwrap_or(0), Ordering::SeqCst);
    }

    pub fn disarm(&self) {
        self.victim.store(0, Ordering::SeqCst);
    }

    /// Called by readers and writers; does nothing unless armed for this moment.
    pub fn happened(&self, moment: Moment) {
        if self.victim.load(Ordering::SeqCst) == 0 || self.moment.load(Ordering::SeqCst) != moment as u8 {
            return;
        }
        if let Some(pid) = Pid::from_raw(self.victim.swap(0, Ordering::SeqCst)) {
            // It may be dead already; whoever armed the trigger waits for the end in any case.
            kill_process(pid, Signal::KILL).ok();
        }
    }
}
