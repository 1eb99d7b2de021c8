//! The entry point of this module: servers by their config, each started once and shared by all its users.

use super::{
    CallOptions, McpCallResult, McpClientSettings, McpFailure, McpServerLogs, McpServerState, McpServerStatus,
    McpToolListing, PlacedMcpServer,
    health::McpServerHealth,
    open::{IN_PROCESS_PREFIX, McpConnector},
    slot::McpServerSlot,
    transport::InProcessServer,
};
use crate::{
    egress::EgressPolicy,
    process::{Launcher, StderrTail},
    project_sandbox::SandboxKey,
};
use domain::{
    mcp::{McpTransport, NamedMcpServer},
    owner::Owner,
};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The state of a server that was not used for this long is dropped.
const FORGET_AFTER: Duration = Duration::from_secs(3600);
const MAX_SCAN_INTERVAL: Duration = Duration::from_secs(30);

/// Connects to MCP servers. Cheap to clone; one per Greenroom server. Must be closed before the runtime ends.
#[derive(Clone)]
pub struct McpManager(Arc<McpManagerInner>);

/// Agents of a workspace with the same program in the same folder, or the same URL with the same headers, share one server.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ServerKey {
    /// Two workspaces never share: what one does to its server must not affect the other.
    owner: Option<Owner>,
    transport: McpTransport,
    folder: Option<PathBuf>,
    /// What runs in one sandbox is nothing to another.
    sandbox: Option<SandboxKey>,
}

struct McpManagerInner {
    connector: Arc<McpConnector>,
    closing: CancellationToken,
    slots: Mutex<ServerSlots>,
}

#[derive(Default)]
struct ServerSlots {
    by_key: HashMap<ServerKey, Arc<McpServerSlot>>,
    /// Whether the task that stops idle servers runs.
    has_idle_task: bool,
}

/// The result of a server test: a separate instance was started, listed and stopped.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct McpTestReport {
    pub ok: bool,
    pub millis: u64,
    pub listing: Option<McpToolListing>,
    pub error: Option<McpTestError>,
    pub stderr: String,
    pub noise_lines: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct McpTestError {
    pub code: &'static str,
    pub message: String,
}

impl From<&McpFailure> for McpTestError {
    fn from(failure: &McpFailure) -> Self {
        Self { code: failure.code(), message: failure.to_string() }
    }
}

impl ServerKey {
    /// A server outside of sandboxes.
    fn of(server: &NamedMcpServer) -> Self {
        let NamedMcpServer { config, owner, .. } = server;
        let (transport, folder) = (config.transport.clone(), config.folder.clone());
        Self { owner: owner.clone(), transport, folder, sandbox: None }
    }
}

impl McpManager {
    pub fn new(launcher: impl Launcher + 'static, settings: McpClientSettings) -> Self {
        let connector = Arc::new(McpConnector::new(Arc::new(launcher), settings));
        Self(Arc::new(McpManagerInner { connector, closing: CancellationToken::new(), slots: Mutex::default() }))
    }

    /// Which addresses the servers of others than the operator may be at.
    pub fn egress(&self) -> &EgressPolicy {
        &self.0.connector.settings.egress
    }

    /// Registers an in-process server under a name. Returns the config by which agents use it.
    pub fn register_in_process(&self, name: &str, server: Arc<dyn InProcessServer>) -> NamedMcpServer {
        self.0
            .connector
            .in_process_servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), server);
        NamedMcpServer::new(
            name,
            McpTransport::Http { url: format!("{IN_PROCESS_PREFIX}{name}"), headers: BTreeMap::new() },
        )
    }

    fn find(&self, server: &NamedMcpServer) -> Option<Arc<McpServerSlot>> {
        self.0.slots().by_key.get(&ServerKey::of(server)).cloned()
    }

    fn slot(&self, placed: &PlacedMcpServer) -> Arc<McpServerSlot> {
        let mut slots = self.0.slots();
        if !std::mem::replace(&mut slots.has_idle_task, true) {
            self.0.connector.background_tasks.spawn(stop_idle_servers(Arc::downgrade(&self.0), self.0.closing.clone()));
        }
        let key = ServerKey { sandbox: placed.sandbox_key().cloned(), ..ServerKey::of(&placed.server) };
        let new =
            || Arc::new(McpServerSlot::new(placed.clone(), Arc::clone(&self.0.connector), self.0.closing.clone()));
        let slot = Arc::clone(slots.by_key.entry(key).or_insert_with(new));
        slot.set_sandbox(placed.sandbox.as_ref());
        slot
    }

    /// Returns the server's tools, and starts the server if needed. The list is cached until the server announces a
    /// change.
    pub async fn tools(&self, server: &NamedMcpServer) -> Result<Arc<McpToolListing>, McpFailure> {
        self.tools_of(&server.clone().into()).await
    }

    /// The same for a server that may run in a sandbox.
    pub async fn tools_of(&self, server: &PlacedMcpServer) -> Result<Arc<McpToolListing>, McpFailure> {
        self.slot(server).tools().await
    }

    /// Calls a tool. An error returned by the server is a result with `is_error`; a failure means that there was no
    /// answer. Calls are never retried.
    pub async fn call(
        &self,
        server: &NamedMcpServer,
        tool: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<McpCallResult, McpFailure> {
        self.call_of(&server.clone().into(), tool, arguments, options).await
    }

    /// The same for a server that may run in a sandbox.
    pub async fn call_of(
        &self,
        server: &PlacedMcpServer,
        tool: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<McpCallResult, McpFailure> {
        self.slot(server).call(tool, arguments, &options).await
    }

    /// Does not start the server.
    pub fn status(&self, server: &NamedMcpServer) -> McpServerStatus {
        match self.find(server) {
            Some(slot) => slot.status(),
            None => McpServerHealth::default().status(McpServerState::Stopped, server.config.transport.kind(), None),
        }
    }

    pub fn logs(&self, server: &NamedMcpServer) -> McpServerLogs {
        self.find(server).map(|slot| slot.logs()).unwrap_or_default()
    }

    /// Starts a separate instance, lists its tools and stops it.
    pub async fn test(&self, server: &NamedMcpServer) -> McpTestReport {
        let (begin, health, connector) = (Instant::now(), Arc::<McpServerHealth>::default(), &self.0.connector);
        let mut stderr = String::new();
        let tested = match connector.open(&server.clone().into(), &health, None).await {
            Ok((connection, _)) => {
                let listed = connection.tools(&connector.settings).await;
                stderr = connection.stderr.as_ref().map(StderrTail::text).unwrap_or_default();
                connection.close(connector.settings.close_timeout).await;
                listed
            }
            Err(failure) => Err(failure),
        };
        let noise_lines = health.noise.load(std::sync::atomic::Ordering::Relaxed);
        let millis = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let error = tested.as_ref().err().map(McpTestError::from);
        let listing = tested.ok().map(Arc::unwrap_or_clone);
        McpTestReport { ok: error.is_none(), millis, listing, error, stderr, noise_lines }
    }

    /// Stops the server of a config that was changed or deleted, in all sandboxes.
    pub async fn stop(&self, server: &NamedMcpServer) {
        let changed = ServerKey::of(server);
        let is_changed = |key: &ServerKey| ServerKey { sandbox: None, ..key.clone() } == changed;
        let slots: Vec<Arc<McpServerSlot>> =
            self.0.slots().by_key.extract_if(|key, _| is_changed(key)).map(|(_, slot)| slot).collect();
        join_all(slots.iter().map(|slot| slot.stop("stopped because its settings changed"))).await;
    }

    /// Stops all servers, within the close timeout. No server is started from now on.
    pub async fn close(&self) {
        self.0.closing.cancel();
        let slots: Vec<Arc<McpServerSlot>> = self.0.slots().by_key.drain().map(|(_, slot)| slot).collect();
        join_all(slots.iter().map(|slot| slot.stop("stopped with the server"))).await;
        self.0.connector.background_tasks.close();
        if timeout(self.0.connector.settings.close_timeout, self.0.connector.background_tasks.wait()).await.is_err() {
            tracing::warn!("background tasks of the MCP manager did not end in time");
        }
    }
}

impl McpManagerInner {
    fn slots(&self) -> MutexGuard<'_, ServerSlots> {
        // Each change is one step, so a panic leaves nothing inconsistent.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops idle servers.
async fn stop_idle_servers(manager: Weak<McpManagerInner>, closing: CancellationToken) {
    loop {
        let Some(inner) = manager.upgrade() else { return };
        let idle = inner.connector.settings.idle_timeout;
        let slots: Vec<(ServerKey, Arc<McpServerSlot>)> =
            inner.slots().by_key.iter().map(|(key, slot)| (key.clone(), Arc::clone(slot))).collect();
        let now = Instant::now();
        for (key, slot) in slots {
            if slot.is_connected() && slot.is_idle(now, idle) {
                slot.stop("stopped because it was idle").await;
            } else if !slot.is_connected() && slot.is_idle(now, FORGET_AFTER) {
                inner.slots().by_key.remove(&key);
            }
        }
        drop(inner);
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep((idle / 4).min(MAX_SCAN_INTERVAL)) => {}
        }
    }
}
