//! Messages of a client that could not be read, reported on its stream as well as in the response to the POST.

use super::message::InvalidMessage;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};
use tokio::sync::Notify;

/// How many are kept for a client that has no open stream. The client knows of them already.
const MAX_KEPT: usize = 16;

#[derive(Default)]
pub struct RejectedMessages {
    errors: Mutex<VecDeque<Value>>,
    added: Notify,
}

impl RejectedMessages {
    pub fn add(&self, invalid: &InvalidMessage) {
        let (code, message) = invalid.error();
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.len() < MAX_KEPT {
            errors.push_back(json!({"type": "error", "error": {"code": code, "message": message}}));
        }
        drop(errors);
        self.added.notify_one();
    }

    /// Waits for the next one. Cancel safe.
    pub async fn next(&self) -> Value {
        loop {
            let next = self.errors.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match next {
                Some(error) => return error,
                None => self.added.notified().await,
            }
        }
    }
}
