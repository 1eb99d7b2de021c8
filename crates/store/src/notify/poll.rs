//! Reads what notifications would have reported: the heads of the rooms that are followed or watched on this server,
//! the watched lists, and, through the worker and the senders, the queue and the signals of runs.

use super::{Topic, list_states::ListStates};
use crate::{
    database::Database,
    error::{Result, unsigned},
    open::Store,
};
use domain::ids::RoomId;
use sqlx::PgPool;
use uuid::Uuid;

/// The number of rooms per query.
const ROOMS_PER_QUERY: usize = 10_000;

impl Store {
    /// Wakes everything on this server that may have missed a notification. Only PostgreSQL has several servers.
    pub(super) async fn poll_everything(&self, lists: &mut ListStates) -> Result<()> {
        let Database::Postgres(pool) = self.database() else { return Ok(()) };
        let hub = self.notify_hub();
        hub.wake_worker_and_senders();
        poll_heads(self, pool).await?;
        for (owner, list) in lists.poll(pool, hub.owners()).await? {
            hub.deliver(&Topic::List { owner, list });
        }
        Ok(())
    }

    pub(super) async fn poll_heads(&self) -> Result<()> {
        match self.database() {
            Database::Postgres(pool) => poll_heads(self, pool).await,
            Database::Sqlite { .. } => Ok(()),
        }
    }
}

async fn poll_heads(store: &Store, pool: &PgPool) -> Result<()> {
    let hub = store.notify_hub();
    for rooms in hub.rooms().chunks(ROOMS_PER_QUERY) {
        let rooms: Vec<Uuid> = rooms.iter().map(|room| room.0).collect();
        let heads: Vec<(Uuid, i64)> = sqlx::query_as("SELECT room_id, head FROM journals WHERE room_id = ANY($1)")
            .bind(rooms)
            .fetch_all(pool)
            .await?;
        for (room, head) in heads {
            hub.raise_head(RoomId(room), unsigned(head)?);
        }
    }
    Ok(())
}
