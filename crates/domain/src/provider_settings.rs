//! What a workspace sets for a provider: the address and the key of a model API, the model of agents that choose none, and
//! limits. Also the model APIs that a workspace adds itself, which are settings with a name of their own.

use crate::owner::Owner;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

pub const MAX_KEY_BYTES: usize = 4096;
pub const MAX_URL_BYTES: usize = 2048;
pub const MAX_LABEL_CHARS: usize = 100;
pub const MAX_MODEL_CHARS: usize = 200;

/// The settings of one provider in one workspace.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProviderSettings {
    /// Whether the workspace has added the provider: a server with a chat completions API.
    #[serde(default)]
    pub is_endpoint: bool,
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default)]
    pub base_url: Option<String>,
    /// Secret.
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub default_model: Option<String>,
    #[serde(default)]
    pub limits: ModelLimits,
}

/// Limits of model calls, for agents that do not set their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelLimits {
    /// The size of the model's context, in tokens.
    #[serde(default)]
    #[schema(minimum = 2048, maximum = 10_000_000)]
    pub context_window: Option<u32>,
    /// The longest answer of one model call, in tokens.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub max_output_tokens: Option<u32>,
}

/// Shows neither the key nor a password in the address (invariant 17).
impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("is_endpoint", &self.is_endpoint)
            .field("base_url", &self.base_url.as_deref().map(crate::mcp::url_without_secrets))
            .field("has_key", &self.key.is_some())
            .field("default_model", &self.default_model)
            .finish_non_exhaustive()
    }
}

/// A setting that cannot be stored: its JSON pointer, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{detail}")]
pub struct InvalidProviderSetting {
    pub pointer: &'static str,
    pub detail: String,
}

impl ProviderSettings {
    /// Checks the values, and brings them into the form in which they are used.
    pub fn checked(mut self) -> Result<Self, InvalidProviderSetting> {
        let refuse = |pointer, detail: String| Err(InvalidProviderSetting { pointer, detail });
        if let Some(key) = &mut self.key {
            *key = key.trim().to_owned();
            let is_usable = (1..=MAX_KEY_BYTES).contains(&key.len()) && key.chars().all(|c| c.is_ascii_graphic());
            if !is_usable {
                let detail = format!("key: one word of at most {MAX_KEY_BYTES} visible ASCII characters");
                return refuse("/key", detail);
            }
        }
        if let Some(url) = &mut self.base_url {
            *url = url.trim().trim_end_matches('/').to_owned();
            let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or_default();
            let is_usable =
                url.len() <= MAX_URL_BYTES && !host.is_empty() && url.chars().all(|letter| letter.is_ascii_graphic());
            if !is_usable {
                let detail = "base_url: an address that begins with https:// or http://, such as \
                              https://openrouter.ai/api/v1";
                return refuse("/base_url", detail.to_owned());
            }
        }
        let is_line = |text: &String, most: usize| {
            !text.trim().is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control)
        };
        if self.label.as_ref().is_some_and(|label| !is_line(label, MAX_LABEL_CHARS)) {
            return refuse("/label", format!("label: one line of 1 to {MAX_LABEL_CHARS} characters"));
        }
        if self.default_model.as_ref().is_some_and(|model| !is_line(model, MAX_MODEL_CHARS) || model.starts_with('-')) {
            return refuse(
                "/default_model",
                format!("default_model: the name of a model, at most {MAX_MODEL_CHARS} characters"),
            );
        }
        let ModelLimits { context_window, max_output_tokens } = self.limits;
        if context_window.is_some_and(|tokens| !(2_048..=10_000_000).contains(&tokens)) {
            return refuse("/limits/context_window", "limits.context_window: 2048 to 10000000 tokens".to_owned());
        }
        if max_output_tokens.is_some_and(|tokens| !(1..=1_000_000).contains(&tokens)) {
            return refuse("/limits/max_output_tokens", "limits.max_output_tokens: 1 to 1000000 tokens".to_owned());
        }
        Ok(self)
    }
}

/// The settings of all providers of one workspace, by the provider's name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WorkspaceProviders {
    /// Whether the workspace may reach addresses that are not public.
    pub is_operators: bool,
    pub settings: BTreeMap<String, ProviderSettings>,
    /// Why the settings of a provider cannot be read.
    pub unreadable: BTreeMap<String, String>,
}

impl WorkspaceProviders {
    /// A workspace that has set nothing.
    pub fn none(owner: &Owner) -> Self {
        Self { is_operators: owner.belongs_to_operator(), ..Self::default() }
    }

    pub fn get(&self, name: &str) -> Option<&ProviderSettings> {
        self.settings.get(name)
    }

    /// Whether calls of this model API use a key or an address of the workspace, so that none of the server's is used.
    pub fn has_own_access(&self, name: &str) -> bool {
        self.get(name).is_some_and(|settings| settings.key.is_some() || settings.base_url.is_some())
    }

    /// The same, for these providers only.
    pub fn only(&self, names: &[&str]) -> Self {
        let is_named = |name: &String| names.contains(&name.as_str());
        let settings = self.settings.iter().filter(|(name, _)| is_named(name));
        let unreadable = self.unreadable.iter().filter(|(name, _)| is_named(name));
        Self {
            is_operators: self.is_operators,
            settings: settings.map(|(name, settings)| (name.clone(), settings.clone())).collect(),
            unreadable: unreadable.map(|(name, problem)| (name.clone(), problem.clone())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ModelLimits, ProviderSettings, WorkspaceProviders};
    use crate::owner::Owner;

    fn with_url(url: &str) -> ProviderSettings {
        ProviderSettings { base_url: Some(url.to_owned()), ..ProviderSettings::default() }
    }

    #[test]
    fn settings_are_brought_into_one_form() {
        let given = ProviderSettings { key: Some(" sk-1\n".into()), ..with_url(" https://x.example/v1/ ") };
        let checked = given.checked().unwrap();
        assert_eq!(checked.key.as_deref(), Some("sk-1"));
        assert_eq!(checked.base_url.as_deref(), Some("https://x.example/v1"));
    }

    #[test]
    fn a_setting_that_cannot_be_used_is_named() {
        let key = |key: &str| ProviderSettings { key: Some(key.into()), ..ProviderSettings::default() };
        let model = |model: &str| ProviderSettings { default_model: Some(model.into()), ..ProviderSettings::default() };
        let limits = ModelLimits { context_window: Some(1), max_output_tokens: None };
        for (settings, pointer) in [
            (key(" "), "/key"),
            (key("two words"), "/key"),
            (key(&"k".repeat(5000)), "/key"),
            (with_url("ftp://x"), "/base_url"),
            (with_url("https://"), "/base_url"),
            (with_url("https://a b"), "/base_url"),
            (model("-x"), "/default_model"),
            (model("a\nb"), "/default_model"),
            (ProviderSettings { limits, ..ProviderSettings::default() }, "/limits/context_window"),
            (ProviderSettings { label: Some(String::new()), ..ProviderSettings::default() }, "/label"),
        ] {
            assert_eq!(settings.checked().unwrap_err().pointer, pointer);
        }
    }

    #[test]
    fn invariant_17_secrets_stay_settings_are_shown_without_the_key() {
        let settings = ProviderSettings { key: Some("sk-secret".into()), ..with_url("https://me:hunter2@x.example") };
        let all = WorkspaceProviders {
            settings: [("a".to_owned(), settings)].into(),
            ..WorkspaceProviders::none(&Owner::local())
        };
        let shown = format!("{all:?}");
        assert!(!shown.contains("sk-secret") && !shown.contains("hunter2"), "{shown}");
        assert!(all.has_own_access("a") && !all.has_own_access("b") && all.only(&["b"]).settings.is_empty());
    }
}
