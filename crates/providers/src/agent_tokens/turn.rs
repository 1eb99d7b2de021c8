//! The turn that the calls with a token belong to.

use super::lock;
use crate::host_tools::{
    HostCall, HostToolAgent, HostToolOutcome, HostToolSignal, SignalReceiver, SignalSender, signal_channel,
};
use domain::ids::RunId;
use serde_json::{Map, Value};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long canceled calls may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The token's end.
#[derive(Clone, Debug)]
pub(super) struct CurrentTurn {
    pub run_id: RunId,
    agent: Arc<HostToolAgent>,
    signals: SignalSender,
    cancel: CancellationToken,
    running: TaskTracker,
}

/// The turn's end: receives the signals of calls, until it is dropped.
#[derive(Debug)]
pub struct AgentTokenTurn {
    signals: SignalReceiver,
    current: Arc<Mutex<Option<CurrentTurn>>>,
    cancel: CancellationToken,
    running: TaskTracker,
}

impl CurrentTurn {
    pub fn begin(agent: HostToolAgent, run_id: RunId, current: &Arc<Mutex<Option<Self>>>) -> (Self, AgentTokenTurn) {
        let (sender, signals) = signal_channel();
        let (cancel, running) = (CancellationToken::new(), TaskTracker::new());
        running.close();
        let turn =
            AgentTokenTurn { signals, current: Arc::clone(current), cancel: cancel.clone(), running: running.clone() };
        (Self { run_id, agent: Arc::new(agent), signals: sender, cancel, running }, turn)
    }

    pub async fn call(self, tool: &str, arguments: Map<String, Value>) -> HostToolOutcome {
        let Self { run_id, agent, signals, cancel, running } = self;
        let tools = agent.workspace.host_tools.clone();
        let (tool, cancel) = (tool.to_owned(), cancel.child_token());
        let call = HostCall { agent, run_id, arguments, cancel, signals, tool };
        running.track_future(tools.call(call)).await
    }
}

impl AgentTokenTurn {
    /// Waits for the next signal of a call. Cancel safe.
    pub async fn next(&mut self) -> Option<HostToolSignal> {
        self.signals.recv().await.map(|(_, signal)| signal)
    }

    /// Cancels the running calls and all later ones, because the turn is stopped.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Cancels the running calls and waits until they have ended.
    pub async fn end(self) {
        let running = self.running.clone();
        drop(self);
        if timeout(STOP_TIMEOUT, running.wait()).await.is_err() {
            tracing::warn!(calls = running.len(), "host tools outlive their turn");
        }
    }
}

impl Drop for AgentTokenTurn {
    fn drop(&mut self) {
        *lock(&self.current) = None;
        self.cancel();
    }
}
