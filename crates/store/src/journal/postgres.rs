//! The journal's statements on PostgreSQL: whole groups as arrays, one round trip each. Several servers may write, so
//! what is read here is locked until the transaction ends.

use super::apply::{Connection, Context, Lease};
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
    async fn existing(&mut self, ids: &[EventId]) -> Result<HashMap<EventId, Seq>, Error> {
        let keys: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows: Vec<(Uuid, i64)> =
            sqlx::query_as("SELECT id, seq FROM events WHERE id = ANY($1)").bind(keys).fetch_all(self).await?;
        rows.into_iter().map(|(id, seq)| Ok((EventId(id), unsigned(seq)?))).collect()
    }

    async fn heads(&mut self, rooms: &[RoomId]) -> Result<HashMap<RoomId, Seq>, Error> {
        let keys: Vec<Uuid> = rooms.iter().map(|id| id.0).collect();
        let rows: Vec<(Uuid, i64)> =
            sqlx::query_as("SELECT room_id, head FROM journals WHERE room_id = ANY($1) ORDER BY room_id FOR UPDATE")
                .bind(keys)
                .fetch_all(self)
                .await?;
        rows.into_iter().map(|(id, head)| Ok((RoomId(id), unsigned(head)?))).collect()
    }

    async fn leases(&mut self, runs: &[RunId], stopping: &[RoomId]) -> Result<HashMap<RunId, Lease>, Error> {
        if runs.is_empty() && stopping.is_empty() {
            return Ok(HashMap::new());
        }
        // In the order in which `queue` locks them too, and all at once: nobody waits in a ring.
        let rows: Vec<(Uuid, i64, Option<String>)> = sqlx::query_as(
            "SELECT run_id, fence, holder FROM queue WHERE run_id = ANY($1) OR room_id = ANY($2) \
             ORDER BY run_id FOR UPDATE",
        )
        .bind(runs.iter().map(|id| id.0).collect::<Vec<Uuid>>())
        .bind(stopping.iter().map(|id| id.0).collect::<Vec<Uuid>>())
        .fetch_all(self)
        .await?;
        let lease = |(id, fence, holder)| Ok((RunId(id), Lease { fence: unsigned(fence)?, holder }));
        rows.into_iter().map(lease).collect()
    }

    async fn is_idle(&mut self, room: RoomId) -> Result<bool, Error> {
        let unfinished: Option<i64> = sqlx::query_scalar("SELECT queued_seq FROM queue WHERE room_id = $1 LIMIT 1")
            .bind(room.0)
            .fetch_optional(self)
            .await?;
        Ok(unfinished.is_none())
    }

    async fn insert(&mut self, events: &[Event]) -> Result<(), Error> {
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
            .execute(self)
            .await?;
        Ok(())
    }

    async fn set_heads(&mut self, heads: &[(RoomId, Seq)]) -> Result<(), Error> {
        if heads.is_empty() {
            return Ok(());
        }
        sqlx::query(
            "INSERT INTO journals (room_id, head) SELECT * FROM UNNEST($1::uuid[], $2::bigint[]) \
             ON CONFLICT (room_id) DO UPDATE SET head = excluded.head",
        )
        .bind(heads.iter().map(|(room, _)| room.0).collect::<Vec<Uuid>>())
        .bind(heads.iter().map(|(_, head)| signed(*head)).collect::<Vec<i64>>())
        .execute(self)
        .await?;
        Ok(())
    }

    async fn change(&mut self, context: Context, change: &Change) -> Result<(), Error> {
        crate::catalog::changes::postgres(self, context, change).await
    }
}
