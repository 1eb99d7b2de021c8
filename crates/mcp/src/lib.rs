//! Greenroom as an MCP server: what MCP clients can do here, and the transports by which they reach it.
//!
//! Start at [`handler`]: it answers the methods of the protocol with [`tools`], [`resources`] and [`prompts`]; [`watch`] tells
//! clients what has changed. [`transport`] is `/mcp` for every revision and `/sse` for the oldest. What a client asks for is
//! done by the engine's commands, as for every other door; nothing is decided here. [`host`] is what an agent inside a run is
//! shown instead.

#[cfg(all(feature = "conformance", not(debug_assertions)))]
compile_error!("the feature `conformance` serves fixtures instead of Greenroom and has no place in a release build");

#[cfg(feature = "conformance")]
mod conformance;
mod follow;
mod handler;
mod host;
mod logging;
mod prompts;
mod resources;
mod roster;
mod tools;
mod transport;
mod watch;

pub use transport::{Body, Reply, sse::Events};

use domain::owner::Principal;
use engine::Engine;
use handler::Handler;
use host::Host;
use std::{sync::Arc, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transport::{
    sessions::{Link, Session, Sessions},
    streamable::Streamable,
};

/// What answers clients: Greenroom, or what the protocol's examination asks for.
#[cfg(feature = "conformance")]
use conformance::Fixture as Served;
#[cfg(not(feature = "conformance"))]
use handler::Handler as Served;

#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a session is kept that nobody uses.
    pub session_idle: Duration,
    pub max_sessions: usize,
    /// How often a quiet stream says that it is there.
    pub heartbeat: Duration,
    pub max_body_bytes: usize,
}

/// A cheap handle on the MCP server.
#[derive(Clone)]
pub struct Mcp(Arc<Inner>);

struct Inner {
    handler: Handler,
    streamable: Streamable,
    host: Host,
    sessions: Sessions,
    settings: Settings,
    /// What serves sessions and begins them.
    tasks: TaskTracker,
    /// Cancelled when every session has been told that the server stops.
    over: CancellationToken,
}

/// How long telling everyone may take, how long the last words may be on their way, and how long sessions may take to end.
const TELLING: Duration = Duration::from_secs(2);
const LAST_WORDS: Duration = Duration::from_millis(300);
const LAST_WORK: Duration = Duration::from_secs(2);

impl Mcp {
    pub fn new(engine: Engine, settings: Settings, stopping: CancellationToken) -> Self {
        let (tasks, over) = (TaskTracker::new(), CancellationToken::new());
        let handler = Handler::new(engine, stopping);
        Self(Arc::new(Inner {
            streamable: Streamable::new(&handler, &settings, &over),
            host: Host::new(&over),
            handler,
            sessions: Sessions::new(settings.max_sessions, settings.session_idle),
            settings,
            tasks,
            over,
        }))
    }

    /// To be called now and then: ends sessions that are idle.
    pub async fn keep_house(&self) {
        self.end_all(&self.0.sessions.stale(), "it was idle for long");
        self.0.streamable.lines.tidy();
        self.0.sessions.shrink();
    }

    /// How many there are, streams without a session among them.
    pub fn sessions(&self) -> usize {
        self.0.sessions.len()
    }

    /// Who has them.
    pub fn principals(&self) -> Vec<Principal> {
        self.0.sessions.principals()
    }

    /// For one who is no longer let in.
    pub async fn dismiss(&self, principal: &Principal) {
        let mut theirs = self.0.sessions.all();
        theirs.retain(|session| session.principal == *principal);
        self.end_all(&theirs, "its token is no longer valid");
    }

    /// For when the server stops: every session is told, then ended.
    pub async fn close(&self) {
        if tokio::time::timeout(TELLING, self.0.handler.told()).await.is_err() {
            tracing::warn!("not every MCP client could be told that the server stops");
        }
        let sessions = self.0.sessions.all();
        if !sessions.is_empty() {
            tokio::time::sleep(LAST_WORDS).await;
        }
        self.end_all(&sessions, "the server is stopping");
        self.0.over.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(LAST_WORK, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = self.0.tasks.len(), "MCP sessions did not end in time");
        }
    }

    fn end_all(&self, sessions: &[Arc<Session>], why: &'static str) {
        sessions.iter().for_each(|session| self.end(session, why));
    }

    fn end(&self, session: &Session, why: &'static str) {
        tracing::debug!(why, "an MCP session ends");
        self.0.sessions.end(session, why);
        if matches!(session.link, Link::Streamable) {
            self.0.streamable.lines.close(&session.id);
        }
    }
}
