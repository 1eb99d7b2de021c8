//! What must hold after any number of kills. Each check compares the final journal, read through the API, with the
//! ledgers that were kept outside the server, or with itself.

mod messages;
mod promises;
mod runs;
mod texts;
mod work;

pub use promises::{Broken, compare};
pub use work::{EVENTS_A_ROOM, Tally};

use crate::{ledger::Ledger, report::Check};
use domain::{message::Message, position::Seq, run::Run};
use std::sync::Arc;
use testkit::client::{Api, Error, SeenEvent};

const EVENTS_A_PAGE: usize = 2_000;
const MESSAGES_A_PAGE: usize = 100;

/// All there is to know about a room at the end.
pub struct Room {
    pub ledger: Arc<Ledger>,
    pub journal: Vec<SeenEvent>,
    pub messages: Vec<Message>,
    pub messages_at: Seq,
    pub runs: Vec<Run>,
}

impl Room {
    pub async fn read(api: &Api, ledger: Arc<Ledger>) -> Result<Self, Error> {
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

/// `early` are faults of the first two checks that were found between cycles.
pub fn all(rooms: &[Room], early: Vec<Broken>, tally: &Tally) -> Vec<Check> {
    let mut checks = promises::checks(rooms, early);
    checks.push(promises::gapless(rooms));
    checks.extend(runs::checks(rooms));
    checks.push(texts::check(rooms));
    checks.push(messages::check(rooms));
    checks.extend(work::checks(rooms, tally));
    checks.sort_by_key(Check::number);
    checks
}
