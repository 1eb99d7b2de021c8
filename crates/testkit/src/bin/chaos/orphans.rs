//! Whether anything of a dead server is still alive.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};
use tokio::time::{Instant, sleep};

/// A process, with the time it started: ids are used again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Process {
    pub id: u32,
    started: u64,
}

struct Stat {
    process: Process,
    parent: u32,
    is_zombie: bool,
}

/// All processes below `ancestor`. Children are given a cleaned environment, so a mark alone would not find them.
pub fn descendants(ancestor: u32) -> BTreeSet<Process> {
    let all = processes();
    let mut known = BTreeSet::from([ancestor]);
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for stat in all.iter().filter(|stat| known.contains(&stat.parent)) {
            found.insert(stat.process.clone());
        }
        known.extend(found.iter().map(|process: &Process| process.id));
        if found.len() == before {
            return found;
        }
    }
}

/// What is still alive of `before`, or carries `mark` in its environment, when `patience` is over.
pub async fn survivors(before: &BTreeSet<Process>, mark: &str, patience: Duration) -> Vec<Process> {
    let end = Instant::now() + patience;
    loop {
        let alive: Vec<Process> = processes()
            .into_iter()
            .filter(|stat| !stat.is_zombie)
            .map(|stat| stat.process)
            .filter(|process| before.contains(process) || carries(process.id, mark))
            .collect();
        if alive.is_empty() || Instant::now() >= end {
            return alive;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn carries(id: u32, mark: &str) -> bool {
    // Unreadable means gone, or another user's: not ours in both cases.
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    environment.windows(mark.len()).any(|window| window == mark.as_bytes())
}

fn processes() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(&entry.path())).collect()
}

fn read(folder: &Path) -> Option<Stat> {
    let id = folder.file_name()?.to_str()?.parse().ok()?;
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    // The name may hold anything, also blanks and brackets; the fields begin after its last bracket.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        process: Process { id, started: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}
