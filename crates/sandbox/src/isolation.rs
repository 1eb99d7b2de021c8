//! What a sandbox enforces, as facts for the API, `greenroom doctor` and the pages.

use crate::protocol::HelperFacts;
use serde::{Deserialize, Serialize};

/// Ordered from strong to weak.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationTier {
    /// Namespaces, Landlock and seccomp.
    Native,
    Docker,
    /// Landlock and seccomp only: no namespaces of its own.
    Landlock,
    None,
}

impl IsolationTier {
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Docker => "docker",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }

    /// Whether it may be used without an explicit setting.
    pub fn is_strong(self) -> bool {
        matches!(self, Self::Native | Self::Docker)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    Full,
    /// Something is enforced, and a warning says what is not.
    Partial,
    None,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Isolation {
    pub tier: IsolationTier,
    /// Files outside of the project cannot be read or changed.
    pub file: Enforcement,
    /// Nothing outside of the sandbox can be reached.
    pub network: Enforcement,
    /// Other processes cannot be seen, signalled or read.
    pub process: Enforcement,
    /// The memory of all processes together is limited.
    pub memory: Enforcement,
    /// The number of processes is limited.
    pub pids: Enforcement,
    /// The disk space is limited.
    pub disk: Enforcement,
    /// What is not enforced, in sentences for people.
    pub warnings: Vec<String>,
}

impl Isolation {
    pub(crate) fn of(tier: IsolationTier, facts: &HelperFacts) -> Self {
        use Enforcement::{Full, None, Partial};
        let mut warnings = Vec::new();
        let mut warn = |text: &str| warnings.push(text.to_owned());
        let (file, network, process) = match tier {
            IsolationTier::Native | IsolationTier::Docker => (Full, Full, Full),
            IsolationTier::Landlock => {
                warn("Only Landlock and seccomp: commands see the process list of this machine.");
                if !facts.has_own_user {
                    warn("Commands can change the mode and time of files that belong to the server's user.");
                }
                (Partial, Full, Partial)
            }
            IsolationTier::None => {
                warn(
                    "No isolation: commands and programs of agents have all rights of the server's user, its files and its network.",
                );
                (None, None, None)
            }
        };
        if tier == IsolationTier::Native && facts.landlock_abi == 0 {
            warn("Landlock is off in this kernel: commands of a project can write to each other's memory.");
        }
        let memory = if facts.has_cgroup { Full } else { Partial };
        if memory == Partial {
            warn("Memory is limited for each process, not in total: no cgroup is delegated to the server.");
        }
        let pids = match (facts.has_cgroup || facts.has_user_namespace, facts.has_root) {
            (true, _) => Full,
            // The kernel does not limit root.
            (false, true) => None,
            (false, false) => Partial,
        };
        match pids {
            Full => {}
            Partial => warn("Processes are limited per user of this machine, not per sandbox."),
            None => warn("The number of processes is not limited: commands run as root."),
        }
        warn("Disk space is limited for each file, not in total.");
        Self { tier, file, network, process, memory, pids, disk: Partial, warnings }
    }
}

#[cfg(test)]
mod tests {
    use super::{Enforcement, Isolation, IsolationTier};
    use crate::protocol::HelperFacts;

    const STRONG: HelperFacts = HelperFacts {
        landlock_abi: 7,
        has_cgroup: true,
        has_user_namespace: true,
        has_own_user: true,
        has_root: false,
    };

    #[test]
    fn has_the_shape_of_the_api() {
        let json = serde_json::to_value(Isolation::of(IsolationTier::Native, &STRONG)).unwrap();
        let expected = serde_json::json!({
            "tier": "native", "file": "full", "network": "full", "process": "full", "memory": "full", "pids": "full",
            "disk": "partial", "warnings": ["Disk space is limited for each file, not in total."],
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn every_weakness_has_a_warning() {
        let weak = HelperFacts { landlock_abi: 0, has_cgroup: false, ..STRONG };
        let native = Isolation::of(IsolationTier::Native, &weak);
        assert_eq!((native.memory, native.pids, native.warnings.len()), (Enforcement::Partial, Enforcement::Full, 3));
        let none = HelperFacts { has_user_namespace: false, has_own_user: false, has_root: true, ..weak };
        let none = Isolation::of(IsolationTier::None, &none);
        assert_eq!((none.file, none.pids), (Enforcement::None, Enforcement::None));
        assert!(none.warnings[0].starts_with("No isolation"), "{:?}", none.warnings);
        assert_eq!(none.warnings.len(), 4);
    }

    #[test]
    fn only_native_and_docker_are_strong() {
        let strong = [IsolationTier::Native, IsolationTier::Docker, IsolationTier::Landlock, IsolationTier::None]
            .map(IsolationTier::is_strong);
        assert_eq!(strong, [true, true, false, false]);
    }
}
