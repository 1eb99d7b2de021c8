//! Ends processes that have lost their keeper. They are found by cgroup, by domain id and by descent.

use super::{
    cgroup::{CgroupBase, LeafCgroup},
    domain_id::{self, KillDomainId, ServerInstance},
    keeper,
    keeper_protocol::CleanupOutcome,
    process_table::{self, ProcessEntry},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

const DEADLINE: Duration = Duration::from_millis(1500);
const PAUSE: Duration = Duration::from_millis(5);
/// A process has an empty environment for a moment during exec, so one empty scan proves nothing.
const EMPTY_SCANS: u32 = 3;

/// Ends all processes of one kill domain. Blocks.
pub fn end_domain(domain: &KillDomainId, leaf: Option<&LeafCgroup>, program: Option<ProcessEntry>) -> CleanupOutcome {
    let domain = domain.to_string();
    let is_ours = |entry: &ProcessEntry| {
        program.is_some_and(|program| program.is_same_process(entry))
            || entry.environment_variable(domain_id::DOMAIN_VARIABLE).is_some_and(|value| value == domain)
    };
    sweep(&leaf.cloned().into_iter().collect::<Vec<_>>(), is_ours)
}

/// Ends all processes of dead servers. Blocks. Returns how many processes were ended.
pub fn end_abandoned(viewer: ServerInstance, base: Option<&CgroupBase>) -> usize {
    resume_keepers(viewer);
    let leaves = base.map(|base| base.abandoned(viewer)).unwrap_or_default();
    let is_abandoned = |entry: &ProcessEntry| {
        let domain =
            entry.environment_variable(domain_id::DOMAIN_VARIABLE).and_then(|value| value.parse::<KillDomainId>().ok());
        domain.is_some_and(|domain| domain.server.is_dead(viewer))
    };
    let cleanup = sweep(&leaves, is_abandoned);
    if cleanup.processes > 0 || cleanup.remaining > 0 {
        tracing::warn!(
            ended = cleanup.processes,
            left = cleanup.remaining,
            "ended processes left behind by a killed server"
        );
    }
    usize::try_from(cleanup.processes).unwrap_or(usize::MAX)
}

/// A keeper that outlives its server for long was suspended by a signal. Only the keeper knows all its processes, and
/// it ends them and itself once resumed.
fn resume_keepers(viewer: ServerInstance) {
    for entry in process_table::all() {
        let [name, word, domain] = &entry.arguments()[..] else { continue };
        let domain =
            domain.parse::<KillDomainId>().ok().filter(|_| name == keeper::PROCESS_NAME && word == keeper::SUBCOMMAND);
        if let Some(id) = Pid::from_raw(entry.id).filter(|_| domain.is_some_and(|domain| domain.server.is_dead(viewer)))
            && let Err(error) = kill_process(id, Signal::CONT)
        {
            tracing::debug!(process = entry.id, %error, "could not resume a keeper");
        }
    }
}

fn sweep(leaves: &[LeafCgroup], is_ours: impl Fn(&ProcessEntry) -> bool) -> CleanupOutcome {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let deadline = Instant::now() + DEADLINE;
    let mut ended = BTreeSet::new();
    let mut empty_looks = 0;
    let left = loop {
        let all = process_table::all();
        let members: BTreeSet<i32> = leaves.iter().flat_map(LeafCgroup::members).collect();
        let mut found: Vec<ProcessEntry> =
            all.iter().filter(|entry| members.contains(&entry.id) || is_ours(entry)).copied().collect();
        let roots: Vec<i32> = found.iter().map(|entry| entry.id).collect();
        // Descendants may have cleared their environment.
        found.extend(process_table::descendants(&all, &roots));
        found.retain(|entry| !entry.has_ended && entry.id != own);
        empty_looks = if found.is_empty() { empty_looks + 1 } else { 0 };
        if empty_looks == EMPTY_SCANS || Instant::now() >= deadline {
            break found.len();
        }
        for leaf in leaves {
            if let Err(error) = leaf.kill() {
                tracing::debug!(%error, "could not kill a cgroup");
            }
        }
        for entry in found {
            ended.insert((entry.id, entry.started));
            if let Err(error) = entry.kill() {
                tracing::debug!(process = entry.id, %error, "could not kill a process");
            }
        }
        thread::sleep(PAUSE);
    };
    for leaf in leaves {
        if let Err(error) = leaf.remove(deadline.saturating_duration_since(Instant::now())) {
            tracing::warn!(leaf = %leaf.path().display(), %error, "could not remove a cgroup");
        }
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    CleanupOutcome { processes: count(ended.len()), killed: !ended.is_empty(), remaining: count(left) }
}
