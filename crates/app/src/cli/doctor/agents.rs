//! Checks which providers can run on this machine, and lists their capabilities.

use super::{DoctorFinding, FindingState};
use crate::{config::AppConfig, provider_setup};
use engine::{Engine, commands::InspectionView};
use providers::{AgentSandboxes, Capabilities, Inspection, Provider};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinSet;
use workbench::{
    mcp::{McpClientSettings, McpManager},
    process::{Launcher, Supervisor},
};

/// Longer than the providers' own deadlines for their programs.
const DEADLINE: Duration = Duration::from_secs(15);
const NOT_HERE: &str = "not ready on this machine";
/// These providers are always listed; others only if they are installed.
const WELL_KNOWN: [&str; 8] =
    ["scripted", "claude_code", "codex", "gemini", "anthropic", "openai", "openai_responses", "google"];

pub async fn check(config: &AppConfig) -> Vec<DoctorFinding> {
    let supervisor = Supervisor::new(config.keeper.clone());
    // Nothing is started with it: providers are only inspected.
    let mcp = McpManager::new(supervisor.clone(), McpClientSettings::new(config.store.data_dir.join("mcp")));
    let launcher: Arc<dyn Launcher> = Arc::new(supervisor);
    let registry = provider_setup::registry(config, &launcher, &mcp, config.server.listen, AgentSandboxes::default());
    let mut checks = JoinSet::new();
    for provider in registry.iter() {
        let provider = Arc::clone(provider);
        checks.spawn(async move { finding(&provider).await });
    }
    let mut findings: Vec<DoctorFinding> = checks.join_all().await.into_iter().flatten().collect();
    sort(&mut findings);
    for provider in registry.iter() {
        provider.close().await;
    }
    findings
}

/// The same for a running server, from its cached inspections. `GET /api/providers` has the details.
pub async fn check_running_server(engine: &Engine) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for view in engine.inspect_providers().await {
        match view.inspection {
            InspectionView::Ready { version, .. } => {
                let version = version.unwrap_or_else(|| "built in".to_owned());
                findings.push(DoctorFinding::new(view.name, FindingState::Ok, version));
            }
            InspectionView::Missing { advice } if WELL_KNOWN.contains(&view.name.as_str()) => {
                findings.push(DoctorFinding::new(view.name, FindingState::Missing, NOT_HERE).advise(advice));
            }
            InspectionView::Missing { .. } => {}
        }
    }
    sort(&mut findings);
    findings
}

fn sort(findings: &mut [DoctorFinding]) {
    let rank = |finding: &DoctorFinding| WELL_KNOWN.iter().position(|name| *name == finding.what).unwrap_or(usize::MAX);
    findings.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.what.cmp(&b.what)));
}

async fn finding(provider: &Arc<dyn Provider>) -> Option<DoctorFinding> {
    let name = provider.name();
    let can = abilities(provider.capabilities());
    match tokio::time::timeout(DEADLINE, provider.inspect()).await {
        Ok(Inspection::Ready { version, program }) => {
            let version = version.unwrap_or_else(|| "built in".to_owned());
            let finding = DoctorFinding::new(name, FindingState::Ok, format!("{version}; {can}"));
            Some(match program {
                Some(path) => finding.at(path.display()),
                None => finding,
            })
        }
        Ok(Inspection::Missing { advice } | Inspection::NeedsKey { advice }) if WELL_KNOWN.contains(&name) => {
            Some(DoctorFinding::new(name, FindingState::Missing, NOT_HERE).advise(advice))
        }
        Ok(Inspection::Missing { .. } | Inspection::NeedsKey { .. }) => None,
        Err(_) => {
            let detail = format!("its program did not answer within {} s", DEADLINE.as_secs());
            Some(DoctorFinding::new(name, FindingState::Missing, detail))
        }
    }
}

/// The capabilities as text: `resume, steer, approvals`.
fn abilities(can: Capabilities) -> String {
    let Capabilities { resume, steer, approvals, thinking, mcp, skills } = can;
    let all = [
        ("resume", resume),
        ("steer", steer),
        ("approvals", approvals),
        ("thinking", thinking),
        ("mcp", mcp),
        ("skills", skills),
    ];
    all.iter().filter(|(_, can)| *can).map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
}
