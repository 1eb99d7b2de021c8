//! What must not leave of a server's settings, to be struck out of what it has written: its own words may repeat it.

use super::Transport;
use serde_json::Value;

/// Stands for a value that is not shown.
pub const MASK: &str = "***";
/// A value that is shorter is no secret, and to strike it out of a text would make a riddle of the text.
const SHORTEST_SECRET: usize = 8;

#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    pub fn of(transport: &Transport) -> Self {
        let (values, url) = match transport {
            Transport::Stdio { env, .. } => (env.values(), ""),
            Transport::Http { url, headers } | Transport::Sse { url, headers } => (headers.values(), url.as_str()),
        };
        // What follows a scheme (`Bearer …`) is the secret, however it is repeated.
        let words =
            values.flat_map(|value| [value.as_str()].into_iter().chain(value.split_once(' ').map(|(_, it)| it)));
        Self::default().and(words.chain(hidden_in(url)))
    }

    pub fn and<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets = words.into_iter().filter(|word| word.len() >= SHORTEST_SECRET);
        self.0.extend(secrets.map(str::to_owned));
        // The longest first: one may be part of another.
        self.0.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
        self
    }

    pub fn strike(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| if text.contains(secret) { text.replace(secret, MASK) } else { text })
    }

    pub fn strike_value(&self, value: &mut Value) {
        match value {
            _ if self.0.is_empty() => {}
            Value::String(text) => *text = self.strike(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.strike_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.strike_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// What an address hides: user, password, and what follows the path, whole and by its values.
fn hidden_in(url: &str) -> impl Iterator<Item = &str> {
    let (address, rest) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    let login = split_authority(address).and_then(|(_, authority, _)| Some(authority.rsplit_once('@')?.0));
    let login = login.into_iter().flat_map(|login| login.split(':').chain([login]));
    let values = rest.split(['?', '&', '#']).map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    login.chain(values)
}

/// Scheme, authority, and the rest.
pub fn split_authority(address: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    Some((scheme, authority, path))
}

#[cfg(test)]
mod tests {
    use super::Secrets;
    use crate::mcp::Transport;
    use serde_json::json;

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
