//! An agent's memory across rooms: implements the providers' trait on the store.

use domain::{
    actor::Actor,
    ids::{AgentId, RunId},
    owner::Owner,
};
use providers::memory::{Note, NoteFuture, NoteStore};
use store::{MAX_MEMORIES, Store};

/// The limit for one note; longer text belongs in a document.
pub(crate) const MAX_NOTE_BYTES: usize = 8 * 1024;
/// How many notes one recall returns.
const MAX_RECALLED: usize = 50;

#[derive(Clone)]
pub(super) struct StoredAgentMemory {
    store: Store,
    /// The agent's process: its notes are its own changes.
    actor: Actor,
    agent: AgentId,
}

impl StoredAgentMemory {
    pub(super) fn of(store: &Store, owner: &Owner, run: RunId, agent: AgentId) -> providers::MemoryHandle {
        let (store, actor) = (store.clone(), Actor::agent(owner.clone(), run));
        providers::MemoryHandle::new(Self { store, actor, agent })
    }
}

impl NoteStore for StoredAgentMemory {
    fn save(&self, text: String) -> NoteFuture<()> {
        let Self { store, actor, agent } = self.clone();
        Box::pin(async move {
            if text.len() > MAX_NOTE_BYTES {
                return Err(format!("the note is too long; save at most {MAX_NOTE_BYTES} bytes at once"));
            }
            match store.save_memory(&actor, agent, &text).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(format!("the limit of {MAX_MEMORIES} notes is reached; no more can be saved")),
                Err(error) => Err(unavailable(agent, &error)),
            }
        })
    }

    fn recall(&self, about: String) -> NoteFuture<Vec<Note>> {
        let Self { store, actor, agent } = self.clone();
        Box::pin(async move {
            let all = store.memories(&actor.workspace, agent).await.map_err(|error| unavailable(agent, &error))?;
            let note =
                |memory: store::MemoryRecord| Note { saved_at: memory.created_at.to_string(), text: memory.text };
            Ok(best_matches(all, &about, |memory| &memory.text).into_iter().map(note).collect())
        })
    }
}

/// Sorts by the number of matching words; `all` is newest first, and the sort is stable.
fn best_matches<T>(all: Vec<T>, about: &str, text: impl Fn(&T) -> &str) -> Vec<T> {
    let about = about.to_lowercase();
    let words: Vec<&str> = about.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let score = |item: &T| {
        let text = text(item).to_lowercase();
        words.iter().filter(|word| text.contains(**word)).count()
    };
    let mut scored: Vec<(usize, T)> = all.into_iter().map(|item| (score(&item), item)).collect();
    if !words.is_empty() {
        scored.retain(|(score, _)| *score > 0);
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    }
    scored.into_iter().take(MAX_RECALLED).map(|(_, item)| item).collect()
}

fn unavailable(agent: AgentId, error: &store::StoreError) -> String {
    tracing::warn!(%agent, %error, "an agent's memory is unavailable");
    "the memory is unavailable at the moment; continue without it".to_owned()
}

#[cfg(test)]
mod tests {
    use super::{MAX_RECALLED, best_matches};

    #[test]
    fn recall_sorts_by_matching_words_and_an_empty_query_returns_the_newest() {
        let all = || vec!["Ann likes green tea", "Bob likes coffee", "Ann works at night", "the TEA room"];
        let look = |about: &str| best_matches(all(), about, |text| text);
        assert_eq!(look("ann, tea?"), ["Ann likes green tea", "Ann works at night", "the TEA room"]);
        assert_eq!(look("coffee"), ["Bob likes coffee"]);
        assert!(look("zebra").is_empty());
        assert_eq!(look(" "), all());
        assert_eq!(best_matches(vec!["x"; 100], "", |text| text).len(), MAX_RECALLED);
    }
}
