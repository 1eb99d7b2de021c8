//! Values of variables and headers are written and never read: whoever asks sees `***`, and whoever sends `***` back keeps
//! what is there.

use domain::mcp::{Entry, Transport};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) const MASK: &str = "***";
/// A value that is shorter is no secret, and to strike it out of a text would make a riddle of the text.
const SHORTEST_SECRET: usize = 8;

/// As it may be shown.
pub(crate) fn masked(mut entry: Entry) -> Entry {
    for value in entry.env.values_mut().chain(entry.headers.values_mut()) {
        MASK.clone_into(value);
    }
    entry.url = entry.url.as_deref().map(masked_url);
    entry
}

/// Without a user, a password, and what follows the path.
fn masked_url(url: &str) -> String {
    let (address, rest) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    let mut shown = match split_authority(address) {
        Some((scheme, authority, path)) => match authority.rsplit_once('@') {
            Some((_, host)) => format!("{scheme}://{MASK}@{host}{path}"),
            None => address.to_owned(),
        },
        None => address.to_owned(),
    };
    if let Some(mark) = rest.chars().next() {
        shown.push(mark);
        shown.push_str(MASK);
    }
    shown
}

fn split_authority(address: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    Some((scheme, authority, path))
}

/// Which part of an entry says `***` where there is nothing to keep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeepError {
    pub pointer: &'static str,
    pub detail: String,
}

/// Puts what is there in the place of every `***`.
pub(crate) fn keep(new: &mut Entry, current: Option<&Entry>) -> Result<(), KeepError> {
    let nothing = Entry::default();
    let current = current.unwrap_or(&nothing);
    if new.url.is_some() && new.url == current.url.as_deref().map(masked_url) {
        new.url.clone_from(&current.url);
    }
    if new.url.as_ref().is_some_and(|url| url.contains(MASK)) {
        let detail = format!("url: it still holds {MASK} in place of what is kept; write the whole address");
        return Err(KeepError { pointer: "/url", detail });
    }
    keep_values("/env", &mut new.env, &current.env)?;
    let keeps_headers = new.headers.values().any(|value| value == MASK);
    keep_values("/headers", &mut new.headers, &current.headers)?;
    // A kept value goes where it went before, or whoever may write could read it at an address of their own.
    if keeps_headers && new.url.as_deref().map(origin) != current.url.as_deref().map(origin) {
        let detail = "headers: the address leads to another host; send the values of the headers again".to_owned();
        return Err(KeepError { pointer: "/headers", detail });
    }
    Ok(())
}

fn keep_values(
    pointer: &'static str,
    new: &mut BTreeMap<String, String>,
    current: &BTreeMap<String, String>,
) -> Result<(), KeepError> {
    for (key, value) in new.iter_mut().filter(|(_, value)| *value == MASK) {
        match current.get(key) {
            Some(kept) => value.clone_from(kept),
            None => {
                let detail = format!("{}: there is no value of {key:?} to keep; send one", &pointer[1..]);
                return Err(KeepError { pointer, detail });
            }
        }
    }
    Ok(())
}

fn origin(url: &str) -> (String, String) {
    match split_authority(url) {
        Some((scheme, authority, _)) => {
            let host = authority.rsplit('@').next().unwrap_or_default();
            (scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
        }
        None => (String::new(), url.to_owned()),
    }
}

/// What [`masked_url`] leaves out: user, password, and what follows the path, whole and by its values.
fn hidden_in(url: &str) -> impl Iterator<Item = &str> {
    let (address, rest) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    let login = split_authority(address).and_then(|(_, authority, _)| Some(authority.rsplit_once('@')?.0));
    let login = login.into_iter().flat_map(|login| login.split(':').chain([login]));
    let values = rest.split(['?', '&', '#']).map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    login.chain(values)
}

/// The values that must not leave, to be struck out of what a server has written: its own words may repeat them.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn of(transport: &Transport) -> Self {
        let (values, url) = match transport {
            Transport::Stdio { env, .. } => (env.values(), ""),
            Transport::Http { url, headers } | Transport::Sse { url, headers } => (headers.values(), url.as_str()),
        };
        // What follows a scheme (`Bearer …`) is the secret, however it is repeated.
        let words =
            values.flat_map(|value| [value.as_str()].into_iter().chain(value.split_once(' ').map(|(_, it)| it)));
        Self::default().and(words.chain(hidden_in(url)))
    }

    pub(crate) fn and<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets = words.into_iter().filter(|word| word.len() >= SHORTEST_SECRET);
        self.0.extend(secrets.map(str::to_owned));
        // The longest first: one may be part of another.
        self.0.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
        self
    }

    pub(crate) fn strike(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| if text.contains(secret) { text.replace(secret, MASK) } else { text })
    }

    pub(crate) fn strike_value(&self, value: &mut Value) {
        match value {
            _ if self.0.is_empty() => {}
            Value::String(text) => *text = self.strike(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.strike_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.strike_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KeepError, Secrets, keep, masked, masked_url};
    use domain::mcp::{Entry, Transport};
    use serde_json::json;

    fn entry(json: serde_json::Value) -> Entry {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn invariant_17_secrets_stay_what_is_shown_holds_none() {
        let shown = masked(entry(json!({"command": "x", "args": ["a"], "env": {"A": "SECRET", "B": "${SECRET}"}})));
        assert_eq!(shown.env.into_iter().collect::<Vec<_>>(), [("A".into(), "***".into()), ("B".into(), "***".into())]);
        let shown = masked(entry(json!({"url": "https://h/", "headers": {"authorization": "Bearer SECRET"}})));
        assert_eq!(shown.headers["authorization"], "***");
        for (url, shown) in [
            ("https://host/mcp", "https://host/mcp"),
            ("https://me:SECRET@host:1/mcp?key=SECRET#SECRET", "https://***@host:1/mcp?***"),
            ("https://a@SECRET@host", "https://***@host"),
            ("https://host#SECRET", "https://host#***"),
            ("${BASE}/mcp?key=SECRET", "${BASE}/mcp?***"),
        ] {
            assert_eq!(masked_url(url), shown);
        }
    }

    #[test]
    fn what_is_sent_back_as_shown_is_kept() {
        let current = entry(json!({"url": "https://me:pw@host/mcp?key=1", "headers": {"a": "one", "b": "two"}}));
        let mut new = masked(current.clone());
        keep(&mut new, Some(&current)).unwrap();
        assert_eq!(new, current);
        let mut new = entry(json!({"url": "https://host/other", "headers": {"a": "***", "c": "new"}}));
        keep(&mut new, Some(&current)).unwrap();
        assert_eq!((new.headers["a"].as_str(), new.headers["c"].as_str(), new.headers.len()), ("one", "new", 2));
        let current = entry(json!({"command": "x", "env": {"A": "one"}}));
        let mut new = entry(json!({"command": "y", "env": {"A": "***"}}));
        keep(&mut new, Some(&current)).unwrap();
        assert_eq!(new.env["A"], "one");
    }

    #[test]
    fn a_mask_that_stands_for_nothing_is_refused() {
        let current = entry(json!({"url": "https://host/mcp?key=1", "headers": {"a": "one"}, "env": {}}));
        for (new, at) in [
            (json!({"url": "https://host/mcp", "headers": {"b": "***"}}), "/headers"),
            (json!({"url": "https://evil/mcp", "headers": {"a": "***"}}), "/headers"),
            (json!({"url": "http://host/mcp", "headers": {"a": "***"}}), "/headers"),
            (json!({"url": "https://host@evil/mcp", "headers": {"a": "***"}}), "/headers"),
            (json!({"url": "https://evil/mcp?***"}), "/url"),
            (json!({"command": "x", "env": {"a": "***"}}), "/env"),
        ] {
            let refused = keep(&mut entry(new.clone()), Some(&current));
            assert!(matches!(&refused, Err(KeepError { pointer, .. }) if *pointer == at), "{new}: {refused:?}");
        }
        assert!(keep(&mut entry(json!({"command": "x", "env": {"a": "***"}})), None).is_err());
    }

    #[test]
    fn invariant_17_secrets_stay_a_servers_own_words_do_not_repeat_them() {
        let transport = Transport::Http {
            url: "http://me:pass-word@h/mcp?key=of-the-door&a=b".into(),
            headers: [("authorization".to_owned(), "Bearer abcdefgh".to_owned()), ("x".to_owned(), "1".to_owned())]
                .into(),
        };
        let secrets = Secrets::of(&transport).and(["from-elsewhere", "short"]);
        assert_eq!(secrets.strike("token abcdefgh, not 1".into()), "token ***, not 1");
        assert_eq!(secrets.strike("from-elsewhere and short".into()), "*** and short");
        assert_eq!(
            secrets.strike("at http://me:pass-word@h/?key=of-the-door&a=b".into()),
            "at http://***@h/?key=***&a=b"
        );
        let mut value = json!({"a": ["Bearer abcdefgh", 1, {"b": "xabcdefghy"}]});
        secrets.strike_value(&mut value);
        assert_eq!(value, json!({"a": ["***", 1, {"b": "x***y"}]}));
    }
}
