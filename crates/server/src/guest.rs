//! Serves the programs of this server's own agents on connections that come out of their sandboxes: the model gateway and
//! the host tools, and nothing else of the API.
//!
//! Such a connection has no address that says anything, so every request needs the token of a process, whatever the settings
//! of the server are.

use crate::{App, host_tools_router, listen::ConnectionAddrs};
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderName, HeaderValue, Request, Response, StatusCode, header},
    response::IntoResponse as _,
};
use bytes::Bytes;
use engine::gateway::GuestRequest;
use futures_util::stream;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use std::{convert::Infallible, io, time::Duration};
use tokio::net::TcpStream;
use tower::Service as _;

/// How long the head of a request may take, and how long a connection is kept without one.
const HEADER_READ: Duration = Duration::from_secs(120);
/// Requests to models have whole conversations and images in them.
const MAX_BODY_BYTES: usize = 64 << 20;

const PREFIX: &str = "/gateway/";

/// The endpoints of programs in sandboxes.
#[derive(Clone)]
pub struct GuestEndpoints {
    app: App,
    host_tools: Router,
}

impl GuestEndpoints {
    pub fn new(app: &App) -> Self {
        Self { app: App::clone(app), host_tools: host_tools_router(app) }
    }

    /// Serves `/mcp` for an agent's program.
    pub async fn serve_host_tools(self, connection: TcpStream) {
        serve(connection, move |request| {
            let mut router = self.host_tools.clone();
            async move {
                match has_agent_token(&request) {
                    true => router.call(request).await.unwrap_or_else(|never: Infallible| match never {}),
                    false => refusal(StatusCode::UNAUTHORIZED, "the token of an agent's process is needed here"),
                }
            }
        })
        .await;
    }

    /// Serves `/gateway/…` for the programs of the sandbox with this key.
    pub async fn serve_gateway(self, sandbox: String, connection: TcpStream) {
        serve(connection, move |request| {
            let (app, sandbox) = (App::clone(&self.app), sandbox.clone());
            async move { forward(&app, sandbox, request).await }
        })
        .await;
    }
}

async fn serve<F>(connection: TcpStream, respond: impl Fn(Request<Body>) -> F + Send + Sync)
where
    F: Future<Output = Response<Body>> + Send,
{
    // The program may already have gone.
    let (Ok(remote), Ok(local)) = (connection.peer_addr(), connection.local_addr()) else { return };
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectionAddrs { remote, local });
        let response = respond(request.map(Body::new));
        async move { Ok::<_, Infallible>(response.await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_READ);
    if let Err(error) = http.serve_connection(TokioIo::new(connection), service).await {
        tracing::debug!(%error, "a connection from a sandbox ended early");
    }
}

fn has_agent_token(request: &Request<Body>) -> bool {
    let shown = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    shown.and_then(|shown| shown.strip_prefix(b"Bearer ")).is_some_and(engine::is_agent_token)
}

async fn forward(app: &App, sandbox: String, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().and_then(|target| target.as_str().strip_prefix(PREFIX));
    let Some(target) = target.map(str::to_owned) else {
        return refusal(StatusCode::NOT_FOUND, "only the paths beneath /gateway/ are served here");
    };
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large or ended early");
    };
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    let request = GuestRequest { sandbox, method: head.method.to_string(), target, headers, body: body.to_vec() };
    match app.engine.forward_to_model(request).await {
        Ok(answer) => {
            let pieces = stream::try_unfold(answer.body, |mut body| async {
                let piece = body.next().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>(piece.map(|piece| (Bytes::from(piece), body)))
            });
            let mut response = Response::new(Body::from_stream(pieces));
            *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
            let headers = answer.headers.iter().filter_map(|(name, value)| {
                Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(value).ok()?))
            });
            response.headers_mut().extend(headers);
            response
        }
        Err(refused) => {
            let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::BAD_GATEWAY);
            refusal(status, &refused.message)
        }
    }
}

/// In a form that the clients of all model APIs show.
fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let error = json!({"type": "gateway_refused", "code": status.as_u16(), "message": format!("Greenroom: {message}")});
    let body = json!({"type": "error", "error": error}).to_string();
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
