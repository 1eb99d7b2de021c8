//! Finds processes that outlive their server.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};
use tokio::time::{Instant, sleep};

/// A process id with its start time, because ids are reused.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProcessIdentity {
    pub id: u32,
    started: u64,
}

struct ProcStat {
    process: ProcessIdentity,
    parent: u32,
    is_zombie: bool,
}

/// Returns all descendants of `ancestor`. Children get a cleaned environment, so the mark alone would not find them.
pub fn descendants(ancestor: u32) -> BTreeSet<ProcessIdentity> {
    let all = processes();
    let mut known = BTreeSet::from([ancestor]);
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for stat in all.iter().filter(|stat| known.contains(&stat.parent)) {
            found.insert(stat.process.clone());
        }
        known.extend(found.iter().map(|process: &ProcessIdentity| process.id));
        if found.len() == before {
            return found;
        }
    }
}

/// Returns the processes that are in `before` or have `mark` in their environment and are still alive after `patience`.
pub async fn survivors(before: &BTreeSet<ProcessIdentity>, mark: &str, patience: Duration) -> Vec<ProcessIdentity> {
    let end = Instant::now() + patience;
    loop {
        let alive: Vec<ProcessIdentity> = processes()
            .into_iter()
            .filter(|stat| !stat.is_zombie)
            .map(|stat| stat.process)
            .filter(|process| before.contains(process) || has_in_environment(process.id, mark))
            .collect();
        if alive.is_empty() || Instant::now() >= end {
            return alive;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn has_in_environment(id: u32, mark: &str) -> bool {
    // Unreadable means that the process has ended or belongs to another user: not ours in both cases.
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    environment.windows(mark.len()).any(|window| window == mark.as_bytes())
}

fn processes() -> Vec<ProcStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(&entry.path())).collect()
}

fn read(folder: &Path) -> Option<ProcStat> {
    let id = folder.file_name()?.to_str()?.parse().ok()?;
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    // The name may contain spaces and brackets; the fields start after its last bracket.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(ProcStat {
        process: ProcessIdentity { id, started: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}
