//! Reads the machine's process table from `/proc`.

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

/// One process. The system may reuse `id`, but never together with `started`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessEntry {
    pub id: i32,
    pub parent: i32,
    pub group: i32,
    /// In kernel ticks since boot.
    pub started: u64,
    /// The process has ended, but its parent has not reaped it yet.
    pub has_ended: bool,
}

impl ProcessEntry {
    pub fn read(id: i32) -> Option<Self> {
        // A process name may contain any bytes.
        parse(id, &String::from_utf8_lossy(&fs::read(format!("/proc/{id}/stat")).ok()?))
    }

    pub fn is_same_process(&self, other: &Self) -> bool {
        (self.id, self.started) == (other.id, other.started)
    }

    /// Sends SIGKILL to exactly this process, never to one that has reused its id.
    pub fn kill(&self) -> rustix::io::Result<()> {
        let Some(id) = Pid::from_raw(self.id) else { return Ok(()) };
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(held) if Self::read(self.id).is_some_and(|now| now.is_same_process(self)) => {
                ignore_missing(pidfd_send_signal(held, Signal::KILL))
            }
            Ok(_) => Ok(()),
            // The kernel or a seccomp filter does not allow pidfds.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => ignore_missing(kill_process(id, Signal::KILL)),
            Err(error) => ignore_missing(Err(error)),
        }
    }

    /// Returns the command line.
    pub fn arguments(&self) -> Vec<String> {
        let line = fs::read(format!("/proc/{}/cmdline", self.id)).unwrap_or_default();
        let line = line.strip_suffix(&[0]).unwrap_or(&line);
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// Returns a variable of the environment that it was started with; `None` also without permission to read it.
    pub fn environment_variable(&self, name: &str) -> Option<String> {
        let environment = fs::read(format!("/proc/{}/environ", self.id)).ok()?;
        let mut entries = environment.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        String::from_utf8(value.to_vec()).ok()
    }
}

/// A process that no longer exists is not an error.
fn ignore_missing(outcome: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match outcome {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => other,
    }
}

pub fn all() -> Vec<ProcessEntry> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|name| ProcessEntry::read(name.file_name().to_str()?.parse().ok()?)).collect()
}

/// Returns all descendants of `roots`, without the roots themselves.
pub fn descendants(all: &[ProcessEntry], roots: &[i32]) -> Vec<ProcessEntry> {
    let mut children: BTreeMap<i32, Vec<&ProcessEntry>> = BTreeMap::new();
    for entry in all {
        children.entry(entry.parent).or_default().push(entry);
    }
    let (mut found, mut seen, mut queue) = (Vec::new(), BTreeSet::from_iter(roots.iter().copied()), roots.to_vec());
    while let Some(parent) = queue.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if seen.insert(child.id) {
                queue.push(child.id);
                found.push(**child);
            }
        }
    }
    found
}

fn parse(id: i32, text: &str) -> Option<ProcessEntry> {
    // The process name comes first and may contain brackets; the fields after it do not.
    let (_, fields) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(ProcessEntry {
        id,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        // With threads left, only the main thread has ended.
        has_ended: matches!(*fields.first()?, "Z" | "X") && threads <= 1,
    })
}

#[cfg(test)]
mod tests {
    use super::{ProcessEntry, all, descendants, parse};

    #[test]
    fn a_process_name_cannot_forge_fields() {
        let line = "7 (a) Z 1 1 (b) S 5 6 6 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 1234 0 0";
        let expected = ProcessEntry { id: 7, parent: 5, group: 6, started: 1234, has_ended: false };
        assert_eq!(parse(7, line), Some(expected));
        assert_eq!(parse(7, "7 (cut"), None);
        assert_eq!(parse(7, "7 (cut) S 1"), None);
    }

    #[test]
    fn a_process_has_ended_when_all_its_threads_have() {
        let with = |state: &str, threads: u32| {
            parse(1, &format!("1 (x) {state} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 {threads} 0 9 0")).map(|e| e.has_ended)
        };
        assert_eq!(with("Z", 1), Some(true));
        assert_eq!(with("Z", 2), Some(false));
        assert_eq!(with("S", 1), Some(false));
    }

    #[test]
    fn descendants_are_found_at_any_depth() {
        let entry = |id, parent| ProcessEntry { id, parent, group: id, started: 0, has_ended: false };
        let table = [entry(5, 4), entry(2, 1), entry(4, 2), entry(3, 1), entry(9, 9), entry(6, 0)];
        let mut found: Vec<i32> = descendants(&table, &[2]).iter().map(|e| e.id).collect();
        found.sort_unstable();
        assert_eq!(found, [4, 5]);
        assert_eq!(descendants(&table, &[5]), []);
    }

    #[test]
    fn the_current_process_is_in_the_table() {
        let id = i32::try_from(std::process::id()).unwrap();
        let own = ProcessEntry::read(id).unwrap();
        assert!(!own.has_ended && all().iter().any(|entry| entry.is_same_process(&own)));
    }
}
