//! Greenroom as an MCP server: its tools, resources and prompts, and the transports.
//!
//! Start at [`handler`]: it answers the protocol's methods with [`tools`], [`resources`] and [`prompts`]; [`watch`]
//! notifies clients of changes. [`transport`] is `/mcp` for every revision and `/sse` for the oldest. Requests are
//! carried out by the engine's commands, as for every other API; nothing is decided here. [`host`] serves the host
//! tools to agents inside runs.

mod agent_list;
#[cfg(feature = "test-hooks")]
mod conformance;
mod follow;
mod handler;
mod host;
mod logging;
mod prompts;
mod resources;
mod session_handler;
mod tools;
mod transport;
mod watch;

pub use transport::{McpResponse, McpResponseBody, sse::AuxiliaryEventFormat};

use domain::actor::Actor;
use engine::Engine;
use handler::McpHandler;
use host::HostToolsService;
use std::{sync::Arc, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transport::{
    sessions::{McpSession, McpSessions, SessionAdmission, SessionTransport},
    streamable::StreamableHttp,
};

/// The handler that answers clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum McpHandlerKind {
    #[default]
    Greenroom,
    /// The fixture of the official conformance suite, instead of Greenroom's tools, resources and prompts.
    #[cfg(feature = "test-hooks")]
    ConformanceFixture,
}

#[derive(Clone, Debug)]
pub struct McpServerSettings {
    /// How long an unused session is kept.
    pub session_idle: Duration,
    pub max_sessions: usize,
    /// How many sessions one user may have; a further one ends the one that was unused for the longest.
    pub max_sessions_per_user: usize,
    /// How often an idle stream sends a heartbeat.
    pub heartbeat: Duration,
    pub max_body_bytes: usize,
    pub handler: McpHandlerKind,
}

/// A cheap handle on the MCP server.
#[derive(Clone)]
pub struct McpService(Arc<McpServiceInner>);

struct McpServiceInner {
    handler: McpHandler,
    streamable: StreamableHttp,
    host: HostToolsService,
    sessions: McpSessions,
    settings: McpServerSettings,
    /// Tasks that begin and serve sessions.
    tasks: TaskTracker,
    /// Cancelled after every session was notified that the server stops.
    stopped: CancellationToken,
}

/// When the server stops: how long notifying all clients may take, how long the last messages get to be delivered, and
/// how long sessions may take to end.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(2);
const FLUSH_DELAY: Duration = Duration::from_millis(300);
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(2);

impl McpService {
    pub fn new(engine: Engine, settings: McpServerSettings, stopping: CancellationToken) -> Self {
        let (tasks, over) = (TaskTracker::new(), CancellationToken::new());
        let handler = McpHandler::new(engine, settings.handler, stopping);
        Self(Arc::new(McpServiceInner {
            streamable: StreamableHttp::new(&handler, &settings, &over),
            host: HostToolsService::new(&over),
            handler,
            sessions: McpSessions::new(settings.max_sessions, settings.max_sessions_per_user, settings.session_idle),
            settings,
            tasks,
            stopped: over,
        }))
    }

    /// Ends idle sessions and frees memory. Call it regularly.
    pub async fn run_maintenance(&self) {
        self.end_all(&self.0.sessions.idle_sessions(), "it was idle for too long");
        self.0.streamable.channels.tidy();
        self.0.sessions.shrink();
    }

    /// Returns how many sessions are open, including streams without a session.
    pub fn sessions(&self) -> usize {
        self.0.sessions.len()
    }

    /// Returns the actors that have sessions.
    pub fn actors(&self) -> Vec<Actor> {
        self.0.sessions.actors()
    }

    /// Ends the sessions of a actor that has lost access.
    pub async fn end_sessions_of(&self, actor: &Actor) {
        let mut sessions = self.0.sessions.all();
        sessions.retain(|session| session.actor.is_same(actor));
        self.end_all(&sessions, "its token is no longer valid");
    }

    /// Notifies all sessions that the server stops, then ends them.
    pub async fn close(&self) {
        if tokio::time::timeout(NOTIFY_TIMEOUT, self.0.handler.wait_for_watchers()).await.is_err() {
            tracing::warn!("could not notify every MCP client that the server stops");
        }
        let sessions = self.0.sessions.all();
        if !sessions.is_empty() {
            tokio::time::sleep(FLUSH_DELAY).await;
        }
        self.end_all(&sessions, "the server is stopping");
        self.0.stopped.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(SESSION_END_TIMEOUT, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = self.0.tasks.len(), "MCP sessions did not end in time");
        }
    }

    /// Makes room for another session of an actor. Returns whether it may begin.
    fn admit(&self, actor: &Actor) -> bool {
        match self.0.sessions.admit(actor) {
            SessionAdmission::Granted => true,
            SessionAdmission::Replaces(idle) => {
                self.end(&idle, "its user began more sessions than one user may have");
                true
            }
            SessionAdmission::Refused => false,
        }
    }

    fn end_all(&self, sessions: &[Arc<McpSession>], why: &'static str) {
        sessions.iter().for_each(|session| self.end(session, why));
    }

    fn end(&self, session: &McpSession, why: &'static str) {
        tracing::debug!(why, "an MCP session ends");
        self.0.sessions.end(session, why);
        if matches!(session.transport, SessionTransport::Streamable) {
            self.0.streamable.channels.close(&session.id);
        }
    }
}
