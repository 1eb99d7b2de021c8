//! Executes commands and runs: commands come in, runs go through the queue, provider output goes into the journal.
//!
//! `turn` and `tape` hold the pure decisions; `run` executes them; `work` claims, renews and recovers runs; `commands`
//! is the API that HTTP, WebSocket, CLI and MCP call. Must not know HTTP or SQL.

mod accounts;
mod agent_access;
mod agent_workspace;
mod attachments;
pub mod commands;
mod erase;
mod error;
mod folders;
mod follow;
pub mod gateway;
mod host_tools;
mod mcp_servers;
mod provider_access;
mod queries;
mod run;
mod search_index;
mod shares;
mod skills;
mod spaces;
mod tape;
mod tape_commit;
pub mod traces;
mod turn;
mod uploads;
mod work;
mod workspace_trust;

pub use accounts::Accounts;
pub use agent_access::{
    AgentAccess, AgentAccessOwner, AgentRequest, AgentTool, AgentToolResult, HOST_TOOLS_SERVER, is_agent_token,
};
pub use erase::Eraser;
pub use error::EngineError;
pub use folders::Folders;
pub use follow::{EventReader, EventUpdate};
pub use mcp_servers::{McpServerSource, McpVariables, ServerProblem, VariableUse, skill_tier};
pub use queries::Queries;
pub use run::{ContextMessage, RunContextView};
pub use search_index::SearchIndexer;
pub use shares::WorkspaceLimits;
pub use spaces::ProjectServices;
pub use uploads::IncomingUploads;
pub use work::Worker;
pub use workspace_trust::TrustState;

use commands::{InspectionCache, ModelListCache};
use domain::{limits::Limits, mcp::McpFileServers};
use providers::{ProviderRegistry, host_tools::HostTools};
use run::ActiveRuns;
use shares::{McpTestSlots, StoredBytesCache};
use spaces::RoomsWithoutProject;
use std::{sync::Arc, time::Duration};
use store::Store;
use tokio::{task::JoinSet, time::timeout};
use tokio_util::task::TaskTracker;
use work::Handoff;
use workbench::mcp::McpManager;

#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// How many runs this server executes at once.
    pub concurrency: usize,
    /// How many of them may belong to one workspace.
    pub concurrency_per_workspace: usize,
    /// How many runs of one workspace may wait and execute, on all servers together.
    pub unfinished_runs_per_workspace: usize,
    pub workspace_limits: WorkspaceLimits,
    /// How long a lease lasts without renewal; the worker renews three times per lease.
    pub lease: Duration,
    /// How long after its delete a room or an agent is erased.
    pub erase_after: Duration,
    /// Default limits for agents that do not set their own.
    pub limits: Limits,
    /// How long a provider may take to stop before its turn is dropped.
    pub stop_grace: Duration,
    pub folders: Folders,
    /// The MCP servers of the operator's file, available to the agents of every owner.
    pub mcp_servers: McpFileServers,
    /// The environment variables that MCP server settings may refer to.
    pub mcp_variables: McpVariables,
    /// The tools that every agent gets from this server.
    pub host_tools: HostTools,
    pub projects: ProjectServices,
}

/// A cheaply cloned handle; every command is a method on it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
    /// On the connections of clients, or on those of the worker.
    store: Store,
}

struct EngineInner {
    queries: Queries,
    providers: ProviderRegistry,
    mcp: McpManager,
    active_runs: ActiveRuns,
    handoff: Handoff,
    config: EngineConfig,
    inspection_cache: InspectionCache,
    model_list_cache: ModelListCache,
    mcp_test_slots: McpTestSlots,
    stored_bytes_cache: StoredBytesCache,
    rooms_without_project: RoomsWithoutProject,
    /// Work that a command started and that must finish even if the client disconnects.
    background_tasks: TaskTracker,
}

/// How long providers may take to shut down the processes they keep between turns.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

impl Engine {
    /// `mcp` is the manager that the providers use too; the engine closes it.
    pub fn new(store: Store, providers: ProviderRegistry, mcp: McpManager, mut config: EngineConfig) -> Self {
        config.folders = config.folders.absolute();
        let inner = Arc::new_cyclic(|engine| EngineInner {
            config: EngineConfig {
                host_tools: host_tools::with_engine_tools(&config.host_tools, engine, &store),
                ..config
            },
            queries: Queries::new(store.clone()),
            providers,
            mcp,
            active_runs: ActiveRuns::default(),
            handoff: Handoff::default(),
            inspection_cache: InspectionCache::default(),
            model_list_cache: ModelListCache::default(),
            mcp_test_slots: McpTestSlots::default(),
            stored_bytes_cache: StoredBytesCache::default(),
            rooms_without_project: RoomsWithoutProject::default(),
            background_tasks: TaskTracker::new(),
        });
        Self { inner, store }
    }

    /// The same engine on the worker's database connections, which clients cannot take.
    fn for_worker(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), store: self.store.for_worker() }
    }

    /// Closes providers and MCP servers. Call it when the server stops and no run is left; returns when no process that
    /// they kept between turns is alive, or after a timeout.
    pub async fn close(&self) {
        let chores = &self.inner.background_tasks;
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
                    tracing::error!(%error, "a provider panicked while closing");
                }
            }
        };
        if timeout(CLOSE_TIMEOUT, all).await.is_err() {
            tracing::warn!("some providers did not close in time and were dropped");
        }
        // Last: the programs of the providers are in them.
        self.config().projects.sandboxes.close().await;
    }

    /// What endpoints read.
    pub fn queries(&self) -> &Queries {
        &self.inner.queries
    }

    /// Fails if nothing can be stored at the moment.
    pub async fn check_writable(&self) -> Result<(), EngineError> {
        Ok(self.store().check_writable().await?)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub fn providers(&self) -> &ProviderRegistry {
        &self.inner.providers
    }

    pub(crate) fn mcp(&self) -> &McpManager {
        &self.inner.mcp
    }

    pub(crate) fn mcp_test_slots(&self) -> &McpTestSlots {
        &self.inner.mcp_test_slots
    }

    pub(crate) fn stored_bytes_cache(&self) -> &StoredBytesCache {
        &self.inner.stored_bytes_cache
    }

    pub(crate) fn rooms_without_project(&self) -> &RoomsWithoutProject {
        &self.inner.rooms_without_project
    }

    pub(crate) fn active_runs(&self) -> &ActiveRuns {
        &self.inner.active_runs
    }

    pub(crate) fn handoff(&self) -> &Handoff {
        &self.inner.handoff
    }

    pub(crate) fn background_tasks(&self) -> &TaskTracker {
        &self.inner.background_tasks
    }

    pub(crate) fn inspection_cache(&self) -> &InspectionCache {
        &self.inner.inspection_cache
    }

    pub(crate) fn model_list_cache(&self) -> &ModelListCache {
        &self.inner.model_list_cache
    }

    pub(crate) fn config(&self) -> &EngineConfig {
        &self.inner.config
    }
}
