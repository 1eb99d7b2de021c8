//! Whether the database can be opened and written.

use super::{Finding, State};
use crate::{
    cli::beside,
    config::{Config, Database},
};
use std::time::Duration;

const WHAT: &str = "database";
const DEADLINE: Duration = Duration::from_secs(10);

pub async fn check(config: &Config) -> Finding {
    let database = &config.store.database;
    // Looking must not make one.
    if let Database::Sqlite { path } = database
        && !path.exists()
    {
        return Finding::new(WHAT, State::Ok, format!("{database}, made at the first start"));
    }
    let writable = async {
        let store = beside::open(config).await?;
        let written = store.check_writable().await;
        store.close().await;
        anyhow::Ok(written?)
    };
    match tokio::time::timeout(DEADLINE, writable).await {
        Ok(Ok(())) => Finding::new(WHAT, State::Ok, format!("{database}, writable and as durable as it must be")),
        Ok(Err(error)) => Finding::new(WHAT, State::Broken, format!("{database}: {error:#}")),
        Err(_) => Finding::new(WHAT, State::Broken, format!("{database} did not answer in {} s", DEADLINE.as_secs())),
    }
}
