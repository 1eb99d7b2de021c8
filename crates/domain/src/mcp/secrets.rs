//! The secrets in a server's settings, and their redaction from its output, which may repeat them.

use super::McpTransport;
use serde_json::Value;

/// Replaces a secret.
pub const MASK: &str = "***";
/// Shorter values are not redacted: it would garble ordinary text.
const SHORTEST_SECRET: usize = 8;

#[derive(Clone, Default)]
pub struct McpSecrets(Vec<String>);

impl McpSecrets {
    pub fn from_transport(transport: &McpTransport) -> Self {
        let (values, url) = match transport {
            McpTransport::Stdio { env, .. } => (env.values(), ""),
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                (headers.values(), url.as_str())
            }
        };
        // The part after a scheme (`Bearer …`) is a secret on its own.
        let words =
            values.flat_map(|value| [value.as_str()].into_iter().chain(value.split_once(' ').map(|(_, it)| it)));
        Self::default().with(words.chain(hidden_in(url)))
    }

    pub fn with<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets = words.into_iter().filter(|word| word.len() >= SHORTEST_SECRET);
        self.0.extend(secrets.map(str::to_owned));
        // Longest first: one secret may be part of another.
        self.0.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
        self
    }

    pub fn redact(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| if text.contains(secret) { text.replace(secret, MASK) } else { text })
    }

    pub fn redact_value(&self, value: &mut Value) {
        match value {
            _ if self.0.is_empty() => {}
            Value::String(text) => *text = self.redact(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The secret parts of a URL: user, password, and the values in its query and fragment.
fn hidden_in(url: &str) -> impl Iterator<Item = &str> {
    let (address, rest) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    let login = split_authority(address).and_then(|(_, authority, _)| Some(authority.rsplit_once('@')?.0));
    let login = login.into_iter().flat_map(|login| login.split(':').chain([login]));
    let values = rest.split(['?', '&', '#']).map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    login.chain(values)
}

/// Splits a URL into scheme, authority and the rest.
pub fn split_authority(address: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    Some((scheme, authority, path))
}

#[cfg(test)]
mod tests {
    use super::McpSecrets;
    use crate::mcp::McpTransport;
    use serde_json::json;

    #[test]
    fn invariant_17_secrets_stay_server_output_is_redacted() {
        let transport = McpTransport::Http {
            url: "http://me:pass-word@h/mcp?key=of-the-door&a=b".into(),
            headers: [("authorization".to_owned(), "Bearer abcdefgh".to_owned()), ("x".to_owned(), "1".to_owned())]
                .into(),
        };
        let secrets = McpSecrets::from_transport(&transport).with(["from-elsewhere", "short"]);
        assert_eq!(secrets.redact("token abcdefgh, not 1".into()), "token ***, not 1");
        assert_eq!(secrets.redact("from-elsewhere and short".into()), "*** and short");
        assert_eq!(
            secrets.redact("at http://me:pass-word@h/?key=of-the-door&a=b".into()),
            "at http://***@h/?key=***&a=b"
        );
        let mut value = json!({"a": ["Bearer abcdefgh", 1, {"b": "xabcdefghy"}]});
        secrets.redact_value(&mut value);
        assert_eq!(value, json!({"a": ["***", 1, {"b": "x***y"}]}));
    }
}
