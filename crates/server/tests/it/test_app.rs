//! A server with fake accounts and a few test routes.

use axum::{
    Json, Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode, header},
    response::Response,
};
use domain::limits::Limits;
use domain::{
    actor::{Actor, Credential, User},
    ids::{BrowserSessionId, RoomId, RunId, TokenId, UserId},
    name::Name,
    owner::Owner,
    permission::{Permission, Role},
    scope::Scopes,
};
use engine::Engine;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use server::routes;
use server::{
    App, AppState, Encryption, HttpServerConfig, McpHandlerKind, RouteSet,
    auth::{AccountStore, AuthSettings, Caller, CorsSettings, client_address::TrustedProxies, token},
    error::{BoxError, Problem},
    extract::{Id, IdempotencyKey, JsonBody, QueryParams},
    listen::ConnectionAddrs,
    routing::{Policy, RouteInfo, RouterBuilder},
    shares::ShareLimits,
};
use std::{
    num::NonZeroU32,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use store::{Backend, Store, StoreAccess};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub const TOKEN: &str = "grm_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The local key of the server.
pub const LOCAL_KEY: &str = "grm_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA";

/// One account that may exist or not, in a store that may be unavailable.
#[derive(Default)]
pub struct FakeAccounts {
    pub exist: AtomicBool,
    pub broken: AtomicBool,
    pub probes: AtomicUsize,
    /// The signed-in browser session: its token, if it has one, and the hash of its cookie.
    pub session: Mutex<Option<(Option<TokenId>, [u8; 32])>>,
}

#[derive(Clone)]
pub struct SharedAccounts(Arc<FakeAccounts>);

impl AccountStore for SharedAccounts {
    fn role_of_token(&self, _: TokenId) -> BoxFuture<'_, Result<Option<Role>, BoxError>> {
        Box::pin(async { Ok(self.0.exist.load(Ordering::SeqCst).then_some(Role::Owner)) })
    }

    fn actor_for_token(&self, sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Actor>, BoxError>> {
        Box::pin(async move {
            if self.0.broken.load(Ordering::SeqCst) {
                return Err("the secret database path does not exist".into());
            }
            if !self.0.exist.load(Ordering::SeqCst) {
                return Ok(None);
            }
            if sha256 == token::hash(TOKEN.as_bytes()) {
                return Ok(Some(ada(Credential::Token(TokenId::generate()))));
            }
            let members = ["ada", "eve"].into_iter().flat_map(|workspace| Role::ALL.map(|role| (workspace, role)));
            let mut found =
                members.filter(|(workspace, role)| sha256 == token::hash(token_of(workspace, *role).as_bytes()));
            Ok(found.next().map(|(workspace, role)| member(workspace, role, Credential::Token(TokenId::generate()))))
        })
    }

    fn begin_browser_session(&self, _: Actor, token: TokenId, cookie: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            *self.0.session.lock().unwrap() = Some((Some(token), cookie));
            Ok(())
        })
    }

    fn begin_operator_session(&self, _: Actor, _: [u8; 32], cookie: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            *self.0.session.lock().unwrap() = Some((None, cookie));
            Ok(())
        })
    }

    fn has_operator_session(&self, _: [u8; 32], _: BrowserSessionId) -> BoxFuture<'_, Result<bool, BoxError>> {
        Box::pin(async { Ok(self.0.session.lock().unwrap().is_some()) })
    }

    fn end_browser_session(&self, _: Actor, cookie: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            self.0.session.lock().unwrap().take_if(|(_, known)| *known == cookie);
            Ok(())
        })
    }

    fn role_of_browser_session(&self, _: BrowserSessionId) -> BoxFuture<'_, Result<Option<Role>, BoxError>> {
        Box::pin(async { Ok(self.0.session.lock().unwrap().is_some().then_some(Role::Owner)) })
    }

    fn actor_for_cookie(&self, _: [u8; 32], cookie: [u8; 32]) -> BoxFuture<'_, Result<Option<Actor>, BoxError>> {
        Box::pin(async move {
            let session = *self.0.session.lock().unwrap();
            let known = session.filter(|(_, known)| *known == cookie);
            Ok(known.map(|(token, _)| ada(Credential::BrowserSession { session: BrowserSessionId::generate(), token })))
        })
    }
}

fn ada(credential: Credential) -> Actor {
    member("ada", Role::Owner, credential)
}

pub fn member(workspace: &str, role: Role, credential: Credential) -> Actor {
    let name = Name::parse(workspace).unwrap();
    let user = User { id: UserId::LOCAL, name: name.clone() };
    Actor { workspace: Owner::new(name), user: Some(user), role, scopes: Scopes::ALL, credential, address: None }
}

/// The token of a member with a role, in the workspace `ada` or `eve`.
pub fn token_of(workspace: &str, role: Role) -> String {
    format!("grm_{workspace}_{role}")
}

/// Doctor checks without findings.
fn no_checks() -> server::http::doctor::RunDoctorChecks {
    Box::new(|| Box::pin(async { Vec::new() }))
}

/// A real engine on a real store, which these tests hardly use. Opened on its own thread, because some tests pause the
/// clock.
fn engine() -> Engine {
    let opened = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let config = store::StoreConfig {
                backend: Backend::Sqlite { file: folder.path().join("greenroom.db") },
                read_connections: 1,
                tail_bytes: 1 << 20,
                secrets_file: folder.path().join("secrets.key"),
                planted_bug: None,
            };
            let store =
                Store::open(&config, StoreAccess::Tool, &mut JoinSet::new(), &CancellationToken::new()).await.unwrap();
            engine_on(store, folder.path())
        })
    });
    opened.join().unwrap()
}

pub fn engine_on(store: Store, folder: &Path) -> Engine {
    let settings = engine::EngineConfig {
        concurrency: 1,
        concurrency_per_workspace: 1,
        unfinished_runs_per_workspace: 100,
        erase_after: Duration::from_secs(7 * 24 * 3600),
        workspace_limits: engine::WorkspaceLimits { rooms: 10_000, stored_bytes: 1 << 30 },
        lease: Duration::from_secs(15),
        limits: Limits::default(),
        stop_grace: Duration::from_secs(1),
        folders: engine::Folders { data: folder.to_owned(), shared_workspace: None },
        mcp_servers: std::collections::BTreeMap::new(),
        mcp_variables: engine::McpVariables::default(),
        host_tools: providers::host_tools::HostTools::default(),
        projects: engine::ProjectServices::without_sandboxes(),
    };
    let mcp = workbench::mcp::McpManager::new(
        workbench::process::Supervisor::new("greenroom".into()),
        workbench::mcp::McpClientSettings::new(folder.to_owned()),
    );
    let scripted = vec![Arc::new(providers::scripted::ScriptedProvider) as _];
    Engine::new(store, providers::ProviderRegistry::new(scripted), mcp, settings)
}

/// Limits that no test reaches, unless it sets its own.
pub fn config() -> HttpServerConfig {
    let many = NonZeroU32::new(1_000_000).unwrap();
    HttpServerConfig {
        listen: ([127, 0, 0, 1], 7878).into(),
        encryption: Encryption::None,
        auth: AuthSettings { local_key_sha256: token::hash(LOCAL_KEY.as_bytes()), no_auth: false },
        preview_domain: "preview.localhost".into(),
        public_hosts: Vec::new(),
        cors: CorsSettings::default(),
        max_body_bytes: 2 * 1024 * 1024,
        max_connections: 1000,
        max_connections_per_address: 1000,
        trusted_proxies: TrustedProxies::default(),
        requests_per_second: many,
        request_burst: many,
        shares: ShareLimits { streams: 1000, subscriptions: 10_000 },
        socket_messages_per_second: many,
        socket_message_burst: many,
        request_deadline: Duration::from_secs(60),
        header_read_timeout: Duration::from_secs(10),
        heartbeat: Duration::from_secs(15),
        write_stall: Duration::from_secs(120),
        stop_deadline: Duration::from_secs(10),
        mcp_session_idle: Duration::from_secs(1800),
        mcp_max_sessions: 1000,
        mcp_max_sessions_per_user: 1000,
        mcp_handler: McpHandlerKind::default(),
        routes: RouteSet::All,
    }
}

pub struct TestApp {
    pub app: App,
    pub accounts: Arc<FakeAccounts>,
    pub router: Router,
    pub routes: Vec<RouteInfo>,
    /// Whether requests have the local key.
    pub sends_key: bool,
}

impl TestApp {
    pub fn new() -> Self {
        Self::with(config())
    }

    /// A server with an account, whose requests have no credential.
    pub fn with_accounts() -> Self {
        let test_app = Self { sends_key: false, ..Self::new() };
        test_app.accounts.exist.store(true, Ordering::SeqCst);
        test_app
    }

    pub fn with(config: HttpServerConfig) -> Self {
        Self::with_engine(config, engine())
    }

    pub fn with_engine(config: HttpServerConfig, engine: Engine) -> Self {
        let accounts = Arc::new(FakeAccounts::default());
        let probed = Arc::clone(&accounts);
        let probe = move || -> BoxFuture<'static, Result<(), BoxError>> {
            let accounts = Arc::clone(&probed);
            Box::pin(async move {
                accounts.probes.fetch_add(1, Ordering::SeqCst);
                if accounts.broken.load(Ordering::SeqCst) { Err("the disk at /secret is full".into()) } else { Ok(()) }
            })
        };
        let shared = Box::new(SharedAccounts(Arc::clone(&accounts)));
        let app = AppState::with_accounts_and_probe(
            config,
            engine,
            shared,
            Box::new(probe),
            no_checks(),
            CancellationToken::new(),
        );
        let app = app.unwrap();
        let (router, routes) = add_test_routes(server::http::add_routes(RouterBuilder::new(&app))).into_router();
        Self { app, accounts, router, routes, sends_key: true }
    }

    /// Sends a request as a local program does, after `change` has modified it.
    pub async fn send(&self, target: &str, change: impl FnOnce(Request<Body>) -> Request<Body>) -> TestResponse {
        let mut request = Request::builder().uri(target).header(header::HOST, "127.0.0.1:7878");
        if self.sends_key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {LOCAL_KEY}"));
        }
        let mut request = request.body(Body::empty()).unwrap();
        let local = ([127, 0, 0, 1], 7878).into();
        request.extensions_mut().insert(ConnectionAddrs { remote: ([127, 0, 0, 1], 5000).into(), local });
        TestResponse::read(self.router.clone().oneshot(change(request)).await.unwrap()).await
    }

    pub async fn get(&self, target: &str) -> TestResponse {
        self.send(target, |request| request).await
    }

    pub async fn post(&self, target: &str, body: impl Into<Body>) -> TestResponse {
        let body = body.into();
        self.send(target, |request| {
            let request = header(request, "content-type", "application/json");
            let (mut parts, _) = request.into_parts();
            parts.method = axum::http::Method::POST;
            Request::from_parts(parts, body)
        })
        .await
    }
}

pub fn header<B>(mut request: Request<B>, name: &'static str, value: &str) -> Request<B> {
    request.headers_mut().append(name, value.parse().unwrap());
    request
}

pub struct TestResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl TestResponse {
    async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Self { status: parts.status, headers: parts.headers, text }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {:?}", self.text))
    }

    /// The problem without its `instance`, which is different for every request.
    pub fn unnamed(&self) -> Value {
        let mut problem = self.json();
        problem.as_object_mut().and_then(|members| members.remove("instance")).unwrap();
        problem
    }

    /// Checks that the response follows RFC 9457 and returns its code.
    #[track_caller]
    pub fn problem(&self, status: u16) -> String {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let json = self.json();
        assert_eq!(json["type"], format!("urn:greenroom:problem:{}", json["code"].as_str().unwrap()));
        assert_eq!(json["status"], status);
        assert!(json["title"].as_str().is_some_and(|t| !t.is_empty()));
        assert!(json["detail"].as_str().is_some_and(|d| !d.is_empty()));
        json["code"].as_str().unwrap().to_owned()
    }
}

fn add_test_routes(builder: RouterBuilder) -> RouterBuilder {
    builder
        .add(Policy::Needs(Permission::Read), routes!(whoami))
        .add(Policy::Needs(Permission::Read), routes!(post))
        .add(Policy::Needs(Permission::Read), routes!(show))
        .add(Policy::Needs(Permission::Read), routes!(pair))
        .add(Policy::Needs(Permission::Read), routes!(list))
        .add(Policy::Public, routes!(explode))
        .add(Policy::Public, routes!(hang))
}

#[utoipa::path(get, path = "/test/whoami")]
async fn whoami(Caller(actor): Caller) -> Json<Value> {
    Json(json!({"owner": actor.workspace, "token": actor.credential.token().is_some()}))
}

#[derive(Deserialize, utoipa::ToSchema)]
struct Note {
    text: String,
    #[serde(default)]
    numbers: Vec<u8>,
}

#[utoipa::path(post, path = "/test/notes", request_body = Note)]
async fn post(key: IdempotencyKey, JsonBody(note, print): JsonBody<Note>) -> Json<Value> {
    Json(json!({"text": note.text, "numbers": note.numbers, "key": key.0, "fingerprint": print.0}))
}

#[utoipa::path(get, path = "/test/rooms/{id}", params(("id" = RoomId, Path)))]
async fn show(Id(room): Id<RoomId>) -> Result<Json<RoomId>, Problem> {
    if room.to_string().ends_with('f') { Err(Problem::not_found()) } else { Ok(Json(room)) }
}

#[utoipa::path(get, path = "/test/rooms/{room}/runs/{run}", params(("room" = RoomId, Path), ("run" = RunId, Path)))]
async fn pair(Id((room, run)): Id<(RoomId, RunId)>) -> Json<(RoomId, RunId)> {
    Json((room, run))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Page {
    limit: Option<u32>,
    text: Option<String>,
}

#[utoipa::path(get, path = "/test/list", params(Page))]
async fn list(QueryParams(page): QueryParams<Page>) -> Json<Value> {
    Json(json!({"limit": page.limit, "text": page.text}))
}

#[utoipa::path(get, path = "/test/panic")]
async fn explode() {
    panic!("the password is hunter2");
}

#[utoipa::path(get, path = "/test/hang")]
async fn hang() {
    std::future::pending().await
}
