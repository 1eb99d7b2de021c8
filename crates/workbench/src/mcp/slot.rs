//! The place of one server: at most one connection at a time, who may start it, and what is known of its past.

use super::{
    CallOptions, CallResult, Failure, Listing, Logs, Notice, State, Status, connection::Connection, health::Health,
    open::Tools, settings::Era,
};
use crate::process::{Backoff, Stderr};
use domain::mcp::Server;
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

/// A server that leaves so many calls in a row without an answer is taken for hung and started again.
const STRIKES: u32 = 3;
/// Calls of others on a connection that is given up may still come to their end.
const DRAIN: Duration = Duration::from_secs(30);
/// A server that tells of changes whenever it is asked would be asked for ever.
const LONGEST_DEBOUNCE: Duration = Duration::from_secs(60);

pub struct Slot {
    server: Server,
    tools: Arc<Tools>,
    closing: CancellationToken,
    health: Arc<Health>,
    /// Whoever starts it holds this.
    gate: AsyncMutex<()>,
    inner: Mutex<Inner>,
}

struct Inner {
    connection: Option<Arc<Connection>>,
    era: Option<Era>,
    backoff: Backoff,
    starting: bool,
    has_failed: bool,
    /// Why the last connection ended by itself, until a new one stands.
    crashed: Option<String>,
    /// Why it was started again, until a caller was told.
    restarted: Option<String>,
    strikes: u32,
    used: Instant,
    stderr: Option<Stderr>,
}

struct Busy<'a>(&'a Slot);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.health.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.inner().used = Instant::now();
    }
}

struct Starting<'a>(&'a Slot);

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.0.inner().starting = false;
    }
}

impl Slot {
    pub fn new(server: Server, tools: Arc<Tools>, closing: CancellationToken) -> Self {
        let inner = Inner {
            connection: None,
            era: None,
            backoff: Backoff::new(tools.settings.backoff),
            starting: false,
            has_failed: false,
            crashed: None,
            restarted: None,
            strikes: 0,
            used: Instant::now(),
            stderr: None,
        };
        Self { server, tools, closing, health: Arc::default(), gate: AsyncMutex::new(()), inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self) -> Busy<'_> {
        self.health.in_flight.fetch_add(1, Ordering::Relaxed);
        self.inner().used = Instant::now();
        Busy(self)
    }

    pub async fn tools(&self) -> Result<Arc<Listing>, Failure> {
        let _busy = self.busy();
        let connection = self.ready().await?;
        let listed = connection.tools(&self.tools.settings).await;
        self.judge(&connection, &listed, false);
        listed
    }

    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<CallResult, Failure> {
        let _busy = self.busy();
        self.health.calls.fetch_add(1, Ordering::Relaxed);
        let called = self.call_counted(tool, arguments, options).await;
        if matches!(&called, Err(failure) if !matches!(failure, Failure::Cancelled)) {
            self.health.failures.fetch_add(1, Ordering::Relaxed);
        }
        called
    }

    async fn call_counted(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<CallResult, Failure> {
        let connection = tokio::select! {
            biased;
            () = options.cancel.cancelled() => return Err(Failure::Cancelled),
            ready = self.ready() => ready?,
        };
        let usual = self.server.config.call_timeout.unwrap_or(self.tools.settings.call);
        let deadline = options.deadline.unwrap_or(usual);
        let mut called = connection.call(tool, arguments, deadline, options).await;
        self.judge(&connection, &called, true);
        if let Ok(result) = &mut called
            && let Some(reason) = self.inner().restarted.take()
        {
            result.notices.push(Notice::Restarted { server: self.server.name.clone(), reason });
        }
        called
    }

    /// What an outcome says of the server.
    fn judge<T>(&self, connection: &Arc<Connection>, outcome: &Result<T, Failure>, is_call: bool) {
        match outcome {
            Ok(_) => {
                let mut inner = self.inner();
                inner.strikes = 0;
                if is_call {
                    inner.backoff.succeeded();
                }
            }
            Err(Failure::Timeout { .. }) => {
                let strikes = {
                    let mut inner = self.inner();
                    inner.strikes += 1;
                    inner.strikes
                };
                self.health.error(&format!("it left {strikes} in a row without an answer"));
                if strikes >= STRIKES {
                    self.give_up(connection, "it did not answer any more");
                }
            }
            Err(failure @ Failure::Unreachable(_)) => {
                self.health.error(&failure.to_string());
                self.give_up(connection, &failure.to_string());
            }
            Err(Failure::Cancelled) => {}
            Err(failure) => self.health.error(&failure.to_string()),
        }
    }

    /// The next caller gets a new connection; those who are on this one may finish.
    fn give_up(&self, connection: &Arc<Connection>, reason: &str) {
        let mut inner = self.inner();
        let Some(current) = inner.connection.take_if(|current| Arc::ptr_eq(current, connection)) else { return };
        inner.strikes = 0;
        inner.has_failed = true;
        inner.crashed = Some(reason.to_owned());
        inner.backoff.failed(Instant::now());
        let (health, patience) = (Arc::clone(&self.health), self.tools.settings.close);
        self.tools.chores.spawn(async move {
            drop(timeout(DRAIN, idle(&health.in_flight)).await);
            current.close(patience).await;
        });
    }

    fn living(&self) -> Option<Arc<Connection>> {
        self.inner().connection.as_ref().filter(|connection| connection.ended().is_none()).cloned()
    }

    /// The connection, made if there is none.
    async fn ready(&self) -> Result<Arc<Connection>, Failure> {
        if let Some(connection) = self.living() {
            return Ok(connection);
        }
        let _gate = self.gate.lock().await;
        if let Some(connection) = self.living() {
            return Ok(connection);
        }
        if self.closing.is_cancelled() {
            return Err(Failure::Closing);
        }
        let (buried, era) = self.bury()?;
        if let Some(connection) = buried {
            connection.close(self.tools.settings.close).await;
        }
        let _starting = Starting(self);
        let opened = tokio::select! {
            biased;
            () = self.closing.cancelled() => return Err(Failure::Closing),
            opened = self.tools.open(&self.server, &self.health, era) => opened,
        };
        let mut inner = self.inner();
        match opened {
            Ok((connection, era)) => {
                let connection = Arc::new(connection);
                inner.connection = Some(Arc::clone(&connection));
                inner.stderr.clone_from(&connection.stderr);
                inner.era = Some(era);
                inner.has_failed = false;
                if let Some(reason) = inner.crashed.take() {
                    self.health.restarts.fetch_add(1, Ordering::Relaxed);
                    inner.restarted = Some(reason);
                }
                drop(inner);
                self.health.log("manager", "connected");
                self.relist_on_change(&connection);
                Ok(connection)
            }
            Err(failure) => {
                inner.backoff.failed(Instant::now());
                inner.has_failed = true;
                drop(inner);
                self.health.error(&failure.to_string());
                Err(failure)
            }
        }
    }

    /// Notes how the last connection ended, and whether there may be another one yet.
    fn bury(&self) -> Result<(Option<Arc<Connection>>, Option<Era>), Failure> {
        let now = Instant::now();
        let mut inner = self.inner();
        let buried = inner.connection.take();
        if let Some(connection) = &buried {
            inner.crashed = connection.ended();
            inner.has_failed = true;
            inner.backoff.failed(now);
        }
        if let Err(refusal) = inner.backoff.check(now) {
            let last = self.health.last_error().map(|error| format!("; last: {error}")).unwrap_or_default();
            return Err(Failure::Resting { refusal, last });
        }
        inner.starting = true;
        Ok((buried, inner.era))
    }

    fn relist_on_change(&self, connection: &Arc<Connection>) {
        let (tools, connection, closing) = (Arc::clone(&self.tools), Arc::downgrade(connection), self.closing.clone());
        let Some(handler) = connection.upgrade().map(|connection| connection.handler.clone()) else { return };
        let mut changes = handler.changes();
        // Held by the connection alone, so that the wait ends with it.
        drop(handler);
        let relist = async move {
            let mut pause = tools.settings.debounce;
            while changes.changed().await.is_ok() {
                let asked = Instant::now();
                tokio::time::sleep(pause).await;
                changes.borrow_and_update();
                let Some(connection) = connection.upgrade() else { return };
                if connection.ended().is_some() {
                    return;
                }
                if let Err(failure) = connection.tools(&tools.settings).await {
                    tracing::debug!(%failure, "cannot list the tools of an MCP server again");
                }
                let is_quiet = asked.elapsed() > pause * 4;
                pause = if is_quiet { tools.settings.debounce } else { (pause * 2).min(LONGEST_DEBOUNCE) };
            }
        };
        self.tools.chores.spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = relist => {}
            }
        });
    }

    /// Whether nobody uses it, and has not for so long.
    pub fn is_idle(&self, now: Instant, longer_than: Duration) -> bool {
        let unused = now.saturating_duration_since(self.inner().used) >= longer_than;
        unused && self.health.in_flight.load(Ordering::Relaxed) == 0
    }

    pub fn is_connected(&self) -> bool {
        self.inner().connection.is_some()
    }

    /// On purpose, so that the next start is no restart.
    pub async fn stop(&self, why: &str) {
        let connection = {
            let mut inner = self.inner();
            inner.has_failed = false;
            inner.connection.take()
        };
        if let Some(connection) = connection {
            self.health.log("manager", why);
            connection.close(self.tools.settings.close).await;
        }
    }

    pub fn status(&self) -> Status {
        let inner = self.inner();
        let now = Instant::now();
        let connection = inner.connection.as_ref().filter(|connection| connection.ended().is_none());
        let rest = inner.backoff.check(now).err();
        let state = match () {
            () if connection.is_some() => State::Ready,
            () if inner.starting => State::Starting,
            () if rest.is_some() => State::Resting,
            () if inner.has_failed || inner.connection.is_some() => State::Failed,
            () => State::Stopped,
        };
        let listing = connection.and_then(|connection| connection.kept());
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Status {
            protocol_version: connection.map(|connection| connection.peered.protocol_version.clone()),
            server: connection.and_then(|connection| connection.peered.server.clone()),
            process_id: connection.and_then(|connection| connection.process_id),
            uptime_ms: connection.map(|connection| millis(connection.started.elapsed())),
            retry_in_ms: rest.map(|refusal| millis(refusal.wait)),
            ..self.health.status(state, self.server.config.transport.kind(), listing.as_deref())
        }
    }

    pub fn logs(&self) -> Logs {
        let stderr = self.inner().stderr.as_ref().map(Stderr::tail).unwrap_or_default();
        Logs { lines: self.health.lines(), stderr }
    }
}

async fn idle(in_flight: &AtomicUsize) {
    while in_flight.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
