//! Where requests come in: which API is asked, by whom, for which model; then the script, then the API's own words.

use super::{
    anthropic, chat, gemini,
    history::History,
    log::{Log, Request},
    refusal::refuse,
    reply::{Ids, Reply, respond, tokens},
    responses,
    script::{self, Plan},
};
use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Uri},
    response::Response,
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;
const AFTER_A_FAILED_ACCEPT: Duration = Duration::from_millis(10);
const BAD_KEY: &str = "bad-key";
const BAD_MODEL: &str = "bad-model";

/// Those that answer with a model's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Api {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI chat completions.
    Chat,
    Gemini,
}

#[derive(Debug, Default)]
pub struct Door {
    pub log: Arc<Log>,
    ids: Ids,
    /// Texts whose one failure was given.
    failed: Mutex<BTreeSet<String>>,
}

pub async fn serve(listener: TcpListener, door: Arc<Door>, cancel: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => drop(connections.spawn(connection(socket, Arc::clone(&door)))),
                Err(_) => sleep(AFTER_A_FAILED_ACCEPT).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn connection(socket: TcpStream, door: Arc<Door>) {
    // A token is one small write; waiting to fill a packet would hold back every one of them.
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let door = Arc::clone(&door);
        async move { Ok::<Response, Infallible>(door.answer(request.map(Body::new)).await) }
    });
    // A client that leaves in the middle, and an answer that is cut on purpose, are no failures of ours.
    drop(http1::Builder::new().serve_connection(TokioIo::new(socket), service).await);
}

enum Route {
    Answer { api: Api, model: Option<String>, is_streamed: bool },
    Messages,
    Contents,
    Models,
    Healthy,
    Nowhere,
}

impl Door {
    async fn answer(&self, request: axum::http::Request<Body>) -> Response {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, MAX_REQUEST_BYTES).await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = head.uri.path().split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let path = format!("/{path}");
        let mut request = Request::new(head.method.to_string(), path.clone(), plain(&head.headers), body);
        request.key = key(&head.headers, &head.uri);
        let route = route(&head.method, &path, &request.body);
        let (status, answer) = match route {
            Route::Answer { api, model, is_streamed } => {
                let history = history(api, &request.body);
                request.api = Some(api);
                request.model = model;
                request.prompt = history.prompt().to_owned();
                let request = self.log.add(request);
                let reply = self.reply(api, &request, &history, is_streamed);
                return respond(reply, request, &self.log, &self.ids.next("req"));
            }
            Route::Messages => (200, json!({"input_tokens": tokens(&request.body["messages"])})),
            Route::Contents => (200, json!({"totalTokens": tokens(&request.body["contents"])})),
            Route::Models => {
                let model = json!({"id": "double", "object": "model", "type": "model", "display_name": "Double"});
                (200, json!({"object": "list", "data": [model], "models": [], "has_more": false}))
            }
            Route::Healthy => (200, json!({"ok": true})),
            Route::Nowhere => {
                (404, json!({"type": "error", "error": {"type": "not_found_error", "message": "no such door"}}))
            }
        };
        let request = self.log.add(request);
        let reply = Reply::Whole { status, retry_after: None, body: answer };
        respond(reply, request, &self.log, &self.ids.next("req"))
    }

    fn reply(&self, api: Api, request: &Request, history: &History, is_streamed: bool) -> Reply {
        let (body, ids) = (&request.body, &self.ids);
        let model = request.model.as_deref().unwrap_or("");
        if request.key.as_deref() == Some(BAD_KEY) {
            return refuse(api, Some(401), ids);
        }
        if model.contains(BAD_MODEL) {
            return refuse(api, Some(404), ids);
        }
        if api == Api::Gemini && !is_streamed && gemini::is_side_question(body) {
            return gemini::side_answer(body, model, ids);
        }
        let answer = match script::plan(history) {
            Plan::Say(answer) => answer,
            Plan::Fail(status) => return refuse(api, status, ids),
            Plan::FailOnce(status) if self.fails_now(history) => return refuse(api, status, ids),
            Plan::BreakOnce(answer) if self.fails_now(history) => answer,
            Plan::FailOnce(_) | Plan::BreakOnce(_) => script::recovered(),
        };
        match api {
            Api::Messages => anthropic::reply(body, &answer, ids),
            Api::Responses => responses::reply(body, &answer, ids),
            Api::Chat => chat::reply(body, &answer, ids),
            Api::Gemini => gemini::reply(body, &answer, ids, model, is_streamed),
        }
    }

    fn fails_now(&self, history: &History) -> bool {
        let text = format!("{} {}", history.users.len(), history.prompt());
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).insert(text)
    }
}

/// CLIs put their own prefixes before these paths, so only the ends count.
fn route(method: &Method, path: &str, body: &Value) -> Route {
    let model = || body["model"].as_str().map(str::to_owned);
    let answer = |api| Route::Answer { api, model: model(), is_streamed: body["stream"] == true };
    if method == Method::HEAD || path == "/healthz" {
        return Route::Healthy;
    }
    if path.ends_with("/count_tokens") {
        return Route::Messages;
    }
    if path.ends_with("/v1/messages") {
        return answer(Api::Messages);
    }
    if path.ends_with("/responses") {
        return answer(Api::Responses);
    }
    if path.ends_with("/chat/completions") {
        return answer(Api::Chat);
    }
    if method == Method::GET && path.ends_with("/models") {
        return Route::Models;
    }
    let named = path.rsplit_once("/models/").and_then(|(_, rest)| rest.split_once(':'));
    match named {
        Some((_, "countTokens")) => Route::Contents,
        Some((model, verb @ ("generateContent" | "streamGenerateContent"))) => Route::Answer {
            api: Api::Gemini,
            model: Some(model.to_owned()),
            is_streamed: verb == "streamGenerateContent",
        },
        _ => Route::Nowhere,
    }
}

fn history(api: Api, body: &Value) -> History {
    match api {
        Api::Messages => History::of_messages(body),
        Api::Responses => History::of_responses(body),
        Api::Chat => History::of_chat(body),
        Api::Gemini => History::of_gemini(body),
    }
}

fn plain(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    headers.iter().map(text).collect()
}

fn key(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || header("authorization")?.strip_prefix("Bearer ");
    let parameter = || uri.query()?.split('&').find_map(|pair| pair.strip_prefix("key="));
    let found = header("x-api-key").or_else(bearer).or_else(|| header("x-goog-api-key")).or_else(parameter);
    found.map(str::to_owned)
}
