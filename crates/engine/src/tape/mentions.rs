//! The agents that a text names with `@`. The web app shows the same while it is typed.

use domain::{agent::Agent, ids::AgentId};

/// Returns the agents of a room that a message names, each once. Of several names that fit, the longest is meant. An `@`
/// inside a word, as in an address, names nobody.
pub(crate) fn mentions_in(text: &str, agents: &[Agent]) -> Vec<AgentId> {
    let mut names: Vec<(String, AgentId)> =
        agents.iter().map(|agent| (agent.spec.name.as_str().to_lowercase(), agent.id)).collect();
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.chars().count()));
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        if text[..at].ends_with(is_word_character) {
            continue;
        }
        let rest = &text[at + 1..];
        let is_named = |name: &str| after_name(rest, name).is_some_and(|rest| !rest.starts_with(continues_a_name));
        if let Some((_, id)) = names.iter().find(|(name, _)| is_named(name))
            && !found.contains(id)
        {
            found.push(*id);
        }
    }
    found
}

fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn continues_a_name(c: char) -> bool {
    is_word_character(c) || c == '-'
}

/// The rest of a text that begins with a name, which is in lower case.
fn after_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut left = name;
    for (at, c) in text.char_indices() {
        if left.is_empty() {
            return Some(&text[at..]);
        }
        for lower in c.to_lowercase() {
            left = left.strip_prefix(lower)?;
        }
    }
    left.is_empty().then_some("")
}

#[cfg(test)]
mod tests {
    use super::mentions_in;
    use domain::{
        agent::{Agent, AgentSpec},
        ids::AgentId,
        name::Name,
        time::Timestamp,
    };

    #[test]
    fn names_are_found_where_an_at_sign_begins_a_word() {
        let agents = ["echo", "Echo Two", "zoë"].map(|name| Agent {
            id: AgentId::generate(),
            spec: AgentSpec::new(Name::parse(name).unwrap(), "scripted"),
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
        });
        let named = |text: &str| -> Vec<String> {
            let found = mentions_in(text, &agents);
            let name = |id| agents.iter().find(|agent| agent.id == id).unwrap().spec.name.to_string();
            found.into_iter().map(name).collect()
        };
        for (text, expected) in [
            ("@echo and @ZOË, please. @echo?", &["echo", "zoë"][..]),
            ("@echo two!", &["Echo Two"]),
            ("(@Echo", &["echo"]),
            ("mail me@echo or @echoes or @echo-2 or @nobody or @", &[]),
            ("nothing", &[]),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
    }
}
