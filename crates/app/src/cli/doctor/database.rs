//! Checks that the database can be opened and written.

use super::{DoctorFinding, FindingState};
use crate::{
    cli::store_access,
    config::{AppConfig, DatabaseSetting},
};
use std::time::Duration;
use store::Store;

const WHAT: &str = "database";
const GOOD: &str = "writable and as durable as it must be";
const DEADLINE: Duration = Duration::from_secs(10);

pub async fn check(config: &AppConfig) -> DoctorFinding {
    let database = &config.store.database;
    // The check must not create the file.
    if let DatabaseSetting::Sqlite { path } = database
        && !path.exists()
    {
        return DoctorFinding::new(WHAT, FindingState::Ok, "made at the first start").at(database);
    }
    let writable = async {
        let store = store_access::open_store(config).await?;
        let written = store.check_writable().await;
        store.close().await;
        anyhow::Ok(written?)
    };
    let finding = match tokio::time::timeout(DEADLINE, writable).await {
        Ok(Ok(())) => DoctorFinding::new(WHAT, FindingState::Ok, GOOD),
        Ok(Err(error)) => DoctorFinding::new(WHAT, FindingState::Broken, format!("{error:#}")),
        Err(_) => DoctorFinding::new(WHAT, FindingState::Broken, format!("no answer in {} s", DEADLINE.as_secs())),
    };
    finding.at(database)
}

/// The same for a running server, with its own connections.
pub async fn check_running_server(store: &Store) -> DoctorFinding {
    match tokio::time::timeout(DEADLINE, store.check_writable()).await {
        Ok(Ok(())) => DoctorFinding::new(WHAT, FindingState::Ok, GOOD),
        Ok(Err(error)) => {
            // Only logged, not returned: the database's error may contain paths and names.
            tracing::warn!(%error, "the database is not writable");
            DoctorFinding::new(WHAT, FindingState::Broken, "it cannot be written now").advise("see the server's log")
        }
        Err(_) => DoctorFinding::new(WHAT, FindingState::Broken, format!("no answer in {} s", DEADLINE.as_secs())),
    }
}
