//! The sandboxes of this machine, found by trial runs: a manager for each tier that is used. Programs of agents and commands of a
//! project share one sandbox.

use crate::{
    agent_sandbox,
    config::{AgentIsolation, AppConfig},
};
use domain::project::{EnforcementLevel, ProjectIsolation, ProjectSpace, SandboxChoice, SandboxTier, SpaceKey};
use sandbox::{Enforcement, Isolation, IsolationTier, LocalDriver, SandboxDriver, SandboxSetting, choose};
use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;
use workbench::{
    project_sandbox::{GuestPort, SandboxKey, SandboxLease, SandboxManager, SandboxManagerSettings},
    sandboxes::{SandboxOpenError, SandboxUnavailable, Sandboxes, SandboxesFuture},
};

/// The operator may turn something on meanwhile.
const REFUSAL_LIFETIME: Duration = Duration::from_secs(30);

/// A sandbox that works here, or why none does.
type TrialResult = Result<SandboxManager, String>;

pub struct MachineSandboxes {
    config: AppConfig,
    /// Each with the user that commands run as, if it is not the server's.
    drivers: Vec<(Arc<dyn SandboxDriver>, Option<u32>)>,
    state: Mutex<MachineState>,
}

/// Locked during a trial run, so that there is one at a time.
#[derive(Default)]
struct MachineState {
    tried: HashMap<SandboxChoice, (Instant, TrialResult)>,
    /// One for each tier, however it was chosen.
    managers: Vec<(IsolationTier, SandboxManager)>,
    /// They lead to the server, which holds this value: dropped by `close`.
    ports: Vec<GuestPort>,
}

impl MachineSandboxes {
    pub fn new(config: &AppConfig) -> Self {
        let tiers = [IsolationTier::Native, IsolationTier::Landlock, IsolationTier::None];
        let driver = |tier| {
            let driver = LocalDriver::new(tier, &config.keeper, &config.store.data_dir);
            let user = driver.host_user();
            (Arc::new(driver) as Arc<dyn SandboxDriver>, user)
        };
        Self { config: config.clone(), drivers: tiers.map(driver).into(), state: Mutex::default() }
    }

    /// What answers inside of sandboxes that have a network of their own. Called once, before the first sandbox opens.
    pub async fn set_ports(&self, ports: Vec<GuestPort>) {
        let mut state = self.state.lock().await;
        for (_, manager) in state.managers.iter().filter(|(tier, _)| has_own_network(*tier)) {
            manager.set_ports(ports.clone());
        }
        state.ports = ports;
    }

    /// The sandboxes of this kind, if they work on this machine. The error says why not.
    pub async fn manager(&self, choice: SandboxChoice) -> TrialResult {
        let mut state = self.state.lock().await;
        if let Some((at, result)) = state.tried.get(&choice)
            && (result.is_ok() || at.elapsed() < REFUSAL_LIFETIME)
        {
            return result.clone();
        }
        let drivers: Vec<Arc<dyn SandboxDriver>> = self.drivers.iter().map(|(driver, _)| Arc::clone(driver)).collect();
        let result = match choose(setting(choice), &drivers).await {
            Ok(chosen) => Ok(self.manager_of(&mut state, chosen.driver, chosen.isolation)),
            Err(refusal) => Err(refusal.to_string()),
        };
        state.tried.insert(choice, (Instant::now(), result.clone()));
        result
    }

    fn manager_of(
        &self,
        state: &mut MachineState,
        driver: Arc<dyn SandboxDriver>,
        isolation: Isolation,
    ) -> SandboxManager {
        let tier = driver.tier();
        if let Some((_, manager)) = state.managers.iter().find(|(known, _)| *known == tier) {
            return manager.clone();
        }
        let data = &self.config.store.data_dir;
        let settings = SandboxManagerSettings {
            programs: agent_sandbox::programs(&self.config),
            host_user: self.drivers.iter().find(|(known, _)| known.tier() == tier).and_then(|(_, user)| *user),
            idle_timeout: self.config.sandbox.idle,
            max_open: self.config.sandbox.max_open,
            data: std::path::absolute(data).unwrap_or_else(|_| data.clone()),
            ceilings: self.config.projects.ceilings,
        };
        let manager = SandboxManager::new(driver, isolation, settings);
        if has_own_network(tier) {
            manager.set_ports(state.ports.clone());
        }
        state.managers.push((tier, manager.clone()));
        manager
    }

    async fn managers(&self) -> Vec<SandboxManager> {
        self.state.lock().await.managers.iter().map(|(_, manager)| manager.clone()).collect()
    }
}

impl Sandboxes for MachineSandboxes {
    fn isolation(&self, choice: SandboxChoice) -> SandboxesFuture<'_, Result<ProjectIsolation, SandboxUnavailable>> {
        Box::pin(async move {
            let manager = self.manager(choice).await.map_err(unavailable)?;
            Ok(report(manager.isolation().clone()))
        })
    }

    fn open<'a>(&'a self, space: &'a ProjectSpace) -> SandboxesFuture<'a, Result<SandboxLease, SandboxOpenError>> {
        Box::pin(async move {
            let manager = self.manager(space.settings.sandbox).await.map_err(unavailable)?;
            Ok(manager.open(&manager.spec(space)).await?)
        })
    }

    fn for_programs<'a>(
        &'a self,
        space: &'a ProjectSpace,
    ) -> SandboxesFuture<'a, Result<Option<SandboxManager>, SandboxUnavailable>> {
        Box::pin(async move {
            let is_inside = runs_inside(space.settings.sandbox, self.config.sandbox.agents);
            if !is_inside || !self.config.server.role.executes_runs() {
                return Ok(None);
            }
            // Programs need the ports of a network of their own, so there is no weaker tier for them.
            let manager = self.manager(SandboxChoice::Native).await;
            manager.map(Some).map_err(|refusal| SandboxUnavailable(agent_sandbox::refusal(&refusal)))
        })
    }

    fn find(&self, space: SpaceKey) -> SandboxesFuture<'_, Option<SandboxLease>> {
        Box::pin(async move {
            for manager in self.managers().await {
                if let Some(lease) = manager.find(&SandboxKey::from(space)).await {
                    return Some(lease);
                }
            }
            None
        })
    }

    fn stop(&self, space: SpaceKey) -> SandboxesFuture<'_, ()> {
        Box::pin(async move {
            for manager in self.managers().await {
                manager.stop(&SandboxKey::from(space)).await;
            }
        })
    }

    fn close(&self) -> SandboxesFuture<'_, ()> {
        Box::pin(async move {
            for manager in self.managers().await {
                manager.close().await;
            }
            self.state.lock().await.ports.clear();
        })
    }
}

impl fmt::Debug for MachineSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineSandboxes").finish_non_exhaustive()
    }
}

/// Whether the programs of agents run in a sandbox: a project that chooses one by name decides for itself.
fn runs_inside(choice: SandboxChoice, setting: AgentIsolation) -> bool {
    match choice {
        SandboxChoice::None => false,
        SandboxChoice::Native => true,
        SandboxChoice::Auto | SandboxChoice::Docker | SandboxChoice::Landlock => setting != AgentIsolation::None,
    }
}

/// Without one, a port inside would be a port of this machine.
fn has_own_network(tier: IsolationTier) -> bool {
    match tier {
        IsolationTier::Native | IsolationTier::Docker => true,
        IsolationTier::Landlock | IsolationTier::None => false,
    }
}

fn unavailable(refusal: String) -> SandboxUnavailable {
    SandboxUnavailable(format!("{refusal}; docs/sandbox.md says what a sandbox needs"))
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

#[cfg(test)]
mod tests {
    use super::runs_inside;
    use crate::config::AgentIsolation;
    use domain::project::SandboxChoice;

    #[test]
    fn invariant_26_contained_a_project_decides_for_the_programs_of_its_agents() {
        for (choice, by_default, where_none_is_set) in [
            (SandboxChoice::Auto, true, false),
            (SandboxChoice::Docker, true, false),
            (SandboxChoice::Landlock, true, false),
            (SandboxChoice::Native, true, true),
            (SandboxChoice::None, false, false),
        ] {
            assert_eq!(runs_inside(choice, AgentIsolation::Auto), by_default, "{choice:?}");
            assert_eq!(runs_inside(choice, AgentIsolation::None), where_none_is_set, "{choice:?}");
        }
    }
}
