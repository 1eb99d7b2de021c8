//! What an agent wants to remember beyond a room. Providers only see the trait; whoever has a database implements it.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

pub type NotesFuture<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

/// The notes of one agent. Errors are for the model: they say what to do.
pub trait Notes: Send + Sync + 'static {
    fn save(&self, text: String) -> NotesFuture<()>;

    /// Those that fit, the newest first; all of the newest when nothing is looked for. Bounded.
    fn recall(&self, about: String) -> NotesFuture<Vec<Note>>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// RFC 3339.
    pub saved_at: String,
    pub text: String,
}

/// An agent's memory, where it has one.
#[derive(Clone, Default)]
pub struct Memory(Option<Arc<dyn Notes>>);

impl Memory {
    pub fn new(notes: impl Notes) -> Self {
        Self(Some(Arc::new(notes)))
    }

    pub fn notes(&self) -> Option<&Arc<dyn Notes>> {
        self.0.as_ref()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Memory" } else { "no memory" })
    }
}
