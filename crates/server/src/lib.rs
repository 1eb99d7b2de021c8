//! The HTTP server: REST, SSE and WebSocket endpoints on top of the engine and the store. It knows HTTP, and nothing of
//! providers or SQL.
//!
//! Start at [`routing`]: every route is registered there with an access policy. A request passes [`listen`] (the
//! socket), [`observe`] (request id, log line, deadline), [`auth`] (authentication) and [`extract`] (parsing) before it
//! reaches a handler in [`http`]. Every error becomes an [`error::Problem`].

pub mod accept;
pub mod auth;
pub mod byte_range;
pub mod error;
pub mod extract;
pub mod feed;
pub mod guest;
pub mod http;
pub mod listen;
pub mod metrics;
pub mod observe;
pub mod openapi;
pub mod path_routes;
pub mod preview;
pub mod representation;
mod request_span;
pub mod routing;
pub mod shares;
pub mod web;

pub use mcp::McpHandlerKind;
/// Used by [`routes!`].
#[doc(hidden)]
pub use pastey;

use auth::{
    AccountStore, AuthSettings, Authenticator, CorsSettings, access_changes::AccessChanges,
    client_address::TrustedProxies, last_used::LastUsed, origin::AllowedHosts, rate_limit::RequestRateLimiter,
    tickets::Tickets,
};
use axum::middleware::from_fn_with_state;
use engine::Engine;
use error::Code;
use http::{
    doctor::{Doctor, RunDoctorChecks},
    health::{Readiness, ReadinessProbe},
};
use listen::tls::ServerTls;
use mcp::McpService;
use preview::Previews;
use routing::{RouteInfo, RouterBuilder};
use shares::{ShareLimits, UserShares};
use std::{
    net::SocketAddr,
    num::NonZeroU32,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinSet, time::MissedTickBehavior};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const HOUSEKEEPING: Duration = Duration::from_secs(5);
/// How long background work may take after the last connection was closed.
const LAST_WORK: Duration = Duration::from_secs(2);

/// The wiring sets every field: the only defaults are those of its configuration file.
#[derive(Clone, Debug)]
pub struct HttpServerConfig {
    pub listen: SocketAddr,
    pub encryption: Encryption,
    pub auth: AuthSettings,
    /// Host names the server accepts in addition to its own address. Pages of these hosts may call the API.
    pub public_hosts: Vec<String>,
    /// The names of previews are beneath it. Nothing else is served there.
    pub preview_domain: String,
    pub cors: CorsSettings,
    pub max_body_bytes: usize,
    pub max_connections: usize,
    /// Of one client address.
    pub max_connections_per_address: usize,
    /// Who may say in a header which client a request came from.
    pub trusted_proxies: TrustedProxies,
    pub requests_per_second: NonZeroU32,
    pub request_burst: NonZeroU32,
    /// What one user may hold open.
    pub shares: ShareLimits,
    /// Messages that all WebSockets of one user may send.
    pub socket_messages_per_second: NonZeroU32,
    pub socket_message_burst: NonZeroU32,
    /// From the start of a request to the head of its response. Streaming bodies have no deadline.
    pub request_deadline: Duration,
    /// Time to receive a complete request head. Also the keep-alive timeout of an idle connection.
    pub header_read_timeout: Duration,
    /// Interval of the heartbeats that tell a stream its room's head.
    pub heartbeat: Duration,
    /// How long a client may read nothing before its connection is closed.
    pub write_stall: Duration,
    /// How long open requests and streams may take to end when the server stops.
    pub stop_deadline: Duration,
    /// How long an unused MCP client session is kept, and how many sessions there may be.
    pub mcp_session_idle: Duration,
    pub mcp_max_sessions: usize,
    pub mcp_max_sessions_per_user: usize,
    /// Tests may replace the handler of MCP clients.
    pub mcp_handler: McpHandlerKind,
    pub routes: RouteSet,
}

/// Who encrypts what travels between clients and the server.
#[derive(Clone, Debug)]
pub enum Encryption {
    Tls(ServerTls),
    /// A proxy in front of the server, and nothing else can reach its address.
    Proxy,
    None,
}

impl Encryption {
    pub fn is_on(&self) -> bool {
        !matches!(self, Self::None)
    }

    pub fn tls(&self) -> Option<&ServerTls> {
        match self {
            Self::Tls(tls) => Some(tls),
            Self::Proxy | Self::None => None,
        }
    }
}

/// The routes that a server has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteSet {
    All,
    /// Health, metrics, and the host tools of the agents that run on this server.
    Worker,
}

/// The shared state of all handlers. Every field is a cheap handle.
pub struct AppState {
    pub config: HttpServerConfig,
    pub engine: Engine,
    pub mcp: McpService,
    pub authenticator: Authenticator,
    pub allowed_hosts: AllowedHosts,
    pub rate_limiter: RequestRateLimiter,
    /// The same for messages over WebSockets.
    pub socket_rate_limiter: RequestRateLimiter,
    pub shares: UserShares,
    pub readiness: Readiness,
    pub doctor: Doctor,
    pub last_used: LastUsed,
    pub tickets: Tickets,
    pub previews: Previews,
    pub access_changes: AccessChanges,
    /// Cancelled when the server stops. Streams must watch it: nothing else ends them.
    pub stopping: CancellationToken,
    /// Work that may outlive the request that started it. [`serve`] waits for it.
    pub background: TaskTracker,
    pub(crate) openapi: OnceLock<openapi::ApiDescription>,
}

pub type App = Arc<AppState>;

impl AppState {
    pub fn new(
        config: HttpServerConfig,
        engine: Engine,
        examine: RunDoctorChecks,
        stopping: CancellationToken,
    ) -> Result<App, HttpServerError> {
        let (accounts, probed) = (Box::new(engine.accounts()), engine.clone());
        let probe: ReadinessProbe = Box::new(move || {
            let engine = probed.clone();
            Box::pin(async move { Ok(engine.check_writable().await?) })
        });
        Self::with_accounts_and_probe(config, engine, accounts, probe, examine, stopping)
    }

    /// Replaces the store's accounts and readiness probe, so that tests can make them fail.
    pub fn with_accounts_and_probe(
        config: HttpServerConfig,
        engine: Engine,
        accounts: Box<dyn AccountStore>,
        ready: ReadinessProbe,
        examine: RunDoctorChecks,
        stopping: CancellationToken,
    ) -> Result<App, HttpServerError> {
        metrics::install();
        if let Some(host) = config.public_hosts.iter().find(|host| preview::covers(&config.preview_domain, host)) {
            let detail = format!(
                "server.preview_domain: {host} of server.public_hosts is in it; nothing but previews is served there"
            );
            return Err(HttpServerError::Config(detail));
        }
        let settings = mcp::McpServerSettings {
            session_idle: config.mcp_session_idle,
            max_sessions: config.mcp_max_sessions,
            max_sessions_per_user: config.mcp_max_sessions_per_user,
            heartbeat: config.heartbeat.min(feed::sse::MAX_SILENCE),
            max_body_bytes: config.max_body_bytes,
            handler: config.mcp_handler,
        };
        Ok(Arc::new(Self {
            mcp: McpService::new(engine.clone(), settings, stopping.clone()),
            engine,
            authenticator: Authenticator::new(accounts, config.auth),
            allowed_hosts: AllowedHosts::new(&config.public_hosts).map_err(HttpServerError::Config)?,
            rate_limiter: RequestRateLimiter::new(config.requests_per_second, config.request_burst),
            socket_rate_limiter: RequestRateLimiter::new(
                config.socket_messages_per_second,
                config.socket_message_burst,
            ),
            shares: UserShares::new(config.shares),
            readiness: Readiness::new(ready),
            doctor: Doctor::new(examine),
            last_used: LastUsed::default(),
            tickets: Tickets::default(),
            previews: Previews::default(),
            access_changes: AccessChanges::default(),
            stopping,
            background: TaskTracker::new(),
            openapi: OnceLock::new(),
            config,
        }))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum HttpServerError {
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    OpenBind(String),
    #[error("the listening socket failed")]
    Socket(#[from] std::io::Error),
}

/// Builds the router, and the list of all routes with their policies.
pub fn router(app: &App) -> (axum::Router, Vec<RouteInfo>) {
    let builder = RouterBuilder::new(app);
    match app.config.routes {
        RouteSet::All => http::add_routes(builder),
        RouteSet::Worker => http::add_worker_routes(builder),
    }
    .into_router()
}

/// The routes for the programs of this server's own agents.
fn host_tools_router(app: &App) -> axum::Router {
    http::mcp::add_worker_routes(RouterBuilder::new(app)).into_undescribed()
}

/// The sockets of a server.
#[derive(Debug)]
pub struct ServerSockets {
    pub clients: TcpListener,
    /// A loopback address without TLS for the host tools of this server's own agents, whose programs may not know the
    /// authority of its certificate. Nothing else is served there.
    pub host_tools: Option<TcpListener>,
}

/// Serves until `app.stopping` is cancelled and all open requests have ended, or `stop_deadline` has passed.
pub async fn serve(app: App, sockets: ServerSockets) -> Result<(), HttpServerError> {
    let ServerSockets { clients, host_tools } = sockets;
    let address = clients.local_addr()?;
    auth::refuse_open_bind(address, app.config.auth.no_auth).map_err(HttpServerError::OpenBind)?;
    auth::refuse_plain_bind(address, app.config.encryption.is_on()).map_err(HttpServerError::OpenBind)?;
    if let Some(listener) = &host_tools {
        auth::refuse_plain_bind(listener.local_addr()?, false).map_err(HttpServerError::OpenBind)?;
    }
    let (router, _) = router(&app);
    // Around everything: a request to a preview never reaches the API.
    let router = router.layer(from_fn_with_state(Arc::clone(&app), preview::dispatch));
    let mut tasks = JoinSet::new();
    tasks.spawn(run_housekeeping(Arc::clone(&app)));
    let (mcp, stopping, mut closing) = (app.mcp.clone(), app.stopping.clone(), JoinSet::new());
    closing.spawn(async move {
        stopping.cancelled().await;
        mcp.close().await;
    });
    let limits = listen::ConnectionLimits::from(&app.config);
    if let Some(listener) = host_tools {
        let (router, stopping) = (host_tools_router(&app), app.stopping.clone());
        closing.spawn(listen::serve(listener, None, router, limits.clone(), stopping));
    }
    let tls = app.config.encryption.tls().cloned();
    listen::serve(clients, tls, router, limits, app.stopping.clone()).await;
    closing.join_all().await;
    app.background.close();
    if tokio::time::timeout(LAST_WORK, app.background.wait()).await.is_err() {
        tracing::warn!(tasks = app.background.len(), "background work did not finish before the stop deadline");
    }
    tasks.shutdown().await;
    Ok(())
}

/// Trims everything that grows with use, and closes the MCP sessions of actors that lost access.
async fn run_housekeeping(app: App) {
    let mut tick = tokio::time::interval(HOUSEKEEPING);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut access = app.access_changes.watch();
    loop {
        // Sessions of MCP clients end at once, too, when a token is revoked.
        tokio::select! {
            _ = tick.tick() => {}
            () = access.wait() => drop(access.take()),
        }
        app.rate_limiter.prune();
        app.socket_rate_limiter.prune();
        app.shares.prune();
        app.last_used.prune();
        app.mcp.run_maintenance().await;
        for actor in app.mcp.actors() {
            // A store that does not answer must not end sessions: only a definite "unauthorized" does.
            if app.authenticator.recheck(&actor).await.is_err_and(|problem| problem.code() == Code::Unauthorized) {
                app.mcp.end_sessions_of(&actor).await;
            }
        }
        metrics::upkeep();
    }
}
