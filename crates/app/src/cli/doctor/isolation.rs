//! Whether commands can run in a sandbox on this machine, found by a trial run.

use super::{DoctorFinding, FindingState};
use crate::config::AgentIsolation;
use sandbox::{
    Enforcement, Isolation, IsolationTier, LocalDriver, SandboxDriver, SandboxRefusal, SandboxSetting, choose,
};
use std::sync::Arc;

const WHAT: &str = "sandbox";

/// `agents` is where the programs of agents run.
pub async fn check(agents: AgentIsolation) -> DoctorFinding {
    if agents == AgentIsolation::None {
        let detail = "off by sandbox.agents = \"none\": programs of agents have all rights of the server's user";
        return DoctorFinding::new(WHAT, FindingState::Missing, detail).advise("set sandbox.agents to \"auto\"");
    }
    let native = LocalDriver::new(IsolationTier::Native, "/proc/self/exe", std::env::temp_dir());
    let drivers: [Arc<dyn SandboxDriver>; 1] = [Arc::new(native)];
    finding(choose(SandboxSetting::Auto, &drivers).await.map(|chosen| chosen.isolation))
}

/// Without one the server works, but agents with a program do not.
fn finding(found: Result<Isolation, SandboxRefusal>) -> DoctorFinding {
    match found {
        Ok(isolation) => DoctorFinding::new(WHAT, FindingState::Ok, describe(&isolation)),
        Err(refusal) => DoctorFinding::new(WHAT, FindingState::Missing, refusal.to_string())
            .advise("docs/sandbox.md says what a sandbox needs"),
    }
}

fn describe(isolation: &Isolation) -> String {
    let Isolation { tier, file, network, process, memory, pids, disk, warnings } = isolation;
    let parts = [
        ("file", file),
        ("network", network),
        ("process", process),
        ("memory", memory),
        ("pids", pids),
        ("disk", disk),
    ];
    let word = |enforcement: &Enforcement| match enforcement {
        Enforcement::Full => "full",
        Enforcement::Partial => "partial",
        Enforcement::None => "none",
    };
    let parts: Vec<String> = parts.iter().map(|(name, enforcement)| format!("{name} {}", word(enforcement))).collect();
    let text = format!("{}: {}.", tier.name(), parts.join(", "));
    [text].into_iter().chain(warnings.iter().cloned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::finding;
    use crate::cli::doctor::FindingState;
    use sandbox::{Enforcement, Isolation, IsolationTier, SandboxError, SandboxRefusal, SandboxSetting};

    #[test]
    fn the_report_names_what_is_enforced_and_what_is_not() {
        let isolation = Isolation {
            tier: IsolationTier::Native,
            file: Enforcement::Full,
            network: Enforcement::Full,
            process: Enforcement::Full,
            memory: Enforcement::Partial,
            pids: Enforcement::Full,
            disk: Enforcement::None,
            warnings: vec!["Memory is not limited in total.".to_owned()],
        };
        let found = finding(Ok(isolation));
        let expected = "native: file full, network full, process full, memory partial, pids full, disk none. Memory is \
            not limited in total.";
        assert_eq!((found.state, found.detail.as_str()), (FindingState::Ok, expected));
    }

    #[test]
    fn a_refusal_is_missing_and_not_broken() {
        let tried = vec![(IsolationTier::Native, SandboxError::Unsuitable("no namespaces here".to_owned()))];
        let found = finding(Err(SandboxRefusal { setting: SandboxSetting::Auto, tried }));
        assert_eq!(found.state, FindingState::Missing);
        assert!(found.summary().contains("native: no namespaces here"), "{}", found.summary());
    }
}
