//! The machine's process table, as `/proc` shows it.

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

/// One process. `id` alone may be given to another one later; together with `started` it is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub id: i32,
    pub parent: i32,
    pub group: i32,
    /// In the kernel's ticks since boot.
    pub started: u64,
    /// It has ended, but its parent has not looked yet.
    pub has_ended: bool,
}

impl Entry {
    pub fn read(id: i32) -> Option<Self> {
        // A process may name itself with any bytes.
        parse(id, &String::from_utf8_lossy(&fs::read(format!("/proc/{id}/stat")).ok()?))
    }

    pub fn is(&self, other: &Self) -> bool {
        (self.id, self.started) == (other.id, other.started)
    }

    /// SIGKILL to exactly this process: not to one that got its number since.
    pub fn kill(&self) -> rustix::io::Result<()> {
        let Some(id) = Pid::from_raw(self.id) else { return Ok(()) };
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(held) if Self::read(self.id).is_some_and(|now| now.is(self)) => {
                settled(pidfd_send_signal(held, Signal::KILL))
            }
            Ok(_) => Ok(()),
            // A kernel, or a filter, without pidfds.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => settled(kill_process(id, Signal::KILL)),
            Err(error) => settled(Err(error)),
        }
    }

    /// Its command line.
    pub fn arguments(&self) -> Vec<String> {
        let line = fs::read(format!("/proc/{}/cmdline", self.id)).unwrap_or_default();
        let line = line.strip_suffix(&[0]).unwrap_or(&line);
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// The value of a variable it was started with; `None` also when it may not be looked at.
    pub fn variable(&self, name: &str) -> Option<String> {
        let environment = fs::read(format!("/proc/{}/environ", self.id)).ok()?;
        let mut entries = environment.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        String::from_utf8(value.to_vec()).ok()
    }
}

/// That it is gone already is what we wanted.
fn settled(outcome: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match outcome {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => other,
    }
}

pub fn all() -> Vec<Entry> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|name| Entry::read(name.file_name().to_str()?.parse().ok()?)).collect()
}

/// All that descend from any of `roots`, without the roots themselves.
pub fn descendants(all: &[Entry], roots: &[i32]) -> Vec<Entry> {
    let mut children: BTreeMap<i32, Vec<&Entry>> = BTreeMap::new();
    for entry in all {
        children.entry(entry.parent).or_default().push(entry);
    }
    let (mut found, mut seen, mut waiting) = (Vec::new(), BTreeSet::from_iter(roots.iter().copied()), roots.to_vec());
    while let Some(parent) = waiting.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if seen.insert(child.id) {
                waiting.push(child.id);
                found.push(**child);
            }
        }
    }
    found
}

fn parse(id: i32, text: &str) -> Option<Entry> {
    // The name before it may hold anything, brackets too; what follows does not.
    let (_, fields) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(Entry {
        id,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        // With threads left, only the first of them has ended.
        has_ended: matches!(*fields.first()?, "Z" | "X") && threads <= 1,
    })
}

#[cfg(test)]
mod tests {
    use super::{Entry, all, descendants, parse};

    #[test]
    fn a_name_cannot_forge_the_rest() {
        let line = "7 (a) Z 1 1 (b) S 5 6 6 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 1234 0 0";
        let expected = Entry { id: 7, parent: 5, group: 6, started: 1234, has_ended: false };
        assert_eq!(parse(7, line), Some(expected));
        assert_eq!(parse(7, "7 (cut"), None);
        assert_eq!(parse(7, "7 (cut) S 1"), None);
    }

    #[test]
    fn ended_means_all_of_its_threads_have() {
        let with = |state: &str, threads: u32| {
            parse(1, &format!("1 (x) {state} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 {threads} 0 9 0")).map(|e| e.has_ended)
        };
        assert_eq!(with("Z", 1), Some(true));
        assert_eq!(with("Z", 2), Some(false));
        assert_eq!(with("S", 1), Some(false));
    }

    #[test]
    fn descendants_are_found_through_those_between() {
        let entry = |id, parent| Entry { id, parent, group: id, started: 0, has_ended: false };
        let table = [entry(5, 4), entry(2, 1), entry(4, 2), entry(3, 1), entry(9, 9), entry(6, 0)];
        let mut found: Vec<i32> = descendants(&table, &[2]).iter().map(|e| e.id).collect();
        found.sort_unstable();
        assert_eq!(found, [4, 5]);
        assert_eq!(descendants(&table, &[5]), []);
    }

    #[test]
    fn this_very_process_is_in_the_table() {
        let id = i32::try_from(std::process::id()).unwrap();
        let own = Entry::read(id).unwrap();
        assert!(!own.has_ended && all().iter().any(|entry| entry.is(&own)));
    }
}
