//! Host tools that need the engine or the store: those with which an agent starts runs of other agents, and its memory. The
//! others are in `crates/providers/src/host_tools/tools`.
//!
//! Start at `delegate`. The tools only read arguments and report; `commands/delegate.rs` decides.

mod delegate;
mod memory;

pub(crate) use memory::MAX_NOTE_BYTES;

use crate::{Engine, EngineInner};
use delegate::{AskAgent, Delegate};
use memory::{Memorize, Recall};
use providers::host_tools::{HostTool, HostTools};
use std::sync::{Arc, Weak};
use store::Store;

/// The engine, from a tool that the engine itself holds.
#[derive(Clone)]
struct EngineLink {
    inner: Weak<EngineInner>,
    store: Store,
}

impl EngineLink {
    /// `None` while the server stops.
    fn engine(&self) -> Option<Engine> {
        Some(Engine { inner: self.inner.upgrade()?, store: self.store.clone() })
    }
}

/// Adds the tools of this module to those that the app registered.
pub(crate) fn with_engine_tools(registered: &HostTools, inner: &Weak<EngineInner>, store: &Store) -> HostTools {
    let link = EngineLink { inner: Weak::clone(inner), store: store.clone() };
    let tools: [Arc<dyn HostTool>; 4] = [
        Arc::new(Memorize(link.clone())),
        Arc::new(Recall(link.clone())),
        Arc::new(Delegate(link.clone())),
        Arc::new(AskAgent(link)),
    ];
    registered.with(tools).unwrap_or_else(|error| {
        tracing::error!(%error, "the engine's own host tools are left out");
        registered.clone()
    })
}
