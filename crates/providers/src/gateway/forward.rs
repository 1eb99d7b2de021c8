//! Passes a request of a program on to the route that it names, with the real key instead of the program's token.

use super::{GatewayGrant, GatewayRoute, ModelGateway, metered_answer::MeteredAnswer};
use reqwest::{
    Method,
    header::{self, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use std::{sync::Arc, time::Duration};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use workbench::egress::EgressResolver;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// From the request to the head of the response: a model may think for long before it answers.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);
/// Between two pieces of a response.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// Headers in which programs show their token.
const TOKEN_HEADERS: [&str; 3] = ["x-api-key", "x-goog-api-key", "authorization"];
/// Belong to one connection, or would tell the vendor about this machine; the real key replaces the token.
const DROPPED: [&str; 16] = [
    "x-api-key",
    "x-goog-api-key",
    "authorization",
    "proxy-authorization",
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
    "cookie",
];

/// Headers of a response that belong to the connection to the API.
const NOT_RETURNED: [&str; 5] = ["connection", "keep-alive", "transfer-encoding", "set-cookie", "content-length"];

/// A request as the server received it.
pub struct GatewayRequest {
    pub method: String,
    /// The path and query after `/gateway/`.
    pub target: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

/// A response whose body is still arriving.
pub struct GatewayResponse {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: GatewayBody,
}

/// Dropping it closes the connection to the API.
pub struct GatewayBody {
    response: reqwest::Response,
    /// For a model call.
    metered: Option<MeteredAnswer>,
    _request: OwnedSemaphorePermit,
}

/// Why a request was not passed on, with what the program is told.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GatewayRefusal {
    #[error("this token is not valid here; it may belong to a process that has ended")]
    Token,
    #[error("this token gives no access to {0}")]
    Route(String),
    #[error("{0}")]
    MissingKey(String),
    #[error("no turn is running: model calls are possible only while the agent answers")]
    NoTurn,
    #[error("a budget that counts this run is used up; see the budgets of the workspace")]
    Budget,
    #[error("too many requests at the same time")]
    TooMany,
    #[error("the request cannot be passed on: {0}")]
    Invalid(String),
    #[error("the API cannot be reached: {0}")]
    Unreachable(String),
}

impl GatewayRefusal {
    /// The HTTP status that says it.
    pub fn status(&self) -> u16 {
        match self {
            Self::Token | Self::MissingKey(_) => 401,
            Self::Route(_) | Self::NoTurn => 403,
            Self::Budget => 402,
            Self::TooMany => 429,
            Self::Invalid(_) => 400,
            Self::Unreachable(_) => 502,
        }
    }
}

impl ModelGateway {
    /// Passes a request of a program in this sandbox on. Returns when the response begins.
    pub async fn forward(&self, sandbox: &str, request: GatewayRequest) -> Result<GatewayResponse, GatewayRefusal> {
        let GatewayRequest { method, target, headers, body } = request;
        let headers: HeaderMap = headers.iter().filter_map(|(name, value)| header_of(name, value)).collect();
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|error| GatewayRefusal::Invalid(error.to_string()))?;
        let target = GatewayTarget::parse(&target);
        let grant = shown_tokens(&headers, target.key.as_deref()).find_map(|token| self.find(&token, sandbox));
        let grant = grant.ok_or(GatewayRefusal::Token)?;
        let route = grant.routes.iter().find(|route| route.name == target.route);
        let route = route.ok_or_else(|| GatewayRefusal::Route(target.route.clone()))?;
        if let Some(advice) = &route.missing_key {
            return Err(GatewayRefusal::MissingKey(advice.clone()));
        }
        let permit = permit(&grant)?;
        let url = target.url(route)?;
        // What only reads, such as the list of models, costs nothing.
        let turn = match route.is_model_api && method == Method::POST {
            true => Some(grant.turns.current(&headers).ok_or(GatewayRefusal::NoTurn)?),
            false => None,
        };
        if let Some(turn) = &turn {
            turn.admit().await?;
        }
        let http = self.client(route)?;
        let request = http.request(method, url).headers(outgoing(&headers, route)).body(body).send();
        let response = timeout(RESPONSE_TIMEOUT, request)
            .await
            .map_err(|_| GatewayRefusal::Unreachable("it did not answer in time".to_owned()))?
            // Without the URL, which can hold a secret of the operator.
            .map_err(|error| GatewayRefusal::Unreachable(error.without_url().to_string()))?;
        let is_kept = |name: &HeaderName| !NOT_RETURNED.contains(&name.as_str());
        let headers = response.headers().iter().filter(|(name, _)| is_kept(name));
        let headers = headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        let status = response.status().as_u16();
        let content_type = response.headers().get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let is_stream = content_type.starts_with(b"text/event-stream");
        let metered = turn.map(|turn| MeteredAnswer::new(&route.name, &target.path, is_stream, turn));
        Ok(GatewayResponse { status, headers, body: GatewayBody { response, metered, _request: permit } })
    }

    fn client(&self, route: &GatewayRoute) -> Result<reqwest::Client, GatewayRefusal> {
        let client = match route.is_guarded {
            false => self.0.http.get_or_init(|| client(None)),
            true => {
                self.0
                    .egress
                    .check_url(&route.base_url)
                    .map_err(|error| GatewayRefusal::Unreachable(error.to_string()))?;
                self.0.guarded_http.get_or_init(|| client(Some(EgressResolver(Arc::clone(&self.0.egress)))))
            }
        };
        client.clone().map_err(GatewayRefusal::Unreachable)
    }
}

fn header_of(name: &str, value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(value).ok()?))
}

fn client(resolver: Option<EgressResolver>) -> Result<reqwest::Client, String> {
    // Fails only if a provider is already installed, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    // A redirect could send the key to another host.
    let mut builder =
        reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).redirect(Policy::none()).tcp_nodelay(true);
    if let Some(resolver) = resolver {
        builder = builder.dns_resolver(resolver).no_proxy();
    }
    builder.build().map_err(|error| error.to_string())
}

fn permit(grant: &Arc<GatewayGrant>) -> Result<OwnedSemaphorePermit, GatewayRefusal> {
    Arc::clone(&grant.requests).try_acquire_owned().map_err(|_| GatewayRefusal::TooMany)
}

impl GatewayBody {
    /// The next piece; `None` at the end. An error ends the response early.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        match timeout(IDLE_TIMEOUT, self.response.chunk()).await {
            Ok(Ok(Some(piece))) => {
                if let Some(metered) = &mut self.metered {
                    metered.push(&piece);
                }
                Ok(Some(piece.to_vec()))
            }
            Ok(Ok(None)) => {
                // Recorded before the program sees the end.
                self.metered = None;
                Ok(None)
            }
            Ok(Err(error)) => Err(error.without_url().to_string()),
            Err(_) => Err("nothing arrived for too long".to_owned()),
        }
    }
}

/// The path of a request, split.
struct GatewayTarget {
    route: String,
    /// With its slash, or empty.
    path: String,
    query: Vec<String>,
    /// `?key=`, in which Google's API takes a key.
    key: Option<String>,
}

impl GatewayTarget {
    fn parse(target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (route, path) = path.find('/').map_or((path, ""), |at| path.split_at(at));
        let (keys, query): (Vec<&str>, Vec<&str>) =
            query.split('&').filter(|part| !part.is_empty()).partition(|part| part.starts_with("key="));
        let key = keys.first().and_then(|part| part.strip_prefix("key=")).map(str::to_owned);
        let query = query.into_iter().map(str::to_owned).collect();
        Self { route: route.to_owned(), path: path.to_owned(), query, key }
    }

    /// The URL outside: always beneath the route's own.
    fn url(&self, route: &GatewayRoute) -> Result<reqwest::Url, GatewayRefusal> {
        let is_dots = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
        if self.path.split(['/', '\\']).any(is_dots) {
            return Err(GatewayRefusal::Invalid("its path has dots".to_owned()));
        }
        let invalid = |error: &dyn std::fmt::Display| GatewayRefusal::Invalid(error.to_string());
        let mut url = reqwest::Url::parse(&route.base_url).map_err(|error| invalid(&error))?;
        let base = url.path().trim_end_matches('/').to_owned();
        // An MCP server may be at a path without anything beneath.
        if !self.path.is_empty() {
            url.set_path(&format!("{base}{}", self.path));
        }
        let own = url.query().map(str::to_owned);
        let query: Vec<String> = own.into_iter().chain(self.query.iter().cloned()).collect();
        url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
        Ok(url)
    }
}

fn shown_tokens<'a>(headers: &'a HeaderMap, key: Option<&'a str>) -> impl Iterator<Item = Vec<u8>> + 'a {
    let shown = TOKEN_HEADERS.iter().filter_map(|name| headers.get(*name)).map(|value| {
        let value = value.as_bytes();
        value.strip_prefix(b"Bearer ").or_else(|| value.strip_prefix(b"bearer ")).unwrap_or(value).to_vec()
    });
    shown.chain(key.map(|key| key.as_bytes().to_vec()))
}

fn outgoing(headers: &HeaderMap, route: &GatewayRoute) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if !DROPPED.contains(&name.as_str()) {
            kept.append(name.clone(), value.clone());
        }
    }
    for (name, value) in &route.headers {
        kept.insert(name.clone(), value.clone());
    }
    kept.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    kept
}

#[cfg(test)]
mod tests {
    use super::{GatewayTarget, outgoing, shown_tokens};
    use crate::gateway::GatewayRoute;
    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    fn name(text: &'static str) -> HeaderName {
        HeaderName::from_static(text)
    }

    fn route(base_url: &str) -> GatewayRoute {
        GatewayRoute {
            name: "anthropic".into(),
            base_url: base_url.into(),
            headers: vec![(name("x-api-key"), HeaderValue::from_static("real"))],
            missing_key: None,
            is_guarded: false,
            is_model_api: true,
        }
    }

    fn url(target: &str, base: &str) -> Option<String> {
        GatewayTarget::parse(target).url(&route(base)).ok().map(|url| url.to_string())
    }

    #[test]
    fn a_request_stays_beneath_its_route() {
        let base = "https://api.example.org/v1";
        assert_eq!(url("openai/responses?a=1&key=x", base).unwrap(), "https://api.example.org/v1/responses?a=1");
        assert_eq!(url("openai", base).unwrap(), "https://api.example.org/v1");
        assert_eq!(url("openai/@evil.org/x", base).unwrap(), "https://api.example.org/v1/@evil.org/x");
        assert_eq!(url("openai//evil.org", base).unwrap(), "https://api.example.org/v1//evil.org");
        for target in ["openai/../admin", "openai/a/%2e%2E/b", "openai/.%2e", "openai/a\\..\\b"] {
            assert_eq!(url(target, base), None, "{target}");
        }
        assert_eq!(url("mcp-x", "https://example.org/mcp?team=1").unwrap(), "https://example.org/mcp?team=1");
    }

    #[test]
    fn invariant_17_secrets_stay_the_token_is_replaced_by_the_key() {
        let mut headers = HeaderMap::new();
        for (header, value) in
            [("x-api-key", "token"), ("authorization", "Bearer other"), ("cookie", "c"), ("x-kept", "k")]
        {
            headers.insert(name(header), HeaderValue::from_static(value));
        }
        let shown: Vec<Vec<u8>> = shown_tokens(&headers, Some("third")).collect();
        assert_eq!(shown, [b"token".to_vec(), b"other".to_vec(), b"third".to_vec()]);
        let out = outgoing(&headers, &route("https://example.org"));
        assert_eq!((out["x-api-key"].as_bytes(), out["x-kept"].as_bytes()), (&b"real"[..], &b"k"[..]));
        assert!(!out.contains_key("authorization") && !out.contains_key("cookie"));
    }
}
