//! Maps tool names to names that the APIs accept, and back. Pure.
//!
//! Both vendors require 1 to 64 of `a-z A-Z 0-9 _ -`; MCP servers use any names.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

const MAX_BYTES: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct ToolNames {
    fitted: BTreeMap<String, String>,
    meant: BTreeMap<String, String>,
}

impl ToolNames {
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        let (valid, others): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| is_valid(name));
        // Valid names stay unchanged, whatever the order.
        valid.into_iter().for_each(|name| all.add(name, name.to_owned()));
        for name in others {
            let mut salt = 0_u32;
            let mut valid = make_valid(name, salt);
            while all.meant.get(&valid).is_some_and(|meant| meant != name) {
                salt += 1;
                valid = make_valid(name, salt);
            }
            all.add(name, valid);
        }
        all
    }

    fn add(&mut self, name: &str, fitted: String) {
        self.meant.insert(fitted.clone(), name.to_owned());
        self.fitted.insert(name.to_owned(), fitted);
    }

    /// Returns the API's name of a tool. Tools of earlier turns may be unknown in this one.
    pub fn api_name(&self, name: &str) -> String {
        match self.fitted.get(name) {
            Some(fitted) => fitted.clone(),
            None if is_valid(name) => name.to_owned(),
            None => make_valid(name, 0),
        }
    }

    /// Returns the tool's own name; the argument itself if no such tool exists.
    pub fn tool_name(&self, fitted: &str) -> String {
        self.meant.get(fitted).cloned().unwrap_or_else(|| fitted.to_owned())
    }
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

fn is_valid(name: &str) -> bool {
    (1..=MAX_BYTES).contains(&name.len()) && name.chars().all(is_letter)
}

/// A valid name: the beginning of the original, and a hash to keep it unique.
fn make_valid(name: &str, salt: u32) -> String {
    let mut hasher = DefaultHasher::new();
    (name, salt).hash(&mut hasher);
    let suffix = format!("_{:08x}", hasher.finish() & 0xffff_ffff);
    let mut valid: String = name.chars().map(|c| if is_letter(c) { c } else { '_' }).collect();
    valid.truncate(MAX_BYTES - suffix.len());
    valid + &suffix
}

#[cfg(test)]
mod tests {
    use super::{ToolNames, is_valid};

    #[test]
    fn names_are_valid_unique_and_reversible() {
        let long = format!("mcp__server__{}", "x".repeat(100));
        let longer = format!("{long}y");
        let all = ["memory", "mcp__a__b", "mcp__a__b.c", "mcp__a__b/c", "mcp__ä__ö", "", &long, &longer];
        let names = ToolNames::new(all);
        let mut fitted: Vec<String> = all.iter().map(|name| names.api_name(name)).collect();
        for (name, fitted) in all.iter().zip(&fitted) {
            assert!(is_valid(fitted), "{name} → {fitted}");
            assert_eq!(names.tool_name(fitted), *name);
        }
        assert_eq!(names.api_name("memory"), "memory");
        fitted.sort();
        fitted.dedup();
        assert_eq!(fitted.len(), all.len());
        assert_eq!(names.tool_name("unknown"), "unknown");
        assert!(is_valid(&names.api_name("a tool of yesterday")));
    }
}
