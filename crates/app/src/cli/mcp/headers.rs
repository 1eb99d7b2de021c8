//! What the protocol wants to see in the head of an HTTP request, so that those between need not read the body.

use super::message::Params;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// For a message of a revision without sessions. What cannot stand in a head is left out: then the server says so.
pub fn of(method: &str, params: &Params) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    if let Some(version) = &params.version {
        set(VERSION, version);
    }
    set(METHOD, method);
    if let Some(name) = named(method, params) {
        set(NAME, &encoded(name));
    }
    headers
}

/// What a request is about, where its method has such a thing.
fn named<'a>(method: &str, params: &'a Params) -> Option<&'a str> {
    let name = match method {
        "tools/call" | "prompts/get" => &params.name,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => &params.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => &params.task,
        _ => return None,
    };
    name.as_deref()
}

/// A value that HTTP would not carry unchanged is wrapped, and so is one that looks as if it were.
fn encoded(value: &str) -> String {
    let travels = value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value;
    let looks_wrapped = value.starts_with("=?base64?") && value.ends_with("?=");
    if travels && !looks_wrapped { value.to_owned() } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(value)) }
}

#[cfg(test)]
mod tests {
    use super::{encoded, of};
    use crate::cli::mcp::message::Params;

    fn shown(method: &str, params: Params) -> Vec<String> {
        let params = Params { version: Some("2026-07-28".into()), ..params };
        let line = |(name, value): (_, &reqwest::header::HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        of(method, &params).iter().map(line).collect()
    }

    #[test]
    fn the_revision_the_method_and_what_it_is_about() {
        let about =
            |name: &str, uri: &str| Params { name: Some(name.into()), uri: Some(uri.into()), ..Params::default() };
        let common = ["mcp-protocol-version: 2026-07-28".to_owned()];
        assert_eq!(shown("tools/list", about("a", "b")), [&common[..], &["mcp-method: tools/list".into()]].concat());
        for (method, name) in [("tools/call", "a"), ("prompts/get", "a"), ("resources/read", "greenroom://rooms/1")] {
            let wanted = [format!("mcp-method: {method}"), format!("mcp-name: {name}")];
            assert_eq!(shown(method, about("a", "greenroom://rooms/1")), [&common[..], &wanted].concat());
        }
        assert_eq!(shown("bad\nmethod", Params::default()), common);
    }

    #[test]
    fn what_http_would_change_is_wrapped() {
        for plain in ["run_agent", "two words", "", "=?base64?", "a=?base64?eA==?="] {
            assert_eq!(encoded(plain), plain);
        }
        for (odd, wrapped) in [
            (" a", "=?base64?IGE=?="),
            ("a\t", "=?base64?YQk=?="),
            ("é", "=?base64?w6k=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(encoded(odd), wrapped, "{odd:?}");
        }
    }
}
