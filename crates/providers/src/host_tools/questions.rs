//! Questions of an agent's program to the people in its room. They come in by the server's door and go to the turn under way,
//! if there is one.

use super::{Outcome, answered};
use domain::event::Decision;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Calls of one process that wait for a person.
pub const MAX_QUESTIONS: usize = 16;

#[derive(Debug)]
pub struct Question {
    pub input: Value,
    pub answer: oneshot::Sender<(Decision, Option<Value>)>,
}

/// Where the questions of one process go.
#[derive(Debug)]
pub struct Line {
    turn: Arc<Turn>,
    open: Semaphore,
}

type Asker = mpsc::Sender<Question>;

/// Who answers just now, if anybody.
#[derive(Debug, Default)]
struct Turn(Mutex<Option<Asker>>);

impl Turn {
    fn lock(&self) -> MutexGuard<'_, Option<Asker>> {
        // Set and cleared in one step each.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, questions come out of it.
#[derive(Debug)]
pub struct Questions {
    questions: mpsc::Receiver<Question>,
    turn: Arc<Turn>,
}

impl Default for Line {
    fn default() -> Self {
        Self { turn: Arc::default(), open: Semaphore::new(MAX_QUESTIONS) }
    }
}

impl Line {
    /// From now on questions go to this turn.
    pub fn begin(&self) -> Questions {
        let (asker, questions) = mpsc::channel(MAX_QUESTIONS);
        *self.turn.lock() = Some(asker);
        Questions { questions, turn: Arc::clone(&self.turn) }
    }

    /// Whoever drops this withdraws the question.
    pub async fn ask(&self, input: Value) -> Outcome {
        let Ok(_place) = self.open.try_acquire() else { return cannot("Too many questions are open already.") };
        let asker = self.turn.lock().clone();
        let Some(asker) = asker else { return cannot("Nobody can be asked: no turn is under way.") };
        let (answer, waiting) = oneshot::channel();
        if asker.send(Question { input, answer }).await.is_err() {
            return cannot("Nobody can be asked: the turn has ended.");
        }
        // No deadline here: the engine answers every approval, at the latest when it expires, and the end of the turn drops it.
        match waiting.await {
            Ok((decision, input)) => answered(decision, input.as_ref()),
            Err(_) => cannot("The turn ended before anybody answered."),
        }
    }
}

impl Questions {
    pub async fn next(&mut self) -> Option<Question> {
        self.questions.recv().await
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        *self.turn.lock() = None;
    }
}

fn cannot(why: &str) -> Outcome {
    Outcome { text: why.to_owned(), is_error: true }
}
