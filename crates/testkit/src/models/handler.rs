//! Handles requests: finds the API, key and model, plans the answer with the script, and formats it for the API.

use super::{
    anthropic, chat,
    errors::error_reply,
    gemini,
    history::RequestHistory,
    log::{RecordedRequest, RequestLog},
    reply::{IdSequence, ModelReply, respond, tokens},
    responses,
    script::{self, AnswerPlan},
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

/// The vendor APIs that return model output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VendorApi {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI chat completions.
    Chat,
    Gemini,
}

#[derive(Debug, Default)]
pub struct ModelHandler {
    pub log: Arc<RequestLog>,
    ids: IdSequence,
    /// Prompts that have already failed once.
    failed: Mutex<BTreeSet<String>>,
}

pub async fn serve(listener: TcpListener, handler: Arc<ModelHandler>, cancel: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => drop(connections.spawn(connection(socket, Arc::clone(&handler)))),
                Err(_) => sleep(AFTER_A_FAILED_ACCEPT).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn connection(socket: TcpStream, handler: Arc<ModelHandler>) {
    // Each token is a small write; Nagle would delay every one of them.
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let handler = Arc::clone(&handler);
        async move { Ok::<Response, Infallible>(handler.handle(request.map(Body::new)).await) }
    });
    // A client that disconnects and an answer that is cut on purpose are not failures.
    drop(http1::Builder::new().serve_connection(TokioIo::new(socket), service).await);
}

enum ModelRoute {
    Answer { api: VendorApi, model: Option<String>, is_streamed: bool },
    CountMessageTokens,
    CountContentTokens,
    Models,
    Health,
    NotFound,
}

impl ModelHandler {
    async fn handle(&self, request: axum::http::Request<Body>) -> Response {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, MAX_REQUEST_BYTES).await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = head.uri.path().split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let path = format!("/{path}");
        let mut request = RecordedRequest::new(head.method.to_string(), path.clone(), plain(&head.headers), body);
        request.key = key(&head.headers, &head.uri);
        let route = route(&head.method, &path, &request.body);
        let (status, answer) = match route {
            ModelRoute::Answer { api, model, is_streamed } => {
                let history = history(api, &request.body);
                request.api = Some(api);
                request.model = model;
                request.prompt = history.prompt().to_owned();
                let request = self.log.add(request);
                let reply = self.reply(api, &request, &history, is_streamed);
                return respond(reply, request, &self.log, &self.ids.next("req"));
            }
            ModelRoute::CountMessageTokens => (200, json!({"input_tokens": tokens(&request.body["messages"])})),
            ModelRoute::CountContentTokens => (200, json!({"totalTokens": tokens(&request.body["contents"])})),
            ModelRoute::Models if request.key.as_deref() == Some(BAD_KEY) => {
                (401, json!({"error": {"type": "authentication_error", "message": "invalid key"}}))
            }
            ModelRoute::Models => {
                let model = json!({"id": "double", "object": "model", "type": "model", "display_name": "Double"});
                (200, json!({"object": "list", "data": [model], "models": [], "has_more": false}))
            }
            ModelRoute::Health => (200, json!({"ok": true})),
            ModelRoute::NotFound => {
                (404, json!({"type": "error", "error": {"type": "not_found_error", "message": "no such endpoint"}}))
            }
        };
        let request = self.log.add(request);
        let reply = ModelReply::Whole { status, retry_after: None, body: answer };
        respond(reply, request, &self.log, &self.ids.next("req"))
    }

    fn reply(
        &self,
        api: VendorApi,
        request: &RecordedRequest,
        history: &RequestHistory,
        is_streamed: bool,
    ) -> ModelReply {
        let (body, ids) = (&request.body, &self.ids);
        let model = request.model.as_deref().unwrap_or("");
        if request.key.as_deref() == Some(BAD_KEY) {
            return error_reply(api, Some(401), ids);
        }
        if model.contains(BAD_MODEL) {
            return error_reply(api, Some(404), ids);
        }
        if api == VendorApi::Gemini && !is_streamed && gemini::is_side_question(body) {
            return gemini::side_answer(body, model, ids);
        }
        let answer = match script::plan(history) {
            AnswerPlan::Answer(answer) => answer,
            AnswerPlan::Fail(status) => return error_reply(api, status, ids),
            AnswerPlan::FailOnce(status) if self.fails_now(history) => return error_reply(api, status, ids),
            AnswerPlan::BreakOnce(answer) if self.fails_now(history) => answer,
            AnswerPlan::FailOnce(_) | AnswerPlan::BreakOnce(_) => script::recovered(),
        };
        match api {
            VendorApi::Messages => anthropic::reply(body, &answer, ids),
            VendorApi::Responses => responses::reply(body, &answer, ids),
            VendorApi::Chat => chat::reply(body, &answer, ids),
            VendorApi::Gemini => gemini::reply(body, &answer, ids, model, is_streamed),
        }
    }

    fn fails_now(&self, history: &RequestHistory) -> bool {
        let text = format!("{} {}", history.user_texts.len(), history.prompt());
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).insert(text)
    }
}

/// CLIs add their own prefixes to these paths, so match only the end.
fn route(method: &Method, path: &str, body: &Value) -> ModelRoute {
    let model = || body["model"].as_str().map(str::to_owned);
    let answer = |api| ModelRoute::Answer { api, model: model(), is_streamed: body["stream"] == true };
    if method == Method::HEAD || path == "/healthz" {
        return ModelRoute::Health;
    }
    if path.ends_with("/count_tokens") {
        return ModelRoute::CountMessageTokens;
    }
    if path.ends_with("/v1/messages") {
        return answer(VendorApi::Messages);
    }
    if path.ends_with("/responses") {
        return answer(VendorApi::Responses);
    }
    if path.ends_with("/chat/completions") {
        return answer(VendorApi::Chat);
    }
    if method == Method::GET && path.ends_with("/models") {
        return ModelRoute::Models;
    }
    let named = path.rsplit_once("/models/").and_then(|(_, rest)| rest.split_once(':'));
    match named {
        Some((_, "countTokens")) => ModelRoute::CountContentTokens,
        Some((model, verb @ ("generateContent" | "streamGenerateContent"))) => ModelRoute::Answer {
            api: VendorApi::Gemini,
            model: Some(model.to_owned()),
            is_streamed: verb == "streamGenerateContent",
        },
        _ => ModelRoute::NotFound,
    }
}

fn history(api: VendorApi, body: &Value) -> RequestHistory {
    match api {
        VendorApi::Messages => RequestHistory::from_anthropic(body),
        VendorApi::Responses => RequestHistory::from_responses(body),
        VendorApi::Chat => RequestHistory::from_chat(body),
        VendorApi::Gemini => RequestHistory::from_gemini(body),
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
