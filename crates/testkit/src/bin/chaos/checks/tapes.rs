//! Checks 16 and 17: the tapes of rooms with several agents, whatever the kills have cut.

use super::RoomRecord;
use crate::{ledger::ChaosRoomKind, report::ChaosCheck};
use domain::{
    event::{EventBody, EventType},
    ids::{MessageId, RunId},
    position::Seq,
    room::WhenBusy,
    tape::TapeChange,
};
use std::collections::{BTreeMap, BTreeSet};
use testkit::client::SeenEvent;

pub fn checks(rooms: &[RoomRecord]) -> Vec<ChaosCheck> {
    vec![order(rooms), commands(rooms)]
}

/// What the journal says about the runs of a room, up to some event.
#[derive(Default)]
struct RoomWatch {
    /// The unfinished runs with the messages that they answer.
    queued: BTreeMap<RunId, MessageId>,
    running: BTreeSet<RunId>,
    /// By message: its seq, and whether it was to steer a run. Such a message may be answered late.
    messages: BTreeMap<MessageId, (Seq, bool)>,
    /// The last message that stopped everything before it.
    interrupted_at: Seq,
}

impl RoomWatch {
    fn apply(&mut self, event: &SeenEvent, is_sequential: bool, check: &mut ChaosCheck) {
        match (event.body(), event.run_id) {
            (Ok(EventBody::MessagePosted(posted)), _) => {
                self.messages.insert(posted.message_id, (event.seq, posted.when_busy == WhenBusy::Steer));
                if posted.when_busy == WhenBusy::Interrupt {
                    self.interrupted_at = event.seq;
                }
            }
            (Ok(EventBody::RunQueued(queued)), Some(run)) => {
                let (seq, steers) = self.messages.get(&queued.message_id).copied().unwrap_or_default();
                check.expect(steers || seq >= self.interrupted_at, || {
                    format!("run {run} was queued for a message at {seq}, which {} replaced", self.interrupted_at)
                });
                self.queued.insert(run, queued.message_id);
            }
            (Ok(EventBody::RunStarted(_)), Some(run)) => {
                let message = self.queued.get(&run);
                let beside = |other: &&RunId| is_sequential || self.queued.get(other) != message;
                if let Some(other) = self.running.iter().find(beside) {
                    check.faults.push(format!("run {run} started while run {other} of another cell was running"));
                }
                self.running.insert(run);
            }
            (Ok(_), Some(run)) if event.kind.ends_a_run() => {
                self.queued.remove(&run);
                self.running.remove(&run);
            }
            (Ok(_), _) => {}
            (Err(error), _) => check.faults.push(error.to_string()),
        }
    }
}

fn order(rooms: &[RoomRecord]) -> ChaosCheck {
    let mut check = ChaosCheck::new("16 cells run one after another, and nothing is queued for a replaced message");
    let (mut runs, mut side_by_side) = (0, 0);
    for room in rooms {
        let mut watch = RoomWatch::default();
        for event in &room.journal {
            watch.apply(event, room.ledger.kind.is_sequential(), &mut check);
            side_by_side += usize::from(event.kind == EventType::RunStarted && watch.running.len() > 1);
        }
        runs += room.runs.len();
    }
    let has_many = rooms.iter().any(|room| room.ledger.kind == ChaosRoomKind::Together);
    check.expect(side_by_side > 0 || !has_many, || "no two agents answered at the same time".into());
    check.examined = format!("{runs} runs, {side_by_side} of them beside others");
    check
}

/// Every accepted command is in the journal, and a paused room starts nothing that was queued after the pause.
fn commands(rooms: &[RoomRecord]) -> ChaosCheck {
    let mut check = ChaosCheck::new("17 every accepted command to a tape is kept, and a paused room starts nothing");
    let mut accepted = 0;
    for room in rooms {
        let id = room.ledger.room;
        let mut made: BTreeMap<&str, usize> = BTreeMap::new();
        // Since the pause: the runs that were queued, and whether a step was made.
        let mut paused: Option<(BTreeSet<RunId>, bool)> = None;
        for event in &room.journal {
            if event.kind == EventType::TapePlanned
                && let Ok(EventBody::TapePlanned(planned)) = event.body()
                && let Some(change) = planned.change
            {
                *made.entry(change.as_str()).or_default() += 1;
                match (change, &mut paused) {
                    (TapeChange::Paused, None) => paused = Some(Default::default()),
                    (TapeChange::Resumed, _) => paused = None,
                    (TapeChange::Stepped, Some((_, has_stepped))) => *has_stepped = true,
                    _ => {}
                }
            }
            if let (Some((queued, has_stepped)), Some(run)) = (&mut paused, event.run_id) {
                match event.kind {
                    EventType::RunQueued => {
                        queued.insert(run);
                    }
                    EventType::RunStarted => check.expect(*has_stepped || !queued.contains(&run), || {
                        format!("{id}: run {run} was queued and started while the room was paused")
                    }),
                    _ => {}
                }
            }
        }
        check.expect(paused.is_none(), || format!("{id}: the room is still paused"));
        let mut promised: BTreeMap<&str, usize> = BTreeMap::new();
        for change in &room.ledger.entries().tape_changes {
            *promised.entry(change.as_str()).or_default() += 1;
            accepted += 1;
        }
        for (change, count) in promised {
            // A command whose response was lost is repeated, so there may be more.
            let stored = made.get(change).copied().unwrap_or_default();
            check.expect(stored >= count, || format!("{id}: {count} × {change} were accepted, {stored} are stored"));
        }
    }
    let has_tape = rooms.iter().any(|room| room.ledger.kind == ChaosRoomKind::InTurn);
    check.expect(accepted > 0 || !has_tape, || "no command was sent".into());
    check.examined = format!("{accepted} commands");
    check
}
