//! The messages in the room before the prompt. They are read on demand, because an existing session already has them.

use crate::HistoryMessage;
use domain::run::RunError;
use std::{fmt, future::Future, pin::Pin, sync::Arc};

type HistoryFuture = Pin<Box<dyn Future<Output = Result<Vec<HistoryMessage>, RunError>> + Send>>;

#[derive(Clone)]
pub struct TurnHistory(Arc<dyn Fn() -> HistoryFuture + Send + Sync>);

impl TurnHistory {
    /// `read` is called again for every [`TurnHistory::read`].
    pub fn new<F>(read: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<HistoryMessage>, RunError>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(read())))
    }

    /// Returns the messages, oldest first.
    pub async fn read(&self) -> Result<Vec<HistoryMessage>, RunError> {
        (self.0)().await
    }
}

/// A history that is already in memory.
impl From<Vec<HistoryMessage>> for TurnHistory {
    fn from(messages: Vec<HistoryMessage>) -> Self {
        Self::new(move || std::future::ready(Ok(messages.clone())))
    }
}

impl fmt::Debug for TurnHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TurnHistory")
    }
}
