//! Ending processes that have no keeper any more: found by their cgroup, by their mark, and by whom they descend from.

use super::{
    cgroup::{Base, Leaf},
    keeper,
    mark::{self, Mark, Origin},
    table::{self, Entry},
    wire::Gone,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

const DEADLINE: Duration = Duration::from_millis(1500);
const PAUSE: Duration = Duration::from_millis(5);
/// A process shows no environment for a moment while it becomes another program: one look is no proof.
const EMPTY_LOOKS: u32 = 3;

/// All of one domain. Blocks.
pub fn end(mark: &Mark, leaf: Option<&Leaf>, program: Option<Entry>) -> Gone {
    let mark = mark.to_string();
    let is_ours = |entry: &Entry| {
        program.is_some_and(|program| program.is(entry))
            || entry.variable(mark::VARIABLE).is_some_and(|value| value == mark)
    };
    sweep(&leaf.cloned().into_iter().collect::<Vec<_>>(), is_ours)
}

/// All of servers that are dead. Blocks. Returns how many processes were ended.
pub fn end_abandoned(viewer: Origin, base: Option<&Base>) -> usize {
    wake_keepers(viewer);
    let leaves = base.map(|base| base.abandoned(viewer)).unwrap_or_default();
    let is_abandoned = |entry: &Entry| {
        let mark = entry.variable(mark::VARIABLE).and_then(|value| value.parse::<Mark>().ok());
        mark.is_some_and(|mark| mark.origin.is_dead(viewer))
    };
    let gone = sweep(&leaves, is_abandoned);
    if gone.processes > 0 || gone.left > 0 {
        tracing::warn!(ended = gone.processes, left = gone.left, "ended what a killed server left behind");
    }
    usize::try_from(gone.processes).unwrap_or(usize::MAX)
}

/// A keeper that outlives its server for long was stopped by a signal. It alone knows all that it holds, and ends that
/// and itself as soon as it can.
fn wake_keepers(viewer: Origin) {
    for entry in table::all() {
        let [name, word, mark] = &entry.arguments()[..] else { continue };
        let mark = mark.parse::<Mark>().ok().filter(|_| name == keeper::NAME && word == keeper::WORD);
        if let Some(id) = Pid::from_raw(entry.id).filter(|_| mark.is_some_and(|mark| mark.origin.is_dead(viewer)))
            && let Err(error) = kill_process(id, Signal::CONT)
        {
            tracing::debug!(process = entry.id, %error, "cannot wake a keeper");
        }
    }
}

fn sweep(leaves: &[Leaf], is_ours: impl Fn(&Entry) -> bool) -> Gone {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let deadline = Instant::now() + DEADLINE;
    let mut ended = BTreeSet::new();
    let mut empty_looks = 0;
    let left = loop {
        let all = table::all();
        let members: BTreeSet<i32> = leaves.iter().flat_map(Leaf::members).collect();
        let mut found: Vec<Entry> =
            all.iter().filter(|entry| members.contains(&entry.id) || is_ours(entry)).copied().collect();
        let roots: Vec<i32> = found.iter().map(|entry| entry.id).collect();
        // They may have cleaned their environment.
        found.extend(table::descendants(&all, &roots));
        found.retain(|entry| !entry.has_ended && entry.id != own);
        empty_looks = if found.is_empty() { empty_looks + 1 } else { 0 };
        if empty_looks == EMPTY_LOOKS || Instant::now() >= deadline {
            break found.len();
        }
        for leaf in leaves {
            if let Err(error) = leaf.kill() {
                tracing::debug!(%error, "cannot kill a cgroup");
            }
        }
        for entry in found {
            ended.insert((entry.id, entry.started));
            if let Err(error) = entry.kill() {
                tracing::debug!(process = entry.id, %error, "cannot kill a process");
            }
        }
        thread::sleep(PAUSE);
    };
    for leaf in leaves {
        if let Err(error) = leaf.remove(deadline.saturating_duration_since(Instant::now())) {
            tracing::warn!(leaf = %leaf.path().display(), %error, "cannot remove a cgroup");
        }
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Gone { processes: count(ended.len()), killed: !ended.is_empty(), left: count(left) }
}
