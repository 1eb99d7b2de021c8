//! The slot of one server: at most one connection at a time, restart, and health. A server that crashed is restarted by
//! the next call that needs it, unless its backoff forbids a restart now.

use super::{
    CallOptions, McpCallResult, McpFailure, McpNotice, McpServerLogs, McpServerState, McpServerStatus, McpToolListing,
    PlacedMcpServer, connection::McpConnection, health::McpServerHealth, open::McpConnector, settings::ProtocolEra,
};
use crate::{
    process::{Backoff, StderrTail},
    project_sandbox::SandboxSpec,
};
use domain::mcp::NamedMcpServer;
use serde_json::{Map, Value};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use tokio_util::sync::CancellationToken;

/// A server that times out this many times in a row is considered hung and is restarted.
const MAX_TIMEOUTS_IN_A_ROW: u32 = 3;
/// How long other calls on an abandoned connection may take to finish.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Limits relisting for a server that announces a change after every listing.
const MAX_DEBOUNCE: Duration = Duration::from_secs(60);

pub struct McpServerSlot {
    server: NamedMcpServer,
    /// Where its program is started next.
    sandbox: Mutex<Option<Arc<SandboxSpec>>>,
    connector: Arc<McpConnector>,
    closing: CancellationToken,
    health: Arc<McpServerHealth>,
    /// Held while the server is started.
    start_lock: AsyncMutex<()>,
    inner: Mutex<SlotState>,
}

struct SlotState {
    connection: Option<Arc<McpConnection>>,
    era: Option<ProtocolEra>,
    backoff: Backoff,
    starting: bool,
    has_failed: bool,
    /// Why the last connection ended unexpectedly, until a new one is open.
    crash_reason: Option<String>,
    /// Why it was restarted, until a caller has got the notice.
    restart_reason: Option<String>,
    timeouts_in_a_row: u32,
    last_used: Instant,
    stderr: Option<StderrTail>,
}

struct InFlightGuard<'a>(&'a McpServerSlot);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.health.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.inner().last_used = Instant::now();
    }
}

struct StartingGuard<'a>(&'a McpServerSlot);

impl Drop for StartingGuard<'_> {
    fn drop(&mut self) {
        self.0.inner().starting = false;
    }
}

impl McpServerSlot {
    pub fn new(placed: PlacedMcpServer, connector: Arc<McpConnector>, closing: CancellationToken) -> Self {
        let inner = SlotState {
            connection: None,
            era: None,
            backoff: Backoff::new(connector.settings.backoff),
            starting: false,
            has_failed: false,
            crash_reason: None,
            restart_reason: None,
            timeouts_in_a_row: 0,
            last_used: Instant::now(),
            stderr: None,
        };
        let PlacedMcpServer { server, sandbox } = placed;
        Self {
            server,
            sandbox: Mutex::new(sandbox),
            connector,
            closing,
            health: Arc::default(),
            start_lock: AsyncMutex::new(()),
            inner: Mutex::new(inner),
        }
    }

    fn inner(&self) -> MutexGuard<'_, SlotState> {
        // Each change is one step, so a panic leaves nothing inconsistent.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the sandbox for the next start: its settings may have changed since the slot was created.
    pub fn set_sandbox(&self, sandbox: Option<&Arc<SandboxSpec>>) {
        *self.sandbox.lock().unwrap_or_else(PoisonError::into_inner) = sandbox.cloned();
    }

    fn placed(&self) -> PlacedMcpServer {
        let sandbox = self.sandbox.lock().unwrap_or_else(PoisonError::into_inner).clone();
        PlacedMcpServer { server: self.server.clone(), sandbox }
    }

    fn in_flight(&self) -> InFlightGuard<'_> {
        self.health.in_flight.fetch_add(1, Ordering::Relaxed);
        self.inner().last_used = Instant::now();
        InFlightGuard(self)
    }

    pub async fn tools(&self) -> Result<Arc<McpToolListing>, McpFailure> {
        let _busy = self.in_flight();
        let connection = self.connect().await?;
        let listed = connection.tools(&self.connector.settings).await;
        self.record_outcome(&connection, &listed, false);
        listed
    }

    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<McpCallResult, McpFailure> {
        let _busy = self.in_flight();
        self.health.calls.fetch_add(1, Ordering::Relaxed);
        let called = self.call_counted(tool, arguments, options).await;
        if matches!(&called, Err(failure) if !matches!(failure, McpFailure::Cancelled)) {
            self.health.failures.fetch_add(1, Ordering::Relaxed);
        }
        called
    }

    async fn call_counted(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<McpCallResult, McpFailure> {
        let connection = tokio::select! {
            biased;
            () = options.cancel.cancelled() => return Err(McpFailure::Cancelled),
            ready = self.connect() => ready?,
        };
        let default = self.server.config.call_timeout.unwrap_or(self.connector.settings.call_timeout);
        let deadline = options.deadline.unwrap_or(default);
        let mut called = connection.call(tool, arguments, deadline, options).await;
        self.record_outcome(&connection, &called, true);
        if let Ok(result) = &mut called
            && let Some(reason) = self.inner().restart_reason.take()
        {
            result.notices.push(McpNotice::Restarted { server: self.server.name.clone(), reason });
        }
        called
    }

    /// Updates the health of the server by the outcome of a request.
    fn record_outcome<T>(&self, connection: &Arc<McpConnection>, outcome: &Result<T, McpFailure>, is_call: bool) {
        match outcome {
            Ok(_) => {
                let mut inner = self.inner();
                inner.timeouts_in_a_row = 0;
                if is_call {
                    inner.backoff.record_success();
                }
            }
            Err(McpFailure::Timeout { .. }) => {
                let timeouts = {
                    let mut inner = self.inner();
                    inner.timeouts_in_a_row += 1;
                    inner.timeouts_in_a_row
                };
                self.health.record_error(&format!("it did not answer {timeouts} requests in a row"));
                if timeouts >= MAX_TIMEOUTS_IN_A_ROW {
                    self.abandon_connection(connection, "it did not answer several requests in a row");
                }
            }
            Err(failure @ McpFailure::Unreachable(_)) => {
                self.health.record_error(&failure.to_string());
                self.abandon_connection(connection, &failure.to_string());
            }
            Err(McpFailure::Cancelled) => {}
            Err(failure) => self.health.record_error(&failure.to_string()),
        }
    }

    /// The next caller gets a new connection; calls on this one may finish.
    fn abandon_connection(&self, connection: &Arc<McpConnection>, reason: &str) {
        let mut inner = self.inner();
        let Some(current) = inner.connection.take_if(|current| Arc::ptr_eq(current, connection)) else { return };
        inner.timeouts_in_a_row = 0;
        inner.has_failed = true;
        inner.crash_reason = Some(reason.to_owned());
        inner.backoff.record_failure(Instant::now());
        let (health, close_timeout) = (Arc::clone(&self.health), self.connector.settings.close_timeout);
        self.connector.background_tasks.spawn(async move {
            drop(timeout(DRAIN_TIMEOUT, wait_until_idle(&health.in_flight)).await);
            current.close(close_timeout).await;
        });
    }

    fn open_connection(&self) -> Option<Arc<McpConnection>> {
        self.inner().connection.as_ref().filter(|connection| connection.end_reason().is_none()).cloned()
    }

    /// Returns the open connection, or opens one: the first start of the server, or a restart.
    async fn connect(&self) -> Result<Arc<McpConnection>, McpFailure> {
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let _starting = self.start_lock.lock().await;
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        if self.closing.is_cancelled() {
            return Err(McpFailure::Closing);
        }
        let (ended, era) = self.take_ended_connection()?;
        if let Some(connection) = ended {
            connection.close(self.connector.settings.close_timeout).await;
        }
        let (_starting, placed) = (StartingGuard(self), self.placed());
        let opened = tokio::select! {
            biased;
            () = self.closing.cancelled() => return Err(McpFailure::Closing),
            opened = self.connector.open(&placed, &self.health, era) => opened,
        };
        let mut inner = self.inner();
        match opened {
            Ok((connection, era)) => {
                let connection = Arc::new(connection);
                inner.connection = Some(Arc::clone(&connection));
                inner.stderr.clone_from(&connection.stderr);
                inner.era = Some(era);
                inner.has_failed = false;
                if let Some(reason) = inner.crash_reason.take() {
                    self.health.restarts.fetch_add(1, Ordering::Relaxed);
                    inner.restart_reason = Some(reason);
                }
                drop(inner);
                self.health.log("manager", "connected");
                self.relist_on_change(&connection);
                Ok(connection)
            }
            Err(failure) => {
                inner.backoff.record_failure(Instant::now());
                inner.has_failed = true;
                drop(inner);
                self.health.record_error(&failure.to_string());
                Err(failure)
            }
        }
    }

    /// Records how the last connection ended, and fails while the backoff forbids a restart.
    fn take_ended_connection(&self) -> Result<(Option<Arc<McpConnection>>, Option<ProtocolEra>), McpFailure> {
        let now = Instant::now();
        let mut inner = self.inner();
        let ended = inner.connection.take();
        if let Some(connection) = &ended {
            inner.crash_reason = connection.end_reason();
            inner.has_failed = true;
            inner.backoff.record_failure(now);
        }
        if let Err(refusal) = inner.backoff.check(now) {
            let last = self.health.last_error().map(|error| format!("; last: {error}").into()).unwrap_or_default();
            return Err(McpFailure::BackingOff { refusal, last });
        }
        inner.starting = true;
        Ok((ended, inner.era))
    }

    fn relist_on_change(&self, connection: &Arc<McpConnection>) {
        let (connector, connection, closing) =
            (Arc::clone(&self.connector), Arc::downgrade(connection), self.closing.clone());
        let Some(handler) = connection.upgrade().map(|connection| connection.handler.clone()) else { return };
        let mut changes = handler.changes();
        // Only the connection holds it, so the wait ends with the connection.
        drop(handler);
        let relist = async move {
            let mut pause = connector.settings.debounce;
            while changes.changed().await.is_ok() {
                let asked = Instant::now();
                tokio::time::sleep(pause).await;
                changes.borrow_and_update();
                let Some(connection) = connection.upgrade() else { return };
                if connection.end_reason().is_some() {
                    return;
                }
                if let Err(failure) = connection.tools(&connector.settings).await {
                    tracing::debug!(%failure, "could not list the tools of an MCP server again");
                }
                let is_quiet = asked.elapsed() > pause * 4;
                pause = if is_quiet { connector.settings.debounce } else { (pause * 2).min(MAX_DEBOUNCE) };
            }
        };
        self.connector.background_tasks.spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = relist => {}
            }
        });
    }

    /// Returns whether the server has not been used for this long.
    pub fn is_idle(&self, now: Instant, longer_than: Duration) -> bool {
        let unused = now.saturating_duration_since(self.inner().last_used) >= longer_than;
        unused && self.health.in_flight.load(Ordering::Relaxed) == 0
    }

    pub fn is_connected(&self) -> bool {
        self.inner().connection.is_some()
    }

    /// Stops on purpose, so that the next start does not count as a restart.
    pub async fn stop(&self, why: &str) {
        let connection = {
            let mut inner = self.inner();
            inner.has_failed = false;
            inner.connection.take()
        };
        if let Some(connection) = connection {
            self.health.log("manager", why);
            connection.close(self.connector.settings.close_timeout).await;
        }
    }

    pub fn status(&self) -> McpServerStatus {
        let inner = self.inner();
        let now = Instant::now();
        let connection = inner.connection.as_ref().filter(|connection| connection.end_reason().is_none());
        let backoff = inner.backoff.check(now).err();
        let state = match () {
            () if connection.is_some() => McpServerState::Ready,
            () if inner.starting => McpServerState::Starting,
            () if backoff.is_some() => McpServerState::BackingOff,
            () if inner.has_failed || inner.connection.is_some() => McpServerState::Failed,
            () => McpServerState::Stopped,
        };
        let listing = connection.and_then(|connection| connection.cached_listing());
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        McpServerStatus {
            protocol_version: connection.map(|connection| connection.server_info.protocol_version.clone()),
            server: connection.and_then(|connection| connection.server_info.server.clone()),
            process_id: connection.and_then(|connection| connection.process_id),
            uptime_ms: connection.map(|connection| millis(connection.started.elapsed())),
            retry_in_ms: backoff.map(|refusal| millis(refusal.wait)),
            ..self.health.status(state, self.server.config.transport.kind(), listing.as_deref())
        }
    }

    pub fn logs(&self) -> McpServerLogs {
        let stderr = self.inner().stderr.as_ref().map(StderrTail::text).unwrap_or_default();
        McpServerLogs { lines: self.health.lines(), stderr }
    }
}

async fn wait_until_idle(in_flight: &AtomicUsize) {
    while in_flight.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
