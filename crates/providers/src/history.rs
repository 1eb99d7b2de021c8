//! What was said in the room before the prompt, read only by whoever needs it: a session that lives knows it already.

use crate::Spoken;
use domain::run::RunError;
use std::{fmt, future::Future, pin::Pin, sync::Arc};

type Reading = Pin<Box<dyn Future<Output = Result<Vec<Spoken>, RunError>> + Send>>;

#[derive(Clone)]
pub struct History(Arc<dyn Fn() -> Reading + Send + Sync>);

impl History {
    /// Read anew each time by whoever made it.
    pub fn new<F>(read: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<Spoken>, RunError>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(read())))
    }

    /// Oldest first.
    pub async fn read(&self) -> Result<Vec<Spoken>, RunError> {
        (self.0)().await
    }
}

/// One that is at hand.
impl From<Vec<Spoken>> for History {
    fn from(said: Vec<Spoken>) -> Self {
        Self::new(move || std::future::ready(Ok(said.clone())))
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("History")
    }
}
