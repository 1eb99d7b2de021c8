//! Values of variables and headers are written and never read: whoever asks sees `***`, and whoever sends `***` back keeps
//! what is there.

use domain::mcp::{Entry, MASK, split_authority};
use std::collections::BTreeMap;

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

#[cfg(test)]
mod tests {
    use super::{KeepError, keep, masked, masked_url};
    use domain::mcp::Entry;
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
}
