//! A server with made-up accounts and a few doors of its own.

use axum::{
    Json, Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode, header},
    response::Response,
};
use domain::limits::Limits;
use domain::{
    ids::{RoomId, RunId, TokenId, VisitId},
    name::Name,
    owner::{Owner, Principal},
};
use engine::Engine;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use server::{
    App, AppState, Config,
    auth::{Accounts, Caller, token},
    doors::{Door, Doors, Policy},
    error::{BoxError, Problem},
    extract::{Body as JsonBody, Id, IdempotencyKey, Params},
    listen::Peer,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use store::{Access, Backend, Store};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use utoipa_axum::routes;

pub const TOKEN: &str = "grm_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// One account that exists or not, and whether the store behind it answers.
#[derive(Default)]
pub struct Desk {
    pub exist: AtomicBool,
    pub broken: AtomicBool,
    pub questions: AtomicUsize,
    pub probes: AtomicUsize,
    /// The one browser that is signed in: its token and the hash of its cookie.
    pub visit: Mutex<Option<(TokenId, [u8; 32])>>,
}

#[derive(Clone)]
pub struct SharedDesk(Arc<Desk>);

impl Accounts for SharedDesk {
    fn accounts_exist(&self) -> BoxFuture<'_, Result<bool, BoxError>> {
        Box::pin(async {
            self.0.questions.fetch_add(1, Ordering::SeqCst);
            match self.0.broken.load(Ordering::SeqCst) {
                true => Err("the secret database path is gone".into()),
                false => Ok(self.0.exist.load(Ordering::SeqCst)),
            }
        })
    }

    fn token_is_good(&self, _: TokenId) -> BoxFuture<'_, Result<bool, BoxError>> {
        Box::pin(async { Ok(self.0.exist.load(Ordering::SeqCst)) })
    }

    fn principal_of(&self, sha256: [u8; 32]) -> BoxFuture<'_, Result<Option<Principal>, BoxError>> {
        Box::pin(async move {
            let known = self.0.exist.load(Ordering::SeqCst) && sha256 == token::hash(TOKEN.as_bytes());
            let owner = Owner::new(Name::parse("ada").unwrap());
            Ok(known.then(|| Principal { owner, token: Some(TokenId::generate()), visit: None }))
        })
    }

    fn begin_visit(&self, token: TokenId, cookie: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            *self.0.visit.lock().unwrap() = Some((token, cookie));
            Ok(())
        })
    }

    fn end_visit(&self, cookie: [u8; 32]) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            self.0.visit.lock().unwrap().take_if(|(_, known)| *known == cookie);
            Ok(())
        })
    }

    fn visit_is_good(&self, _: VisitId) -> BoxFuture<'_, Result<bool, BoxError>> {
        Box::pin(async { Ok(self.0.visit.lock().unwrap().is_some()) })
    }

    fn visitor(&self, cookie: [u8; 32]) -> BoxFuture<'_, Result<Option<Principal>, BoxError>> {
        Box::pin(async move {
            let visit = *self.0.visit.lock().unwrap();
            let owner = Owner::new(Name::parse("ada").unwrap());
            let known = visit.filter(|(_, known)| *known == cookie);
            Ok(known.map(|(token, _)| Principal { owner, token: Some(token), visit: Some(VisitId::generate()) }))
        })
    }
}

/// A look at the machine that finds nothing.
fn examine() -> server::http::doctor::Examine {
    Box::new(|| Box::pin(async { Vec::new() }))
}

/// A real engine on a real store; these tests only pass by it. Opened on a thread of its own, because some of them hold
/// the clock.
fn engine() -> Engine {
    let opened = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let config = store::Config {
                backend: Backend::Sqlite { file: folder.path().join("greenroom.db") },
                read_connections: 1,
                tail_bytes: 1 << 20,
                planted: None,
            };
            let store =
                Store::open(&config, Access::Beside, &mut JoinSet::new(), &CancellationToken::new()).await.unwrap();
            let settings = engine::Config {
                concurrency: 1,
                lease: Duration::from_secs(15),
                limits: Limits::default(),
                stop_grace: Duration::from_secs(1),
                folders: engine::Folders { data: folder.path().to_owned(), workspace: None },
                mcp_servers: std::collections::BTreeMap::new(),
                mcp_variables: engine::Variables::default(),
            };
            let mcp = workbench::mcp::Manager::new(
                workbench::process::Supervisor::new("greenroom".into()),
                workbench::mcp::Settings::new(folder.path().to_owned()),
            );
            Engine::new(store, providers::Registry::default(), mcp, settings)
        })
    });
    opened.join().unwrap()
}

pub struct Stage {
    pub app: App,
    pub desk: Arc<Desk>,
    pub router: Router,
    pub doors: Vec<Door>,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(Config::default())
    }

    pub fn with_accounts() -> Self {
        let stage = Self::new();
        stage.desk.exist.store(true, Ordering::SeqCst);
        stage
    }

    pub fn with(config: Config) -> Self {
        let desk = Arc::new(Desk::default());
        let probed = Arc::clone(&desk);
        let probe = move || -> BoxFuture<'static, Result<(), BoxError>> {
            let desk = Arc::clone(&probed);
            Box::pin(async move {
                desk.probes.fetch_add(1, Ordering::SeqCst);
                if desk.broken.load(Ordering::SeqCst) { Err("the disk at /secret is full".into()) } else { Ok(()) }
            })
        };
        let accounts = Box::new(SharedDesk(Arc::clone(&desk)));
        let app = AppState::with(config, engine(), accounts, Box::new(probe), examine(), CancellationToken::new());
        let app = app.unwrap();
        let (router, doors) = open(server::http::open(Doors::new(&app))).into_router();
        Self { app, desk, router, doors }
    }

    /// Asks as a program on this machine does, with what `change` makes of it.
    pub async fn ask(&self, target: &str, change: impl FnOnce(Request<Body>) -> Request<Body>) -> Answer {
        let request = Request::builder().uri(target).header(header::HOST, "127.0.0.1:7878");
        let mut request = request.body(Body::empty()).unwrap();
        let local = ([127, 0, 0, 1], 7878).into();
        request.extensions_mut().insert(Peer { remote: ([127, 0, 0, 1], 5000).into(), local });
        Answer::read(self.router.clone().oneshot(change(request)).await.unwrap()).await
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.ask(target, |request| request).await
    }

    pub async fn post(&self, target: &str, body: impl Into<Body>) -> Answer {
        let body = body.into();
        self.ask(target, |request| {
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

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
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
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {:?}", self.text))
    }

    /// Holds it to RFC 9457 and gives the code.
    #[track_caller]
    pub fn problem(&self, status: u16) -> String {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let json = self.json();
        assert_eq!(json["type"], "about:blank");
        assert_eq!(json["status"], status);
        assert!(json["title"].as_str().is_some_and(|t| !t.is_empty()));
        assert!(json["detail"].as_str().is_some_and(|d| !d.is_empty()));
        json["code"].as_str().unwrap().to_owned()
    }
}

fn open(doors: Doors) -> Doors {
    doors
        .open(Policy::Owner, routes!(whoami))
        .open(Policy::Owner, routes!(post))
        .open(Policy::Owner, routes!(show))
        .open(Policy::Owner, routes!(pair))
        .open(Policy::Owner, routes!(list))
        .open(Policy::Public, routes!(explode))
        .open(Policy::Public, routes!(hang))
}

#[utoipa::path(get, path = "/test/whoami")]
async fn whoami(Caller(principal): Caller) -> Json<Value> {
    Json(json!({"owner": principal.owner, "token": principal.token.is_some()}))
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
async fn list(Params(page): Params<Page>) -> Json<Value> {
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
