//! Pages of short lists that are sorted by a key: agents, skills, MCP servers, tokens, projects, memories, budgets. The key of the last entry is the
//! cursor, so that what is added or deleted meanwhile moves no other entry.

use crate::error::Problem;
use serde::Deserialize;
use std::cmp::Ordering;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NamedPageParams {
    /// Maximum number of entries.
    #[param(minimum = 1, maximum = 1000, default = 1000)]
    pub limit: Option<u32>,
    /// The `next` of the previous page.
    #[param(min_length = 1)]
    pub after: Option<String>,
}

/// The limit that a client sent, or the default.
pub fn page_limit(sent: Option<u32>, default: u32) -> Result<u32, Problem> {
    match sent.unwrap_or(default) {
        limit @ 1..=1000 => Ok(limit),
        _ => Err(Problem::invalid("limit: a number from 1 to 1000.").with("parameter", "limit")),
    }
}

impl NamedPageParams {
    /// One page of a list in the order of its keys, and the cursor of the next one.
    pub fn cut<T>(&self, entries: Vec<T>, key: impl Fn(&T) -> String) -> Result<(Vec<T>, Option<String>), Problem> {
        self.cut_beyond(entries, key, Ordering::Greater)
    }

    /// The same for a list whose largest key comes first, such as the newest id.
    pub fn cut_newest_first<T>(
        &self,
        entries: Vec<T>,
        key: impl Fn(&T) -> String,
    ) -> Result<(Vec<T>, Option<String>), Problem> {
        self.cut_beyond(entries, key, Ordering::Less)
    }

    fn cut_beyond<T>(
        &self,
        mut entries: Vec<T>,
        key: impl Fn(&T) -> String,
        beyond: Ordering,
    ) -> Result<(Vec<T>, Option<String>), Problem> {
        let limit = page_limit(self.limit, 1000)? as usize;
        if self.after.as_ref().is_some_and(String::is_empty) {
            return Err(Problem::invalid("after: the `next` of a page; leave it out for the first page.")
                .with("parameter", "after"));
        }
        entries.sort_by_cached_key(&key);
        if beyond.is_lt() {
            entries.reverse();
        }
        if let Some(after) = &self.after {
            entries.retain(|entry| key(entry).cmp(after) == beyond);
        }
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| more).map(key);
        Ok((entries, next))
    }
}

#[cfg(test)]
mod tests {
    use super::NamedPageParams;

    #[test]
    fn pages_neither_repeat_nor_skip_an_entry_when_others_come_and_go() {
        let page = |after: Option<&str>, all: &[&str]| {
            let params = NamedPageParams { limit: Some(2), after: after.map(str::to_owned) };
            params.cut(all.iter().map(|name| (*name).to_owned()).collect(), String::clone).unwrap()
        };
        assert_eq!(page(None, &["d", "a", "b"]), (vec!["a".to_owned(), "b".to_owned()], Some("b".to_owned())));
        assert_eq!(page(Some("b"), &["0", "a", "c", "d"]), (vec!["c".to_owned(), "d".to_owned()], None));
        let newest = NamedPageParams { limit: Some(1), after: Some("c".to_owned()) };
        let newest = newest.cut_newest_first(vec!["a", "d", "b"], |name| (*name).to_owned()).unwrap();
        assert_eq!(newest, (vec!["b"], Some("b".to_owned())));
        assert!(NamedPageParams { limit: Some(0), after: None }.cut(vec![1], ToString::to_string).is_err());
    }
}
