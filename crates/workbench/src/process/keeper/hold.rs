//! Holding a program that runs, and ending it with all that it started.

use crate::process::{
    Ended, Lines,
    cgroup::Leaf,
    table::{self, Entry},
    wire::{Gone, Order, Report},
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

/// What is not dead by then hangs in the kernel; the server is told so.
const KILLED: Duration = Duration::from_millis(1500);
/// How much longer we go on trying after that.
const LAST_TRY: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);
const LONG_PAUSE: Duration = Duration::from_millis(100);

pub struct Hold {
    program: i32,
    leaf: Option<Leaf>,
    children: Signal,
    ended: Option<Ended>,
    /// Process and start time: each counts once.
    counted: BTreeSet<(i32, u64)>,
    killed: bool,
}

impl Hold {
    pub fn new(program: i32, leaf: Option<Leaf>, children: Signal) -> Self {
        // Not reaped yet, so this finds it even when it has ended already.
        let counted = Entry::read(program).map(|entry| (entry.id, entry.started)).into_iter().collect();
        Self { program, leaf, children, ended: None, counted, killed: false }
    }

    pub async fn run(mut self, orders: OwnedReadHalf, mut reports: OwnedWriteHalf) -> io::Result<()> {
        self.until_it_is_time(orders).await;
        let mut told = Ok(());
        if let Some(ended) = self.ended {
            told = reports.write_all(Report::Ended(ended).to_string().as_bytes()).await;
        }
        let known = self.ended.is_some();
        let left = self.end_all(Instant::now() + KILLED, PAUSE).await;
        if let Some(ended) = self.ended.filter(|_| !known) {
            told = told.and(reports.write_all(Report::Ended(ended).to_string().as_bytes()).await);
        }
        let processes = u32::try_from(self.counted.len()).unwrap_or(u32::MAX);
        let gone = Report::Gone(Gone { processes, killed: self.killed, left });
        told = told.and(reports.write_all(gone.to_string().as_bytes()).await);
        if left > 0 {
            self.end_all(Instant::now() + LAST_TRY, LONG_PAUSE).await;
        }
        told
    }

    /// Returns when the program has ended, or when all of it shall.
    async fn until_it_is_time(&mut self, orders: OwnedReadHalf) {
        let mut orders = Lines::new(orders);
        loop {
            self.reap();
            if self.ended.is_some() {
                return;
            }
            tokio::select! {
                line = orders.next() => match line.ok().flatten().as_deref().and_then(Order::parse) {
                    Some(Order::Count) => self.count(),
                    Some(Order::Terminate) => self.terminate(),
                    // The server is gone, or makes no sense any more.
                    Some(Order::Kill) | None => return,
                },
                _ = self.children.recv() => {}
            }
        }
    }

    fn count(&mut self) {
        let living = descendants().into_iter().filter(|entry| !entry.has_ended);
        self.counted.extend(living.map(|entry| (entry.id, entry.started)));
    }

    /// Only while the program is not reaped: until then its number, which is its group's too, is its own.
    fn terminate(&self) {
        if let Some(group) = Pid::from_raw(self.program).filter(|_| self.ended.is_none()) {
            // It fails only when the group is gone, which the next look finds.
            kill_process_group(group, rustix::process::Signal::TERM).ok();
        }
    }

    /// Looks after children that have ended, the adopted too. True when there are none left, and so no descendants.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((id, status))) if id.as_raw_nonzero().get() == self.program => {
                    let by_signal = status.terminating_signal().map(Ended::Signal);
                    let ended = status.exit_status().map(Ended::Code).or(by_signal);
                    self.ended = Some(ended.unwrap_or(Ended::Unknown));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Kills until nobody is left, or the deadline has passed. Returns how many are.
    async fn end_all(&mut self, deadline: Instant, pause: Duration) -> u32 {
        while !self.reap() {
            if Instant::now() >= deadline {
                return u32::try_from(descendants().len()).unwrap_or(u32::MAX).max(1);
            }
            self.kill();
            // Either way we look again.
            timeout(pause, self.children.recv()).await.ok();
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
            // Without it the sweep below still does.
            leaf.kill().ok();
        }
        // A group dies as a whole, also those of it that were born since we looked. All groups here are the domain's:
        // it lives in our session and in those that it made itself.
        for group in groups.into_iter().filter_map(Pid::from_raw).filter(|group| *group != own && !group.is_init()) {
            kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        for entry in found {
            // Who may not be killed is counted as left.
            entry.kill().ok();
        }
    }
}

fn descendants() -> Vec<Entry> {
    table::descendants(&table::all(), &[getpid().as_raw_nonzero().get()])
}
