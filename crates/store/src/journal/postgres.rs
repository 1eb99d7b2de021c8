//! The journal's statements on PostgreSQL: whole groups as arrays, one round trip each. Several servers may write, so
//! what is read here is locked until the transaction ends.

use super::apply::{Connection, Context, Facts, Lease, Subjects};
use super::commit::Change;
use crate::{
    Error,
    error::{signed, unsigned},
};
use domain::{
    event::Event,
    ids::{EventId, RoomId, RunId},
    position::Seq,
};
use sqlx::PgConnection;
use std::collections::HashMap;
use uuid::Uuid;

impl Connection for PgConnection {
    async fn look(&mut self, at: &Subjects) -> Result<Facts, Error> {
        let heads = heads(self, &at.rooms).await?;
        Ok(Facts { heads, known: existing(self, &at.events).await?, leases: leases(self, at).await? })
    }

    async fn is_idle(&mut self, room: RoomId) -> Result<bool, Error> {
        let unfinished: Option<i64> = sqlx::query_scalar("SELECT queued_seq FROM queue WHERE room_id = $1 LIMIT 1")
            .bind(room.0)
            .fetch_optional(self)
            .await?;
        Ok(unfinished.is_none())
    }

    async fn append(&mut self, events: &[Event], heads: &[(RoomId, Seq)]) -> Result<(), Error> {
        insert(self, events).await?;
        set_heads(self, heads).await
    }

    async fn change(&mut self, context: Context, change: &Change) -> Result<(), Error> {
        crate::catalog::changes::postgres(self, context, change).await
    }
}

async fn heads(connection: &mut PgConnection, rooms: &[RoomId]) -> Result<HashMap<RoomId, Seq>, Error> {
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

async fn existing(connection: &mut PgConnection, ids: &[EventId]) -> Result<HashMap<EventId, Seq>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let keys: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows: Vec<(Uuid, i64)> =
        sqlx::query_as("SELECT id, seq FROM events WHERE id = ANY($1)").bind(keys).fetch_all(connection).await?;
    rows.into_iter().map(|(id, seq)| Ok((EventId(id), unsigned(seq)?))).collect()
}

async fn leases(connection: &mut PgConnection, at: &Subjects) -> Result<HashMap<RunId, Lease>, Error> {
    if at.runs.is_empty() && at.stopping.is_empty() {
        return Ok(HashMap::new());
    }
    // In the order in which `queue` locks them too, and all at once: nobody waits in a ring.
    let rows: Vec<(Uuid, i64, Option<String>)> = sqlx::query_as(
        "SELECT run_id, fence, holder FROM queue WHERE run_id = ANY($1) OR room_id = ANY($2) \
         ORDER BY run_id FOR UPDATE",
    )
    .bind(at.runs.iter().map(|id| id.0).collect::<Vec<Uuid>>())
    .bind(at.stopping.iter().map(|id| id.0).collect::<Vec<Uuid>>())
    .fetch_all(connection)
    .await?;
    let lease = |(id, fence, holder)| Ok((RunId(id), Lease { fence: unsigned(fence)?, holder }));
    rows.into_iter().map(lease).collect()
}

async fn insert(connection: &mut PgConnection, events: &[Event]) -> Result<(), Error> {
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

async fn set_heads(connection: &mut PgConnection, heads: &[(RoomId, Seq)]) -> Result<(), Error> {
    sqlx::query(
        "INSERT INTO journals (room_id, head) SELECT * FROM UNNEST($1::uuid[], $2::bigint[]) \
         ON CONFLICT (room_id) DO UPDATE SET head = excluded.head",
    )
    .bind(heads.iter().map(|(room, _)| room.0).collect::<Vec<Uuid>>())
    .bind(heads.iter().map(|(_, head)| signed(*head)).collect::<Vec<i64>>())
    .execute(connection)
    .await?;
    Ok(())
}
