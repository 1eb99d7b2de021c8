//! What an agent remembers beyond a room: the store behind the providers' trait.

use domain::{ids::AgentId, owner::Owner};
use providers::memory::{Note, Notes, NotesFuture};
use store::{MAX_MEMORIES, Store};

/// One note; more is a document, not a memory.
const MAX_NOTE_BYTES: usize = 8 * 1024;
/// Told at once.
const MAX_FOUND: usize = 50;

#[derive(Clone)]
pub(super) struct Memory {
    store: Store,
    owner: Owner,
    agent: AgentId,
}

impl Memory {
    pub(super) fn of(store: &Store, owner: &Owner, agent: AgentId) -> providers::Memory {
        providers::Memory::new(Self { store: store.clone(), owner: owner.clone(), agent })
    }
}

impl Notes for Memory {
    fn save(&self, text: String) -> NotesFuture<()> {
        let Self { store, owner, agent } = self.clone();
        Box::pin(async move {
            if text.len() > MAX_NOTE_BYTES {
                return Err(format!("the note is too long; save at most {MAX_NOTE_BYTES} bytes at once"));
            }
            match store.save_memory(&owner, agent, &text).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(format!("there are {MAX_MEMORIES} notes already; nothing more can be saved")),
                Err(error) => Err(unavailable(agent, &error)),
            }
        })
    }

    fn recall(&self, about: String) -> NotesFuture<Vec<Note>> {
        let Self { store, owner, agent } = self.clone();
        Box::pin(async move {
            let all = store.memories(&owner, agent).await.map_err(|error| unavailable(agent, &error))?;
            let note = |memory: store::Memory| Note { saved_at: memory.created_at.to_string(), text: memory.text };
            Ok(found(all, &about, |memory| &memory.text).into_iter().map(note).collect())
        })
    }
}

/// Those with most of the words first; among equals the newest, which come first already.
fn found<T>(all: Vec<T>, about: &str, text: impl Fn(&T) -> &str) -> Vec<T> {
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
    scored.into_iter().take(MAX_FOUND).map(|(_, item)| item).collect()
}

fn unavailable(agent: AgentId, error: &store::Error) -> String {
    tracing::warn!(%agent, %error, "an agent's memory cannot be used");
    "the memory cannot be used just now; go on without it".to_owned()
}

#[cfg(test)]
mod tests {
    use super::{MAX_FOUND, found};

    #[test]
    fn what_fits_best_comes_first_and_nothing_looked_for_is_the_newest() {
        let all = || vec!["Ann likes green tea", "Bob likes coffee", "Ann works at night", "the TEA room"];
        let look = |about: &str| found(all(), about, |text| text);
        assert_eq!(look("ann, tea?"), ["Ann likes green tea", "Ann works at night", "the TEA room"]);
        assert_eq!(look("coffee"), ["Bob likes coffee"]);
        assert!(look("zebra").is_empty());
        assert_eq!(look(" "), all());
        assert_eq!(found(vec!["x"; 100], "", |text| text).len(), MAX_FOUND);
    }
}
