//! What a session of an older revision holds, remembered so that a server that was restarted can be given it again and
//! the client need not notice.

use super::{
    door::Door,
    headers::{LAST_EVENT, SESSION, VERSION},
    message::{self, Request},
};
use crate::cli::client::{Error, ORDINARY};
use reqwest::header::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What a client subscribes to beyond this works until the server is restarted.
const MAX_SUBSCRIPTIONS: usize = 1000;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[derive(Default)]
pub struct Sessions {
    state: Mutex<State>,
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    current: Session,
    /// The parameters of the client's `initialize`.
    greeting: Option<String>,
    /// The parameters of its last `logging/setLevel`.
    level: Option<String>,
    /// The parameters of each `resources/subscribe`, by uri.
    subscriptions: BTreeMap<String, String>,
}

#[derive(Clone, Default, Debug)]
pub struct Session {
    /// Tells a session from the one that came after it.
    generation: u64,
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl Session {
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Not every server gives one.
    pub fn has_id(&self) -> bool {
        self.id.is_some()
    }

    pub fn headers(&self) -> HeaderMap {
        let named = [(SESSION, &self.id), (VERSION, &self.version)];
        named.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// For a stream that goes on after an event.
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
struct Greeted {
    protocol_version: String,
}

impl Sessions {
    pub fn current(&self) -> Session {
        self.state().current.clone()
    }

    /// The client and the server have greeted each other. Returns the session before, which nobody needs any more.
    pub fn begin(&self, greeting: Option<String>, id: Option<HeaderValue>, result: &str) -> Session {
        let mut state = self.state();
        let generation = state.current.generation + 1;
        let current = Session { generation, id, version: version(result) };
        let begun = State { current, greeting, ..State::default() };
        std::mem::replace(&mut *state, begun).current
    }

    /// Something that the server has agreed to and would have forgotten after a restart.
    pub fn remember(&self, request: &Request, bytes: &[u8]) {
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

    /// The server does not know `gone` any more: greets it again in the client's name. Returns what the client would have been
    /// told if anything has changed unseen; nothing when someone else has renewed the session already.
    pub async fn renew(&self, door: &Door, gone: &Session) -> Result<Vec<Value>, Error> {
        let _alone = self.renewing.lock().await;
        let (greeting, level, subscriptions) = {
            let state = self.state();
            if state.current.generation != gone.generation {
                return Ok(Vec::new());
            }
            (state.greeting.clone().unwrap_or_default(), state.level.clone(), state.subscriptions.clone())
        };
        let greeted = door.ask("initialize", &greeting, HeaderMap::new()).await?;
        let session =
            Session { generation: gone.generation + 1, id: greeted.session, version: version(&greeted.result) };
        let headers = session.headers();
        door.post(INITIALIZED.into(), headers.clone(), ORDINARY).await?;
        if let Some(level) = level {
            door.ask("logging/setLevel", &level, headers.clone()).await?;
        }
        let mut missed = lists(&greeted.result);
        for (uri, params) in subscriptions {
            match door.ask("resources/subscribe", &params, headers.clone()).await {
                Ok(_) => missed.push(notification("notifications/resources/updated", &json!({"uri": uri}))),
                Err(error @ Error::Refused { .. }) => super::note(&format!("{uri} is not followed any more: {error}")),
                Err(error) => return Err(error),
            }
        }
        let mut state = self.state();
        // The client may have greeted anew meanwhile; then this session is nobody's and expires.
        if state.current.generation == gone.generation {
            state.current = session;
        }
        Ok(missed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That each list may be another one, of those that the server says such a thing of.
fn lists(result: &str) -> Vec<Value> {
    let greeted: Value = serde_json::from_str(result).unwrap_or_default();
    let told = |list: &&&str| greeted["capabilities"][**list]["listChanged"] == true;
    let changed = |list: &&str| notification(&format!("notifications/{list}/list_changed"), &json!({}));
    ["tools", "prompts", "resources"].iter().filter(told).map(changed).collect()
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn version(result: &str) -> Option<HeaderValue> {
    let greeted: Greeted = serde_json::from_str(result).ok()?;
    HeaderValue::from_str(&greeted.protocol_version).ok()
}
