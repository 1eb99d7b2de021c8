//! Check 4: each run has exactly one end, which is its last event and agrees with the API. Check 10: a post repeated
//! with its idempotency key is stored once.

use super::RoomRecord;
use crate::report::ChaosCheck;
use domain::{event::EventType, ids::RunId, run::RunStatus};
use std::collections::{BTreeMap, BTreeSet};
use testkit::client::SeenEvent;

pub fn checks(rooms: &[RoomRecord]) -> Vec<ChaosCheck> {
    vec![ends(rooms), posted_once(rooms)]
}

fn ends(rooms: &[RoomRecord]) -> ChaosCheck {
    let mut check = ChaosCheck::new("4 every run has exactly one end, and it is its last event");
    let mut by_status: BTreeMap<&str, usize> = BTreeMap::new();
    for room in rooms {
        let mut events: BTreeMap<RunId, Vec<&SeenEvent>> = BTreeMap::new();
        for event in &room.journal {
            if let Some(run) = event.run_id {
                events.entry(run).or_default().push(event);
            }
        }
        for run in &room.runs {
            *by_status.entry(run.status.as_str()).or_default() += 1;
        }
        for (run, events) in &events {
            let ends: Vec<EventType> = events.iter().map(|event| event.kind).filter(|kind| kind.ends_a_run()).collect();
            check.expect(ends.len() == 1, || format!("run {run} has the ends {ends:?}"));
            let last = events.last().map(|event| event.kind);
            check
                .expect(last.is_some_and(EventType::ends_a_run), || format!("the last event of run {run} is {last:?}"));
            let first = events.first().map(|event| event.kind);
            check.expect(first == Some(EventType::RunQueued), || format!("run {run} begins with {first:?}"));
            let status = room.runs.iter().find(|known| known.id == *run).map(|known| known.status);
            let journaled = ends.first().copied().and_then(status_of);
            check.expect(status.is_some() && status == journaled, || {
                format!("run {run} ended as {journaled:?}, the API says {status:?}")
            });
        }
    }
    let counts: Vec<String> = by_status.iter().map(|(status, count)| format!("{count} {status}")).collect();
    check.examined = counts.join(", ");
    check
}

pub fn status_of(kind: EventType) -> Option<RunStatus> {
    match kind {
        EventType::RunCompleted => Some(RunStatus::Completed),
        EventType::RunFailed => Some(RunStatus::Failed),
        EventType::RunCancelled => Some(RunStatus::Cancelled),
        EventType::RunInterrupted => Some(RunStatus::Interrupted),
        _ => None,
    }
}

/// Every lost post was repeated until it got a response, so the journal contains exactly the acknowledged posts.
fn posted_once(rooms: &[RoomRecord]) -> ChaosCheck {
    let mut check = ChaosCheck::new("10 a post repeated after a crash is stored once");
    let mut posts = 0;
    for room in rooms {
        let posted = room.journal.iter().filter(|event| event.kind == EventType::MessagePosted).map(|event| event.seq);
        let posted: BTreeSet<u64> = posted.collect();
        let acknowledged: BTreeSet<u64> =
            room.ledger.entries().acknowledged.iter().map(|promise| promise.seq).collect();
        posts += posted.len();
        for seq in posted.symmetric_difference(&acknowledged) {
            check
                .faults
                .push(format!("{}: message at {seq} is only in the journal or only in the ledger", room.ledger.room));
        }
    }
    check.examined = format!("{posts} messages");
    check
}
