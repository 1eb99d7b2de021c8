//! A set of processes, each counted once: what runs beneath a program when it is told to stop, and what of it has ended.

use super::process_table::{self, ProcessEntry};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{Instant, sleep};

/// How long processes that a program has just killed may need to end.
const ENDING: Duration = Duration::from_millis(300);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// By id and start time: the system may reuse an id, but never together with its start time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSet(BTreeSet<(i32, u64)>);

impl ProcessSet {
    /// The running descendants of a process, without itself. Reads the whole process table.
    pub fn beneath(process: i32) -> Self {
        let mut found = Self::default();
        // No program has the id 0, which is the parent of every process of the kernel.
        if process > 0 {
            let descendants = process_table::descendants(&process_table::all(), &[process]);
            descendants.iter().filter(|entry| !entry.has_ended).for_each(|entry| found.insert(entry));
        }
        found
    }

    /// Those of the set that have ended by now.
    pub fn ended(&self) -> Self {
        let is_running = |id: i32, started: u64| {
            ProcessEntry::read(id).is_some_and(|entry| entry.started == started && !entry.has_ended)
        };
        Self(self.0.iter().copied().filter(|(id, started)| !is_running(*id, *started)).collect())
    }

    /// The same, when all have ended or had the time for it. Processes that stay, such as MCP servers, take all of this time.
    pub async fn ended_soon(&self) -> Self {
        let until = Instant::now() + ENDING;
        loop {
            let ended = self.ended();
            if ended == *self || Instant::now() >= until {
                return ended;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Adds the processes of another set.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn insert(&mut self, entry: &ProcessEntry) {
        self.0.insert((entry.id, entry.started));
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessSet;
    use std::process::{Command, Stdio};

    #[test]
    fn ended_processes_are_counted_once_and_running_ones_are_not() {
        let mut shell = Command::new("sh");
        // The shell stays the parent of both.
        let mut shell = shell
            .args(["-c", "sleep 60 & a=$!; sleep 60 & b=$!; read line; kill $b; wait $b; echo; read line; kill $a"]);
        shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let id = i32::try_from(shell.id()).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let mut running = ProcessSet::beneath(id);
        while running.count() < 2 && std::time::Instant::now() < deadline {
            running = ProcessSet::beneath(id);
        }
        assert_eq!((running.count(), running.ended().count()), (2, 0));
        let (mut stdin, mut stdout) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        std::io::Write::write_all(&mut stdin, b"\n").unwrap();
        std::io::Read::read_exact(&mut stdout, &mut [0]).unwrap();
        let ended = running.ended();
        assert_eq!(ended.count(), 1, "one of the two was killed and reaped");
        assert_eq!(ended.clone().and(running.ended()).count(), 1, "the same process counts once");
        drop(stdin);
        shell.wait().unwrap();
        assert_eq!(ProcessSet::beneath(0), ProcessSet::default());
    }
}
