//! Who decides and drives: commands come in, runs go through the queue, providers are pumped into the journal.
//!
//! `turn` and `tape` decide and are pure; `run` acts; `work` claims, renews and recovers; `commands` is what the doors
//! call. Knows no HTTP and no SQL.

mod attachments;
pub mod commands;
mod equipment;
mod error;
mod folders;
mod place;
mod run;
mod skills;
mod tape;
mod turn;
mod uploads;
mod work;

pub use equipment::{ServerProblem, Source, VariableUse, Variables, skill_layer};
pub use error::Error;
pub use folders::Folders;
pub use providers::host_tools;
pub use uploads::Incoming;
pub use work::Worker;

use commands::Inspections;
use domain::{limits::Limits, mcp::Servers};
use providers::Registry;
use run::Active;
use std::{sync::Arc, time::Duration};
use store::Store;
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};
use tokio_util::task::TaskTracker;
use work::Handoff;
use workbench::mcp::Manager;

#[derive(Debug, Clone)]
pub struct Config {
    /// Runs at once on this server.
    pub concurrency: usize,
    /// How long a silent worker keeps its runs; renewed three times as often.
    pub lease: Duration,
    /// For agents that do not set their own.
    pub limits: Limits,
    /// How long a provider may take to stop by itself before it is dropped.
    pub stop_grace: Duration,
    pub folders: Folders,
    /// The operator's own MCP servers, which every owner's agents may name.
    pub mcp_servers: Servers,
    /// What of the environment the settings of MCP servers may name.
    pub mcp_variables: Variables,
}

/// A cheap handle on everything that can be done.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    store: Store,
    providers: Registry,
    mcp: Manager,
    active: Active,
    handoff: Handoff,
    config: Config,
    inspections: Inspections,
    /// Turns at trying an MCP server.
    mcp_tests: Semaphore,
    /// What a command has begun and has to bring to its end, even when nobody waits for it any more.
    chores: TaskTracker,
}

/// MCP servers that are tried at once.
const MCP_TESTS: usize = 4;
/// How long providers may take to put away what they kept ready.
const CLOSE: Duration = Duration::from_secs(10);

impl Engine {
    /// `mcp` is the one that providers have been given too; it is closed with the engine.
    pub fn new(store: Store, providers: Registry, mcp: Manager, mut config: Config) -> Self {
        config.folders = config.folders.absolute();
        Self(Arc::new(Inner {
            store,
            providers,
            mcp,
            active: Active::default(),
            handoff: Handoff::default(),
            config,
            inspections: Inspections::default(),
            mcp_tests: Semaphore::new(MCP_TESTS),
            chores: TaskTracker::new(),
        }))
    }

    /// For when the server stops and no run is left: returns when nothing is alive that providers or MCP servers kept
    /// between turns, or when they have had their time.
    pub async fn close(&self) {
        let chores = &self.0.chores;
        chores.close();
        let mut closing = JoinSet::new();
        for provider in self.providers().iter() {
            closing.spawn(provider.close());
        }
        let mcp = self.mcp().clone();
        closing.spawn(async move { mcp.close().await });
        let all = async {
            chores.wait().await;
            while let Some(closed) = closing.join_next().await {
                if let Err(error) = closed {
                    tracing::error!(%error, "a provider crashed while it closed");
                }
            }
        };
        if timeout(CLOSE, all).await.is_err() {
            tracing::warn!("some providers did not close in time; they are dropped");
        }
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn providers(&self) -> &Registry {
        &self.0.providers
    }

    pub(crate) fn mcp(&self) -> &Manager {
        &self.0.mcp
    }

    pub(crate) fn mcp_tests(&self) -> &Semaphore {
        &self.0.mcp_tests
    }

    pub(crate) fn active(&self) -> &Active {
        &self.0.active
    }

    pub(crate) fn handoff(&self) -> &Handoff {
        &self.0.handoff
    }

    pub(crate) fn chores(&self) -> &TaskTracker {
        &self.0.chores
    }

    pub(crate) fn inspections(&self) -> &Inspections {
        &self.0.inspections
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }
}
