//! Checks 7, 8, 11 and 12: no leftovers of a dead server, and enough work in every cycle for the checks to be
//! meaningful.

use super::{RoomRecord, promises};
use crate::report::ChaosCheck;
use domain::event::{EventBody, EventType, Interruption};

/// Counts collected while the cycles run.
#[derive(Debug, Default)]
pub struct ChaosTally {
    pub kills: usize,
    /// Processes that outlived their server.
    pub orphans: Vec<String>,
    /// Events shown in each cycle.
    pub events_by_cycle: Vec<u64>,
    /// In power cuts: unsynced writes that were undone.
    pub writes_forgotten: usize,
    /// In power cuts: kills at which the shim was not watching a write-ahead log.
    pub unwatched_cuts: usize,
    pub is_power_cut: bool,
    /// In power cuts: how often the disk was full before.
    pub full_disks: usize,
    /// Runs that had not ended at the deadline.
    pub unfinished: Vec<String>,
}

/// The minimum number of events per room and cycle.
pub const EVENTS_A_ROOM: u64 = 5;

pub fn checks(rooms: &[RoomRecord], tally: &ChaosTally) -> Vec<ChaosCheck> {
    let mut orphans = ChaosCheck::new("7 no child process outlives a killed server");
    orphans.faults.extend(tally.orphans.iter().cloned());
    orphans.examined = format!("{} kills", tally.kills);
    let mut unfinished = ChaosCheck::new("11 no run is left unfinished");
    unfinished.faults.extend(tally.unfinished.iter().cloned());
    unfinished.examined = format!("{} runs", rooms.iter().map(|room| room.runs.len()).sum::<usize>());
    let mut checks = vec![orphans, enough_work(rooms, tally), promises::converged(rooms), unfinished];
    if tally.is_power_cut {
        let mut shim = ChaosCheck::new("12 the power cut was one: the shim watched the database at every kill");
        let refused: usize = rooms.iter().map(|room| room.ledger.entries().refused).sum();
        let (cuts, undone, full) = (tally.kills, tally.writes_forgotten, tally.full_disks);
        shim.examined = format!(
            "{cuts} cuts, {undone} unsynced writes taken back; disk full {full} times, {refused} requests refused"
        );
        shim.expect(tally.unwatched_cuts == 0, || {
            format!("at {} cuts no write-ahead log was watched", tally.unwatched_cuts)
        });
        checks.push(shim);
    }
    checks
}

fn enough_work(rooms: &[RoomRecord], tally: &ChaosTally) -> ChaosCheck {
    let mut check = ChaosCheck::new("8 enough was at stake: events in every cycle, runs cut by the kills");
    let room_count = u64::try_from(rooms.len()).unwrap_or(u64::MAX);
    let least = EVENTS_A_ROOM * room_count;
    for (events, cycle) in tally.events_by_cycle.iter().zip(1..) {
        check.expect(*events >= least, || format!("cycle {cycle}: {events} events, at least {least} are needed"));
    }
    let is_crash =
        |body: EventBody| matches!(body, EventBody::RunInterrupted(end) if end.reason == Interruption::Crash);
    let interrupted = rooms.iter().flat_map(|room| &room.journal);
    let interrupted = interrupted.filter(|event| event.kind == EventType::RunInterrupted);
    let cut = interrupted.filter_map(|event| event.body().ok()).filter(|body| is_crash(body.clone())).count();
    // Most rooms are streaming at the time of the kill; require a quarter of them.
    let least = tally.kills * rooms.len().div_ceil(4);
    check.expect(cut >= least, || format!("{cut} runs were cut by {} kills, at least {least} are needed", tally.kills));
    let events: u64 = tally.events_by_cycle.iter().sum();
    check.examined = format!("{events} events before kills, {cut} runs cut by {} kills", tally.kills);
    check
}
