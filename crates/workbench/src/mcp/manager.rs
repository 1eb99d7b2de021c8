//! The door of this folder: servers by their config, each started once for all who use it.

use super::{
    CallOptions, CallResult, Failure, Listing, Logs, Settings, State, Status,
    health::Health,
    open::{INSIDE, Tools},
    slot::Slot,
    transport::Inside,
};
use crate::process::{Stderr, Supervisor};
use domain::mcp::{Server, Transport};
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

/// What is known of a server that is not used any more is forgotten.
const FORGET: Duration = Duration::from_secs(3600);
const LONGEST_ROUND: Duration = Duration::from_secs(30);

/// Reaches MCP servers. Cheap to clone; one per Greenroom server. To be closed before the runtime ends.
#[derive(Clone)]
pub struct Manager(Arc<Inner>);

/// Agents that name the same program in the same folder, or the same address with the same keys, share it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    transport: Transport,
    folder: Option<PathBuf>,
}

struct Inner {
    tools: Arc<Tools>,
    closing: CancellationToken,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_key: HashMap<Key, Arc<Slot>>,
    /// Whether somebody looks after those that are not used.
    is_watched: bool,
}

/// What a try of a server brought: it was started, listed and stopped, apart from the one that agents use.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TestReport {
    pub ok: bool,
    pub millis: u64,
    pub listing: Option<Listing>,
    pub error: Option<Trouble>,
    pub stderr: String,
    pub noise_lines: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Trouble {
    pub code: &'static str,
    pub message: String,
}

impl From<&Failure> for Trouble {
    fn from(failure: &Failure) -> Self {
        Self { code: failure.code(), message: failure.to_string() }
    }
}

impl Key {
    fn of(server: &Server) -> Self {
        Self { transport: server.config.transport.clone(), folder: server.config.folder.clone() }
    }
}

impl Manager {
    pub fn new(supervisor: Supervisor, settings: Settings) -> Self {
        let tools = Arc::new(Tools::new(supervisor, settings));
        Self(Arc::new(Inner { tools, closing: CancellationToken::new(), slots: Mutex::default() }))
    }

    /// Makes a server of this program itself known by a name; what it returns is how agents are given it.
    pub fn host(&self, name: &str, server: Arc<dyn Inside>) -> Server {
        self.0.tools.inside.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), server);
        Server::new(name, Transport::Http { url: format!("{INSIDE}{name}"), headers: BTreeMap::new() })
    }

    fn find(&self, server: &Server) -> Option<Arc<Slot>> {
        self.0.slots().by_key.get(&Key::of(server)).cloned()
    }

    fn slot(&self, server: &Server) -> Arc<Slot> {
        let mut slots = self.0.slots();
        if !std::mem::replace(&mut slots.is_watched, true) {
            self.0.tools.chores.spawn(look_after(Arc::downgrade(&self.0), self.0.closing.clone()));
        }
        let new = || Arc::new(Slot::new(server.clone(), Arc::clone(&self.0.tools), self.0.closing.clone()));
        Arc::clone(slots.by_key.entry(Key::of(server)).or_insert_with(new))
    }

    /// The server's tools. It is started if need be; the list is kept until the server says that it changed.
    pub async fn tools(&self, server: &Server) -> Result<Arc<Listing>, Failure> {
        self.slot(server).tools().await
    }

    /// Calls a tool. A refusal of the server is a result with `is_error`; a failure is when there is no answer. Nothing is
    /// ever called twice by itself.
    pub async fn call(
        &self,
        server: &Server,
        tool: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<CallResult, Failure> {
        self.slot(server).call(tool, arguments, &options).await
    }

    /// Starts nothing.
    pub fn status(&self, server: &Server) -> Status {
        match self.find(server) {
            Some(slot) => slot.status(),
            None => Health::default().status(State::Stopped, server.config.transport.kind(), None),
        }
    }

    pub fn logs(&self, server: &Server) -> Logs {
        self.find(server).map(|slot| slot.logs()).unwrap_or_default()
    }

    /// Starts one of its own, lists the tools, stops it.
    pub async fn test(&self, server: &Server) -> TestReport {
        let (begin, health, tools) = (Instant::now(), Arc::<Health>::default(), &self.0.tools);
        let mut stderr = String::new();
        let tried = match tools.open(server, &health, None).await {
            Ok((connection, _)) => {
                let listed = connection.tools(&tools.settings).await;
                stderr = connection.stderr.as_ref().map(Stderr::tail).unwrap_or_default();
                connection.close(tools.settings.close).await;
                listed
            }
            Err(failure) => Err(failure),
        };
        let noise_lines = health.noise.load(std::sync::atomic::Ordering::Relaxed);
        let millis = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let error = tried.as_ref().err().map(Trouble::from);
        let listing = tried.ok().map(Arc::unwrap_or_clone);
        TestReport { ok: error.is_none(), millis, listing, error, stderr, noise_lines }
    }

    /// Ends what runs for this config, because it was changed or deleted.
    pub async fn stop(&self, server: &Server) {
        let slot = self.0.slots().by_key.remove(&Key::of(server));
        if let Some(slot) = slot {
            slot.stop("stopped, because its settings changed").await;
        }
    }

    /// Ends everything, within its deadlines; nothing is started from now on.
    pub async fn close(&self) {
        self.0.closing.cancel();
        let slots: Vec<Arc<Slot>> = self.0.slots().by_key.drain().map(|(_, slot)| slot).collect();
        join_all(slots.iter().map(|slot| slot.stop("stopped with the server"))).await;
        self.0.tools.chores.close();
        if timeout(self.0.tools.settings.close, self.0.tools.chores.wait()).await.is_err() {
            tracing::warn!("something of the MCP manager does not end");
        }
    }
}

impl Inner {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops what nobody uses.
async fn look_after(manager: Weak<Inner>, closing: CancellationToken) {
    loop {
        let Some(inner) = manager.upgrade() else { return };
        let idle = inner.tools.settings.idle;
        let slots: Vec<(Key, Arc<Slot>)> =
            inner.slots().by_key.iter().map(|(key, slot)| (key.clone(), Arc::clone(slot))).collect();
        let now = Instant::now();
        for (key, slot) in slots {
            if slot.is_connected() && slot.is_idle(now, idle) {
                slot.stop("stopped, because nobody used it").await;
            } else if !slot.is_connected() && slot.is_idle(now, FORGET) {
                inner.slots().by_key.remove(&key);
            }
        }
        drop(inner);
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep((idle / 4).min(LONGEST_ROUND)) => {}
        }
    }
}
