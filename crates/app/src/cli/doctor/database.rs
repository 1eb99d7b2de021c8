//! Whether the database can be opened and written.

use super::{Finding, State};
use crate::{
    cli::beside,
    config::{Config, Database},
};
use std::time::Duration;
use store::Store;

const WHAT: &str = "database";
const GOOD: &str = "writable and as durable as it must be";
const DEADLINE: Duration = Duration::from_secs(10);

pub async fn check(config: &Config) -> Finding {
    let database = &config.store.database;
    // Looking must not make one.
    if let Database::Sqlite { path } = database
        && !path.exists()
    {
        return Finding::new(WHAT, State::Ok, "made at the first start").at(database);
    }
    let writable = async {
        let store = beside::open(config).await?;
        let written = store.check_writable().await;
        store.close().await;
        anyhow::Ok(written?)
    };
    let finding = match tokio::time::timeout(DEADLINE, writable).await {
        Ok(Ok(())) => Finding::new(WHAT, State::Ok, GOOD),
        Ok(Err(error)) => Finding::new(WHAT, State::Broken, format!("{error:#}")),
        Err(_) => Finding::new(WHAT, State::Broken, format!("no answer in {} s", DEADLINE.as_secs())),
    };
    finding.at(database)
}

/// The same of a server that is up, by its own connections.
pub async fn check_served(store: &Store) -> Finding {
    match tokio::time::timeout(DEADLINE, store.check_writable()).await {
        Ok(Ok(())) => Finding::new(WHAT, State::Ok, GOOD),
        Ok(Err(error)) => {
            // What the database says may name places and people.
            tracing::warn!(%error, "the database cannot be written");
            Finding::new(WHAT, State::Broken, "it cannot be written now").advise("see the server's log")
        }
        Err(_) => Finding::new(WHAT, State::Broken, format!("no answer in {} s", DEADLINE.as_secs())),
    }
}
