//! One person per room who allows every tool call that waits for an approval, and records each 204: an accepted answer
//! is a promise.

use crate::ledger::RoomLedger;
use std::{sync::Arc, time::Duration};
use testkit::client::TestClient;
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

const BEFORE_RETRY: Duration = Duration::from_millis(20);

/// Answers until `stop`: a run that waits for an answer would not end.
pub fn start(tasks: &mut JoinSet<()>, api: &TestClient, ledger: &Arc<RoomLedger>, stop: &CancellationToken) {
    let (api, ledger, stop) = (api.clone(), ledger.clone(), stop.clone());
    tasks.spawn(async move {
        stop.run_until_cancelled(answer(&api, &ledger)).await;
    });
}

async fn answer(api: &TestClient, ledger: &RoomLedger) {
    let mut progress = ledger.progress();
    loop {
        while let Some((run, approval)) = ledger.take_requested_approval() {
            match api.allow(run, approval).await {
                Ok(()) => ledger.entries().allowed.push(approval),
                Err(error) if error.is_connection() || error.code() == Some("unavailable") => {
                    sleep(BEFORE_RETRY).await;
                    ledger.entries().requested_approvals.push((run, approval));
                }
                // The kill, a cancel or a new message has ended the run.
                Err(error) if matches!(error.code(), Some("run_ended" | "not_found")) => {}
                Err(error) => ledger.entries().writer_faults.push(error.to_string()),
            }
        }
        if progress.changed().await.is_err() {
            return;
        }
    }
}
