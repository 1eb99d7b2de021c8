//! The runs on this server and the channels to reach them. Only a hint: the queue in the store is authoritative.

use crate::EngineError;
use domain::{
    event::{Decision, Interruption},
    ids::{AgentId, ApprovalId, MessageId, RoomId, RunId},
    position::Seq,
};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use store::queue::Claim;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

/// Why a run on this server has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    Cancel,
    Interrupt(Interruption),
    /// Another worker took over the run: stop working and write nothing more.
    LeaseLost,
}

/// A person's request to a run in progress.
#[derive(Debug)]
pub(crate) enum RunCommand {
    Answer(ApprovalAnswer),
    Steer(SteerRequest),
    /// The tool needs approval again, for this agent only.
    ForgetTool {
        agent: AgentId,
        tool: String,
    },
}

/// A person's answer to an approval, and the channel for the outcome.
#[derive(Debug)]
pub(crate) struct ApprovalAnswer {
    pub approval: ApprovalId,
    pub decision: Decision,
    pub input: Option<Value>,
    pub remember: bool,
    pub outcome: oneshot::Sender<AnswerOutcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerOutcome {
    /// The answer is stored.
    Stored,
    /// The approval does not exist or was already resolved.
    NotPending,
    /// The answer to a question cannot be remembered.
    NotRememberable,
}

/// A message for the answer in progress, and the channel for whether the provider took it.
#[derive(Debug)]
pub(crate) struct SteerRequest {
    pub message: MessageId,
    pub seq: Seq,
    pub text: String,
    pub taken: oneshot::Sender<bool>,
}

/// The receiving ends of a run's channels.
pub(crate) struct RunSignals {
    pub halt: watch::Receiver<Option<Halt>>,
    pub commands: mpsc::Receiver<RunCommand>,
}

struct RunHandle {
    room_id: RoomId,
    queued_seq: u64,
    halt: watch::Sender<Option<Halt>>,
    commands: mpsc::Sender<RunCommand>,
}

#[derive(Default)]
pub(crate) struct ActiveRuns(Mutex<HashMap<RunId, RunHandle>>);

/// How many commands a run buffers; more senders wait.
const COMMAND_BUFFER: usize = 16;
/// How long a provider may take to accept or refuse a message.
const STEER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for a busy run to accept that a tool is forgotten.
const FORGET_TIMEOUT: Duration = Duration::from_secs(10);

impl ActiveRuns {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, RunHandle>> {
        // Plain data that no panic can leave half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, claim: &Claim) -> RunSignals {
        let (halt, halted) = watch::channel(None);
        let (commands, received) = mpsc::channel(COMMAND_BUFFER);
        let handle = RunHandle { room_id: claim.room_id, queued_seq: claim.queued_seq, halt, commands };
        self.runs().insert(claim.run_id, handle);
        RunSignals { halt: halted, commands: received }
    }

    pub(crate) fn contains(&self, run: RunId) -> bool {
        self.runs().contains_key(&run)
    }

    pub(crate) fn remove(&self, run: RunId) {
        self.runs().remove(&run);
    }

    pub(crate) fn ids(&self) -> Vec<RunId> {
        self.runs().keys().copied().collect()
    }

    /// Returns whether the run is on this server. The first reason wins; `LeaseLost` overrides any other.
    pub(crate) fn halt(&self, run: RunId, why: Halt) -> bool {
        match self.runs().get(&run) {
            Some(handle) => {
                request_halt(handle, why);
                true
            }
            None => false,
        }
    }

    pub(crate) fn halt_room(&self, room: RoomId, before: u64, why: Halt) {
        self.runs().values().filter(|h| h.room_id == room && h.queued_seq < before).for_each(|h| request_halt(h, why));
    }

    pub(crate) fn halt_all(&self, why: Halt) {
        self.runs().values().for_each(|handle| request_halt(handle, why));
    }

    fn command_sender(&self, run: RunId) -> Result<mpsc::Sender<RunCommand>, EngineError> {
        self.runs().get(&run).map(|handle| handle.commands.clone()).ok_or(EngineError::RunEnded)
    }

    /// Sends a person's answer to the run.
    pub(crate) async fn answer_approval(
        &self,
        run: RunId,
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
        remember: bool,
    ) -> Result<AnswerOutcome, EngineError> {
        let (accepted, answer) = oneshot::channel();
        let reply = ApprovalAnswer { approval, decision, input, remember, outcome: accepted };
        self.command_sender(run)?.send(RunCommand::Answer(reply)).await.map_err(|_| EngineError::RunEnded)?;
        answer.await.map_err(|_| EngineError::RunEnded)
    }

    /// Sends a message to the answer in progress. Returns false if the run has ended, or the provider refuses or does
    /// not reply in time.
    pub(crate) async fn steer(&self, run: RunId, message: MessageId, seq: Seq, text: String) -> bool {
        let Ok(commands) = self.command_sender(run) else { return false };
        let (taken, answer) = oneshot::channel();
        let sent = async {
            match commands.send(RunCommand::Steer(SteerRequest { message, seq, text, taken })).await {
                Ok(()) => answer.await.unwrap_or(false),
                Err(_) => false,
            }
        };
        timeout(STEER_TIMEOUT, sent).await.unwrap_or(false)
    }

    /// Tells the runs of a room that a tool of an agent needs approval again.
    pub(crate) async fn forget_tool(&self, room: RoomId, agent: AgentId, tool: &str) {
        let senders: Vec<_> = self.runs().values().filter(|h| h.room_id == room).map(|h| h.commands.clone()).collect();
        for commands in senders {
            let command = RunCommand::ForgetTool { agent, tool: tool.to_owned() };
            if let Ok(Err(_)) = timeout(FORGET_TIMEOUT, commands.send(command)).await {
                tracing::debug!(%room, "a run ended before it received that a tool is forgotten");
            }
        }
    }
}

fn request_halt(handle: &RunHandle, why: Halt) {
    handle.halt.send_if_modified(|halt| {
        let first = halt.is_none() || (why == Halt::LeaseLost && *halt != Some(Halt::LeaseLost));
        if first {
            *halt = Some(why);
        }
        first
    });
}
