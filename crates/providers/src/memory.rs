//! An agent's memory across rooms. Providers only see the trait; the engine implements it on the database.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

pub type NoteFuture<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

/// The notes of one agent. Error texts are shown to the model and say what to do.
pub trait NoteStore: Send + Sync + 'static {
    fn save(&self, text: String) -> NoteFuture<()>;

    /// Returns the notes that match, newest first; the newest notes if `about` is empty. Bounded.
    fn recall(&self, about: String) -> NoteFuture<Vec<Note>>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// RFC 3339.
    pub saved_at: String,
    pub text: String,
}

/// An agent's memory, if it has one.
#[derive(Clone, Default)]
pub struct MemoryHandle(Option<Arc<dyn NoteStore>>);

impl MemoryHandle {
    pub fn new(notes: impl NoteStore) -> Self {
        Self(Some(Arc::new(notes)))
    }

    pub fn notes(&self) -> Option<&Arc<dyn NoteStore>> {
        self.0.as_ref()
    }
}

impl fmt::Debug for MemoryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "MemoryHandle" } else { "no memory" })
    }
}
