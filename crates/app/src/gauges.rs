//! Gauges that are read from time to time: the queue, and the programs of this server.

use std::time::Duration;
use store::Store;
use tokio_util::sync::CancellationToken;
use workbench::process::Supervisor;

const INTERVAL: Duration = Duration::from_secs(5);

/// Returns when it is cancelled.
pub async fn update(store: Store, supervisor: Supervisor, cancel: CancellationToken) {
    while cancel.run_until_cancelled(update_once(&store, &supervisor)).await.is_some() {
        if cancel.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

async fn update_once(store: &Store, supervisor: &Supervisor) {
    metrics::gauge!("greenroom_processes").set(supervisor.running() as f64);
    match store.queue_depth().await {
        Ok(depth) => {
            metrics::gauge!("greenroom_queued_runs").set(depth.waiting as f64);
            metrics::gauge!("greenroom_running_runs").set(depth.held as f64);
        }
        Err(error) => tracing::debug!(%error, "cannot read the depth of the queue"),
    }
}
