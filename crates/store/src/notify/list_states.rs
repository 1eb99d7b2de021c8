//! Notices changed lists without a notification: by the number of objects in a list and its newest change.

use super::OwnerList;
use crate::{error::Result, row::row};
use domain::owner::Owner;
use sqlx::PgPool;
use std::collections::HashMap;

/// The lists as they were at the last poll.
#[derive(Debug, Default)]
pub(super) struct ListStates(HashMap<(String, OwnerList), (i64, i64)>);

row! {
    struct ListStateRow {
        list: String,
        owner: String,
        objects: i64,
        changed_at: i64,
    }
}

const STATES: &str = "\
    SELECT 'rooms' AS list, owner, COUNT(*) AS objects, MAX(updated_at) AS changed_at FROM rooms \
    WHERE owner = ANY($1) AND deleted_at IS NULL GROUP BY owner UNION ALL \
    SELECT 'agents', owner, COUNT(*), MAX(updated_at) FROM agents \
    WHERE owner = ANY($1) AND deleted_at IS NULL GROUP BY owner UNION ALL \
    SELECT 'skills', owner, COUNT(*), MAX(updated_at) FROM skills WHERE owner = ANY($1) GROUP BY owner";

impl ListStates {
    /// Reads the lists of the owners. Returns those that have changed since the last poll, or that were not polled
    /// before.
    pub(super) async fn poll(&mut self, pool: &PgPool, owners: Vec<Owner>) -> Result<Vec<(Owner, OwnerList)>> {
        if owners.is_empty() {
            self.0.clear();
            return Ok(Vec::new());
        }
        let names: Vec<&str> = owners.iter().map(Owner::as_str).collect();
        let rows: Vec<ListStateRow> = sqlx::query_as(STATES).bind(names).fetch_all(pool).await?;
        // A list without objects has no row.
        let mut found: HashMap<(String, OwnerList), (i64, i64)> = HashMap::new();
        for row in rows {
            let list = match row.list.as_str() {
                "rooms" => OwnerList::Rooms,
                "agents" => OwnerList::Agents,
                _ => OwnerList::Skills,
            };
            found.insert((row.owner, list), (row.objects, row.changed_at));
        }
        let mut changed = Vec::new();
        let mut states = HashMap::new();
        for owner in owners {
            for list in [OwnerList::Rooms, OwnerList::Agents, OwnerList::Skills] {
                let key = (owner.as_str().to_owned(), list);
                let state = found.get(&key).copied().unwrap_or_default();
                if self.0.get(&key) != Some(&state) {
                    changed.push((owner.clone(), list));
                }
                states.insert(key, state);
            }
        }
        self.0 = states;
        Ok(changed)
    }
}
