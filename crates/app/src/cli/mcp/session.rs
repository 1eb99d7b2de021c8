//! The state of a session of an older protocol revision. It is kept so that the session can be restored after a restart
//! of the server, without the client noticing.

use super::{
    endpoint::McpEndpoint,
    headers::{LAST_EVENT, SESSION, VERSION},
    message::{self, ClientRequest},
};
use crate::cli::client::{ClientError, REQUEST_DEADLINE};
use reqwest::header::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Subscriptions beyond this limit are not restored after a restart of the server.
const MAX_SUBSCRIPTIONS: usize = 1000;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[derive(Default)]
pub struct BridgeSessions {
    state: Mutex<BridgeSessionState>,
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct BridgeSessionState {
    current: BridgeSession,
    /// The parameters of the client's `initialize`.
    initialize_params: Option<String>,
    /// The parameters of its last `logging/setLevel`.
    level: Option<String>,
    /// The parameters of each `resources/subscribe`, by uri.
    subscriptions: BTreeMap<String, String>,
}

#[derive(Clone, Default, Debug)]
pub struct BridgeSession {
    /// Distinguishes a session from its successor.
    generation: u64,
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl BridgeSession {
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns whether the server has assigned a session id; not every server does.
    pub fn has_id(&self) -> bool {
        self.id.is_some()
    }

    pub fn headers(&self) -> HeaderMap {
        let named = [(SESSION, &self.id), (VERSION, &self.version)];
        named.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// The headers for a stream that resumes after an event.
    pub fn headers_after(&self, event: Option<&str>) -> HeaderMap {
        let mut headers = self.headers();
        if let Some(event) = event.and_then(|event| HeaderValue::from_str(event).ok()) {
            headers.insert(LAST_EVENT, event);
        }
        headers
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResponse {
    protocol_version: String,
}

impl BridgeSessions {
    pub fn current(&self) -> BridgeSession {
        self.state().current.clone()
    }

    /// Stores a new session after `initialize`. Returns the previous session, which is no longer needed.
    pub fn begin(&self, greeting: Option<String>, id: Option<HeaderValue>, result: &str) -> BridgeSession {
        let mut state = self.state();
        let generation = state.current.generation + 1;
        let current = BridgeSession { generation, id, version: version(result) };
        let new = BridgeSessionState { current, initialize_params: greeting, ..BridgeSessionState::default() };
        std::mem::replace(&mut *state, new).current
    }

    /// Remembers a successful request whose effect the server would lose in a restart.
    pub fn remember(&self, request: &ClientRequest, bytes: &[u8]) {
        let (mut state, params) = (self.state(), || message::params(bytes).unwrap_or_default());
        match (request.method.as_str(), &request.params.uri) {
            ("resources/subscribe", Some(uri)) if state.subscriptions.len() < MAX_SUBSCRIPTIONS => {
                state.subscriptions.insert(uri.clone(), params());
            }
            ("resources/unsubscribe", Some(uri)) => {
                state.subscriptions.remove(uri);
            }
            ("logging/setLevel", _) => state.level = Some(params()),
            _ => {}
        }
    }

    /// Initializes a new session on behalf of the client, after the server has lost `expired`. Returns notifications
    /// for everything that may have changed; none if another task has already renewed the session.
    pub async fn renew(&self, endpoint: &McpEndpoint, expired: &BridgeSession) -> Result<Vec<Value>, ClientError> {
        let _alone = self.renewing.lock().await;
        let (greeting, level, subscriptions) = {
            let state = self.state();
            if state.current.generation != expired.generation {
                return Ok(Vec::new());
            }
            (state.initialize_params.clone().unwrap_or_default(), state.level.clone(), state.subscriptions.clone())
        };
        let initialized = endpoint.call("initialize", &greeting, HeaderMap::new()).await?;
        let version = version(&initialized.result);
        let session = BridgeSession { generation: expired.generation + 1, id: initialized.session, version };
        let headers = session.headers();
        endpoint.post(INITIALIZED.into(), headers.clone(), REQUEST_DEADLINE).await?;
        if let Some(level) = level {
            endpoint.call("logging/setLevel", &level, headers.clone()).await?;
        }
        let mut missed = lists(&initialized.result);
        for (uri, params) in subscriptions {
            match endpoint.call("resources/subscribe", &params, headers.clone()).await {
                Ok(_) => missed.push(notification("notifications/resources/updated", &json!({"uri": uri}))),
                Err(error @ ClientError::Refused { .. }) => {
                    super::note(&format!("{uri} is not followed any more: {error}"))
                }
                Err(error) => return Err(error),
            }
        }
        let mut state = self.state();
        // The client may have initialized again meanwhile; then this session is unused and expires.
        if state.current.generation == expired.generation {
            state.current = session;
        }
        Ok(missed)
    }

    fn state(&self) -> MutexGuard<'_, BridgeSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A "list changed" notification for each list for which the server supports it.
fn lists(result: &str) -> Vec<Value> {
    let initialized: Value = serde_json::from_str(result).unwrap_or_default();
    let is_supported = |list: &&&str| initialized["capabilities"][**list]["listChanged"] == true;
    let changed = |list: &&str| notification(&format!("notifications/{list}/list_changed"), &json!({}));
    ["tools", "prompts", "resources"].iter().filter(is_supported).map(changed).collect()
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn version(result: &str) -> Option<HeaderValue> {
    let initialized: InitializeResponse = serde_json::from_str(result).ok()?;
    HeaderValue::from_str(&initialized.protocol_version).ok()
}
