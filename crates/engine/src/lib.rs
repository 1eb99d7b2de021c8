//! Who decides and drives: commands come in, runs go through the queue, providers are pumped into the journal.
//!
//! `turn` and `tape` decide and are pure; `run` acts; `work` claims, renews and recovers; `commands` is what the doors
//! call. Knows no HTTP and no SQL.

pub mod commands;
mod error;
mod folders;
mod run;
mod tape;
mod turn;
mod work;

pub use error::Error;
pub use folders::Folders;
pub use work::Worker;

use domain::limits::Limits;
use providers::Registry;
use run::Active;
use std::{sync::Arc, time::Duration};
use store::Store;

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
}

/// A cheap handle on everything that can be done.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    store: Store,
    providers: Registry,
    active: Active,
    config: Config,
}

impl Engine {
    pub fn new(store: Store, providers: Registry, config: Config) -> Self {
        Self(Arc::new(Inner { store, providers, active: Active::default(), config }))
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn providers(&self) -> &Registry {
        &self.0.providers
    }

    pub(crate) fn active(&self) -> &Active {
        &self.0.active
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }
}
