//! Questions of an agent's program to the people in its room. They arrive at the server's MCP endpoint and are routed
//! to the current turn, if there is one.

use super::{HostToolOutcome, outcome_of_answer};
use domain::event::Decision;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Open questions of one process.
pub const MAX_QUESTIONS: usize = 16;

#[derive(Debug)]
pub struct UserQuestion {
    pub input: Value,
    pub answer: oneshot::Sender<(Decision, Option<Value>)>,
}

/// Routes the questions of one process to its current turn.
#[derive(Debug)]
pub struct QuestionRouter {
    turn: Arc<CurrentTurn>,
    open: Semaphore,
}

type QuestionSender = mpsc::Sender<UserQuestion>;

/// The turn that takes questions now, if any.
#[derive(Debug, Default)]
struct CurrentTurn(Mutex<Option<QuestionSender>>);

impl CurrentTurn {
    fn lock(&self) -> MutexGuard<'_, Option<QuestionSender>> {
        // Set and cleared in a single step, so a panic cannot leave it inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn's end: receives questions until it is dropped.
#[derive(Debug)]
pub struct TurnQuestions {
    questions: mpsc::Receiver<UserQuestion>,
    turn: Arc<CurrentTurn>,
}

impl Default for QuestionRouter {
    fn default() -> Self {
        Self { turn: Arc::default(), open: Semaphore::new(MAX_QUESTIONS) }
    }
}

impl QuestionRouter {
    /// Routes questions to this turn from now on.
    pub fn begin_turn(&self) -> TurnQuestions {
        let (sender, questions) = mpsc::channel(MAX_QUESTIONS);
        *self.turn.lock() = Some(sender);
        TurnQuestions { questions, turn: Arc::clone(&self.turn) }
    }

    /// Asks and waits for the answer. Dropping the future withdraws the question.
    pub async fn ask(&self, input: Value) -> HostToolOutcome {
        let Ok(_permit) = self.open.try_acquire() else { return failed("Too many questions are open already.") };
        let sender = self.turn.lock().clone();
        let Some(sender) = sender else { return failed("The question was not asked: no turn is running.") };
        let (answer, waiting) = oneshot::channel();
        if sender.send(UserQuestion { input, answer }).await.is_err() {
            return failed("The question was not asked: the turn has ended.");
        }
        // No timeout here: the engine answers every approval, at the latest when it expires, and the end of the turn
        // drops the question.
        match waiting.await {
            Ok((decision, input)) => outcome_of_answer(decision, input.as_ref()),
            Err(_) => failed("The turn ended before the question was answered."),
        }
    }
}

impl TurnQuestions {
    pub async fn next(&mut self) -> Option<UserQuestion> {
        self.questions.recv().await
    }
}

impl Drop for TurnQuestions {
    fn drop(&mut self) {
        *self.turn.lock() = None;
    }
}

fn failed(why: &str) -> HostToolOutcome {
    HostToolOutcome { text: why.to_owned(), is_error: true }
}
