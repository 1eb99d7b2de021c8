//! The HTTP headers that MCP requires, so that intermediaries need not read the body.

use super::message::ClientParams;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The headers for a message of MCP 2026-07-28 and later, which has no sessions. Invalid values are left out; the server then refuses.
pub fn for_request(method: &str, params: &ClientParams) -> HeaderMap {
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
    if let Some(name) = name_header_value(method, params) {
        set(NAME, &encode_header_value(name));
    }
    headers
}

/// The name or URI that a request is about, if its method has one.
fn name_header_value<'a>(method: &str, params: &'a ClientParams) -> Option<&'a str> {
    let name = match method {
        "tools/call" | "prompts/get" => &params.name,
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => &params.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => &params.task,
        _ => return None,
    };
    name.as_deref()
}

/// Encodes a value that HTTP would change, and a value that looks encoded.
fn encode_header_value(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~')) && value.trim() == value;
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain && !looks_encoded { value.to_owned() } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(value)) }
}

#[cfg(test)]
mod tests {
    use super::{encode_header_value, for_request};
    use crate::cli::mcp::message::ClientParams;

    fn shown(method: &str, params: ClientParams) -> Vec<String> {
        let params = ClientParams { version: Some("2026-07-28".into()), ..params };
        let line = |(name, value): (_, &reqwest::header::HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        for_request(method, &params).iter().map(line).collect()
    }

    #[test]
    fn headers_have_the_revision_the_method_and_the_name() {
        let about = |name: &str, uri: &str| ClientParams {
            name: Some(name.into()),
            uri: Some(uri.into()),
            ..ClientParams::default()
        };
        let common = ["mcp-protocol-version: 2026-07-28".to_owned()];
        assert_eq!(shown("tools/list", about("a", "b")), [&common[..], &["mcp-method: tools/list".into()]].concat());
        for (method, name) in [("tools/call", "a"), ("prompts/get", "a"), ("resources/read", "greenroom://rooms/1")] {
            let wanted = [format!("mcp-method: {method}"), format!("mcp-name: {name}")];
            assert_eq!(shown(method, about("a", "greenroom://rooms/1")), [&common[..], &wanted].concat());
        }
        assert_eq!(shown("bad\nmethod", ClientParams::default()), common);
    }

    #[test]
    fn values_that_http_would_change_are_encoded() {
        for plain in ["run_agent", "two words", "", "=?base64?", "a=?base64?eA==?="] {
            assert_eq!(encode_header_value(plain), plain);
        }
        for (odd, wrapped) in [
            (" a", "=?base64?IGE=?="),
            ("a\t", "=?base64?YQk=?="),
            ("é", "=?base64?w6k=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(encode_header_value(odd), wrapped, "{odd:?}");
        }
    }
}
