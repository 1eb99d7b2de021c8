//! LISTEN and NOTIFY. All servers use one channel: before PostgreSQL 19 every notification wakes every listener of the
//! database, whatever its channel. A notification is a transaction of its own, after the commit of the data and on
//! another connection, because a commit with a NOTIFY holds a lock that all of them share.

use super::relay::{Relay, RelaySubscription};
use crate::{StoreError, error::Result};
use sqlx::{
    Executor as _, PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use std::time::Duration;

const CHANNEL: &str = "greenroom";
/// One connection sends, one listens; two more replace them while lost ones are still being closed.
const CONNECTIONS: u32 = 4;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct PostgresRelay {
    pool: PgPool,
}

impl PostgresRelay {
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        // A lost notification only costs time, so that sending one need not wait for the disk.
        let options = options.application_name("greenroom-notify").options([("synchronous_commit", "off")]);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(None)
            .max_lifetime(None)
            // Failed messages are sent again.
            .test_before_acquire(false)
            .connect_lazy_with(options);
        Self { pool }
    }
}

impl Relay for PostgresRelay {
    type Subscription = PostgresSubscription;

    async fn send(&self, payloads: Vec<String>) -> Result<()> {
        sqlx::query("SELECT pg_notify($1, payload) FROM UNNEST($2::text[]) AS payload")
            .bind(CHANNEL)
            .bind(payloads)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    async fn subscribe(&self) -> Result<PostgresSubscription> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        // `service` reconnects, so that it knows when messages were lost.
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(PostgresSubscription { listener })
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

pub(crate) struct PostgresSubscription {
    listener: PgListener,
}

impl RelaySubscription for PostgresSubscription {
    async fn next(&mut self) -> Result<String> {
        match self.listener.try_recv().await? {
            Some(notification) => Ok(notification.payload().to_owned()),
            None => Err(StoreError::unavailable("PostgreSQL closed the listening connection")),
        }
    }

    async fn check(&mut self) -> Result<()> {
        self.listener.execute("SELECT 1").await?;
        Ok(())
    }
}
