//! Where an API is and how requests to it authenticate: everything of a provider that an operator may change while the
//! server runs, as plain data. Keys and header values are never shown (invariant 17).

use domain::provider_settings::ProviderSettings;
use reqwest::header::{HeaderName, HeaderValue};
use std::{fmt, net::IpAddr};

/// The address of an API, its key, and further headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAccess {
    pub base_url: String,
    /// The environment variable that the address comes from, if it is not from the configuration.
    pub base_url_variable: Option<String>,
    pub key: Option<ApiKey>,
    /// The environment variables that may hold the key, in the order in which they are tried; empty if no key is needed.
    pub key_variables: Vec<String>,
    pub headers: Vec<ApiHeader>,
    /// Whether only public addresses may be reached, and what the operator allows: the address is not the operator's.
    pub is_guarded: bool,
}

/// Where the key of a workspace's own settings comes from, for people.
const SETTINGS: &str = "the provider settings";

impl ApiAccess {
    /// The access with a workspace's own address and key. The server's key and headers belong to the server's account: they
    /// are not used with a key of the workspace, and never sent to an address of the workspace.
    pub(super) fn with_settings(&self, settings: &ProviderSettings, is_operators: bool) -> Self {
        let mut access = self.clone();
        if let Some(base_url) = &settings.base_url {
            access.base_url.clone_from(base_url);
            access.base_url_variable = None;
            access.is_guarded = !is_operators;
            (access.key, access.headers) = (None, Vec::new());
        }
        if let Some(key) = settings.key.as_deref().and_then(|key| ApiKey::new(key, SETTINGS)) {
            (access.key, access.headers) = (Some(key), Vec::new());
        }
        access
    }

    /// Where the key, or else the address, comes from.
    pub(super) fn source(&self) -> Option<AccessSource> {
        match &self.key {
            Some(key) if key.source == SETTINGS => Some(AccessSource::Settings),
            Some(_) => Some(AccessSource::Environment),
            None if !self.headers.is_empty() || self.base_url_variable.is_some() => Some(AccessSource::Environment),
            None => None,
        }
    }

    pub fn is_authenticated(&self) -> bool {
        self.key.is_some() || self.headers.iter().any(|header| header.name == reqwest::header::AUTHORIZATION)
    }

    /// The values that no message may contain.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let key = self.key.iter().map(|key| key.text.as_str());
        key.chain(self.headers.iter().filter_map(|header| header.value.to_str().ok()))
    }

    /// Says which address, key and headers are in force, without secrets.
    pub(super) fn describe(&self) -> String {
        let mut parts = vec![domain::mcp::url_without_secrets(&self.base_url)];
        parts.extend(self.base_url_variable.iter().map(|variable| format!("address from {variable}")));
        parts.push(match &self.key {
            Some(key) => format!("key from {}", key.source),
            None => "no key".to_owned(),
        });
        let mut sources: Vec<&str> = self.headers.iter().map(|header| header.source.as_str()).collect();
        sources.dedup();
        parts.extend(sources.into_iter().map(|source| format!("headers from {source}")));
        parts.join(", ")
    }

    /// The variables to set for a key, such as `GEMINI_API_KEY or GOOGLE_API_KEY`.
    pub(super) fn key_variable_names(&self) -> Option<String> {
        (!self.key_variables.is_empty()).then(|| self.key_variables.join(" or "))
    }
}

/// Where a provider's key or address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessSource {
    /// Variables of the server's environment.
    Environment,
    /// The workspace's own settings.
    Settings,
}

/// An API key, and where it comes from.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    text: String,
    source: String,
}

impl ApiKey {
    /// `None` if the text cannot be a key.
    pub fn new(text: &str, source: impl Into<String>) -> Option<Self> {
        let text = text.trim();
        let is_usable = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic());
        is_usable.then(|| Self { text: text.to_owned(), source: source.into() })
    }

    pub(super) fn expose(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[redacted] from {}", self.source)
    }
}

/// A header of every request, and where it comes from.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiHeader {
    pub(super) name: HeaderName,
    pub(super) value: HeaderValue,
    source: String,
}

impl ApiHeader {
    /// `None` if HTTP does not allow the name or the value.
    pub fn new(name: &str, value: &str, source: impl Into<String>) -> Option<Self> {
        let mut value = HeaderValue::from_str(value.trim()).ok()?;
        value.set_sensitive(true);
        Some(Self { name: name.trim().parse().ok()?, value, source: source.into() })
    }
}

impl fmt::Debug for ApiHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [redacted] from {}", self.name, self.source)
    }
}

/// Returns whether the URL is on this machine.
pub fn is_local(url: &str) -> bool {
    let host = host_of(url);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Returns whether the URL is on this host, or on one below it, such as that of a region.
pub fn is_at_host(url: &str, host: &str) -> bool {
    let found = host_of(url).to_ascii_lowercase();
    found.strip_suffix(host).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns whether two URLs are on one host.
pub(super) fn is_same_host(one: &str, other: &str) -> bool {
    host_of(one).eq_ignore_ascii_case(host_of(other))
}

fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessSource, ApiAccess, ApiHeader, ApiKey, is_at_host, is_local};
    use domain::provider_settings::ProviderSettings;

    #[test]
    fn loopback_urls_are_local() {
        for local in
            ["http://127.0.0.1:11434/v1", "http://localhost:1234", "http://[::1]:8000/v1", "http://user@127.1.2.3/"]
        {
            assert!(is_local(local), "{local}");
        }
        for other in ["https://api.openai.com/v1", "http://localhost.example.org", "http://127.0.0.1.example.org/", "x"]
        {
            assert!(!is_local(other), "{other}");
        }
    }

    #[test]
    fn a_vendors_host_has_regions_but_no_look_alikes() {
        for own in ["https://api.openai.com/v1", "https://EU.api.openai.com/v1", "https://api.openai.com:443"] {
            assert!(is_at_host(own, "api.openai.com"), "{own}");
        }
        for other in ["https://notapi.openai.com", "https://api.openai.com.example.org", "https://x/api.openai.com"] {
            assert!(!is_at_host(other, "api.openai.com"), "{other}");
        }
    }

    #[test]
    fn invariant_17_secrets_stay_keys_and_headers_are_not_shown() {
        let access = ApiAccess {
            base_url: "https://me:hunter2@gateway.example.org".into(),
            base_url_variable: Some("ANTHROPIC_BASE_URL".into()),
            key: ApiKey::new(" sk-secret\n", "ANTHROPIC_API_KEY"),
            key_variables: vec!["ANTHROPIC_API_KEY".into()],
            headers: ApiHeader::new("X-Team", "blue secret", "ANTHROPIC_CUSTOM_HEADERS").into_iter().collect(),
            is_guarded: false,
        };
        let shown = access.describe();
        assert!(!shown.contains("secret") && !shown.contains("hunter2"), "{shown}");
        for part in
            ["address from ANTHROPIC_BASE_URL", "key from ANTHROPIC_API_KEY", "headers from ANTHROPIC_CUSTOM_HEADERS"]
        {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(!format!("{:?}{:?}", access.key, access.headers).contains("secret"));
        assert_eq!(access.secrets().collect::<Vec<_>>(), ["sk-secret", "blue secret"]);
        // The server's secrets stay at the server's address.
        let moved = ProviderSettings { base_url: Some("https://x.example".into()), ..ProviderSettings::default() };
        let moved = access.with_settings(&moved, false);
        assert!(moved.secrets().next().is_none() && moved.is_guarded && !moved.is_authenticated());
        let own = ProviderSettings { key: Some("sk-own".into()), ..ProviderSettings::default() };
        let own = access.with_settings(&own, false);
        assert_eq!(own.secrets().collect::<Vec<_>>(), ["sk-own"]);
        assert_eq!((own.base_url.as_str(), own.is_guarded), (access.base_url.as_str(), false));
        assert_eq!((own.source(), access.source()), (Some(AccessSource::Settings), Some(AccessSource::Environment)));
        let bad = ["  ", "two words", "a\u{1}"];
        assert!(bad.iter().all(|text| ApiKey::new(text, "X").is_none()));
        assert!(ApiHeader::new("a b", "x", "X").is_none() && ApiHeader::new("a", "x\ny", "X").is_none());
    }
}
