//! Checks 1 to 3, and 9: acknowledged messages and delivered events are stored, unchanged and gapless, for every
//! reader.

use super::RoomRecord;
use crate::{
    ledger::{LedgerEntries, ReaderTransport},
    report::ChaosCheck,
};
use domain::{event::EventBody, position::Seq};
use testkit::client::SeenEvent;

/// An acknowledged message or a delivered event that is missing or changed.
#[derive(Clone, Debug)]
pub enum BrokenPromise {
    Acknowledged(String),
    Shown(String),
}

/// Compares the ledger with the journal for the seqs after `from`, up to `to`.
pub fn compare(entries: &LedgerEntries, from: Seq, to: Seq, journal: &[SeenEvent]) -> Vec<BrokenPromise> {
    let mut broken = Vec::new();
    let at = |seq: Seq| {
        let index = usize::try_from(seq.checked_sub(from + 1)?).ok()?;
        journal.get(index)
    };
    let is_in_range = |seq: Seq| seq > from && seq <= to;
    let again = entries.contradictions.iter().map(|(seq, json)| (seq, json));
    for (&seq, json) in entries.delivered.iter().chain(again).filter(|(seq, _)| is_in_range(**seq)) {
        match at(seq) {
            Some(event) if *event.json == **json => {}
            Some(event) => broken.push(BrokenPromise::Shown(format!("shown {json}, the journal has {}", event.json))),
            None => broken.push(BrokenPromise::Shown(format!("shown {json}, the journal ends before"))),
        }
    }
    for promise in entries.acknowledged.iter().filter(|promise| is_in_range(promise.seq)) {
        let stored = at(promise.seq).and_then(|event| event.body().ok());
        match stored {
            Some(EventBody::MessagePosted(event))
                if event.message_id == promise.message && event.text == promise.text => {}
            other => {
                let text =
                    format!("message {} acknowledged at {}, the journal has {other:?}", promise.message, promise.seq);
                broken.push(BrokenPromise::Acknowledged(text));
            }
        }
    }
    broken
}

pub fn checks(rooms: &[RoomRecord], early: Vec<BrokenPromise>) -> Vec<ChaosCheck> {
    let mut acknowledged = ChaosCheck::new("1 nothing acknowledged is lost");
    let mut shown = ChaosCheck::new("2 nothing shown is lost or changed");
    let mut broken = early;
    let (mut messages, mut runs, mut cancels, mut events) = (0, 0, 0, 0);
    for room in rooms {
        let entries = room.ledger.entries();
        broken.extend(compare(&entries, 0, Seq::MAX, &room.journal));
        messages += entries.acknowledged.len();
        cancels += entries.ended_by_cancel.len();
        events += entries.delivered.len();
        for run in entries.acknowledged.iter().flat_map(|promise| &promise.runs) {
            runs += 1;
            acknowledged
                .expect(room.runs.iter().any(|known| known.id == *run), || format!("run {run} is not in the journal"));
        }
        for (run, status) in &entries.ended_by_cancel {
            let found = room.runs.iter().find(|known| known.id == *run).map(|known| known.status);
            acknowledged.expect(found == Some(*status), || {
                format!("cancel returned {status} for run {run}, the API says {found:?}")
            });
        }
        acknowledged.faults.extend(entries.writer_faults.iter().cloned());
    }
    for fault in broken {
        match fault {
            BrokenPromise::Acknowledged(text) => acknowledged.faults.push(text),
            BrokenPromise::Shown(text) => shown.faults.push(text),
        }
    }
    acknowledged.examined = format!("{messages} messages, {runs} runs, {cancels} cancels");
    shown.examined = format!("{events} events");
    vec![acknowledged, shown]
}

pub fn gapless(rooms: &[RoomRecord]) -> ChaosCheck {
    let mut check = ChaosCheck::new("3 seqs are 1..head and every reader saw them in order, each once");
    let mut connections = 0;
    for room in rooms {
        let id = room.ledger.room;
        for (event, expected) in room.journal.iter().zip(1..) {
            check.expect(event.seq == expected, || format!("{id}: found seq {}, expected {expected}", event.seq));
            check.expect(event.room_id == id, || format!("{id}: an event of room {}", event.room_id));
        }
        for reader in &room.ledger.entries().readers {
            connections += reader.connections;
            check.faults.extend(reader.faults.iter().map(|fault| format!("{id}: {fault}")));
        }
    }
    check.examined = format!("{} rooms, {connections} connections", rooms.len());
    check
}

pub fn converged(rooms: &[RoomRecord]) -> ChaosCheck {
    let mut check = ChaosCheck::new("9 all readers end with the same gapless events");
    for room in rooms {
        let head = room.journal.last().map_or(0, |event| event.seq);
        let entries = room.ledger.entries();
        for (transport, reader) in ReaderTransport::ALL.iter().zip(&entries.readers) {
            let at = reader.position;
            check.expect(at == head, || {
                format!("{}: {transport:?} is at {at}, the journal at {head}", room.ledger.room)
            });
        }
        let count = u64::try_from(entries.delivered.len()).unwrap_or(u64::MAX);
        check.expect(count == head, || format!("{}: {count} of {head} events were shown", room.ledger.room));
    }
    check.examined = format!("{} readers", rooms.len() * ReaderTransport::ALL.len());
    check
}
