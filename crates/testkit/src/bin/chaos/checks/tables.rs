//! Checks 14 and 15: the tables that no endpoint shows, read from the database after the last kill.

use super::RoomRecord;
use crate::report::ChaosCheck;
use domain::event::{EventBody, EventType};
use sqlx::Connection as _;
use std::{collections::BTreeMap, path::Path};

/// What is stored beside the journals.
pub struct StoredTables {
    /// The objects of the audit log, by action and kind, and how many entries each has.
    audit: BTreeMap<(String, String), BTreeMap<String, usize>>,
    /// Stored answers to approvals.
    answers: usize,
    signals: usize,
    open_signals: usize,
    tapes: usize,
}

impl StoredTables {
    /// The server must not be running.
    pub async fn read(data: &Path) -> anyhow::Result<Self> {
        let url = format!("sqlite://{}", data.join("greenroom.db").display());
        let mut database = sqlx::SqliteConnection::connect(&url).await?;
        let mut audit: BTreeMap<(String, String), BTreeMap<String, usize>> = BTreeMap::new();
        let entries: Vec<(String, String, String)> =
            sqlx::query_as("SELECT action, object, object_id FROM audit").fetch_all(&mut database).await?;
        for (action, object, id) in entries {
            *audit.entry((action, object)).or_default().entry(id).or_default() += 1;
        }
        let mut counts = [0; 4];
        for (count, sql) in counts.iter_mut().zip([
            "SELECT COUNT(*) FROM signals WHERE kind = 'answer_approval'",
            "SELECT COUNT(*) FROM signals",
            "SELECT COUNT(*) FROM signals WHERE outcome IS NULL",
            "SELECT COUNT(*) FROM tapes",
        ]) {
            let rows: i64 = sqlx::query_scalar(sql).fetch_one(&mut database).await?;
            *count = usize::try_from(rows)?;
        }
        database.close().await?;
        let [answers, signals, open_signals, tapes] = counts;
        Ok(Self { audit, answers, signals, open_signals, tapes })
    }

    fn audited(&self, action: &str, object: &str) -> BTreeMap<String, usize> {
        self.audit.get(&(action.to_owned(), object.to_owned())).cloned().unwrap_or_default()
    }
}

pub fn checks(rooms: &[RoomRecord], stored: &StoredTables) -> Vec<ChaosCheck> {
    let mut open = ChaosCheck::new("14 no signal and no plan is left when all runs have ended");
    open.expect(stored.open_signals == 0, || format!("{} signals are not settled", stored.open_signals));
    open.expect(stored.tapes == 0, || format!("{} rooms have a plan and no run", stored.tapes));
    open.expect(stored.signals > 0, || "no signal was stored".into());
    open.examined = format!("{} signals", stored.signals);
    vec![open, audit(rooms, stored)]
}

fn audit(rooms: &[RoomRecord], stored: &StoredTables) -> ChaosCheck {
    let mut check = ChaosCheck::new("15 every change has one audit entry, and every entry its change");
    let mut posted: BTreeMap<String, usize> = BTreeMap::new();
    for room in rooms {
        for event in room.journal.iter().filter(|event| event.kind == EventType::MessagePosted) {
            match event.body() {
                Ok(EventBody::MessagePosted(event)) => *posted.entry(event.message_id.to_string()).or_default() += 1,
                other => check.faults.push(format!("{other:?}")),
            }
        }
    }
    let messages = stored.audited("post", "message");
    for id in posted.keys().filter(|id| !messages.contains_key(*id)) {
        check.faults.push(format!("message {id} has no audit entry"));
    }
    for (id, count) in &messages {
        check.expect(posted.contains_key(id), || format!("the audit log has the message {id}, which is not stored"));
        check.expect(*count == 1, || format!("message {id} has {count} audit entries"));
    }
    let created: BTreeMap<String, usize> = rooms.iter().map(|room| (room.ledger.room.to_string(), 1)).collect();
    let audited = stored.audited("create", "room");
    check.expect(audited == created, || format!("created rooms: {created:?}, in the audit log: {audited:?}"));
    let approvals: usize = stored.audited("approve", "approval").values().sum();
    check.expect(approvals == stored.answers, || {
        format!("{} answers to approvals are stored, the audit log has {approvals}", stored.answers)
    });
    check.examined = format!("{} messages, {} rooms, {approvals} approvals", messages.len(), created.len());
    check
}
