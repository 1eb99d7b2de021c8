//! Checks 7 and 8: nothing of a dead server is left, and enough was at stake for all this to mean something.

use super::{Room, promises};
use crate::report::Check;
use domain::event::{EventBody, EventType, Interruption};

/// What was counted while the cycles ran.
#[derive(Debug, Default)]
pub struct Tally {
    pub kills: usize,
    /// Processes that outlived their server.
    pub orphans: Vec<String>,
    /// Events shown in each cycle.
    pub events_by_cycle: Vec<u64>,
    /// In power cuts: unsynced writes taken back.
    pub writes_forgotten: usize,
    /// In power cuts: kills at which the shim had no write-ahead log under watch.
    pub blind_cuts: usize,
    pub is_power_cut: bool,
    /// Runs that had not ended when patience was over.
    pub unfinished: Vec<String>,
}

/// A room that streams shows at least this many events in a cycle.
pub const EVENTS_A_ROOM: u64 = 5;

pub fn checks(rooms: &[Room], tally: &Tally) -> Vec<Check> {
    let mut orphans = Check::new("7 no child process outlives a killed server");
    orphans.faults.extend(tally.orphans.iter().cloned());
    orphans.looked_at = format!("{} kills", tally.kills);
    let mut unfinished = Check::new("11 no run is left unfinished");
    unfinished.faults.extend(tally.unfinished.iter().cloned());
    unfinished.looked_at = format!("{} runs", rooms.iter().map(|room| room.runs.len()).sum::<usize>());
    let mut checks = vec![orphans, floor(rooms, tally), promises::converged(rooms), unfinished];
    if tally.is_power_cut {
        let mut shim = Check::new("12 the power cut was one: the shim watched the database at every kill");
        shim.looked_at = format!("{} cuts, {} unsynced writes taken back", tally.kills, tally.writes_forgotten);
        shim.expect(tally.blind_cuts == 0, || format!("at {} cuts no write-ahead log was watched", tally.blind_cuts));
        checks.push(shim);
    }
    checks
}

fn floor(rooms: &[Room], tally: &Tally) -> Check {
    let mut check = Check::new("8 enough was at stake: events in every cycle, runs cut by the kills");
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
    // In a cycle most rooms stream when the kill comes; a quarter of them is the floor.
    let least = tally.kills * rooms.len().div_ceil(4);
    check.expect(cut >= least, || format!("{cut} runs were cut by {} kills, at least {least} are needed", tally.kills));
    let events: u64 = tally.events_by_cycle.iter().sum();
    check.looked_at = format!("{events} events before kills, {cut} runs cut by {} kills", tally.kills);
    check
}
