//! Runs one turn: from the lease on an instance to the receipt that nothing of it is running.

use super::{
    home,
    incoming::PendingCodexRequest,
    instance::CodexInstance,
    open_thread::{self, OpenedThread},
    parse::{CodexParser, CodexTurnEnd, text},
    pool::{CodexPool, InstanceLease},
    thread_settings,
};
use crate::{
    SavedInSession, TurnChannel, TurnEnd, TurnEvent, TurnOutcome, TurnRequest,
    gateway::GatewayTurn,
    host_tools::{HostToolAgent, HostToolCalls},
    jsonrpc::{CallError, RpcIncoming},
    turn_port::TurnPort,
};
use domain::{
    ids::{ApprovalId, MessageId},
    run::{Receipt, RunError},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

/// How many events of a turn are queued before its messages stay with the instance, which then delivers to no turn.
const QUEUE_CAPACITY: usize = 1024;
/// How long Codex may take to return the turn's id.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for an abandoned earlier turn to stop.
const EARLIER_TURN_TIMEOUT: Duration = Duration::from_secs(10);
const PARK_TIMEOUT: Duration = Duration::from_secs(5);

pub async fn run_turn(
    pool: CodexPool,
    request: TurnRequest,
    channel: TurnChannel,
    abandoned: CancellationToken,
) -> TurnOutcome {
    let mut port = TurnPort::new(channel).with_capacity(QUEUE_CAPACITY).abandoned_by(abandoned);
    let outcome = run(&pool, request, &mut port).await;
    port.finish().await;
    outcome
}

async fn run(pool: &CodexPool, request: TurnRequest, port: &mut TurnPort) -> TurnOutcome {
    if let Err(error) = home::sync_skills(&request.workspace).await {
        let message = format!("The agent's skills could not be copied to its workspace: {error}");
        port.send(TurnEvent::Status { status: "skills_missing".into(), message });
    }
    let Some(lease) = acquire_lease(pool, &request, port).await else { return TurnOutcome::from_end(TurnEnd::Stopped) };
    let instance = match port.unless_stopped(lease.instance()).await {
        Some(Ok(instance)) => instance,
        Some(Err(error)) => return TurnOutcome::from_end(TurnEnd::Failed(error)),
        None => return TurnOutcome::from_end(TurnEnd::Stopped),
    };
    let has_own_sandbox = request.workspace.sandbox.is_none();
    if instance.take_first_use() && has_own_sandbox && home::breaks_sandbox(&request.workspace.home) {
        let message = "The agent's folder is below the system's temporary folder, where Codex's sandbox does not work, so \
                       commands will fail. Move Greenroom's data folder elsewhere.";
        port.send(TurnEvent::Status { status: "sandbox_unavailable".into(), message: message.into() });
    }
    if let Some(thread) = thread_of(&request) {
        let vacant = tokio::time::timeout(EARLIER_TURN_TIMEOUT, instance.router.wait_until_free(thread));
        match port.unless_stopped(vacant).await {
            Some(Ok(())) => {}
            Some(Err(_)) => return busy(),
            None => return TurnOutcome::from_end(TurnEnd::Stopped),
        }
    }
    let outcome = loop {
        let opened = match port.unless_stopped(open_thread::open(Arc::clone(&instance), request.clone())).await {
            Some(Ok(opened)) => opened,
            Some(Err(error)) => return failed(&instance, error).await,
            None => return TurnOutcome::from_end(TurnEnd::Stopped),
        };
        let was_open = instance.router.thread(&opened.thread).is_some_and(|thread| !thread.parked);
        let Some(turn) = CodexTurn::new(port, Arc::clone(&instance), &opened, &request) else { return busy() };
        turn.port.send(TurnEvent::Session { id: thread_settings::session_id(&opened.thread, &request.workspace) });
        if let Some(why) = opened.rebuilt {
            turn.port.send(TurnEvent::Status { status: "session_rebuilt".into(), message: why.into() });
        }
        let outcome = turn.run(thread_settings::turn(&request.workspace, &opened.thread, &opened.prompt)).await;
        // Codex may have closed the thread in the meantime; then it must be resumed.
        if was_open && matches!(&outcome.end, TurnEnd::Failed(error) if error.message.contains("thread not found")) {
            instance.router.forget(&opened.thread);
            continue;
        }
        break outcome;
    };
    for thread in instance.router.park_excess() {
        let peer = instance.peer.clone();
        pool.tasks().spawn(async move {
            // Codex closes the thread later and reports it; if this request fails, the thread stays open longer.
            let parked = peer.request("thread/unsubscribe", json!({"threadId": thread}), PARK_TIMEOUT).await;
            tracing::debug!(thread, ?parked, "parked a Codex thread");
        });
    }
    if matches!(&outcome.end, TurnEnd::Failed(error) if error.code == "authentication_failed") {
        // The running program may not notice a new login.
        lease.discard().await;
    }
    outcome
}

/// If the program has exited, its own error is more useful than that of the failed call.
async fn failed(instance: &CodexInstance, error: RunError) -> TurnOutcome {
    if instance.peer.close_reason().is_none() {
        return TurnOutcome::from_end(TurnEnd::Failed(error));
    }
    let lost = instance.wait_for_end().await;
    TurnOutcome {
        end: TurnEnd::Failed(lost.error.clone()),
        receipt: lost.receipt.clone(),
        saved: SavedInSession::Nothing,
    }
}

/// A second turn on a thread would not wait: Codex treats it as steering of the first.
fn busy() -> TurnOutcome {
    let message = "This conversation already has a running Codex turn. Try again when it has finished.";
    TurnOutcome::from_end(TurnEnd::Failed(RunError::new("session_busy", message)))
}

/// Returns the thread that can be continued.
fn thread_of(request: &TurnRequest) -> Option<&str> {
    let (thread, is_same) = thread_settings::thread_of(&request.session.as_ref()?.id, &request.workspace);
    is_same.then_some(thread)
}

async fn acquire_lease(pool: &CodexPool, request: &TurnRequest, port: &mut TurnPort) -> Option<InstanceLease> {
    let thread = thread_of(request);
    let home = home::CodexHome::of(&request.workspace);
    let ticket = pool.ticket();
    let mut has_reported = false;
    loop {
        let mut changed = std::pin::pin!(pool.changed());
        changed.as_mut().enable();
        if let Some(lease) = pool.try_lease(&ticket, &home, thread) {
            return Some(lease);
        }
        if !std::mem::replace(&mut has_reported, true) {
            let message = "All Codex processes are busy; waiting for a free one.";
            port.send(TurnEvent::Waiting { status: "waiting_for_slot".into(), message: message.into() });
        }
        port.unless_stopped(changed).await?;
    }
}

/// A turn on its thread. `incoming` handles its messages, and `stop` stops it.
pub struct CodexTurn<'a> {
    pub port: &'a mut TurnPort,
    pub instance: Arc<CodexInstance>,
    pub thread: String,
    pub parser: CodexParser,
    pub end: Option<CodexTurnEnd>,
    /// When the turn was told to stop.
    pub stop_requested_at: Option<Instant>,
    /// Set if the turn is still running but cannot succeed.
    pub hopeless: Option<RunError>,
    pub instance_ended: bool,
    /// The leftover processes that were killed.
    pub killed: BTreeSet<i32>,
    /// The processes of the thread's commands that ran when the turn was shut down, and that the shutdown has ended.
    pub running_at_stop: BTreeSet<i32>,
    pub incoming: mpsc::Receiver<RpcIncoming>,
    pub pending_requests: HashMap<ApprovalId, PendingCodexRequest>,
    /// The running host tools, by the id of Codex's request.
    pub host_calls: HostToolCalls<Value>,
    /// Pending steers: the message, and whether Codex accepted it.
    pub steering: JoinSet<(MessageId, bool)>,
    model: Option<String>,
    /// Its calls carry the thread's id in a header.
    _model_calls: Option<GatewayTurn>,
}

impl<'a> CodexTurn<'a> {
    /// Returns `None` if the thread already has a turn.
    fn new(
        port: &'a mut TurnPort,
        instance: Arc<CodexInstance>,
        opened: &OpenedThread,
        request: &TurnRequest,
    ) -> Option<Self> {
        let agent = HostToolAgent::with_program(request.workspace.clone());
        let incoming = instance.router.attach(&opened.thread)?;
        let model_calls = instance.model_calls.as_ref();
        Some(Self {
            port,
            incoming,
            _model_calls: model_calls.map(|calls| calls.begin(&request.meter, Some(&opened.thread))),
            instance,
            thread: opened.thread.clone(),
            parser: CodexParser::new(opened.model.clone(), opened.total),
            end: None,
            stop_requested_at: None,
            hopeless: None,
            instance_ended: false,
            killed: BTreeSet::new(),
            running_at_stop: BTreeSet::new(),
            pending_requests: HashMap::new(),
            host_calls: HostToolCalls::new(agent, request.run_id),
            steering: JoinSet::new(),
            model: opened.model.clone(),
        })
    }

    async fn run(mut self, params: Value) -> TurnOutcome {
        let outcome = match self.start(params).await {
            Ok(()) => self.run_to_end().await,
            Err(error) => TurnOutcome::from_end(TurnEnd::Failed(error)),
        };
        self.settle_steering().await;
        self.host_calls.shut_down().await;
        if !self.instance_ended {
            self.instance.router.detach(&self.thread, self.model.take(), self.parser.total());
        }
        if self.parser.skipped() > 0 {
            tracing::debug!(skipped = self.parser.skipped(), "skipped unknown Codex notifications");
        }
        outcome
    }

    async fn start(&mut self, params: Value) -> Result<(), RunError> {
        let peer = self.instance.peer.clone();
        let call = async move { peer.request("turn/start", params, START_TIMEOUT).await };
        match self.during(call, None).await {
            Some(Ok(started)) => {
                if let Some(id) = started.get("turn").and_then(|turn| text(turn, "id")) {
                    self.parser.set_turn(id);
                }
                Ok(())
            }
            // The turn may have started anyway; it is interrupted below.
            None | Some(Err(CallError::Timeout)) if self.stop_requested_at.is_some() => Ok(()),
            // The turn is interrupted like any other, or its instance is killed.
            Some(Err(error @ CallError::Timeout)) => {
                self.hopeless = Some(open_thread::failed("start its turn", &error));
                Ok(())
            }
            Some(Err(CallError::Closed(_))) => {
                self.instance_ended = true;
                Ok(())
            }
            Some(Err(error)) => Err(open_thread::failed("start its turn", &error)),
            None => Err(open_thread::failed("start its turn", &CallError::Timeout)),
        }
    }

    async fn run_to_end(&mut self) -> TurnOutcome {
        while self.end.is_none() && self.stop_requested_at.is_none() && self.hopeless.is_none() && !self.instance_ended
        {
            self.step().await;
        }
        let stopping = self.stop_requested_at.unwrap_or_else(Instant::now);
        let killed = self.shut_down(stopping).await;
        let mut receipt = match (&killed, self.stop_requested_at) {
            (Some(lost), _) => {
                let signals = std::iter::once("interrupt".to_owned()).chain(lost.receipt.signals.iter().cloned());
                Receipt { signals: signals.collect(), millis: millis(stopping), ..lost.receipt }
            }
            (None, Some(_)) => Receipt { processes: 0, signals: vec!["interrupt".into()], millis: millis(stopping) },
            (None, None) => Receipt::default(),
        };
        if !self.killed.is_empty() {
            receipt.signals.push("SIGKILL".into());
        }
        let ended = self.killed.union(&self.running_at_stop).count();
        receipt.processes = receipt.processes.saturating_add(u32::try_from(ended).unwrap_or(u32::MAX));
        let kept = match &self.end {
            Some(CodexTurnEnd::Completed) => SavedInSession::PromptAndAnswer,
            Some(CodexTurnEnd::Interrupted | CodexTurnEnd::Failed(_)) => SavedInSession::Prompt,
            None => SavedInSession::Nothing,
        };
        if self.stop_requested_at.is_some() {
            return TurnOutcome { end: TurnEnd::Stopped, receipt, saved: kept };
        }
        if let Some(error) = self.hopeless.take() {
            return TurnOutcome { end: TurnEnd::Failed(error), receipt, saved: kept };
        }
        match self.end.take() {
            Some(CodexTurnEnd::Completed) => TurnOutcome { end: TurnEnd::Completed, receipt, saved: kept },
            Some(CodexTurnEnd::Failed(error)) => TurnOutcome { end: TurnEnd::Failed(error), receipt, saved: kept },
            // Not interrupted by us, so by another client of the thread.
            Some(CodexTurnEnd::Interrupted) => {
                let error = RunError::new("interrupted", "Codex interrupted its turn, but not at Greenroom's request.");
                TurnOutcome { end: TurnEnd::Failed(error), receipt, saved: kept }
            }
            None => {
                let lost = self.instance.wait_for_end().await;
                TurnOutcome { end: TurnEnd::Failed(lost.error.clone()), receipt: lost.receipt.clone(), saved: kept }
            }
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
