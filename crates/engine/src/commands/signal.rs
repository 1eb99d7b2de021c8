//! Sends signals to runs: a signal is stored first, and then carried out by the server that holds the run.

use crate::{Engine, EngineError};
use domain::{
    audit::AuditEntry,
    ids::{RoomId, RunId},
    signal::{MAX_SIGNAL_BYTES, Signal, SignalBody, SignalOutcome},
};
use std::time::Duration;
use store::journal::{Commit, Guard, RowChange};
use tokio::time::{Instant, timeout};

/// The notification may be missed, so the outcome is polled too.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

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
        // Registers interest first, then reads: an outcome in between is not missed.
        let settled = self.store().watch_settled_signals(signal.run_id);
        loop {
            if let Some(outcome) = self.store().signal_outcome(signal.id).await? {
                return Ok(Some(outcome));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            drop(timeout(POLL_INTERVAL.min(left), settled.changed()).await);
        }
    }
}
