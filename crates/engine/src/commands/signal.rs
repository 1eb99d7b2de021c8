//! Sends signals to runs: a signal is stored first, and then carried out by the server that holds the run.

use crate::{Engine, EngineError};
use domain::{
    audit::AuditEntry,
    ids::{RoomId, RunId},
    signal::{MAX_SIGNAL_BYTES, Signal, SignalBody, SignalOutcome},
};
use std::{future::pending, time::Duration};
use store::journal::{Commit, Guard, RowChange};
use tokio::time::{Instant, timeout};

/// Another server's notification may not arrive here, so the outcome is polled too.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

impl Engine {
    /// Stores a signal and wakes the run. Fails with `RunEnded` if the run has ended. `entry` says who sent it, unless
    /// the change that caused it has an entry of its own.
    pub(super) async fn send_signal(
        &self,
        room: RoomId,
        run: RunId,
        body: SignalBody,
        entry: Option<AuditEntry>,
    ) -> Result<Signal, EngineError> {
        let bytes = serde_json::to_string(&body).map_err(store::StoreError::from)?.len();
        if bytes > MAX_SIGNAL_BYTES {
            return Err(EngineError::Invalid(format!("a request to a run has at most {MAX_SIGNAL_BYTES} bytes")));
        }
        let signal = Signal::new(run, body);
        let mut changes = vec![RowChange::StoreSignal { signal: signal.clone() }];
        changes.extend(entry.map(RowChange::Audit));
        self.store().commit(Commit { room_id: room, guard: Guard::None, events: Vec::new(), changes }).await?;
        self.active_runs().wake(run);
        Ok(signal)
    }

    /// Waits until the signal is settled. Returns `None` if it is not within `limit`; it stays stored.
    pub(super) async fn wait_for_outcome(
        &self,
        signal: &Signal,
        limit: Duration,
    ) -> Result<Option<SignalOutcome>, EngineError> {
        let deadline = Instant::now() + limit;
        loop {
            let notify = self.active_runs().settled(signal.run_id);
            let settled = async {
                match &notify {
                    Some(notify) => notify.notified().await,
                    // The run is on another server, or has ended.
                    None => pending().await,
                }
            };
            tokio::pin!(settled);
            // Registers interest first, then reads: an outcome in between is not missed.
            let registered = timeout(Duration::ZERO, settled.as_mut()).await;
            if let Some(outcome) = self.store().signal_outcome(signal.id).await? {
                return Ok(Some(outcome));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            if registered.is_err() {
                drop(timeout(POLL_INTERVAL, settled).await);
            }
        }
    }
}
