//! Holds a running program, and can kill it with all its descendants: when `ProgramHandle::stop` or a dropped handle asks for it (a
//! cancelled run whose program did not obey the interrupt, a program that is no longer kept), or when the server has died. A
//! program that obeys the interrupt is kept; then only what its tools left running is ended, by `ProgramHandle::end_orphans`, for
//! Codex by `providers::codex::leftovers`.

use crate::process::{
    OutputLines, ProgramExit,
    cgroup::LeafCgroup,
    keeper_protocol::{CleanupOutcome, KeeperCommand, KeeperReport},
    process_table::{self, ProcessEntry},
};
use rustix::{
    io::Errno,
    process::{Pid, WaitOptions, getpgrp, getpid, kill_process_group, wait},
};
use std::{
    collections::BTreeSet,
    io,
    time::{Duration, Instant},
};
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
    signal::unix::Signal,
    time::timeout,
};

/// A process that is not dead by then hangs in the kernel; the server gets a report of that.
const KILL_TIMEOUT: Duration = Duration::from_millis(1500);
/// How much longer to keep trying after that.
const LAST_TRY_TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);
const LONG_PAUSE: Duration = Duration::from_millis(100);

pub struct HeldProgram {
    program: i32,
    leaf: Option<LeafCgroup>,
    child_exits: Signal,
    exit: Option<ProgramExit>,
    /// Process id and start time, so that each process counts once.
    counted: BTreeSet<(i32, u64)>,
    killed: bool,
}

impl HeldProgram {
    pub fn new(program: i32, leaf: Option<LeafCgroup>, child_exits: Signal) -> Self {
        // Not reaped yet, so the entry exists even if the program has already ended.
        let counted = ProcessEntry::read(program).map(|entry| (entry.id, entry.started)).into_iter().collect();
        Self { program, leaf, child_exits, exit: None, counted, killed: false }
    }

    pub async fn run(mut self, commands: OwnedReadHalf, mut reports: OwnedWriteHalf) -> io::Result<()> {
        self.wait_for_end_or_kill(commands).await;
        let mut sent = Ok(());
        if let Some(ended) = self.exit {
            sent = reports.write_all(KeeperReport::Ended(ended).to_string().as_bytes()).await;
        }
        let known = self.exit.is_some();
        let left = self.end_all(Instant::now() + KILL_TIMEOUT, PAUSE).await;
        if let Some(ended) = self.exit.filter(|_| !known) {
            sent = sent.and(reports.write_all(KeeperReport::Ended(ended).to_string().as_bytes()).await);
        }
        let processes = u32::try_from(self.counted.len()).unwrap_or(u32::MAX);
        let cleanup = KeeperReport::CleanedUp(CleanupOutcome { processes, killed: self.killed, remaining: left });
        sent = sent.and(reports.write_all(cleanup.to_string().as_bytes()).await);
        if left > 0 {
            self.end_all(Instant::now() + LAST_TRY_TIMEOUT, LONG_PAUSE).await;
        }
        sent
    }

    /// Returns when the program has ended, or when everything must be killed.
    async fn wait_for_end_or_kill(&mut self, commands: OwnedReadHalf) {
        let mut commands = OutputLines::new(commands);
        loop {
            self.reap();
            if self.exit.is_some() {
                return;
            }
            tokio::select! {
                line = commands.next() => match line.ok().flatten().as_deref().and_then(KeeperCommand::parse) {
                    Some(KeeperCommand::Count) => self.count(),
                    Some(KeeperCommand::Terminate) => self.terminate(),
                    // The server has died, or sends invalid commands.
                    Some(KeeperCommand::Kill) | None => return,
                },
                _ = self.child_exits.recv() => {}
            }
        }
    }

    fn count(&mut self) {
        let living = descendants().into_iter().filter(|entry| !entry.has_ended);
        self.counted.extend(living.map(|entry| (entry.id, entry.started)));
    }

    /// Only while the program is not reaped: until then its id, which is also its group's, cannot be reused.
    fn terminate(&self) {
        if let Some(group) = Pid::from_raw(self.program).filter(|_| self.exit.is_none()) {
            // This fails only if the group no longer exists, which the next scan finds.
            kill_process_group(group, rustix::process::Signal::TERM).ok();
        }
    }

    /// Reaps ended children, including adopted ones. Returns true when no children, and so no descendants, are left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((id, status))) if id.as_raw_nonzero().get() == self.program => {
                    let by_signal = status.terminating_signal().map(ProgramExit::Signal);
                    let ended = status.exit_status().map(ProgramExit::Code).or(by_signal);
                    self.exit = Some(ended.unwrap_or(ProgramExit::Unknown));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Kills until no process is left or the deadline has passed. Returns how many are left.
    async fn end_all(&mut self, deadline: Instant, pause: Duration) -> u32 {
        while !self.reap() {
            if Instant::now() >= deadline {
                return u32::try_from(descendants().len()).unwrap_or(u32::MAX).max(1);
            }
            self.kill();
            // The loop checks again in either case.
            timeout(pause, self.child_exits.recv()).await.ok();
        }
        match self.leaf.as_ref().map(|leaf| leaf.remove(deadline.saturating_duration_since(Instant::now()))) {
            Some(Err(_)) => 1,
            Some(Ok(())) | None => 0,
        }
    }

    fn kill(&mut self) {
        let found = descendants();
        let own = getpgrp();
        let mut groups = BTreeSet::new();
        for entry in found.iter().filter(|entry| !entry.has_ended) {
            self.counted.insert((entry.id, entry.started));
            self.killed = true;
            groups.insert(entry.group);
        }
        if let Some(leaf) = &self.leaf {
            // If this fails, the loops below still kill everything.
            leaf.kill().ok();
        }
        // Killing a group includes members that were started since the scan. All these groups belong to the domain: it
        // lives in our session and in sessions that it created.
        for group in groups.into_iter().filter_map(Pid::from_raw).filter(|group| *group != own && !group.is_init()) {
            kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        for entry in found {
            // A process that cannot be killed is counted as remaining.
            entry.kill().ok();
        }
    }
}

fn descendants() -> Vec<ProcessEntry> {
    process_table::descendants(&process_table::all(), &[getpid().as_raw_nonzero().get()])
}
