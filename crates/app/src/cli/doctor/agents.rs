//! The providers: which of them this machine has what they need for, and what each can do.

use super::{Finding, State};
use crate::{agents, config::Config};
use engine::{Engine, commands::InspectionView};
use providers::{Capabilities, Inspection, Provider};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinSet;
use workbench::{
    mcp::{Manager, Settings},
    process::Supervisor,
};

/// Longer than a provider's own patience with its program.
const DEADLINE: Duration = Duration::from_secs(15);
const NOT_HERE: &str = "not ready on this machine";
/// Always listed; the many others only where they are.
const WELL_KNOWN: [&str; 6] = ["scripted", "claude_code", "codex", "gemini", "anthropic", "openai"];

pub async fn check(config: &Config) -> Vec<Finding> {
    let supervisor = Supervisor::new(config.keeper.clone());
    // Nothing is started with it: providers are only looked at.
    let mcp = Manager::new(supervisor.clone(), Settings::new(config.store.data_dir.join("mcp")));
    let registry = agents::registry(config, &supervisor, &mcp, config.server.listen);
    let mut checks = JoinSet::new();
    for provider in registry.iter() {
        let provider = Arc::clone(provider);
        checks.spawn(async move { finding(&provider).await });
    }
    let mut findings: Vec<Finding> = checks.join_all().await.into_iter().flatten().collect();
    sort(&mut findings);
    for provider in registry.iter() {
        provider.close().await;
    }
    findings
}

/// The same of a server that is up, as it has found them. `GET /api/providers` says of each how it was found.
pub async fn check_served(engine: &Engine) -> Vec<Finding> {
    let mut findings = Vec::new();
    for view in engine.inspect_providers().await {
        match view.inspection {
            InspectionView::Ready { version, .. } => {
                let version = version.unwrap_or_else(|| "built in".to_owned());
                findings.push(Finding::new(view.name, State::Ok, version));
            }
            InspectionView::Missing { advice } if WELL_KNOWN.contains(&view.name.as_str()) => {
                findings.push(Finding::new(view.name, State::Missing, NOT_HERE).advise(advice));
            }
            InspectionView::Missing { .. } => {}
        }
    }
    sort(&mut findings);
    findings
}

fn sort(findings: &mut [Finding]) {
    let rank = |finding: &Finding| WELL_KNOWN.iter().position(|name| *name == finding.what).unwrap_or(usize::MAX);
    findings.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.what.cmp(&b.what)));
}

async fn finding(provider: &Arc<dyn Provider>) -> Option<Finding> {
    let name = provider.name();
    let can = abilities(provider.capabilities());
    match tokio::time::timeout(DEADLINE, provider.inspect()).await {
        Ok(Inspection::Ready { version, program }) => {
            let version = version.unwrap_or_else(|| "built in".to_owned());
            let finding = Finding::new(name, State::Ok, format!("{version}; {can}"));
            Some(match program {
                Some(path) => finding.at(path.display()),
                None => finding,
            })
        }
        Ok(Inspection::Missing { advice }) if WELL_KNOWN.contains(&name) => {
            Some(Finding::new(name, State::Missing, NOT_HERE).advise(advice))
        }
        Ok(Inspection::Missing { .. }) => None,
        Err(_) => {
            let detail = format!("its program did not answer within {} s", DEADLINE.as_secs());
            Some(Finding::new(name, State::Missing, detail))
        }
    }
}

/// In words: `resume, steer, approvals`.
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
