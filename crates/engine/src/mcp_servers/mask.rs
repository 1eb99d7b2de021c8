//! Values of `env` and `headers` are write-only: responses show `***`, and a request that sends `***` back keeps the
//! stored value.

use domain::mcp::{MASK, McpServerEntry, split_authority};
use std::collections::BTreeMap;

/// Returns the entry with all secret values masked.
pub(crate) fn mask_entry(mut entry: McpServerEntry) -> McpServerEntry {
    for value in entry.env.values_mut().chain(entry.headers.values_mut()) {
        MASK.clone_into(value);
    }
    entry.url = entry.url.as_deref().map(mask_url);
    entry
}

/// Masks the user, the password, the query and the fragment.
fn mask_url(url: &str) -> String {
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

/// A `***` in a request without a stored value to keep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MaskError {
    pub pointer: &'static str,
    pub detail: String,
}

/// Replaces every `***` by the stored value.
pub(crate) fn restore_masked(new: &mut McpServerEntry, current: Option<&McpServerEntry>) -> Result<(), MaskError> {
    let nothing = McpServerEntry::default();
    let current = current.unwrap_or(&nothing);
    if new.url.is_some() && new.url == current.url.as_deref().map(mask_url) {
        new.url.clone_from(&current.url);
    }
    if new.url.as_ref().is_some_and(|url| url.contains(MASK)) {
        let detail = format!("url: it still contains {MASK}; send the complete URL");
        return Err(MaskError { pointer: "/url", detail });
    }
    let keeps_env = restore_masked_values("/env", &mut new.env, &current.env)?;
    let keeps_headers = restore_masked_values("/headers", &mut new.headers, &current.headers)?;
    // A kept value may only go where it was sent before: otherwise a caller could read it at a URL, or with a program, of
    // their own.
    if keeps_headers && new.url.as_deref().map(origin) != current.url.as_deref().map(origin) {
        let detail = "headers: the URL points to another host; send the header values again, or null to clear them";
        return Err(MaskError { pointer: "/headers", detail: detail.to_owned() });
    }
    if keeps_env && program(new) != program(current) {
        let detail =
            "env: the command, its arguments or its folder change; send the values again, or null to clear them";
        return Err(MaskError { pointer: "/env", detail: detail.to_owned() });
    }
    Ok(())
}

/// What receives the environment. The arguments count: they decide what `npx` or `sh` start.
fn program(entry: &McpServerEntry) -> (Option<&str>, &[String], Option<&str>) {
    (entry.command.as_deref(), &entry.args, entry.cwd.as_deref())
}

/// Returns whether a stored value is kept.
fn restore_masked_values(
    pointer: &'static str,
    new: &mut BTreeMap<String, String>,
    current: &BTreeMap<String, String>,
) -> Result<bool, MaskError> {
    let mut keeps = false;
    for (key, value) in new.iter_mut().filter(|(_, value)| *value == MASK) {
        match current.get(key) {
            Some(kept) => {
                value.clone_from(kept);
                keeps = true;
            }
            None => {
                let detail = format!("{}: no value is stored for {key:?}; send one", &pointer[1..]);
                return Err(MaskError { pointer, detail });
            }
        }
    }
    Ok(keeps)
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
    use super::{MaskError, mask_entry, mask_url, restore_masked};
    use domain::mcp::McpServerEntry;
    use serde_json::json;

    fn entry(json: serde_json::Value) -> McpServerEntry {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn invariant_17_secrets_stay_masked_entries_contain_no_secret() {
        let shown = mask_entry(entry(json!({"command": "x", "args": ["a"], "env": {"A": "SECRET", "B": "${SECRET}"}})));
        assert_eq!(shown.env.into_iter().collect::<Vec<_>>(), [("A".into(), "***".into()), ("B".into(), "***".into())]);
        let shown = mask_entry(entry(json!({"url": "https://h/", "headers": {"authorization": "Bearer SECRET"}})));
        assert_eq!(shown.headers["authorization"], "***");
        for (url, shown) in [
            ("https://host/mcp", "https://host/mcp"),
            ("https://me:SECRET@host:1/mcp?key=SECRET#SECRET", "https://***@host:1/mcp?***"),
            ("https://a@SECRET@host", "https://***@host"),
            ("https://host#SECRET", "https://host#***"),
            ("${BASE}/mcp?key=SECRET", "${BASE}/mcp?***"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }

    #[test]
    fn masked_values_sent_back_keep_the_stored_ones() {
        let current = entry(json!({"url": "https://me:pw@host/mcp?key=1", "headers": {"a": "one", "b": "two"}}));
        let mut new = mask_entry(current.clone());
        restore_masked(&mut new, Some(&current)).unwrap();
        assert_eq!(new, current);
        let mut new = entry(json!({"url": "https://host/other", "headers": {"a": "***", "c": "new"}}));
        restore_masked(&mut new, Some(&current)).unwrap();
        assert_eq!((new.headers["a"].as_str(), new.headers["c"].as_str(), new.headers.len()), ("one", "new", 2));
        let current = entry(json!({"command": "x", "env": {"A": "one"}}));
        let mut new = entry(json!({"command": "x", "env": {"A": "***"}, "timeout": 5}));
        restore_masked(&mut new, Some(&current)).unwrap();
        assert_eq!(new.env["A"], "one");
    }

    #[test]
    fn m2_a_kept_variable_is_not_given_to_another_program() {
        let current = entry(json!({"command": "x", "args": ["a"], "env": {"A": "one"}}));
        for new in [
            json!({"command": "y", "args": ["a"], "env": {"A": "***"}}),
            json!({"command": "x", "args": ["b"], "env": {"A": "***"}}),
            json!({"command": "x", "args": ["a"], "cwd": "/tmp", "env": {"A": "***"}}),
        ] {
            let refused = restore_masked(&mut entry(new.clone()), Some(&current));
            assert!(matches!(&refused, Err(MaskError { pointer: "/env", .. })), "{new}: {refused:?}");
        }
        let mut new = entry(json!({"command": "y", "env": {"A": "two"}}));
        restore_masked(&mut new, Some(&current)).unwrap();
    }

    #[test]
    fn a_mask_without_a_stored_value_is_refused() {
        let current = entry(json!({"url": "https://host/mcp?key=1", "headers": {"a": "one"}, "env": {}}));
        for (new, at) in [
            (json!({"url": "https://host/mcp", "headers": {"b": "***"}}), "/headers"),
            (json!({"url": "https://evil/mcp", "headers": {"a": "***"}}), "/headers"),
            (json!({"url": "http://host/mcp", "headers": {"a": "***"}}), "/headers"),
            (json!({"url": "https://host@evil/mcp", "headers": {"a": "***"}}), "/headers"),
            (json!({"url": "https://evil/mcp?***"}), "/url"),
            (json!({"command": "x", "env": {"a": "***"}}), "/env"),
        ] {
            let refused = restore_masked(&mut entry(new.clone()), Some(&current));
            assert!(matches!(&refused, Err(MaskError { pointer, .. }) if *pointer == at), "{new}: {refused:?}");
        }
        assert!(restore_masked(&mut entry(json!({"command": "x", "env": {"a": "***"}})), None).is_err());
    }
}
