//! Passes a request of a preview on to the port inside, and its response back. Also WebSockets, which dev servers use to reload.

use super::Preview;
use crate::{
    App,
    auth::{session_cookie, token},
};
use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header, uri::PathAndQuery},
    response::Response,
};
use engine::{EngineError, commands::PortConnection};
use hyper::{client::conn::http1, upgrade};
use hyper_util::rt::TokioIo;
use std::{sync::Arc, time::Duration};
use tokio::{io::copy_bidirectional, sync::OwnedSemaphorePermit, time::timeout};

/// From the request to the head of the response. Bodies may take as long as they want.
const RESPONSE_DEADLINE: Duration = Duration::from_secs(120);
/// A WebSocket on which nothing was sent is not ended: dev servers are silent for hours. The limit of connections holds.
const WEBSOCKET_LIFETIME: Duration = Duration::from_secs(12 * 3600);

/// Headers of one connection (RFC 9110, 7.6.1), which are not passed on.
const OF_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

#[derive(Debug, thiserror::Error)]
pub enum PreviewFailure {
    #[error("{0}")]
    NotServed(String),
    #[error("Too many connections to this preview are open. Close some of its tabs.")]
    TooMany,
    #[error("The program did not answer in time.")]
    Slow,
    #[error("The program did not answer as a web server does: {0}")]
    Broken(#[from] hyper::Error),
    #[error("This address cannot be passed on.")]
    Address,
}

impl PreviewFailure {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotServed(_) | Self::Broken(_) => StatusCode::BAD_GATEWAY,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Slow => StatusCode::GATEWAY_TIMEOUT,
            Self::Address => StatusCode::BAD_REQUEST,
        }
    }
}

pub async fn forward(app: &App, preview: &Arc<Preview>, mut request: Request) -> Result<Response, PreviewFailure> {
    let permit = Arc::clone(&preview.connections).try_acquire_owned().map_err(|_| PreviewFailure::TooMany)?;
    let connection = app.engine.connect_project_port(&preview.actor, preview.project, preview.port).await;
    let connection = connection.map_err(|error: EngineError| PreviewFailure::NotServed(error.to_string()))?;
    let upgrades = is_upgrade(request.headers());
    let from_client = upgrades.then(|| upgrade::on(&mut request));
    let own_origin = own_origin(&request);
    *request.uri_mut() = target(request.uri()).ok_or(PreviewFailure::Address)?;
    prepare_request(request.headers_mut(), preview.port, own_origin.as_deref(), upgrades);
    let PortConnection { stream, held } = connection;
    let (mut sender, driver) = http1::handshake::<_, Body>(TokioIo::new(stream)).await?;
    let stopping = app.stopping.clone();
    app.background.spawn(async move {
        // The sandbox is in use as long as the connection is.
        let _held = held;
        tokio::select! {
            // Its errors are those of the request.
            _ = driver.with_upgrades() => {}
            () = stopping.cancelled() => {}
        }
    });
    let response =
        timeout(RESPONSE_DEADLINE, sender.send_request(request)).await.map_err(|_| PreviewFailure::Slow)??;
    let mut response = response.map(Body::new);
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    prepare_response(response.headers_mut(), preview, switches);
    match (switches, from_client) {
        (true, Some(from_client)) => {
            let from_program = upgrade::on(&mut response);
            let stopping = app.stopping.clone();
            app.background.spawn(async move {
                tokio::select! {
                    () = join(from_client, from_program, permit) => {}
                    () = stopping.cancelled() => {}
                }
            });
        }
        (true, None) => return Err(PreviewFailure::NotServed("The program switched to another protocol.".to_owned())),
        (false, _) => {
            // Held until the body is sent.
            let body = std::mem::take(response.body_mut());
            *response.body_mut() = hold(body, permit, sender);
        }
    }
    Ok(response)
}

/// Dropping the sender would end the connection before the body has arrived.
fn hold(body: Body, permit: OwnedSemaphorePermit, sender: http1::SendRequest<Body>) -> Body {
    use futures_util::StreamExt as _;
    let held = (permit, sender);
    Body::from_stream(body.into_data_stream().map(move |piece| {
        let _held = &held;
        piece
    }))
}

/// Passes the bytes of a WebSocket on, in both directions.
async fn join(from_client: upgrade::OnUpgrade, from_program: upgrade::OnUpgrade, permit: OwnedSemaphorePermit) {
    let _permit = permit;
    let (Ok(client), Ok(program)) = tokio::join!(from_client, from_program) else { return };
    let (mut client, mut program) = (TokioIo::new(client), TokioIo::new(program));
    if let Ok(Err(error)) = timeout(WEBSOCKET_LIFETIME, copy_bidirectional(&mut client, &mut program)).await {
        tracing::debug!(%error, "the WebSocket of a preview has ended");
    }
}

fn is_upgrade(headers: &HeaderMap) -> bool {
    let mut connection = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    headers.contains_key(header::UPGRADE)
        && connection.any(|value| value.split(',').any(|token| token.trim().eq_ignore_ascii_case("upgrade")))
}

/// The origin of the preview's own pages.
fn own_origin(request: &Request) -> Option<String> {
    let host = request.headers().get(header::HOST)?.to_str().ok()?;
    let origin = request.headers().get(header::ORIGIN)?.to_str().ok()?;
    origin.split_once("://").filter(|(_, page)| page.eq_ignore_ascii_case(host)).map(|_| origin.to_owned())
}

fn target(uri: &Uri) -> Option<Uri> {
    let path = uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    Uri::builder().path_and_query(path).build().ok()
}

/// The program sees a request to its own address. It gets nothing that the server's own cookie or key is.
fn prepare_request(headers: &mut HeaderMap, port: u16, own_origin: Option<&str>, upgrades: bool) {
    let upgrade = headers.get(header::UPGRADE).cloned();
    remove_of_connection(headers);
    if let Some(upgrade) = upgrade.filter(|_| upgrades) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade);
    }
    let address = format!("localhost:{port}");
    if let (Some(_), Ok(origin)) = (own_origin, HeaderValue::try_from(format!("http://{address}"))) {
        headers.insert(header::ORIGIN, origin);
    }
    if let Ok(host) = HeaderValue::try_from(address) {
        headers.insert(header::HOST, host);
    }
    headers.remove(header::REFERER);
    if headers.get(header::AUTHORIZATION).is_some_and(is_of_server) {
        headers.remove(header::AUTHORIZATION);
    }
    let cookies: Vec<String> = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .map(str::trim)
        .filter(|pair| pair.split('=').next() != Some(session_cookie::COOKIE))
        .map(str::to_owned)
        .collect();
    headers.remove(header::COOKIE);
    if let Ok(value) = HeaderValue::try_from(cookies.join("; "))
        && !cookies.is_empty()
    {
        headers.insert(header::COOKIE, value);
    }
}

/// A token or a key of this server.
fn is_of_server(value: &HeaderValue) -> bool {
    let text = value.to_str().unwrap_or_default();
    text.split_once(' ').is_some_and(|(_, secret)| secret.trim_start().starts_with(token::PREFIX))
}

fn prepare_response(headers: &mut HeaderMap, preview: &Preview, switches: bool) {
    let upgrade = headers.get(header::UPGRADE).cloned();
    remove_of_connection(headers);
    if let Some(upgrade) = upgrade.filter(|_| switches) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade);
    }
    // The label in the address is a secret.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let frames = format!("frame-ancestors 'self' {}", preview.opened_from.as_deref().unwrap_or_default());
    if let Ok(policy) = HeaderValue::try_from(frames.trim_end()) {
        // Besides what the program says: all policies hold.
        headers.append(header::CONTENT_SECURITY_POLICY, policy);
    }
    // A cookie for a whole domain would reach other previews.
    let cookies: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().filter_map(without_domain).collect();
    headers.remove(header::SET_COOKIE);
    for cookie in cookies {
        headers.append(header::SET_COOKIE, cookie);
    }
    let own = [format!("http://localhost:{}", preview.port), format!("http://127.0.0.1:{}", preview.port)];
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let rest = location.as_deref().and_then(|to| own.iter().find_map(|own| to.strip_prefix(own.as_str())));
    if let Some(Ok(inside)) = rest
        .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        .map(|rest| HeaderValue::try_from(if rest.is_empty() { "/" } else { rest }))
    {
        headers.insert(header::LOCATION, inside);
    }
}

fn without_domain(cookie: &HeaderValue) -> Option<HeaderValue> {
    let text = cookie.to_str().ok()?;
    let is_domain = |part: &&str| part.trim_start().to_ascii_lowercase().starts_with("domain");
    let parts: Vec<&str> = text.split(';').filter(|part| !is_domain(part)).collect();
    HeaderValue::try_from(parts.join(";")).ok()
}

fn remove_of_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::{prepare_request, without_domain};
    use axum::http::{HeaderMap, HeaderValue};

    #[test]
    fn the_program_gets_no_secret_of_the_server() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "abc.preview.localhost:7878"),
            ("cookie", "a=1; greenroom_session=secret; b=2"),
            ("authorization", "Bearer grm_secret"),
            ("referer", "http://abc.preview.localhost:7878/x"),
            ("connection", "keep-alive, x-private"),
            ("x-private", "1"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        prepare_request(&mut headers, 8000, None, false);
        let mut left: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        left.sort();
        assert_eq!(left, ["accept: */*", "cookie: a=1; b=2", "host: localhost:8000"]);
        headers.insert("authorization", HeaderValue::from_static("Basic dXNlcjpwdw=="));
        prepare_request(&mut headers, 8000, None, false);
        assert!(headers.contains_key("authorization"), "the program's own");
    }

    #[test]
    fn cookies_belong_to_one_preview() {
        let kept = without_domain(&HeaderValue::from_static("a=1; Domain=localhost; Path=/; domain=.x")).unwrap();
        assert_eq!(kept, "a=1; Path=/");
    }
}
