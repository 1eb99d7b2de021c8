//! One call of a host tool, and what it may ask of its turn while it runs.

use super::HostToolAgent;
use crate::RoomRequest;
use domain::{event::Decision, ids::RunId, run_tree::ChildRun};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Open questions of one agent.
pub(super) const MAX_QUESTIONS: usize = 16;
/// Signals that the turn has not handled yet; a tool that reports more waits.
const SIGNAL_BUFFER: usize = 64;
/// The maximum text of one progress report.
const MAX_REPORT_BYTES: usize = 16 * 1024;

/// A call, as a tool gets it.
#[derive(Debug)]
pub struct HostCall {
    pub agent: Arc<HostToolAgent>,
    pub run_id: RunId,
    pub arguments: Map<String, Value>,
    /// Canceled when nobody waits for the outcome any more: the turn was stopped, the agent canceled the call, its
    /// connection is closed, or the time is over.
    pub cancel: CancellationToken,
    pub(crate) signals: SignalSender,
    pub(crate) tool: String,
}

impl HostCall {
    /// Returns a text argument without surrounding whitespace; `None` if it is missing or empty.
    pub fn text(&self, argument: &str) -> Option<&str> {
        self.arguments.get(argument).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    /// Shows a line of output in the room while the tool works. Waits if the room is slower than the tool.
    pub async fn report(&self, line: &str) {
        self.report_text(&format!("{}\n", &line[..line.floor_char_boundary(MAX_REPORT_BYTES)])).await;
    }

    /// The same for a piece of text that is not a line.
    pub async fn report_text(&self, mut text: &str) {
        while !text.is_empty() {
            let (piece, rest) = text.split_at(text.floor_char_boundary(MAX_REPORT_BYTES + 1));
            self.signals.send(HostToolSignal::Progress { tool: self.tool.clone(), text: piece.to_owned() }).await;
            text = rest;
        }
    }

    /// Shows in the room that the tool has changed a file of the project.
    pub async fn report_file(&self, path: &str, change: &'static str) {
        self.signals.send(HostToolSignal::FileChanged { path: path.to_owned(), change }).await;
    }

    /// Shows the run of another agent that the tool has started. Returns whether the turn is still there.
    pub async fn show_child(&self, child: ChildRun) -> bool {
        self.signals.send(HostToolSignal::Delegated { tool: self.tool.clone(), child }).await
    }

    /// Asks something of the room. Returns whether the turn is still there.
    pub async fn ask_room(&self, request: RoomRequest) -> bool {
        self.signals.send(HostToolSignal::Room(request)).await
    }

    /// Asks the people in the room and waits for their answer. Dropping the future, or canceling the call, withdraws the
    /// question.
    pub async fn ask(&self, input: Value) -> Result<UserAnswer, AskError> {
        self.request(input, true).await
    }

    /// Asks for an approval of the call itself: the agent's policy decides, or a person, who may change the arguments. Returns
    /// whether the call may run.
    pub(super) async fn approve(&mut self) -> Result<bool, AskError> {
        let (decision, input) = self.request(Value::Object(self.arguments.clone()), false).await?;
        if let Some(Value::Object(changed)) = input {
            self.arguments = changed;
        }
        Ok(decision == Decision::Allow)
    }

    async fn request(&self, input: Value, is_question: bool) -> Result<UserAnswer, AskError> {
        let Ok(_permit) = self.signals.questions.try_acquire() else { return Err(AskError::TooMany) };
        let (answer, waiting) = oneshot::channel();
        let question = UserQuestion { tool: self.tool.clone(), input, is_question, answer };
        if !self.signals.send(HostToolSignal::Question(question)).await {
            return Err(AskError::NoTurn);
        }
        // No timeout here: the engine answers every approval, at the latest when it expires, and the end of the turn
        // drops the question.
        match self.cancel.run_until_cancelled(waiting).await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(_)) | None => Err(AskError::TurnEnded),
        }
    }
}

/// A person's decision and answer: `{"answer": "…"}`.
pub type UserAnswer = (Decision, Option<Value>);

/// Why a question has no answer. The text is for the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AskError {
    #[error("Too many questions are open already.")]
    TooMany,
    #[error("The question was not asked: the turn has ended.")]
    NoTurn,
    #[error("The turn ended before the question was answered.")]
    TurnEnded,
}

/// What a running call asks of its turn.
#[derive(Debug)]
pub enum HostToolSignal {
    /// Output to show in the room.
    Progress {
        tool: String,
        text: String,
    },
    Question(UserQuestion),
    /// The tool has changed a file of the project.
    FileChanged {
        path: String,
        change: &'static str,
    },
    /// What the agent asks of its room.
    Room(RoomRequest),
    /// The tool has started a run of another agent.
    Delegated {
        tool: String,
        child: ChildRun,
    },
}

#[derive(Debug)]
pub struct UserQuestion {
    /// The tool that asks.
    pub tool: String,
    pub input: Value,
    /// Whether only a person can answer; else it is an approval of the call, on which a policy may decide.
    pub is_question: bool,
    /// Closed when the tool no longer waits.
    pub answer: oneshot::Sender<UserAnswer>,
}

/// Where the signals of a call go, with the call's number.
#[derive(Clone, Debug)]
pub(crate) struct SignalSender {
    call: u64,
    sender: mpsc::Sender<(u64, HostToolSignal)>,
    questions: Arc<Semaphore>,
}

pub(crate) type SignalReceiver = mpsc::Receiver<(u64, HostToolSignal)>;

/// The channel from the running calls of an agent to its turn.
pub(crate) fn signal_channel() -> (SignalSender, SignalReceiver) {
    let (sender, receiver) = mpsc::channel(SIGNAL_BUFFER);
    (SignalSender { call: 0, sender, questions: Arc::new(Semaphore::new(MAX_QUESTIONS)) }, receiver)
}

impl SignalSender {
    /// The same channel for the call with this number.
    pub fn for_call(&self, call: u64) -> Self {
        Self { call, ..self.clone() }
    }

    /// Returns whether the turn is there.
    async fn send(&self, signal: HostToolSignal) -> bool {
        self.sender.send((self.call, signal)).await.is_ok()
    }
}
