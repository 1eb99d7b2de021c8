//! The server's door for MCP, `/mcp`. Everything that is waited for has a deadline: the head of an answer, its body, and
//! the silence of a stream.

use super::message::Told;
use crate::cli::client::{Client, Error, ORDINARY};
use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::json;
use std::{collections::VecDeque, time::Duration};
use tokio::time::timeout;
use workbench::events::{Event, Events};

const PATH: &str = "/mcp";
const BOTH: &str = "application/json, text/event-stream";
const STREAM: &str = "text/event-stream";
/// A tool may be asked to wait for an hour, and an answer without a stream has its head at the end.
pub const LONGEST: Duration = Duration::from_secs(3700);
/// Longer than a server may be quiet: it sends comments at least every 15 seconds.
const SILENCE: Duration = Duration::from_secs(90);
/// No message is longer.
const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;
/// Of the requests that we make ourselves.
const OWN_ID: &str = "greenroom-mcp";

#[derive(Clone)]
pub struct Door {
    client: Client,
}

pub struct Answer {
    pub status: StatusCode,
    pub session: Option<HeaderValue>,
    pub body: Body,
}

pub enum Body {
    Text(String),
    Stream(Stream),
}

impl Door {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    pub fn server(&self) -> &str {
        self.client.server()
    }

    pub async fn post(&self, body: Bytes, headers: HeaderMap, deadline: Duration) -> Result<Answer, Error> {
        let request = self.client.request(Method::POST, PATH, &[]).header(CONTENT_TYPE, "application/json");
        self.answer(request.header(ACCEPT, BOTH).headers(headers).body(body), deadline).await
    }

    /// Opens the stream for what belongs to no request, or the rest of one that broke.
    pub async fn listen(&self, headers: HeaderMap) -> Result<Answer, Error> {
        let request = self.client.request(Method::GET, PATH, &[]);
        self.answer(request.header(ACCEPT, STREAM).headers(headers), ORDINARY).await
    }

    /// Ends a session.
    pub async fn delete(&self, headers: HeaderMap, deadline: Duration) -> Result<(), Error> {
        self.answer(self.client.request(Method::DELETE, PATH, &[]).headers(headers), deadline).await.map(drop)
    }

    /// Asks something on our own behalf. What else the server says meanwhile is for nobody.
    pub async fn ask(&self, method: &str, params: &str, headers: HeaderMap) -> Result<Asked, Error> {
        let params = if params.is_empty() { "{}" } else { params };
        let (id, method) = (json!(OWN_ID), json!(method));
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#);
        let asking = async {
            let answer = self.post(body.into(), headers, ORDINARY).await?;
            let told = match answer.body {
                Body::Text(text) => Told::parse(&text).ok_or_else(|| self.refusal(answer.status, &text))?,
                Body::Stream(mut stream) => loop {
                    let Some(event) = stream.next().await? else {
                        return Err(Error::lost(self.server(), "it ended before the answer came"));
                    };
                    match Told::parse(&event.data) {
                        Some(told) if told.answers.is_some() => break told,
                        _ => {}
                    }
                },
            };
            match (told.result, told.error) {
                (Some(result), _) => Ok(Asked { session: answer.session, result }),
                (None, Some(error)) => {
                    let code = error.code.to_string();
                    Err(Error::Refused { status: answer.status, code, detail: error.message })
                }
                (None, None) => Err(Error::foreign(self.server(), "it answers with something else")),
            }
        };
        timeout(ORDINARY, asking).await.unwrap_or_else(|_| Err(Error::lost(self.server(), "no answer in time")))
    }

    /// What an answer without a message means.
    pub fn refusal(&self, status: StatusCode, text: &str) -> Error {
        if status.is_success() {
            return Error::foreign(self.server(), "its answer is not a JSON-RPC message");
        }
        match Error::from_problem(self.server(), status, text.as_bytes()) {
            Error::Refused { status: StatusCode::UNAUTHORIZED, code, detail } => {
                let detail = format!("{detail} This command takes it from GREENROOM_TOKEN.");
                Error::Refused { status, code, detail }
            }
            error => error,
        }
    }

    async fn answer(&self, request: RequestBuilder, deadline: Duration) -> Result<Answer, Error> {
        let late = |_| Error::lost(self.server(), "no answer in time");
        let answer = timeout(deadline, request.send()).await.map_err(late)?;
        let answer = answer.map_err(|error| Error::from_transport(self.server(), error))?;
        let (status, session) = (answer.status(), answer.headers().get(super::headers::SESSION).cloned());
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let body = if status.is_success() && kind.is_some_and(|kind| kind.starts_with(STREAM)) {
            Body::Stream(Stream::new(answer, self.server()))
        } else {
            let body = timeout(ORDINARY, self.client.body(answer)).await.map_err(late)??;
            Body::Text(String::from_utf8_lossy(&body).into_owned())
        };
        Ok(Answer { status, session, body })
    }
}

pub struct Asked {
    pub session: Option<HeaderValue>,
    pub result: String,
}

pub struct Stream {
    answer: Response,
    events: Events,
    ready: VecDeque<Event>,
    server: String,
}

impl Stream {
    fn new(answer: Response, server: &str) -> Self {
        Self { answer, events: Events::new(MAX_EVENT_BYTES), ready: VecDeque::new(), server: server.to_owned() }
    }

    /// `None` when the server has ended it.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let chunk = timeout(SILENCE, self.answer.chunk()).await;
            let chunk = chunk.map_err(|_| Error::lost(&self.server, "it was silent for too long"))?;
            let Some(chunk) = chunk.map_err(|error| Error::from_transport(&self.server, error))? else {
                return Ok(None);
            };
            let events = self.events.push(&chunk).map_err(|long| Error::foreign(&self.server, &long.to_string()))?;
            self.ready.extend(events);
        }
    }
}
