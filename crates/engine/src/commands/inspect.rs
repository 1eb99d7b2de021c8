//! Inspects the providers of this server: their capabilities, and whether their programs are installed.

use crate::Engine;
use providers::{Capabilities, Inspection, Provider};
use serde::Serialize;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::Mutex,
    task::JoinSet,
    time::{Instant, timeout},
};

/// A provider of this server, and whether it can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedProvider {
    pub name: String,
    pub capabilities: CapabilitiesView,
    pub inspection: InspectionView,
    /// Whether only the key of its model API is missing.
    pub needs_key: bool,
}

/// What a provider can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Capabilities)]
pub struct CapabilitiesView {
    /// Resumes its own session in a later run.
    pub resume: bool,
    /// Accepts a new message during an answer.
    pub steer: bool,
    pub approvals: bool,
    pub thinking: bool,
    pub mcp: bool,
    pub skills: bool,
}

/// Whether the provider can run on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Inspection)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum InspectionView {
    Ready {
        version: Option<String>,
        /// The file name of the provider's program. This and the version are only for the operator.
        program: Option<String>,
    },
    Missing {
        /// What to do about it.
        advice: String,
    },
}

/// The cached result of the last inspection, which may start programs.
#[derive(Debug, Default)]
pub(crate) struct InspectionCache(Mutex<Option<(Instant, Vec<InspectedProvider>)>>);

const CACHE_TTL: Duration = Duration::from_secs(60);
const DEADLINE: Duration = Duration::from_secs(10);

impl Engine {
    /// Lists all providers by name.
    pub async fn inspect_providers(&self) -> Vec<InspectedProvider> {
        // The lock is held during the inspection, so that concurrent requests share its result.
        let mut last = self.inspection_cache().0.lock().await;
        match &*last {
            Some((at, views)) if at.elapsed() < CACHE_TTL => views.clone(),
            _ => {
                let views = inspect_all(self.providers().iter().cloned()).await;
                last.insert((Instant::now(), views)).1.clone()
            }
        }
    }
}

async fn inspect_all(all: impl Iterator<Item = Arc<dyn Provider>>) -> Vec<InspectedProvider> {
    let mut looking = JoinSet::new();
    let mut views: Vec<InspectedProvider> = Vec::new();
    for (index, provider) in all.enumerate() {
        let advice = format!("the inspection took longer than {} s; see the server's log", DEADLINE.as_secs());
        let (name, capabilities) = (provider.name().to_owned(), capabilities_view(provider.capabilities()));
        let inspection = InspectionView::Missing { advice };
        views.push(InspectedProvider { name, capabilities, inspection, needs_key: false });
        let inspection = provider.inspect();
        looking.spawn(async move { (index, timeout(DEADLINE, inspection).await) });
    }
    while let Some(looked) = looking.join_next().await {
        match looked {
            Ok((index, Ok(found))) => {
                views[index].needs_key = matches!(found, Inspection::NeedsKey { .. });
                views[index].inspection = inspection_view(found);
            }
            Ok((index, Err(_))) => {
                tracing::warn!(provider = views[index].name, "the inspection of a provider timed out")
            }
            Err(error) => tracing::error!(%error, "the inspection of a provider panicked"),
        }
    }
    views
}

pub(super) fn capabilities_view(can: Capabilities) -> CapabilitiesView {
    let Capabilities { resume, steer, approvals, thinking, mcp, skills } = can;
    CapabilitiesView { resume, steer, approvals, thinking, mcp, skills }
}

/// Shows only the file name: the path of the program is for the operator.
pub(super) fn inspection_view(found: Inspection) -> InspectionView {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    match found {
        Inspection::Ready { version, program } => {
            InspectionView::Ready { version, program: program.as_deref().and_then(name) }
        }
        Inspection::Missing { advice } | Inspection::NeedsKey { advice } => InspectionView::Missing { advice },
    }
}
