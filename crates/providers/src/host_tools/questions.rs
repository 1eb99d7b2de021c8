//! The questions of host tools that wait for a person, as approvals of the turn.

use super::UserAnswer;
use domain::{event::Decision, ids::ApprovalId};
use serde_json::Value;
use std::{collections::HashMap, future::poll_fn, task::Poll};
use tokio::sync::oneshot;

#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(HashMap<ApprovalId, oneshot::Sender<UserAnswer>>);

impl OpenQuestions {
    /// Returns the id under which the room is asked.
    pub fn add(&mut self, answer: oneshot::Sender<UserAnswer>) -> ApprovalId {
        let id = ApprovalId::generate();
        self.0.insert(id, answer);
        id
    }

    /// Passes the answer on. Returns it if it does not belong to a question.
    pub fn answer(&mut self, id: ApprovalId, decision: Decision, input: Option<Value>) -> Result<(), UserAnswer> {
        match self.0.remove(&id) {
            Some(waiting) => {
                // The tool may no longer wait.
                drop(waiting.send((decision, input)));
                Ok(())
            }
            None => Err((decision, input)),
        }
    }

    /// Waits until a tool no longer waits for its answer, and removes that question. Cancel safe.
    pub async fn abandoned(&mut self) -> ApprovalId {
        let id = poll_fn(|context| {
            for (id, answer) in &mut self.0 {
                if answer.poll_closed(context).is_ready() {
                    return Poll::Ready(*id);
                }
            }
            Poll::Pending
        })
        .await;
        self.0.remove(&id);
        id
    }

    /// Drops all questions: their tools are told that the turn has ended.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
