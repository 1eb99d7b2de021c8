//! Audit entries of which there may be many at once: refused requests, started programs. The first of a kind is stored
//! soon; further ones within a minute are added to its count, so that a flood is one row (and one write every few seconds).

use crate::Store;
use domain::{
    audit::{AuditAction, CountedAuthor, CountedEntry},
    owner::Owner,
};
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

/// How long entries of a kind are counted in one row.
const PERIOD: Duration = Duration::from_secs(60);
const WRITE_INTERVAL: Duration = Duration::from_secs(2);
/// Kinds that are counted at once. More addresses than this are counted together, as one without an address.
const MAX_KINDS: usize = 256;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct EntryKind {
    action: AuditAction,
    workspace: Owner,
    by: Option<CountedAuthor>,
    /// An IPv6 address by its /64, because one customer has a whole /64.
    address: Option<IpAddr>,
    /// `None` for refused requests without a credential: who tries every path is one row.
    object_id: Option<String>,
}

impl EntryKind {
    fn of(entry: &CountedEntry) -> Self {
        let address = entry.address.map(|address| match address.to_canonical() {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
            ip => ip,
        });
        let is_anonymous = entry.action == AuditAction::Refuse && entry.by.is_none();
        let object_id = (!is_anonymous).then(|| entry.object_id.clone());
        Self { action: entry.action, workspace: entry.workspace.clone(), by: entry.by.clone(), address, object_id }
    }
}

#[derive(Debug)]
struct CountedRow {
    entry: CountedEntry,
    since: Instant,
    /// The id of its row, once it is stored.
    id: Option<i64>,
    unwritten: u64,
}

#[derive(Debug, Default)]
pub(crate) struct CountedAudit {
    rows: Mutex<HashMap<EntryKind, CountedRow>>,
    is_new: Notify,
}

impl CountedAudit {
    fn note(&self, mut entry: CountedEntry, now: Instant) {
        let mut rows = self.lock();
        let mut kind = EntryKind::of(&entry);
        if !rows.contains_key(&kind) && rows.len() >= MAX_KINDS {
            entry = CountedEntry { by: None, address: None, workspace: Owner::local(), detail: None, ..entry };
            kind = EntryKind { object_id: None, ..EntryKind::of(&entry) };
        }
        let row = rows.entry(kind).or_insert_with(|| {
            self.is_new.notify_one();
            CountedRow { entry, since: now, id: None, unwritten: 0 }
        });
        row.unwritten += 1;
    }

    /// What must be written now. Rows that are complete are forgotten.
    fn take_unwritten(&self, now: Instant) -> Vec<(EntryKind, CountedEntry, Option<i64>, u64)> {
        let mut rows = self.lock();
        let unwritten = rows.iter_mut().filter(|(_, row)| row.unwritten > 0);
        let taken = unwritten
            .map(|(kind, row)| (kind.clone(), row.entry.clone(), row.id, std::mem::take(&mut row.unwritten)))
            .collect();
        rows.retain(|_, row| now.duration_since(row.since) < PERIOD);
        taken
    }

    fn set_id(&self, kind: &EntryKind, id: i64) {
        if let Some(row) = self.lock().get_mut(kind) {
            row.id = Some(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<EntryKind, CountedRow>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// Counts an entry; it is stored in the background, within seconds.
    pub fn count_audit(&self, entry: CountedEntry) {
        self.counted_audit().note(entry, Instant::now());
    }
}

/// Stores counted entries until it is cancelled, and what is left then.
pub(crate) struct CountedAuditWriter {
    pub store: Store,
}

impl CountedAuditWriter {
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let counted: Arc<CountedAudit> = Arc::clone(self.store.counted_audit());
        loop {
            let is_cancelled = tokio::select! {
                () = cancel.cancelled() => true,
                () = counted.is_new.notified() => false,
                () = tokio::time::sleep(WRITE_INTERVAL) => false,
            };
            for (kind, entry, id, count) in counted.take_unwritten(Instant::now()) {
                if let Err(error) = self.write(&counted, &kind, &entry, id, count).await {
                    // Not tried again: a log of refusals must not pile up while the database is away.
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        action = entry.action.as_str(),
                        count,
                        "could not store entries of the audit log"
                    );
                }
            }
            if is_cancelled {
                return;
            }
        }
    }

    async fn write(
        &self,
        counted: &CountedAudit,
        kind: &EntryKind,
        entry: &CountedEntry,
        id: Option<i64>,
        count: u64,
    ) -> crate::error::Result<()> {
        match id {
            Some(id) => self.store.add_to_count(id, count).await,
            None => {
                counted.set_id(kind, self.store.store_counted(entry, count).await?);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CountedAudit, MAX_KINDS, PERIOD};
    use domain::{
        audit::{AuditAction, AuditedObject, CountedEntry},
        owner::Owner,
    };
    use std::net::IpAddr;
    use tokio::time::Instant;

    fn refusal(address: &str, path: &str) -> CountedEntry {
        CountedEntry {
            workspace: Owner::local(),
            by: None,
            address: Some(address.parse().unwrap()),
            action: AuditAction::Refuse,
            object: AuditedObject::Request,
            object_id: path.to_owned(),
            detail: None,
        }
    }

    #[test]
    fn m10_a_flood_is_one_row_per_minute_and_address() {
        let (counted, now) = (CountedAudit::default(), Instant::now());
        for n in 0..1000 {
            counted.note(refusal("192.0.2.1", &format!("/{n}")), now);
            counted.note(refusal(&format!("2001:db8::{n:x}"), "/"), now);
        }
        let mut first = counted.take_unwritten(now);
        first.sort_by_key(|(_, entry, ..)| entry.address);
        let rows: Vec<_> = first.iter().map(|(_, entry, id, count)| (entry.object_id.as_str(), *id, *count)).collect();
        assert_eq!(rows, [("/0", None, 1000), ("/", None, 1000)]);
        counted.set_id(&first[0].0, 7);
        counted.note(refusal("192.0.2.1", "/more"), now);
        let more = counted.take_unwritten(now);
        assert_eq!(more.iter().map(|(_, _, id, count)| (*id, *count)).collect::<Vec<_>>(), [(Some(7), 1)]);
        assert!(counted.take_unwritten(now + PERIOD).is_empty());
        counted.note(refusal("192.0.2.1", "/later"), now + PERIOD);
        assert_eq!(counted.take_unwritten(now + PERIOD)[0].2, None, "a new row");
    }

    #[test]
    fn m10_many_addresses_take_bounded_memory_and_rows() {
        let (counted, now) = (CountedAudit::default(), Instant::now());
        for n in 0..10_000_u32 {
            counted.note(CountedEntry { address: Some(IpAddr::V4(n.into())), ..refusal("::1", "/") }, now);
        }
        let taken = counted.take_unwritten(now);
        assert_eq!(taken.len(), MAX_KINDS + 1);
        let others = taken.iter().find(|(_, entry, ..)| entry.address.is_none()).unwrap();
        assert_eq!(others.3, 10_000 - MAX_KINDS as u64);
    }
}
