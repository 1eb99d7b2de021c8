//! The running calls of one turn, for a transport on which the agent's calls arrive.

use super::{
    HostCall, HostToolAgent, HostToolOutcome, HostToolSignal, OpenQuestions, SignalReceiver, SignalSender, UserAnswer,
    UserQuestion, signal_channel,
};
use crate::{AttachedFile, ProviderEvent, TurnEvent};
use domain::{
    event::Decision,
    ids::{ApprovalId, RunId},
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{
    task::{self, JoinError, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// More than any model runs at once.
const MAX_CALLS: usize = 64;
/// How long canceled calls may take to end, before they are dropped.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the calls of one turn. `K` is what the transport needs to reply to a call.
pub(crate) struct HostToolCalls<K> {
    agent: Arc<HostToolAgent>,
    run_id: RunId,
    begun: u64,
    open: BTreeMap<u64, OpenCall<K>>,
    /// Calls that could not start.
    refused: VecDeque<(K, HostToolOutcome)>,
    tasks: JoinSet<(u64, HostToolOutcome)>,
    sender: SignalSender,
    signals: SignalReceiver,
    questions: OpenQuestions,
    is_stopped: bool,
}

struct OpenCall<K> {
    reply_to: K,
    origin: CallOrigin,
    task: task::Id,
    cancel: CancellationToken,
}

/// The agent's own view of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallOrigin {
    /// The id under which the room knows the call.
    pub tool_use_id: Option<String>,
    /// The agent's message, for the approval of a question.
    pub raw: Option<String>,
}

/// Something that happened to a call.
#[derive(Debug)]
pub(crate) enum HostToolEvent<K> {
    /// Report this to the room.
    Report(ProviderEvent),
    /// Reply to the agent.
    Ended { reply_to: K, outcome: HostToolOutcome },
}

impl<K> HostToolCalls<K> {
    pub fn new(agent: HostToolAgent, run_id: RunId) -> Self {
        let (sender, signals) = signal_channel();
        Self {
            agent: Arc::new(agent),
            run_id,
            begun: 0,
            open: BTreeMap::new(),
            refused: VecDeque::new(),
            tasks: JoinSet::new(),
            sender,
            signals,
            questions: OpenQuestions::default(),
            is_stopped: false,
        }
    }

    /// Files of a message that arrived during the turn.
    pub fn attach(&mut self, files: &[AttachedFile]) {
        Arc::make_mut(&mut self.agent).attachments.extend_from_slice(files);
    }

    /// Starts a call; [`next`](Self::next) returns its end, also if it cannot start.
    pub fn start(&mut self, reply_to: K, origin: CallOrigin, tool: String, arguments: Map<String, Value>) {
        let refusal = match self.is_stopped {
            true => Some("The tool was not called: the turn was stopped."),
            false if self.open.len() >= MAX_CALLS => Some("Too many calls are running; wait for a result first."),
            false => None,
        };
        if let Some(refusal) = refusal {
            return self.refused.push_back((reply_to, HostToolOutcome::error(refusal)));
        }
        self.begun += 1;
        let (number, cancel) = (self.begun, CancellationToken::new());
        let call = HostCall {
            agent: Arc::clone(&self.agent),
            run_id: self.run_id,
            arguments,
            cancel: cancel.clone(),
            signals: self.sender.for_call(number),
            tool,
        };
        let tools = self.agent.workspace.host_tools.clone();
        let task = self.tasks.spawn(async move { (number, tools.call(call).await) }).id();
        self.open.insert(number, OpenCall { reply_to, origin, task, cancel });
    }

    /// Waits for the next event; forever, if nothing runs. Cancel safe.
    pub async fn next(&mut self) -> HostToolEvent<K> {
        if let Some((reply_to, outcome)) = self.refused.pop_front() {
            return HostToolEvent::Ended { reply_to, outcome };
        }
        loop {
            tokio::select! {
                biased;
                Some((call, signal)) = self.signals.recv() => {
                    if let Some(event) = self.on_signal(call, signal) {
                        return HostToolEvent::Report(event);
                    }
                }
                Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    if let Some(event) = self.on_end(ended) {
                        return event;
                    }
                }
                id = self.questions.abandoned() => {
                    return HostToolEvent::Report(TurnEvent::ApprovalWithdrawn { id }.into());
                }
            }
        }
    }

    fn on_signal(&mut self, call: u64, signal: HostToolSignal) -> Option<ProviderEvent> {
        // The signal of a call that was canceled meanwhile is dropped.
        let CallOrigin { tool_use_id, raw } = self.open.get(&call)?.origin.clone();
        match signal {
            HostToolSignal::Progress { text: delta, .. } => {
                Some(TurnEvent::ToolOutput { id: tool_use_id?, delta }.into())
            }
            HostToolSignal::Room(request) => Some(TurnEvent::Room(request).into()),
            HostToolSignal::Delegated { child, .. } => Some(TurnEvent::Delegated { tool_use_id, child }.into()),
            HostToolSignal::FileChanged { path, change } => {
                Some(TurnEvent::FileChanged { path, change: change.to_owned() }.into())
            }
            HostToolSignal::Question(UserQuestion { tool: name, input, is_question, answer }) => {
                let id = self.questions.add(answer);
                Some(ProviderEvent { event: TurnEvent::Approval { id, tool_use_id, name, input, is_question }, raw })
            }
        }
    }

    fn on_end(&mut self, ended: Result<(u64, HostToolOutcome), JoinError>) -> Option<HostToolEvent<K>> {
        let (number, outcome) = ended.unwrap_or_else(|error| {
            tracing::error!(%error, "the task of a host tool call failed");
            let failed = self.open.iter().find(|(_, open)| open.task == error.id());
            let outcome = HostToolOutcome::error("The tool crashed; its effects are unknown.");
            (failed.map_or(0, |(number, _)| *number), outcome)
        });
        let OpenCall { reply_to, .. } = self.open.remove(&number)?;
        Some(HostToolEvent::Ended { reply_to, outcome })
    }

    /// Passes a person's answer on. Returns it if it does not belong to a question of a host tool.
    pub fn answer(&mut self, id: ApprovalId, decision: Decision, input: Option<Value>) -> Result<(), UserAnswer> {
        self.questions.answer(id, decision, input)
    }

    /// Cancels calls that the agent has canceled; it gets no reply.
    pub fn cancel(&mut self, is_it: impl Fn(&K) -> bool) {
        for (_, open) in self.open.extract_if(.., |_, open| is_it(&open.reply_to)) {
            open.cancel.cancel();
        }
    }

    /// Cancels all calls, because the turn is stopped. None is replied to or reported any more.
    pub fn stop(&mut self) {
        self.is_stopped = true;
        self.questions.clear();
        self.cancel(|_| true);
    }

    /// Returns when no tool is running.
    pub async fn shut_down(&mut self) {
        self.stop();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(STOP_TIMEOUT, ended).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}
