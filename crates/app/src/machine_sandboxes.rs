//! The sandboxes that this machine offers to projects, found by trial runs.

use domain::project::{EnforcementLevel, ProjectIsolation, SandboxChoice, SandboxTier, SpaceKey};
use sandbox::{Enforcement, Isolation, IsolationTier, LocalDriver, SandboxDriver, SandboxSetting, choose};
use std::{
    collections::HashMap,
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;
use workbench::sandboxes::{SandboxUnavailable, Sandboxes, SandboxesFuture};

/// The operator may turn something on meanwhile.
const REFUSAL_LIFETIME: Duration = Duration::from_secs(30);

type TrialResult = Result<ProjectIsolation, SandboxUnavailable>;

pub struct MachineSandboxes {
    drivers: Vec<Arc<dyn SandboxDriver>>,
    /// Held during a trial run, so that there is one at a time.
    tried: Mutex<HashMap<SandboxChoice, (Instant, TrialResult)>>,
}

impl MachineSandboxes {
    /// `helper` is our own binary, and `work` a folder for what the helper needs.
    pub fn new(helper: &Path, work: &Path) -> Self {
        let tiers = [IsolationTier::Native, IsolationTier::Landlock, IsolationTier::None];
        let driver = |tier| Arc::new(LocalDriver::new(tier, helper, work.to_owned())) as Arc<dyn SandboxDriver>;
        Self { drivers: tiers.map(driver).into(), tried: Mutex::default() }
    }
}

impl Sandboxes for MachineSandboxes {
    fn isolation(&self, choice: SandboxChoice) -> SandboxesFuture<'_, TrialResult> {
        Box::pin(async move {
            let mut tried = self.tried.lock().await;
            if let Some((at, result)) = tried.get(&choice)
                && (result.is_ok() || at.elapsed() < REFUSAL_LIFETIME)
            {
                return result.clone();
            }
            let result = match choose(setting(choice), &self.drivers).await {
                Ok(chosen) => Ok(report(chosen.isolation)),
                Err(refusal) => {
                    Err(SandboxUnavailable(format!("{refusal}; docs/sandbox.md says what a sandbox needs")))
                }
            };
            tried.insert(choice, (Instant::now(), result.clone()));
            result
        })
    }

    fn stop(&self, _: SpaceKey) -> SandboxesFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl fmt::Debug for MachineSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineSandboxes").finish_non_exhaustive()
    }
}

fn setting(choice: SandboxChoice) -> SandboxSetting {
    match choice {
        SandboxChoice::Auto => SandboxSetting::Auto,
        SandboxChoice::Native => SandboxSetting::Native,
        SandboxChoice::Docker => SandboxSetting::Docker,
        SandboxChoice::Landlock => SandboxSetting::Landlock,
        SandboxChoice::None => SandboxSetting::None,
    }
}

fn report(isolation: Isolation) -> ProjectIsolation {
    let level = |enforcement| match enforcement {
        Enforcement::Full => EnforcementLevel::Full,
        Enforcement::Partial => EnforcementLevel::Partial,
        Enforcement::None => EnforcementLevel::None,
    };
    let Isolation { tier, file, network, process, memory, pids, disk, warnings } = isolation;
    ProjectIsolation {
        tier: match tier {
            IsolationTier::Native => SandboxTier::Native,
            IsolationTier::Docker => SandboxTier::Docker,
            IsolationTier::Landlock => SandboxTier::Landlock,
            IsolationTier::None => SandboxTier::None,
        },
        file: level(file),
        network: level(network),
        process: level(process),
        memory: level(memory),
        pids: level(pids),
        disk: level(disk),
        warnings,
    }
}
