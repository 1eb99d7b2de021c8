//! Counts what the program of a run uses at the gateway, and lets its next model call wait until the engine has compared the
//! last one with the budgets.
//!
//! ```text
//!  gateway ── record ──▶ RunMeter ── changed, read ──▶ the run's pump
//!          ◀── admit ──           ◀── settle: is a budget used up? ──
//! ```

use super::GatewayRefusal;
use domain::usage::Usage;
use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

/// How long a call waits for the comparison with the budgets. A database that takes longer does not end a run, as elsewhere.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Further models are counted without a name.
const MAX_MODELS: usize = 16;
const MAX_MODEL_BYTES: usize = 200;

/// The model calls of one run at the gateway. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct RunMeter(Arc<MeterState>);

#[derive(Debug, Default)]
struct MeterState {
    metered: Mutex<MeteredCalls>,
    changed: Notify,
    settled: watch::Sender<SettledCalls>,
}

/// What a run's program has done at the gateway so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeteredCalls {
    /// Grows with every change that the engine must see.
    pub version: u64,
    /// The calls that were passed on.
    pub calls: u64,
    /// What ended calls have used, by the name that the API gives its model.
    pub usage: BTreeMap<Option<String>, Usage>,
    /// A call was refused because a budget is used up.
    pub is_refused: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct SettledCalls {
    version: u64,
    is_spent: bool,
}

impl RunMeter {
    /// Waits for a change that is not settled. Cancel safe.
    pub async fn changed(&self) {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            if self.metered().version > self.0.settled.borrow().version {
                return;
            }
            changed.await;
        }
    }

    pub fn read(&self) -> MeteredCalls {
        self.metered().clone()
    }

    /// Everything up to this version was compared with the budgets.
    pub fn settle(&self, version: u64, is_spent: bool) {
        self.0.settled.send_replace(SettledCalls { version, is_spent });
    }

    /// Lets a model call begin, unless a budget is used up. The engine has then ended the run before its program hears of it.
    pub(super) async fn admit(&self) -> Result<(), GatewayRefusal> {
        let version = self.metered().version;
        if !self.is_spent(version).await {
            self.metered().calls += 1;
            return Ok(());
        }
        let version = self.change(|metered| metered.is_refused = true);
        self.is_spent(version).await;
        Err(GatewayRefusal::Budget)
    }

    /// Counts what a call has used.
    pub(super) fn record(&self, model: Option<String>, usage: Usage) {
        self.change(|metered| {
            let model = model.filter(|name| {
                let is_known = metered.usage.contains_key(&Some(name.clone()));
                name.len() <= MAX_MODEL_BYTES && (is_known || metered.usage.len() < MAX_MODELS)
            });
            *metered.usage.entry(model).or_default() += usage;
        });
    }

    /// Waits until this version is settled.
    async fn is_spent(&self, version: u64) -> bool {
        let mut settled = self.0.settled.subscribe();
        match timeout(SETTLE_TIMEOUT, settled.wait_for(|settled| settled.version >= version)).await {
            Ok(Ok(settled)) => settled.is_spent,
            Ok(Err(_)) | Err(_) => {
                tracing::warn!("the usage of a model call was not compared with the budgets in time");
                false
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut MeteredCalls)) -> u64 {
        let version = {
            let mut metered = self.metered();
            change(&mut metered);
            metered.version += 1;
            metered.version
        };
        self.0.changed.notify_waiters();
        version
    }

    fn metered(&self) -> MutexGuard<'_, MeteredCalls> {
        // Every change is a single step, so a panic cannot leave the state inconsistent.
        self.0.metered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_MODELS, RunMeter};
    use crate::gateway::GatewayRefusal;
    use domain::usage::Usage;
    use std::time::Duration;
    use tokio::{task::JoinSet, time::timeout};

    fn tokens(output_tokens: u64) -> Usage {
        Usage { output_tokens, ..Usage::default() }
    }

    /// A model call that wants to begin.
    fn admitting(meter: &RunMeter) -> JoinSet<Result<(), GatewayRefusal>> {
        let (meter, mut calls) = (meter.clone(), JoinSet::new());
        calls.spawn(async move { meter.admit().await });
        calls
    }

    #[tokio::test]
    async fn the_next_call_waits_until_the_last_one_is_settled() {
        let meter = RunMeter::default();
        meter.admit().await.unwrap();
        assert!(timeout(Duration::from_millis(20), meter.changed()).await.is_err(), "nothing was used yet");
        meter.record(Some("m".into()), tokens(7));
        meter.record(Some("m".into()), tokens(1));
        let mut next = admitting(&meter);
        meter.changed().await;
        let metered = meter.read();
        assert_eq!((metered.calls, metered.usage[&Some("m".into())]), (1, tokens(8)));
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(next.try_join_next().is_none());
        meter.settle(metered.version, false);
        next.join_next().await.unwrap().unwrap().unwrap();
        assert_eq!(meter.read().calls, 2);
    }

    #[tokio::test]
    async fn a_spent_budget_refuses_the_next_call_after_the_engine_knows() {
        let meter = RunMeter::default();
        meter.record(None, tokens(7));
        meter.settle(meter.read().version, true);
        let mut refused = admitting(&meter);
        meter.changed().await;
        let metered = meter.read();
        assert!(metered.is_refused && metered.calls == 0 && refused.try_join_next().is_none());
        meter.settle(metered.version, true);
        assert_eq!(refused.join_next().await.unwrap().unwrap(), Err(GatewayRefusal::Budget));
    }

    #[tokio::test(start_paused = true)]
    async fn invariant_14_limits_a_call_does_not_wait_forever_and_models_are_bounded() {
        let meter = RunMeter::default();
        for number in 0..2 * MAX_MODELS {
            meter.record(Some(format!("model-{number}")), tokens(1));
        }
        assert_eq!(meter.read().usage.len(), MAX_MODELS + 1);
        assert_eq!(meter.read().usage.values().map(Usage::total).sum::<u64>(), 2 * MAX_MODELS as u64);
        meter.admit().await.unwrap();
    }
}
