//! The journal's statements on PostgreSQL: whole groups as arrays, one round trip each. Several servers may write, so
//! rows that are read here are locked until the transaction ends.

use super::plan::{CommitPlan, CommitSubjects, GrownJournal, JournalFacts, LeaseState};
use crate::{
    StoreError,
    commit::bind_all,
    error::{signed, unsigned},
};
use domain::{
    event::Event,
    ids::{EventId, RoomId, RunId},
    position::Seq,
};
use sqlx::PgConnection;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

pub(super) async fn load_facts(connection: &mut PgConnection, at: &CommitSubjects) -> Result<JournalFacts, StoreError> {
    // First, because the lock on a room's head also protects its events and its queue.
    let heads = heads(connection, &at.rooms).await?;
    let mut facts = JournalFacts::for_subjects(at);
    facts.unfinished.extend(unfinished(connection, &at.idle_checks).await?);
    add_signals_and_tapes(connection, at, &mut facts).await?;
    Ok(JournalFacts {
        heads,
        stored_events: existing(connection, &at.first_events).await?,
        leases: leases(connection, at).await?,
        used_keys: used(connection, &at.keys).await?,
        ..facts
    })
}

pub(super) async fn store(connection: &mut PgConnection, plan: &CommitPlan) -> Result<(), StoreError> {
    for statement in &plan.statements {
        let done = bind_all!(sqlx::query(statement.sql), &statement.values).execute(&mut *connection).await?;
        if let Some(refusal) = statement.must_change
            && done.rows_affected() == 0
        {
            return Err(refusal.into());
        }
    }
    if plan.grown.is_empty() {
        return Ok(());
    }
    insert(connection, &plan.events()).await?;
    grow(connection, &plan.grown).await
}

async fn heads(connection: &mut PgConnection, rooms: &[RoomId]) -> Result<HashMap<RoomId, Seq>, StoreError> {
    if rooms.is_empty() {
        return Ok(HashMap::new());
    }
    let keys: Vec<Uuid> = rooms.iter().map(|id| id.0).collect();
    let rows: Vec<(Uuid, i64)> =
        sqlx::query_as("SELECT room_id, head FROM journals WHERE room_id = ANY($1) ORDER BY room_id FOR UPDATE")
            .bind(keys)
            .fetch_all(connection)
            .await?;
    rows.into_iter().map(|(id, head)| Ok((RoomId(id), unsigned(head)?))).collect()
}

async fn existing(connection: &mut PgConnection, ids: &[EventId]) -> Result<HashMap<EventId, Seq>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let keys: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows: Vec<(Uuid, i64)> =
        sqlx::query_as("SELECT id, seq FROM events WHERE id = ANY($1)").bind(keys).fetch_all(connection).await?;
    rows.into_iter().map(|(id, seq)| Ok((EventId(id), unsigned(seq)?))).collect()
}

async fn leases(connection: &mut PgConnection, at: &CommitSubjects) -> Result<HashMap<RunId, LeaseState>, StoreError> {
    if at.runs.is_empty() && at.stopping.is_empty() {
        return Ok(HashMap::new());
    }
    // All at once and in the same order as in `queue`, to avoid deadlocks.
    let rows: Vec<(Uuid, i64, Option<String>)> = sqlx::query_as(
        "SELECT run_id, fence, holder FROM queue WHERE run_id = ANY($1) OR room_id = ANY($2) \
         ORDER BY run_id FOR UPDATE",
    )
    .bind(at.runs.iter().map(|id| id.0).collect::<Vec<Uuid>>())
    .bind(at.stopping.iter().map(|id| id.0).collect::<Vec<Uuid>>())
    .fetch_all(connection)
    .await?;
    let lease = |(id, fence, holder)| Ok((RunId(id), LeaseState { fence: unsigned(fence)?, holder }));
    rows.into_iter().map(lease).collect()
}

async fn unfinished(connection: &mut PgConnection, rooms: &[RoomId]) -> Result<HashMap<RoomId, u64>, StoreError> {
    if rooms.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(Uuid, i64)> =
        sqlx::query_as("SELECT room_id, COUNT(*) FROM queue WHERE room_id = ANY($1) GROUP BY room_id")
            .bind(rooms.iter().map(|id| id.0).collect::<Vec<Uuid>>())
            .fetch_all(connection)
            .await?;
    rows.into_iter().map(|(id, count)| Ok((RoomId(id), unsigned(count)?))).collect()
}

/// The signals and plans that the end of a run depends on, in one round trip.
async fn add_signals_and_tapes(
    connection: &mut PgConnection,
    at: &CommitSubjects,
    facts: &mut JournalFacts,
) -> Result<(), StoreError> {
    if at.signal_runs.is_empty() && at.tape_rooms.is_empty() {
        return Ok(());
    }
    let rows: Vec<(Uuid, Option<Uuid>, Option<String>, i64)> = sqlx::query_as(
        "SELECT run_id, id, kind, 0::bigint FROM signals WHERE run_id = ANY($1) AND outcome IS NULL \
         UNION ALL SELECT room_id, NULL, NULL, version FROM tapes WHERE room_id = ANY($2)",
    )
    .bind(at.signal_runs.iter().map(|id| id.0).collect::<Vec<Uuid>>())
    .bind(at.tape_rooms.iter().map(|id| id.0).collect::<Vec<Uuid>>())
    .fetch_all(connection)
    .await?;
    for (key, signal, kind, version) in rows {
        match signal.zip(kind) {
            Some((signal, kind)) => facts.add_signal(RunId(key), signal, &kind),
            None => drop(facts.tapes.insert(RoomId(key), unsigned(version)?)),
        }
    }
    Ok(())
}

async fn used(
    connection: &mut PgConnection,
    keys: &[(String, String)],
) -> Result<HashSet<(String, String)>, StoreError> {
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let (owners, keys): (Vec<&str>, Vec<&str>) = keys.iter().map(|(owner, key)| (&**owner, &**key)).unzip();
    let rows: Vec<(String, String)> = sqlx::query_as(
        "SELECT i.owner, i.key FROM idempotency i \
         JOIN UNNEST($1::text[], $2::text[]) AS asked (owner, key) ON i.owner = asked.owner AND i.key = asked.key",
    )
    .bind(owners)
    .bind(keys)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().collect())
}

async fn insert(connection: &mut PgConnection, events: &[&Event]) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO events (room_id, seq, id, kind, run_id, agent_id, created_at, data, raw) \
         SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::uuid[], $6::uuid[], \
         $7::bigint[], $8::text[], $9::text[])";
    sqlx::query(SQL)
        .bind(events.iter().map(|event| event.room_id.0).collect::<Vec<Uuid>>())
        .bind(events.iter().map(|event| signed(event.seq)).collect::<Vec<i64>>())
        .bind(events.iter().map(|event| event.id.0).collect::<Vec<Uuid>>())
        .bind(events.iter().map(|event| event.kind.as_str()).collect::<Vec<&str>>())
        .bind(events.iter().map(|event| event.run_id.map(|id| id.0)).collect::<Vec<Option<Uuid>>>())
        .bind(events.iter().map(|event| event.agent_id.map(|id| id.0)).collect::<Vec<Option<Uuid>>>())
        .bind(events.iter().map(|event| event.created_at.as_millis()).collect::<Vec<i64>>())
        .bind(events.iter().map(|event| event.data.as_str()).collect::<Vec<&str>>())
        .bind(events.iter().map(|event| event.raw.as_deref()).collect::<Vec<Option<&str>>>())
        .execute(connection)
        .await?;
    Ok(())
}

async fn grow(connection: &mut PgConnection, journals: &[GrownJournal]) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO journals (room_id, head, bytes) SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::bigint[]) \
         ON CONFLICT (room_id) DO UPDATE SET head = excluded.head, bytes = journals.bytes + excluded.bytes",
    )
    .bind(journals.iter().map(|journal| journal.room.0).collect::<Vec<Uuid>>())
    .bind(journals.iter().map(|journal| signed(journal.head)).collect::<Vec<i64>>())
    .bind(journals.iter().map(|journal| signed(journal.bytes)).collect::<Vec<i64>>())
    .execute(connection)
    .await?;
    Ok(())
}
