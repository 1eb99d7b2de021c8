//! Checks 1 to 3, and 9: what was acknowledged or shown is there, unchanged, without a gap, for every reader.

use super::Room;
use crate::{
    ledger::{Door, Entries},
    report::Check,
};
use domain::{event::EventBody, position::Seq};
use testkit::client::SeenEvent;

/// A promise that was not kept.
#[derive(Clone, Debug)]
pub enum Broken {
    Acknowledged(String),
    Shown(String),
}

/// Compares what the ledger holds about the seqs after `from`, up to `to`, with that part of the journal.
pub fn compare(entries: &Entries, from: Seq, to: Seq, journal: &[SeenEvent]) -> Vec<Broken> {
    let mut broken = Vec::new();
    let at = |seq: Seq| {
        let index = usize::try_from(seq.checked_sub(from + 1)?).ok()?;
        journal.get(index)
    };
    let is_in_question = |seq: Seq| seq > from && seq <= to;
    let again = entries.contradictions.iter().map(|(seq, json)| (seq, json));
    for (&seq, json) in entries.shown.iter().chain(again).filter(|(seq, _)| is_in_question(**seq)) {
        match at(seq) {
            Some(event) if *event.json == **json => {}
            Some(event) => broken.push(Broken::Shown(format!("shown {json}, the journal has {}", event.json))),
            None => broken.push(Broken::Shown(format!("shown {json}, the journal ends before"))),
        }
    }
    for promise in entries.acknowledged.iter().filter(|promise| is_in_question(promise.seq)) {
        let stored = at(promise.seq).and_then(|event| event.body().ok());
        match stored {
            Some(EventBody::MessagePosted(event))
                if event.message_id == promise.message && event.text == promise.text => {}
            other => {
                let text = format!("message {} acknowledged at {}, there is {other:?}", promise.message, promise.seq);
                broken.push(Broken::Acknowledged(text));
            }
        }
    }
    broken
}

pub fn checks(rooms: &[Room], early: Vec<Broken>) -> Vec<Check> {
    let mut acknowledged = Check::new("1 nothing acknowledged is lost");
    let mut shown = Check::new("2 nothing shown is lost or changed");
    let mut broken = early;
    let (mut messages, mut runs, mut cancels, mut events) = (0, 0, 0, 0);
    for room in rooms {
        let entries = room.ledger.entries();
        broken.extend(compare(&entries, 0, Seq::MAX, &room.journal));
        messages += entries.acknowledged.len();
        cancels += entries.ended_by_cancel.len();
        events += entries.shown.len();
        for run in entries.acknowledged.iter().flat_map(|promise| &promise.runs) {
            runs += 1;
            acknowledged
                .expect(room.runs.iter().any(|known| known.id == *run), || format!("run {run} is not in the journal"));
        }
        for (run, status) in &entries.ended_by_cancel {
            let found = room.runs.iter().find(|known| known.id == *run).map(|known| known.status);
            acknowledged.expect(found == Some(*status), || format!("cancel said {run} is {status}, it is {found:?}"));
        }
        acknowledged.faults.extend(entries.writer_faults.iter().cloned());
    }
    for fault in broken {
        match fault {
            Broken::Acknowledged(text) => acknowledged.faults.push(text),
            Broken::Shown(text) => shown.faults.push(text),
        }
    }
    acknowledged.looked_at = format!("{messages} messages, {runs} runs, {cancels} cancels");
    shown.looked_at = format!("{events} events");
    vec![acknowledged, shown]
}

pub fn gapless(rooms: &[Room]) -> Check {
    let mut check = Check::new("3 seqs are 1..head and every reader saw them in order, each once");
    let mut connections = 0;
    for room in rooms {
        let id = room.ledger.room;
        for (event, expected) in room.journal.iter().zip(1..) {
            check.expect(event.seq == expected, || format!("{id}: {} where {expected} belongs", event.seq));
            check.expect(event.room_id == id, || format!("{id}: an event of room {}", event.room_id));
        }
        for journey in &room.ledger.entries().journeys {
            connections += journey.connections;
            check.faults.extend(journey.faults.iter().map(|fault| format!("{id}: {fault}")));
        }
    }
    check.looked_at = format!("{} rooms, {connections} connections", rooms.len());
    check
}

pub fn converged(rooms: &[Room]) -> Check {
    let mut check = Check::new("9 all readers end with the same gapless events");
    for room in rooms {
        let head = room.journal.last().map_or(0, |event| event.seq);
        let entries = room.ledger.entries();
        for (door, journey) in Door::ALL.iter().zip(&entries.journeys) {
            let at = journey.position;
            check.expect(at == head, || format!("{}: {door:?} is at {at}, the journal at {head}", room.ledger.room));
        }
        let count = u64::try_from(entries.shown.len()).unwrap_or(u64::MAX);
        check.expect(count == head, || format!("{}: {count} of {head} events were shown", room.ledger.room));
    }
    check.looked_at = format!("{} readers", rooms.len() * Door::ALL.len());
    check
}
