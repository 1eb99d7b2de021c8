//! `[anthropic]`, `[openai]`, `[google]`, `[direct]`: model APIs that are called directly.

use super::{
    AppConfigError, Environment,
    programs::{NON_ACP_PROVIDERS, is_provider_name, variable},
    reader::ConfigReader,
};
use providers::{
    acp::Preset,
    direct::{Deadlines, is_local},
};
use std::collections::BTreeSet;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectSection {
    pub anthropic: ModelEndpoint,
    pub openai: ModelEndpoint,
    pub google: ModelEndpoint,
    /// Further servers with a chat completions API, by provider name.
    pub endpoints: Vec<(String, ModelEndpoint)>,
    /// Model servers that are looked for on this machine: provider name and address.
    pub local_servers: Vec<(String, String)>,
    /// Providers whose calls cost nothing.
    pub free: Vec<String>,
    /// Providers at another address than the vendor's that charge the vendor's prices.
    pub vendor_prices: Vec<String>,
    pub deadlines: Deadlines,
    pub retries: u32,
}

/// The address of an API, and the environment variables that may hold its key.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelEndpoint {
    pub base_url: String,
    /// The variable of the vendor's SDK that the address comes from, if it does.
    pub base_url_variable: Option<String>,
    pub key_variables: Vec<String>,
}

/// A vendor's address, and the variables that its SDK and its programs read.
struct VendorDefaults {
    section: &'static str,
    base_url: &'static str,
    base_url_variable: &'static str,
    key_variables: &'static [&'static str],
}

const ANTHROPIC: VendorDefaults = VendorDefaults {
    section: "anthropic",
    base_url: "https://api.anthropic.com",
    base_url_variable: "ANTHROPIC_BASE_URL",
    key_variables: &["ANTHROPIC_API_KEY"],
};
const OPENAI: VendorDefaults = VendorDefaults {
    section: "openai",
    base_url: "https://api.openai.com/v1",
    base_url_variable: "OPENAI_BASE_URL",
    key_variables: &["OPENAI_API_KEY"],
};
const GOOGLE: VendorDefaults = VendorDefaults {
    section: "google",
    base_url: "https://generativelanguage.googleapis.com",
    base_url_variable: "GOOGLE_GEMINI_BASE_URL",
    key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
};

/// Hides the password that an address may contain (invariant 17).
impl std::fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", domain::mcp::url_without_secrets(&self.base_url), self.key_variables)
    }
}

const AN_ADDRESS: &str = "empty, or an address that begins with http:// or https://";
const A_VARIABLE: &str = "empty, or the name of an environment variable that does not start with GREENROOM";
const DIRECT_PROVIDERS: &str = "a list of anthropic, openai, openai_responses, google and names in openai.endpoints";
const ENDPOINTS: &str = "a list of entries NAME = ADDRESS or NAME = ADDRESS VARIABLE, with NAME of a-z, 0-9, _ and -, each \
                         name once and not the name of another provider";

const LOCAL_SERVERS: &str = "a list of entries NAME = ADDRESS, with an address of this machine, such as \
                             ollama = http://127.0.0.1:11434/v1";

impl DirectSection {
    pub(super) fn read(from: &ConfigReader, environment: &Environment) -> Result<Self, AppConfigError> {
        let known: Vec<String> = Preset::all().into_iter().map(|preset| preset.name).collect();
        let endpoints = from.checked_list("openai.endpoints", ENDPOINTS, named, |endpoints| {
            let names: BTreeSet<&str> = endpoints.iter().map(|(name, _)| name.as_str()).collect();
            let others = NON_ACP_PROVIDERS.into_iter().chain(known.iter().map(String::as_str));
            names.len() == endpoints.len() && others.into_iter().all(|name| !names.contains(name))
        })?;
        let provider = |text: &str| {
            let is_known = ["anthropic", "openai", "openai_responses", "google"].contains(&text)
                || endpoints.iter().any(|(name, _)| name == text);
            is_known.then(|| text.to_owned())
        };
        Ok(Self {
            anthropic: ANTHROPIC.read(from, environment)?,
            openai: OPENAI.read(from, environment)?,
            google: GOOGLE.read(from, environment)?,
            local_servers: from.list("direct.local_servers", LOCAL_SERVERS, |text| {
                let (name, ModelEndpoint { base_url, key_variables, .. }) = named(text)?;
                (key_variables.is_empty() && is_local(&base_url)).then_some((name, base_url))
            })?,
            free: from.list("direct.free", DIRECT_PROVIDERS, provider)?,
            vendor_prices: from.list("direct.vendor_prices", DIRECT_PROVIDERS, provider)?,
            deadlines: Deadlines {
                connect: from.seconds("direct.connect_seconds", 1..=300)?,
                first_byte: from.seconds("direct.first_byte_seconds", 1..=3600)?,
                idle: from.seconds("direct.idle_seconds", 1..=3600)?,
            },
            retries: from.integer("direct.retries", 0..=20)?,
            endpoints,
        })
    }
}

impl VendorDefaults {
    /// The configuration comes first, then the variables of the vendor's SDK, so that they mean the same to this server
    /// as to the vendor's programs.
    fn read(&self, from: &ConfigReader, environment: &Environment) -> Result<ModelEndpoint, AppConfigError> {
        let key = |name: &str| format!("{}.{name}", self.section);
        let configured = from.parsed(&key("base_url"), AN_ADDRESS, |text| optional(text, address))?;
        let key_variable = from.parsed(&key("key_variable"), A_VARIABLE, |text| optional(text, variable))?;
        let key_variables = match key_variable {
            Some(variable) => vec![variable],
            None => self.key_variables.iter().map(|name| (*name).to_owned()).collect(),
        };
        let from_variable = || {
            let text = environment.get(self.base_url_variable)?.to_str()?.trim();
            (!text.is_empty()).then_some(text)
        };
        let (base_url, base_url_variable) = match (configured, from_variable()) {
            (Some(address), _) => (address, None),
            (None, None) => (self.base_url.to_owned(), None),
            (None, Some(text)) => {
                let variable = self.base_url_variable.to_owned();
                let found = address(text).ok_or_else(|| AppConfigError::Value {
                    key: key("base_url"),
                    // Not quoted: an address may contain a password.
                    given: "another text".to_owned(),
                    origin: variable.clone(),
                    allowed: AN_ADDRESS.to_owned(),
                })?;
                (found, Some(variable))
            }
        };
        Ok(ModelEndpoint { base_url, base_url_variable, key_variables })
    }
}

/// `Some(None)` for an empty text.
fn optional<T>(text: &str, parse: fn(&str) -> Option<T>) -> Option<Option<T>> {
    match text.trim() {
        "" => Some(None),
        text => parse(text).map(Some),
    }
}

fn address(text: &str) -> Option<String> {
    let text = text.trim();
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"))?;
    let is_usable = !host.is_empty() && !host.starts_with('/') && text.chars().all(|letter| letter.is_ascii_graphic());
    is_usable.then(|| text.trim_end_matches('/').to_owned())
}

fn named(text: &str) -> Option<(String, ModelEndpoint)> {
    let (name, rest) = text.split_once('=')?;
    let (name, mut words) = (name.trim(), rest.split_whitespace());
    let base_url = address(words.next()?)?;
    let key_variables = match words.next() {
        Some(word) => vec![variable(word)?],
        None => Vec::new(),
    };
    let fits = is_provider_name(name) && words.next().is_none();
    fits.then(|| (name.to_owned(), ModelEndpoint { base_url, base_url_variable: None, key_variables }))
}

#[cfg(test)]
mod tests {
    use super::{ModelEndpoint, address, named};

    #[test]
    fn an_endpoint_is_a_name_an_address_and_an_optional_variable() {
        let (name, ModelEndpoint { base_url, key_variables, .. }) =
            named("ollama = http://127.0.0.1:11434/v1/").unwrap();
        assert_eq!((name.as_str(), base_url.as_str(), key_variables.len()), ("ollama", "http://127.0.0.1:11434/v1", 0));
        let (_, endpoint) = named("work=https://llm.example.org/v1?x=1 WORK_KEY").unwrap();
        assert_eq!(
            (endpoint.base_url.as_str(), endpoint.key_variables),
            ("https://llm.example.org/v1?x=1", vec!["WORK_KEY".into()])
        );
        for wrong in [
            "ollama",
            "= http://h",
            "Ollama = http://h",
            "a = ftp://h",
            "a = http://h K EY",
            "a = http://h GREENROOM_X",
        ] {
            assert_eq!(named(wrong), None, "{wrong}");
        }
        assert!(address("http:///v1").is_none() && address("https://a b").is_none() && address("").is_none());
    }

    #[test]
    fn invariant_17_secrets_stay_an_address_is_shown_without_its_password() {
        let (_, endpoint) = named("a = https://me:hunter2@h/v1").unwrap();
        assert!(!format!("{endpoint:?}").contains("hunter2"));
    }
}
