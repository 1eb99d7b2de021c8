//! The doors: HTTP, SSE and WebSocket in front of the engine and the store. Knows HTTP and nothing of providers or SQL.
//!
//! Start at [`doors`]: every route is opened there with a policy. A request passes [`listen`] (the socket), [`observe`]
//! (its id, its log line, its deadline), [`auth`] (whether it may) and [`extract`] (what it says) before it reaches a
//! handler in [`http`]; what goes wrong on the way becomes a [`error::Problem`].

pub mod auth;
pub mod doors;
pub mod error;
pub mod extract;
pub mod feed;
pub mod http;
pub mod listen;
pub mod metrics;
pub mod observe;
pub mod openapi;
pub mod web;

use auth::{Accounts, Bearer, last_used::LastUsed, origin::Hosts, rate::Rate};
use bytes::Bytes;
use doors::{Door, Doors};
use engine::Engine;
use error::{BoxError, Code};
use http::{
    doctor::{Doctor, Examine},
    health::{Probe, Readiness},
};
use mcp::Mcp;
use std::{
    net::SocketAddr,
    num::NonZeroU32,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinSet, time::MissedTickBehavior};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const HOUSEKEEPING: Duration = Duration::from_secs(5);
/// How long work that outlived its request may take once the doors are closed.
const LAST_WORK: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// Host names, beside its own address, that the server answers to and whose pages may ask it.
    pub public_hosts: Vec<String>,
    pub max_body_bytes: usize,
    pub max_connections: usize,
    pub requests_per_second: NonZeroU32,
    pub request_burst: NonZeroU32,
    /// From a request to the head of its answer; a stream may go on for as long as it likes.
    pub request_deadline: Duration,
    /// From the first byte of a request's head to its last, and how long an idle connection is kept.
    pub header_read_timeout: Duration,
    /// How often a quiet stream is told its head.
    pub heartbeat: Duration,
    /// How long a reader may take nothing before its connection is closed.
    pub write_stall: Duration,
    /// How long open requests and streams get to end once the server stops.
    pub stop_deadline: Duration,
    /// How long the session of an MCP client is kept that nobody uses, and how many there may be.
    pub mcp_session_idle: Duration,
    pub mcp_max_sessions: usize,
}

impl Default for Config {
    fn default() -> Self {
        const RATE: NonZeroU32 = NonZeroU32::new(1000).unwrap();
        const BURST: NonZeroU32 = NonZeroU32::new(5000).unwrap();
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7878)),
            public_hosts: Vec::new(),
            max_body_bytes: 2 * 1024 * 1024,
            max_connections: 20_000,
            requests_per_second: RATE,
            request_burst: BURST,
            request_deadline: Duration::from_secs(60),
            header_read_timeout: Duration::from_secs(10),
            heartbeat: Duration::from_secs(15),
            write_stall: Duration::from_secs(120),
            stop_deadline: Duration::from_secs(10),
            mcp_session_idle: Duration::from_secs(30 * 60),
            mcp_max_sessions: 10_000,
        }
    }
}

/// What every handler may use: cheap handles, nothing else.
pub struct AppState {
    pub config: Config,
    pub engine: Engine,
    pub mcp: Mcp,
    pub bearer: Bearer,
    pub hosts: Hosts,
    pub rate: Rate,
    pub readiness: Readiness,
    pub doctor: Doctor,
    pub last_used: LastUsed,
    /// Cancelled when the server stops. Streams end when they see it; nothing else would end them.
    pub stopping: CancellationToken,
    /// Work that a request began and may outlive; [`serve`] waits for it.
    pub background: TaskTracker,
    pub(crate) openapi: OnceLock<Bytes>,
}

pub type App = Arc<AppState>;

impl AppState {
    pub fn new(config: Config, engine: Engine, examine: Examine, stopping: CancellationToken) -> Result<App, Error> {
        let store = engine.store().clone();
        let accounts = Box::new(store.clone());
        let probe: Probe = Box::new(move || {
            let store = store.clone();
            Box::pin(async move { Ok(store.check_writable().await?) })
        });
        Self::with(config, engine, accounts, probe, examine, stopping)
    }

    /// With other accounts and another probe than the store's: for tests of what happens when those fail.
    pub fn with(
        config: Config,
        engine: Engine,
        accounts: Box<dyn Accounts>,
        ready: Probe,
        examine: Examine,
        stopping: CancellationToken,
    ) -> Result<App, Error> {
        metrics::install();
        let settings = mcp::Settings {
            session_idle: config.mcp_session_idle,
            max_sessions: config.mcp_max_sessions,
            heartbeat: config.heartbeat,
            max_body_bytes: config.max_body_bytes,
        };
        Ok(Arc::new(Self {
            mcp: Mcp::new(engine.clone(), settings, stopping.clone()),
            engine,
            bearer: Bearer::new(accounts),
            hosts: Hosts::new(&config.public_hosts).map_err(Error::Config)?,
            rate: Rate::new(config.requests_per_second, config.request_burst),
            readiness: Readiness::new(ready),
            doctor: Doctor::new(examine),
            last_used: LastUsed::default(),
            stopping,
            background: TaskTracker::new(),
            openapi: OnceLock::new(),
            config,
        }))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    OpenBind(String),
    #[error("could not ask the store whether accounts exist")]
    Accounts(#[source] BoxError),
    #[error("the listening socket failed")]
    Socket(#[from] std::io::Error),
}

/// All doors, and the list of them with their policies.
pub fn router(app: &App) -> (axum::Router, Vec<Door>) {
    http::open(Doors::new(app)).into_router()
}

/// Serves until `app.stopping` is cancelled and what was open has ended, or `stop_deadline` has passed.
pub async fn serve(app: App, listener: TcpListener) -> Result<(), Error> {
    let accounts_exist = app.bearer.accounts_exist().await.map_err(Error::Accounts)?;
    auth::refuse_open_bind(listener.local_addr()?, accounts_exist).map_err(Error::OpenBind)?;
    let (router, _) = router(&app);
    let mut tasks = JoinSet::new();
    tasks.spawn(keep_house(Arc::clone(&app)));
    let (mcp, stopping, mut closing) = (app.mcp.clone(), app.stopping.clone(), JoinSet::new());
    closing.spawn(async move {
        stopping.cancelled().await;
        mcp.close().await;
    });
    listen::serve(listener, router, listen::Limits::from(&app.config), app.stopping.clone()).await;
    closing.join_all().await;
    app.background.close();
    if tokio::time::timeout(LAST_WORK, app.background.wait()).await.is_err() {
        tracing::warn!(tasks = app.background.len(), "leaving background work to the end of the process");
    }
    tasks.shutdown().await;
    Ok(())
}

/// What grows with use is trimmed here.
async fn keep_house(app: App) {
    let mut tick = tokio::time::interval(HOUSEKEEPING);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        app.rate.prune();
        app.last_used.prune();
        app.mcp.keep_house().await;
        ::metrics::gauge!(metrics::MCP_SESSIONS).set(app.mcp.sessions() as f64);
        for principal in app.mcp.principals() {
            // A store that does not answer is no reason to send anybody away.
            if app.bearer.recheck(&principal).await.is_err_and(|problem| problem.code() == Code::Unauthorized) {
                app.mcp.dismiss(&principal).await;
            }
        }
        metrics::upkeep();
    }
}
