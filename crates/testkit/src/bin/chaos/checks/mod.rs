//! The properties that must hold after any number of kills. Each check compares the final journal, read through the
//! API, with the ledgers kept outside the server, or with itself; `tables` reads what no endpoint shows.

mod messages;
mod promises;
mod runs;
mod signals;
mod tables;
mod tapes;
mod texts;
mod work;

pub use promises::{BrokenPromise, compare};
pub use tables::StoredTables;
pub use work::{ChaosTally, EVENTS_A_ROOM};

use crate::{ledger::RoomLedger, report::ChaosCheck};
use domain::{message::Message, position::Seq, run::Run};
use std::sync::Arc;
use testkit::client::{SeenEvent, TestClient, TestClientError};

const EVENTS_A_PAGE: usize = 2_000;
const MESSAGES_A_PAGE: usize = 100;

/// Everything known about a room at the end of the test.
pub struct RoomRecord {
    pub ledger: Arc<RoomLedger>,
    pub journal: Vec<SeenEvent>,
    pub messages: Vec<Message>,
    pub messages_at: Seq,
    pub runs: Vec<Run>,
}

impl RoomRecord {
    pub async fn read(api: &TestClient, ledger: Arc<RoomLedger>) -> Result<Self, TestClientError> {
        let room = ledger.room;
        let journal = api.journal(room, EVENTS_A_PAGE).await?;
        let mut messages: Vec<Message> = Vec::new();
        let messages_at = loop {
            let page = api.messages(room, messages.first().map(|message| message.seq), MESSAGES_A_PAGE).await?;
            if page.messages.is_empty() {
                break page.head;
            }
            messages.splice(0..0, page.messages);
        };
        let mut runs: Vec<Run> = Vec::new();
        for event in &journal {
            if let (Some(run), domain::event::EventType::RunQueued) = (event.run_id, event.kind) {
                runs.push(api.run(run).await?);
            }
        }
        Ok(Self { ledger, journal, messages, messages_at, runs })
    }
}

/// Runs all checks. `early` holds faults of the first two checks that were found between cycles.
pub fn all(
    rooms: &[RoomRecord],
    stored: &StoredTables,
    early: Vec<BrokenPromise>,
    tally: &ChaosTally,
) -> Vec<ChaosCheck> {
    let mut checks = promises::checks(rooms, early);
    checks.push(promises::gapless(rooms));
    checks.extend(runs::checks(rooms));
    checks.push(texts::check(rooms));
    checks.push(messages::check(rooms));
    checks.extend(work::checks(rooms, tally));
    checks.push(signals::check(rooms));
    checks.extend(tables::checks(rooms, stored));
    checks.extend(tapes::checks(rooms));
    checks.sort_by_key(ChaosCheck::number);
    checks
}
