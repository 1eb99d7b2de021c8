//! `[anthropic]`, `[openai]`, `[direct]`: model APIs that are called directly.

use super::{
    AppConfigError,
    programs::{NON_ACP_PROVIDERS, is_provider_name, variable},
    reader::ConfigReader,
};
use providers::{acp::Preset, direct::Deadlines};
use std::collections::BTreeSet;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirectSection {
    pub anthropic: ModelEndpoint,
    pub openai: ModelEndpoint,
    /// Further servers with a chat completions API, by provider name.
    pub endpoints: Vec<(String, ModelEndpoint)>,
    pub deadlines: Deadlines,
    pub retries: u32,
}

/// The address of an API, and the environment variable that holds its key.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelEndpoint {
    pub base_url: String,
    pub key_variable: Option<String>,
}

/// Hides the password that an address may contain (invariant 17).
impl std::fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", domain::mcp::url_without_secrets(&self.base_url), self.key_variable)
    }
}

const AN_ADDRESS: &str = "an address that begins with http:// or https://";
const A_VARIABLE: &str = "the name of an environment variable that does not start with GREENROOM";
const ENDPOINTS: &str = "a list of entries NAME = ADDRESS or NAME = ADDRESS VARIABLE, with NAME of a-z, 0-9, _ and -, each \
                         name once and not the name of another provider";

impl DirectSection {
    pub(super) fn read(from: &ConfigReader) -> Result<Self, AppConfigError> {
        let endpoint = |section: &str| {
            Ok(ModelEndpoint {
                base_url: from.parsed(&format!("{section}.base_url"), AN_ADDRESS, address)?,
                key_variable: Some(from.parsed(&format!("{section}.key_variable"), A_VARIABLE, variable)?),
            })
        };
        let known: Vec<String> = Preset::all().into_iter().map(|preset| preset.name).collect();
        Ok(Self {
            anthropic: endpoint("anthropic")?,
            openai: endpoint("openai")?,
            endpoints: from.checked_list("openai.endpoints", ENDPOINTS, named, |endpoints| {
                let names: BTreeSet<&str> = endpoints.iter().map(|(name, _)| name.as_str()).collect();
                let others = NON_ACP_PROVIDERS.into_iter().chain(known.iter().map(String::as_str));
                names.len() == endpoints.len() && others.into_iter().all(|name| !names.contains(name))
            })?,
            deadlines: Deadlines {
                connect: from.seconds("direct.connect_seconds", 1..=300)?,
                first_byte: from.seconds("direct.first_byte_seconds", 1..=3600)?,
                idle: from.seconds("direct.idle_seconds", 1..=3600)?,
            },
            retries: from.integer("direct.retries", 0..=20)?,
        })
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
    let key_variable = match words.next() {
        Some(word) => Some(variable(word)?),
        None => None,
    };
    let fits = is_provider_name(name) && words.next().is_none();
    fits.then(|| (name.to_owned(), ModelEndpoint { base_url, key_variable }))
}

#[cfg(test)]
mod tests {
    use super::{ModelEndpoint, address, named};

    #[test]
    fn an_endpoint_is_a_name_an_address_and_an_optional_variable() {
        let (name, ModelEndpoint { base_url, key_variable }) = named("ollama = http://127.0.0.1:11434/v1/").unwrap();
        assert_eq!((name.as_str(), base_url.as_str(), key_variable), ("ollama", "http://127.0.0.1:11434/v1", None));
        let (_, ModelEndpoint { base_url, key_variable }) =
            named("work=https://llm.example.org/v1?x=1 WORK_KEY").unwrap();
        assert_eq!((base_url.as_str(), key_variable.as_deref()), ("https://llm.example.org/v1?x=1", Some("WORK_KEY")));
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
