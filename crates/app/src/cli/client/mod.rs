//! A client of Greenroom's API. Every request has a deadline and every response a size limit. `feed` follows a room and
//! reconnects automatically.

mod error;
pub mod feed;
pub mod responses;
mod server_trust;

pub use error::ClientError;
pub use server_trust::ServerTrust;

use super::{ServerArgs, exit::UsageError, find::find};
use crate::{
    config::{AppConfig, ConfigFlags},
    data_folder,
};
use domain::ids::{AgentId, RoomId};
use reqwest::{
    Method, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, HeaderValue, RETRY_AFTER},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{path::PathBuf, time::Duration};

const CONNECT: Duration = Duration::from_secs(10);
/// The deadline of an ordinary request, up to the last byte of its response.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(30);
/// Maximum size of a response. A page of events may contain long answers.
const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;
/// How often a write is sent with the same key while it is unknown whether it arrived.
const WRITE_ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub struct ApiClient {
    http: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
}

impl ApiClient {
    pub fn new(connection: &ServerArgs) -> anyhow::Result<Self> {
        let base = server_url(&connection.server)?;
        let authorization = match &connection.token {
            Some(token) => Some(bearer(token.expose())?),
            // The key never leaves this machine.
            None if is_loopback(&base) => local_key(connection)?,
            None => None,
        };
        let trust = ServerTrust::of(connection, &base)?;
        Self::with_authorization(base, authorization, trust)
    }

    /// With the local key, if this machine has it, also where a token is set: for what only the operator may do.
    pub fn with_local_key(connection: &ServerArgs) -> anyhow::Result<Self> {
        let base = server_url(&connection.server)?;
        match local_key(connection)?.filter(|_| is_loopback(&base)) {
            Some(key) => {
                let trust = ServerTrust::of(connection, &base)?;
                Self::with_authorization(base, Some(key), trust)
            }
            None => Self::new(connection),
        }
    }

    /// For public endpoints.
    pub fn without_credential(server: &str, trust: ServerTrust) -> anyhow::Result<Self> {
        Self::with_authorization(server_url(server)?, None, trust)
    }

    fn with_authorization(base: Url, authorization: Option<HeaderValue>, trust: ServerTrust) -> anyhow::Result<Self> {
        install_cryptography();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&base) {
            // A configured proxy cannot reach this machine's loopback.
            builder = builder.no_proxy();
        }
        Ok(Self { http: trust.configure(builder)?.build()?, base, authorization })
    }

    /// The server's address, for messages.
    pub fn server(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, ClientError> {
        self.json(self.request(Method::GET, path, query).timeout(REQUEST_DEADLINE)).await
    }

    /// Sends a write. Retries use the same idempotency key, so it happens once.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
        deadline: Duration,
    ) -> Result<T, ClientError> {
        let key = uuid::Uuid::now_v7().to_string();
        let mut pause = FIRST_PAUSE;
        for _ in 1..WRITE_ATTEMPTS {
            let request = self.request(Method::POST, path, &[]).header("Idempotency-Key", &key).json(body);
            match self.json(request.timeout(deadline)).await {
                Err(ClientError::ConnectionLost { .. }) => tokio::time::sleep(pause).await,
                Err(ClientError::Busy { retry_after, .. }) => tokio::time::sleep(retry_after.unwrap_or(pause)).await,
                decided => return decided,
            }
            pause *= 2;
        }
        let request = self.request(Method::POST, path, &[]).header("Idempotency-Key", &key).json(body);
        self.json(request.timeout(deadline)).await
    }

    /// An agent by its name or id; the error lists those that there are.
    pub async fn find_agent(&self, wanted: &str) -> anyhow::Result<AgentId> {
        let agents: responses::AgentListResponse = self.get("/api/agents", &[]).await?;
        Ok(agents.find_or_list(wanted)?.id)
    }

    /// A room by its name or id, or a part of the id.
    pub async fn find_room(&self, wanted: &str) -> anyhow::Result<RoomId> {
        match wanted.parse() {
            Ok(id) => Ok(id),
            Err(_) => Ok(find("room", &responses::RoomListResponse::all(self).await?.rooms, wanted)?.id),
        }
    }

    /// Changes an object. It is not repeated: a change that arrived twice would be the same.
    pub async fn patch(&self, path: &str, body: &(impl Serialize + Sync)) -> Result<(), ClientError> {
        let request = self.request(Method::PATCH, path, &[]).json(body);
        self.check_status(request.timeout(REQUEST_DEADLINE).send().await).await.map(drop)
    }

    /// Sends a write whose response has no body. It is not repeated by itself.
    pub async fn post_without_result(&self, path: &str, body: &(impl Serialize + Sync)) -> Result<(), ClientError> {
        let request = self.request(Method::POST, path, &[]).json(body);
        self.check_status(request.timeout(REQUEST_DEADLINE).send().await).await.map(drop)
    }

    pub async fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.delete_with(path, &[]).await
    }

    /// Deletes an object. Retries use the same idempotency key, so that a lost response is not an error.
    pub async fn delete_with(&self, path: &str, query: &[(&str, &str)]) -> Result<(), ClientError> {
        let key = uuid::Uuid::now_v7().to_string();
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            let request = self.request(Method::DELETE, path, query).header("Idempotency-Key", &key);
            match self.check_status(request.timeout(REQUEST_DEADLINE).send().await).await {
                Err(error @ (ClientError::ConnectionLost { .. } | ClientError::Busy { .. }))
                    if attempt < WRITE_ATTEMPTS =>
                {
                    tracing::debug!(%error, "retrying");
                    tokio::time::sleep(pause).await;
                }
                decided => return decided.map(drop),
            }
            pause *= 2;
        }
        Ok(())
    }

    /// Opens a live feed. The deadline covers only the response head.
    pub async fn stream(&self, path: &str, query: &[(&str, &str)], after: &str) -> Result<Response, ClientError> {
        let request = self.request(Method::GET, path, query);
        let request = request.header(ACCEPT, "text/event-stream").header("Last-Event-ID", after);
        let answer = match tokio::time::timeout(REQUEST_DEADLINE, request.send()).await {
            Ok(answer) => self.check_status(answer).await?,
            Err(_) => return Err(ClientError::connection_lost(self.server(), "no answer in time")),
        };
        let kind = answer.headers().get(reqwest::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            Ok(answer)
        } else {
            Err(ClientError::incompatible(self.server(), "its feed is not an event stream"))
        }
    }

    /// Builds a request to a path of the server, with the token.
    pub fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.base.clone();
        // The server may be below a path of a proxy, so the path is appended, not joined.
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

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let answer = self.check_status(request.send().await).await?;
        let body = self.body(answer).await?;
        serde_json::from_slice(&body).map_err(|error| {
            ClientError::incompatible(self.server(), &format!("its answer has another shape ({error})"))
        })
    }

    /// Returns a successful response; turns any other into an error.
    async fn check_status(&self, answer: reqwest::Result<Response>) -> Result<Response, ClientError> {
        let answer = answer.map_err(|error| ClientError::from_transport(self.server(), error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = self.body(answer).await?;
        let problem = ClientError::from_problem(self.server(), status, &body);
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
        Err(ClientError::Busy { detail: problem.to_string(), retry_after })
    }

    /// Reads the rest of a response, up to the size limit.
    pub async fn body(&self, mut answer: Response) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) =
            answer.chunk().await.map_err(|error| ClientError::from_transport(self.server(), error))?
        {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(ClientError::incompatible(self.server(), "its answer does not end"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// reqwest is built without a default cryptography provider and panics if none is installed.
pub fn install_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none()
        && rustls::crypto::ring::default_provider().install_default().is_err()
    {
        tracing::debug!("another thread installed the cryptography provider first");
    }
}

fn server_url(text: &str) -> Result<Url, UsageError> {
    let refused = |why: &str| UsageError(format!("--server {why}; it looks like http://127.0.0.1:7878"));
    let url = Url::parse(text).map_err(|_| refused("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UsageError(
            "--server must not hold a password; access is granted by --token or GREENROOM_TOKEN".into(),
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("must end with the host, the port or a path"));
    }
    Ok(url)
}

/// The local key of the data folder, if there is one.
fn local_key(connection: &ServerArgs) -> anyhow::Result<Option<HeaderValue>> {
    let file = data_folder::key_file(&local_data_dir(connection)?);
    Ok(match data_folder::read_key(&file)? {
        Some(key) => Some(bearer(key.reveal())?),
        None => None,
    })
}

/// The data folder of the server on this machine.
fn local_data_dir(connection: &ServerArgs) -> anyhow::Result<PathBuf> {
    let flags = ConfigFlags { data_dir: connection.data_dir.clone(), ..ConfigFlags::default() };
    Ok(AppConfig::load(&flags)?.store.data_dir)
}

fn bearer(token: &str) -> Result<HeaderValue, UsageError> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    let mut value = value.map_err(|_| UsageError("the token holds characters that no token has".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{ApiClient, server_url};
    use crate::cli::ServerArgs;

    fn connection(server: &str) -> ServerArgs {
        ServerArgs {
            server: server.into(),
            token: None,
            data_dir: None,
            ca: None,
            fingerprint: None,
            calling_agent: None,
        }
    }

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
        let connection = ServerArgs { token: Some("hunter2".to_owned().into()), ..connection("http://h") };
        assert!(!format!("{connection:?}").contains("hunter2"));
        let client = ApiClient::new(&connection).unwrap();
        assert!(!format!("{:?}", client.authorization).contains("hunter2"));
    }

    #[test]
    fn c2_the_local_key_goes_to_this_machine_only() {
        let folder = tempfile::tempdir().unwrap();
        let (key, _) = server::auth::token::generate().unwrap();
        std::fs::write(crate::data_folder::key_file(folder.path()), key.reveal()).unwrap();
        let authorization = |server: &str, token: Option<&str>| {
            let token = token.map(|token| token.to_owned().into());
            let data_dir = Some(folder.path().display().to_string());
            let client = ApiClient::new(&ServerArgs { token, data_dir, ..connection(server) }).unwrap();
            client.authorization.map(|value| value.to_str().unwrap().to_owned())
        };
        let with_key = Some(format!("Bearer {}", key.reveal()));
        for here in ["http://127.0.0.1:7878", "http://localhost:1", "http://[::1]:1", "http://127.8.8.8:1"] {
            assert_eq!(authorization(here, None), with_key, "{here}");
        }
        for elsewhere in ["http://192.168.1.4:7878", "https://agents.example.org", "http://127.0.0.1.example.org"] {
            assert_eq!(authorization(elsewhere, None), None, "{elsewhere}");
        }
        assert_eq!(authorization("http://127.0.0.1:7878", Some("grm_mine")), Some("Bearer grm_mine".into()));
    }
}
