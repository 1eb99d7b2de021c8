//! The model APIs that the gateway knows: where each is, how the real key is sent, and by which variables a program finds
//! it.

use super::{GATEWAY_PORT, GatewayRoute};
use domain::provider_settings::ProviderSettings;
use reqwest::header::{HeaderName, HeaderValue};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

/// One vendor's API. The gateway passes its requests on as they are.
#[derive(Debug, PartialEq, Eq)]
pub struct ModelWire {
    /// The part of the path after `/gateway/`.
    pub name: &'static str,
    /// The provider under which a workspace sets its own key and address.
    pub settings: &'static str,
    default_url: &'static str,
    /// Names the API's address for the server, and the gateway's for the program.
    pub url_variable: &'static str,
    /// The variables that can hold the real key, the first that is set; and how it is sent. Inside, the same variable holds the
    /// token.
    keys: &'static [(&'static str, KeyHeader)],
    /// Further variables of the server that become headers.
    headers: &'static [(&'static str, &'static str)],
    /// What else belongs to the server's account.
    account_variables: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyHeader {
    Plain(&'static str),
    Bearer,
}

impl ModelWire {
    pub const ANTHROPIC: Self = Self {
        name: "anthropic",
        settings: "anthropic",
        default_url: "https://api.anthropic.com",
        url_variable: "ANTHROPIC_BASE_URL",
        keys: &[
            ("ANTHROPIC_API_KEY", KeyHeader::Plain("x-api-key")),
            ("ANTHROPIC_AUTH_TOKEN", KeyHeader::Bearer),
            ("CLAUDE_CODE_OAUTH_TOKEN", KeyHeader::Bearer),
        ],
        headers: &[],
        account_variables: &["ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"],
    };
    pub const OPENAI: Self = Self {
        name: "openai",
        settings: "openai",
        default_url: "https://api.openai.com/v1",
        url_variable: "OPENAI_BASE_URL",
        keys: &[("OPENAI_API_KEY", KeyHeader::Bearer), ("CODEX_API_KEY", KeyHeader::Bearer)],
        headers: &[("OPENAI_ORGANIZATION", "openai-organization"), ("OPENAI_PROJECT", "openai-project")],
        account_variables: &[],
    };
    pub const GEMINI: Self = Self {
        name: "gemini",
        settings: "google",
        default_url: "https://generativelanguage.googleapis.com",
        url_variable: "GOOGLE_GEMINI_BASE_URL",
        keys: &[("GEMINI_API_KEY", KeyHeader::Plain("x-goog-api-key"))],
        headers: &[],
        account_variables: &["GOOGLE_API_KEY"],
    };
    pub const ALL: [Self; 3] = [Self::ANTHROPIC, Self::OPENAI, Self::GEMINI];

    /// The gateway's address for this API, as programs see it.
    pub fn guest_url(&self) -> String {
        guest_url(self.name)
    }

    /// The variables that hold the API's keys.
    pub fn key_variables(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|(variable, _)| *variable)
    }

    /// Returns whether this environment has a key for the API.
    pub fn has_key(&self, environment: &BTreeMap<OsString, OsString>) -> bool {
        self.key(environment).is_some()
    }

    /// Removes what belongs to the server's account.
    pub fn clear(&self, environment: &mut BTreeMap<OsString, OsString>) {
        let headers = self.headers.iter().map(|(variable, _)| *variable);
        let others = self.account_variables.iter().copied().chain([self.url_variable]);
        for variable in self.key_variables().chain(headers).chain(others) {
            environment.remove(OsStr::new(variable));
        }
    }

    /// Replaces what belongs to the server's account by a workspace's own key and address. The server's address stays
    /// for a key without an address; the server's key never goes to an address of the workspace.
    pub fn replace(&self, environment: &mut BTreeMap<OsString, OsString>, own: &ProviderSettings) {
        let server_url = value(environment, self.url_variable).map(OsString::from);
        self.clear(environment);
        if let Some(url) = own.base_url.as_ref().map(OsString::from).or(server_url) {
            environment.insert(self.url_variable.into(), url);
        }
        if let (Some((variable, _)), Some(key)) = (self.keys.first(), &own.key) {
            environment.insert((*variable).into(), key.into());
        }
    }

    fn key<'a>(&self, environment: &'a BTreeMap<OsString, OsString>) -> Option<(&'static str, &'a str, KeyHeader)> {
        self.keys.iter().find_map(|(variable, header)| Some((*variable, value(environment, variable)?, *header)))
    }

    /// The variables by which a program finds the API at the gateway.
    pub(super) fn variables(
        &self,
        environment: &BTreeMap<OsString, OsString>,
        token: &str,
    ) -> [(OsString, OsString); 2] {
        let first = self.keys.first().map_or("", |(variable, _)| *variable);
        let variable = self.key(environment).map_or(first, |(variable, _, _)| variable);
        [(self.url_variable.into(), self.guest_url().into()), (variable.into(), token.into())]
    }

    /// The route to the API with the keys of the server's environment.
    pub(super) fn route(&self, environment: &BTreeMap<OsString, OsString>) -> GatewayRoute {
        let mut headers = Vec::new();
        let mut add = |name: &str, value: String| {
            if let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                value.set_sensitive(true);
                headers.push((name, value));
            }
        };
        let key = self.key(environment);
        match key {
            Some((_, key, KeyHeader::Plain(name))) => add(name, key.to_owned()),
            Some((_, key, KeyHeader::Bearer)) => add("authorization", format!("Bearer {key}")),
            None => {}
        }
        for (variable, name) in self.headers {
            if let Some(text) = value(environment, variable) {
                add(name, text.to_owned());
            }
        }
        let missing_key = key.is_none().then(|| {
            format!(
                "Greenroom has no key for this model API. Add one in the provider settings, or set {} in the server's \
                 environment. A login in a file is not used \
                 inside of a sandbox; see docs/sandbox.md.",
                self.key_variables().collect::<Vec<_>>().join(" or ")
            )
        });
        let base_url =
            value(environment, self.url_variable).unwrap_or(self.default_url).trim_end_matches('/').to_owned();
        GatewayRoute {
            name: self.name.to_owned(),
            base_url,
            headers,
            missing_key,
            is_guarded: false,
            is_model_api: true,
        }
    }
}

/// A variable that is set and not empty.
fn value<'a>(environment: &'a BTreeMap<OsString, OsString>, name: &str) -> Option<&'a str> {
    environment.get(OsStr::new(name))?.to_str().map(str::trim).filter(|text| !text.is_empty())
}

pub(super) fn guest_url(route: &str) -> String {
    format!("http://127.0.0.1:{GATEWAY_PORT}/gateway/{route}")
}
