//! `memorize` and `recall`: an agent's own notes, which it keeps from one room to the next. People see, edit and delete them
//! (`commands/memories.rs`).

use super::EngineLink;
use domain::actor::Actor;
use providers::{
    RoomRequest,
    host_tools::{HostCall, HostTool, HostToolDefinition, HostToolFuture, HostToolOutcome},
};
use serde_json::json;
use store::{MAX_MEMORIES, MemoryRecord, StoreError};

/// The limit for one note; longer text belongs in a document.
pub(crate) const MAX_NOTE_BYTES: usize = 8 * 1024;
/// How many notes one recall returns.
const MAX_RECALLED: usize = 50;

pub(super) struct Memorize(pub EngineLink);

pub(super) struct Recall(pub EngineLink);

impl HostTool for Memorize {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The note, in a few sentences."}},
            "required": ["text"],
            "additionalProperties": false
        });
        let description = "Saves a note for yourself, which you keep from one conversation to the next: what people prefer, \
                           what was decided, what you found out the hard way.";
        HostToolDefinition::new("memorize", description, schema)
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            let Some(text) = call.text("text") else { return HostToolOutcome::error("text: say what to remember") };
            if text.len() > MAX_NOTE_BYTES {
                let why = format!("the note is too long; save at most {MAX_NOTE_BYTES} bytes at once");
                return HostToolOutcome::error(why);
            }
            let (actor, agent) =
                (Actor::agent(call.agent.workspace.owner.clone(), call.run_id), call.agent.workspace.agent.id);
            match self.0.store.save_memory(&actor, agent, text).await {
                Ok(true) => {
                    call.ask_room(RoomRequest::Memorized(text.to_owned())).await;
                    HostToolOutcome::success("Saved.")
                }
                Ok(false) => HostToolOutcome::error(format!(
                    "the limit of {MAX_MEMORIES} notes is reached; no more can be saved"
                )),
                Err(error) => unavailable(&call, &error),
            }
        })
    }
}

impl HostTool for Recall {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {"about": {"type": "string", "description": "Words to look for; empty for the newest notes."}},
            "additionalProperties": false
        });
        let description = "Returns the notes that you have saved with memorize, in this and in other conversations. Use it \
                           before you ask for what you may have been told.";
        let definition = HostToolDefinition::new("recall", description, schema);
        HostToolDefinition { is_read_only: true, ..definition }
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            let workspace = &call.agent.workspace;
            let all = match self.0.store.memories(&workspace.owner, workspace.agent.id).await {
                Ok(all) => all,
                Err(error) => return unavailable(&call, &error),
            };
            let found = best_matches(all, call.text("about").unwrap_or_default(), |memory| &memory.text);
            let line = |MemoryRecord { text, created_at, .. }: &MemoryRecord| format!("- ({created_at}) {text}");
            match found.is_empty() {
                true => HostToolOutcome::success("There are no such notes."),
                false => HostToolOutcome::success(found.iter().map(line).collect::<Vec<_>>().join("\n")),
            }
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

fn unavailable(call: &HostCall, error: &StoreError) -> HostToolOutcome {
    tracing::warn!(agent = %call.agent.workspace.agent.id, %error, "an agent's memory is unavailable");
    HostToolOutcome::error("the memory is unavailable at the moment; continue without it")
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
