//! The providers: which of them this machine has what they need for, and what each can do.

use super::{Finding, State};
use crate::{agents, config::Config};
use providers::{Capabilities, Inspection, Provider};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinSet;
use workbench::process::Supervisor;

/// Longer than a provider's own patience with its program.
const DEADLINE: Duration = Duration::from_secs(15);
/// Always listed; the many others only where they are.
const WELL_KNOWN: [&str; 4] = ["scripted", "claude_code", "codex", "gemini"];

pub async fn check(config: &Config) -> Vec<Finding> {
    let registry = agents::registry(config, &Supervisor::new(config.keeper.clone()));
    let mut checks = JoinSet::new();
    for provider in registry.iter() {
        let provider = Arc::clone(provider);
        checks.spawn(async move { finding(&provider).await });
    }
    let mut findings: Vec<Finding> = checks.join_all().await.into_iter().flatten().collect();
    let rank = |finding: &Finding| WELL_KNOWN.iter().position(|name| *name == finding.what).unwrap_or(usize::MAX);
    findings.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.what.cmp(&b.what)));
    for provider in registry.iter() {
        provider.close().await;
    }
    findings
}

async fn finding(provider: &Arc<dyn Provider>) -> Option<Finding> {
    let name = provider.name();
    let can = abilities(provider.capabilities());
    match tokio::time::timeout(DEADLINE, provider.inspect()).await {
        Ok(Inspection::Ready { version, program }) => {
            let program = program.map(|path| format!(" ({})", path.display())).unwrap_or_default();
            let version = version.unwrap_or_else(|| "built in".to_owned());
            Some(Finding::new(name, State::Ok, format!("{version}{program}; {can}")))
        }
        Ok(Inspection::Missing { advice }) if WELL_KNOWN.contains(&name) => {
            Some(Finding::new(name, State::Missing, advice))
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
