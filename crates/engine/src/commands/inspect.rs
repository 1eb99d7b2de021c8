//! Which providers this server has, what they can do, and whether what they need is on this machine.

use crate::Engine;
use providers::{Capabilities, Inspection, Provider};
use serde::Serialize;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::Mutex,
    task::JoinSet,
    time::{Instant, timeout},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Provider)]
pub struct ProviderView {
    /// What agents say as their `provider`.
    pub name: String,
    pub capabilities: CapabilitiesView,
    pub inspection: InspectionView,
}

/// What a provider can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Capabilities)]
pub struct CapabilitiesView {
    /// Goes on with its own session in a later run.
    pub resume: bool,
    /// Takes a new message in the middle of an answer.
    pub steer: bool,
    pub approvals: bool,
    pub thinking: bool,
    pub mcp: bool,
    pub skills: bool,
}

/// What a look at this machine found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Inspection)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum InspectionView {
    Ready {
        version: Option<String>,
        /// The file name of the program that answers.
        program: Option<String>,
    },
    Missing {
        /// What to do about it.
        advice: String,
    },
}

/// What the last look found. It may start programs, so it is not done for every request.
#[derive(Debug, Default)]
pub(crate) struct Inspections(Mutex<Option<(Instant, Vec<ProviderView>)>>);

const KEPT: Duration = Duration::from_secs(60);
const DEADLINE: Duration = Duration::from_secs(10);

impl Engine {
    /// All of them, by name.
    pub async fn inspect_providers(&self) -> Vec<ProviderView> {
        // Held while looking: whoever asks meanwhile gets what this look finds.
        let mut last = self.inspections().0.lock().await;
        match &*last {
            Some((at, views)) if at.elapsed() < KEPT => views.clone(),
            _ => {
                let views = look(self.providers().iter().cloned()).await;
                last.insert((Instant::now(), views)).1.clone()
            }
        }
    }
}

async fn look(all: impl Iterator<Item = Arc<dyn Provider>>) -> Vec<ProviderView> {
    let mut looking = JoinSet::new();
    let mut views: Vec<ProviderView> = Vec::new();
    for (index, provider) in all.enumerate() {
        let advice =
            format!("the look at this machine took longer than {} s; see the server's log", DEADLINE.as_secs());
        let (name, capabilities) = (provider.name().to_owned(), view(provider.capabilities()));
        views.push(ProviderView { name, capabilities, inspection: InspectionView::Missing { advice } });
        let inspection = provider.inspect();
        looking.spawn(async move { (index, timeout(DEADLINE, inspection).await) });
    }
    while let Some(looked) = looking.join_next().await {
        match looked {
            Ok((index, Ok(found))) => views[index].inspection = inspection(found),
            Ok((index, Err(_))) => {
                tracing::warn!(provider = views[index].name, "cannot tell in time whether it is there")
            }
            Err(error) => tracing::error!(%error, "a provider crashed while it looked at this machine"),
        }
    }
    views
}

fn view(can: Capabilities) -> CapabilitiesView {
    let Capabilities { resume, steer, approvals, thinking, mcp, skills } = can;
    CapabilitiesView { resume, steer, approvals, thinking, mcp, skills }
}

/// Where programs lie on this machine is nobody's business but its operator's.
fn inspection(found: Inspection) -> InspectionView {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    match found {
        Inspection::Ready { version, program } => {
            InspectionView::Ready { version, program: program.as_deref().and_then(name) }
        }
        Inspection::Missing { advice } => InspectionView::Missing { advice },
    }
}
