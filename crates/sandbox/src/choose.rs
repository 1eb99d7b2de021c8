//! Which driver is used: the strongest that works, and never silently a weak one.

use crate::{Isolation, IsolationTier, SandboxDriver, SandboxError};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// The operator's setting.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxSetting {
    /// Native, then Docker if it is configured, else none of the projects starts.
    #[default]
    Auto,
    Native,
    Docker,
    /// No namespaces. Weaker, so only if it is asked for.
    Landlock,
    /// No sandbox. Only if it is asked for.
    None,
}

impl SandboxSetting {
    fn accepts(self, tier: IsolationTier) -> bool {
        match self {
            Self::Auto => tier.is_strong(),
            Self::Native => tier == IsolationTier::Native,
            Self::Docker => tier == IsolationTier::Docker,
            Self::Landlock => tier == IsolationTier::Landlock,
            Self::None => tier == IsolationTier::None,
        }
    }
}

pub struct ChosenDriver {
    pub driver: Arc<dyn SandboxDriver>,
    pub isolation: Isolation,
}

/// No driver that the setting accepts works here.
#[derive(Debug, thiserror::Error)]
pub struct SandboxRefusal {
    pub setting: SandboxSetting,
    /// What was tried, and why it failed.
    pub tried: Vec<(IsolationTier, SandboxError)>,
}

impl fmt::Display for SandboxRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no sandbox works on this machine")?;
        for (tier, error) in &self.tried {
            write!(f, "; {}: {error}", tier.name())?;
        }
        if self.tried.is_empty() {
            write!(f, "; none is configured that the setting {:?} accepts", self.setting)?;
        }
        Ok(())
    }
}

/// Tries the drivers that the setting accepts, the strongest first, and takes the first that passes its trial run.
pub async fn choose(
    setting: SandboxSetting,
    drivers: &[Arc<dyn SandboxDriver>],
) -> Result<ChosenDriver, SandboxRefusal> {
    let mut accepted: Vec<_> = drivers.iter().filter(|driver| setting.accepts(driver.tier())).collect();
    accepted.sort_by_key(|driver| driver.tier());
    let mut tried = Vec::new();
    for driver in accepted {
        match driver.probe().await {
            Ok(isolation) => return Ok(ChosenDriver { driver: Arc::clone(driver), isolation }),
            Err(error) => tried.push((driver.tier(), error)),
        }
    }
    Err(SandboxRefusal { setting, tried })
}

#[cfg(test)]
mod tests {
    use super::{SandboxSetting, choose};
    use crate::{
        Isolation, IsolationTier, ProjectSandbox, SandboxDriver, SandboxError, SandboxFuture, SandboxPolicy,
        protocol::HelperFacts,
    };
    use std::sync::Arc;

    struct FakeDriver {
        tier: IsolationTier,
        works: bool,
    }

    impl SandboxDriver for FakeDriver {
        fn tier(&self) -> IsolationTier {
            self.tier
        }

        fn probe(&self) -> SandboxFuture<'_, Result<Isolation, SandboxError>> {
            let facts = HelperFacts {
                landlock_abi: 7,
                has_cgroup: false,
                has_user_namespace: true,
                has_own_user: true,
                has_root: false,
            };
            let result = match self.works {
                true => Ok(Isolation::of(self.tier, &facts)),
                false => Err(SandboxError::Unsuitable("it is broken".to_owned())),
            };
            Box::pin(async { result })
        }

        fn start_sandbox(&self, _: SandboxPolicy) -> SandboxFuture<'_, Result<Arc<dyn ProjectSandbox>, SandboxError>> {
            Box::pin(async { Err(SandboxError::Ended) })
        }
    }

    async fn tier(setting: SandboxSetting, drivers: &[(IsolationTier, bool)]) -> Result<IsolationTier, String> {
        let drivers = drivers.iter().map(|(tier, works)| Arc::new(FakeDriver { tier: *tier, works: *works }) as _);
        let drivers: Vec<Arc<dyn SandboxDriver>> = drivers.collect();
        choose(setting, &drivers).await.map(|chosen| chosen.isolation.tier).map_err(|refusal| refusal.to_string())
    }

    use IsolationTier::{Docker, Landlock, Native, None as NoTier};

    #[tokio::test]
    async fn auto_takes_the_strongest_that_works() {
        let all = [(NoTier, true), (Landlock, true), (Docker, true), (Native, true)];
        assert_eq!(tier(SandboxSetting::Auto, &all).await, Ok(Native));
        let broken = [(Native, false), (NoTier, true), (Landlock, true), (Docker, true)];
        assert_eq!(tier(SandboxSetting::Auto, &broken).await, Ok(Docker));
    }

    #[tokio::test]
    async fn auto_never_takes_a_weak_one() {
        let weak = [(Native, false), (Landlock, true), (NoTier, true)];
        let refusal = tier(SandboxSetting::Auto, &weak).await.unwrap_err();
        assert_eq!(refusal, "no sandbox works on this machine; native: it is broken");
    }

    #[tokio::test]
    async fn a_named_tier_is_used_and_no_other() {
        let all = [(Native, true), (Landlock, true), (NoTier, true)];
        assert_eq!(tier(SandboxSetting::Landlock, &all).await, Ok(Landlock));
        assert_eq!(tier(SandboxSetting::None, &all).await, Ok(NoTier));
        let refusal = tier(SandboxSetting::Docker, &all).await.unwrap_err();
        assert!(refusal.contains("none is configured"), "{refusal}");
        assert!(tier(SandboxSetting::Native, &[(Native, false), (Docker, true)]).await.is_err());
    }
}
