//! Greenroom's API as a client sees it. Every request has a deadline, every answer a limit; `feed` follows a room and
//! resumes by itself.

mod error;
pub mod feed;
pub mod views;

pub use error::Error;

use super::{Connection, exit::Usage};
use reqwest::{
    Method, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, HeaderValue, RETRY_AFTER},
};
use serde::{Serialize, de::DeserializeOwned};
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(10);
/// For an ordinary request, from sending it to the last byte of its answer.
pub const ORDINARY: Duration = Duration::from_secs(30);
/// A page of events may hold long answers; more than this is not one of ours.
const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;
/// A write that may or may not have arrived is sent again with the same key, at most this often.
const WRITE_ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
}

impl Client {
    pub fn new(connection: &Connection) -> anyhow::Result<Self> {
        let base = server_url(&connection.server)?;
        let authorization = match &connection.token {
            None => None,
            Some(token) => Some(bearer(token.expose())?),
        };
        install_cryptography();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&base) {
            // A proxy set for the outside world cannot reach this machine's own loopback.
            builder = builder.no_proxy();
        }
        Ok(Self { http: builder.build()?, base, authorization })
    }

    /// The server's address, for messages.
    pub fn server(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Error> {
        self.json(self.request(Method::GET, path, query).timeout(ORDINARY)).await
    }

    /// Sends a write, and sends it again with the same key when its fate is unknown: it happens once.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
        deadline: Duration,
    ) -> Result<T, Error> {
        let key = uuid::Uuid::now_v7().to_string();
        let mut pause = FIRST_PAUSE;
        for _ in 1..WRITE_ATTEMPTS {
            let request = self.request(Method::POST, path, &[]).header("Idempotency-Key", &key).json(body);
            match self.json(request.timeout(deadline)).await {
                Err(Error::Lost { .. }) => tokio::time::sleep(pause).await,
                Err(Error::Busy { retry_after, .. }) => tokio::time::sleep(retry_after.unwrap_or(pause)).await,
                decided => return decided,
            }
            pause *= 2;
        }
        let request = self.request(Method::POST, path, &[]).header("Idempotency-Key", &key).json(body);
        self.json(request.timeout(deadline)).await
    }

    /// Opens a live feed. The deadline covers the answer's head only.
    pub async fn stream(&self, path: &str, query: &[(&str, &str)], after: &str) -> Result<Response, Error> {
        let request = self.request(Method::GET, path, query);
        let request = request.header(ACCEPT, "text/event-stream").header("Last-Event-ID", after);
        let answer = match tokio::time::timeout(ORDINARY, request.send()).await {
            Ok(answer) => self.accepted(answer).await?,
            Err(_) => return Err(Error::lost(self.server(), "no answer in time")),
        };
        let kind = answer.headers().get(reqwest::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            Ok(answer)
        } else {
            Err(Error::foreign(self.server(), "its feed is not an event stream"))
        }
    }

    /// Below the server's address and with its token.
    pub fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.base.clone();
        // The server may live below a path of a proxy, so the path is appended and not joined.
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        }
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let answer = self.accepted(request.send().await).await?;
        let body = self.body(answer).await?;
        serde_json::from_slice(&body)
            .map_err(|error| Error::foreign(self.server(), &format!("its answer has another shape ({error})")))
    }

    /// The answer, if it is a success; otherwise what went wrong.
    async fn accepted(&self, answer: reqwest::Result<Response>) -> Result<Response, Error> {
        let answer = answer.map_err(|error| Error::from_transport(self.server(), error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = self.body(answer).await?;
        let problem = Error::from_problem(self.server(), status, &body);
        let busy = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        if !busy {
            return Err(problem);
        }
        let retry_after = retry_after.map(|seconds: u64| Duration::from_secs(seconds.min(30)));
        Err(Error::Busy { detail: problem.to_string(), retry_after })
    }

    /// What is left of an answer, of limited length.
    pub async fn body(&self, mut answer: Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| Error::from_transport(self.server(), error))? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(Error::foreign(self.server(), "its answer does not end"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// reqwest is built without a default of its own and panics when nobody has chosen one.
pub fn install_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none()
        && rustls::crypto::ring::default_provider().install_default().is_err()
    {
        tracing::debug!("another thread installed the cryptography provider first");
    }
}

fn server_url(text: &str) -> Result<Url, Usage> {
    let refused = |why: &str| Usage(format!("--server {why}; it looks like http://127.0.0.1:7878"));
    let url = Url::parse(text).map_err(|_| refused("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Usage("--server must not hold a password; access is granted by --token or GREENROOM_TOKEN".into()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("must end with the host, the port or a path"));
    }
    Ok(url)
}

fn bearer(token: &str) -> Result<HeaderValue, Usage> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    let mut value = value.map_err(|_| Usage("the token holds characters that no token has".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{Client, server_url};
    use crate::cli::Connection;

    #[test]
    fn a_server_is_an_http_url_without_secrets() {
        for good in ["http://127.0.0.1:7878", "https://agents.example.org/", "http://[::1]:1/greenroom"] {
            assert!(server_url(good).is_ok(), "{good}");
        }
        for bad in ["127.0.0.1:7878", "ftp://h", "http://h/?a=1", ""] {
            assert!(server_url(bad).is_err(), "{bad}");
        }
        let said = server_url("http://me:hunter2@h").unwrap_err().to_string();
        assert!(!said.contains("hunter2"), "{said}");
    }

    #[test]
    fn invariant_17_a_token_is_not_shown() {
        let connection = Connection { server: "http://h".into(), token: Some("hunter2".to_owned().into()) };
        assert!(!format!("{connection:?}").contains("hunter2"));
        let client = Client::new(&connection).unwrap();
        assert!(!format!("{:?}", client.authorization).contains("hunter2"));
    }
}
