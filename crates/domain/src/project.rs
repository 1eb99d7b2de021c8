//! A project: a folder in which agents work, and the sandbox around everything that runs there.

use crate::{
    ids::{ProjectId, RoomId},
    name::Name,
    owner::Owner,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf};

/// Hosts that the commands of one project may reach.
pub const MAX_ALLOWED_HOSTS: usize = 100;
/// The longest name of a host (RFC 1035).
const MAX_HOST_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct Project {
    pub id: ProjectId,
    pub name: Name,
    /// An existing folder of this machine, as an absolute path; `null` for a folder that Greenroom manages.
    pub folder: Option<String>,
    #[serde(flatten)]
    pub settings: ProjectSettings,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What can be changed after a project is created. Missing fields have defaults.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectSettings {
    pub sandbox: SandboxChoice,
    pub network: NetworkAccess,
    pub limits: ProjectLimits,
}

impl ProjectSettings {
    /// Whether a sandbox that was opened with the other settings does not do for these. What is stored through the API is
    /// limited without it.
    pub fn needs_new_sandbox(&self, other: &Self) -> bool {
        let inside = |limits: &ProjectLimits| (limits.memory_bytes, limits.processes);
        (self.sandbox, &self.network) != (other.sandbox, &other.network)
            || inside(&self.limits) != inside(&other.limits)
    }
}

/// Which sandbox a project uses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxChoice {
    /// The strongest that works on this machine: native, then Docker. Never a weaker one.
    #[default]
    Auto,
    Native,
    Docker,
    /// Landlock, without namespaces. For the operator.
    Landlock,
    /// No sandbox: commands have all rights of the server's user. For the operator.
    None,
}

impl SandboxChoice {
    /// Whether commands may get at more than the project, so that only the operator can choose it.
    pub fn is_weak(self) -> bool {
        match self {
            Self::Auto | Self::Native | Self::Docker => false,
            Self::Landlock | Self::None => true,
        }
    }
}

/// What the programs of agents in the sandbox of a project may reach outside of their own loopback. Nothing by default.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkAccess {
    /// Names of hosts, such as `pypi.org`, or `*.example.com` for all names below one.
    #[schema(max_items = 100)]
    pub allow: Vec<AllowedHost>,
}

impl NetworkAccess {
    /// Whether a host may be reached, by the name that a command asks for.
    pub fn allows(&self, host: &str) -> bool {
        self.allow.iter().any(|allowed| allowed.covers(host))
    }
}

/// The name of a host, in lower case, or `*.` and a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, examples("pypi.org"), max_length = 253,
         pattern = "^([*][.])?([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?[.])+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$")]
pub struct AllowedHost(String);

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not the name of a host; use a full name such as pypi.org, or *.example.com, without a port or a path"
)]
pub struct InvalidHost(String);

impl AllowedHost {
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        let host = text.trim().to_ascii_lowercase();
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= MAX_LABEL_BYTES
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        // An address has a number as its last label: which machine it is cannot be told from it.
        let has_domain = name.rsplit_once('.').is_some_and(|(_, top)| !top.bytes().all(|byte| byte.is_ascii_digit()));
        match has_domain && host.len() <= MAX_HOST_BYTES && name.split('.').all(is_label) {
            true => Ok(Self(host)),
            false => Err(InvalidHost(text.chars().take(MAX_HOST_BYTES).collect())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn covers(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self.0.strip_prefix('*') {
            Some(suffix) => {
                host.len() > suffix.len()
                    && host.is_char_boundary(host.len() - suffix.len())
                    && host[host.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
            }
            None => host.eq_ignore_ascii_case(&self.0),
        }
    }
}

impl TryFrom<String> for AllowedHost {
    type Error = InvalidHost;
    fn try_from(text: String) -> Result<Self, InvalidHost> {
        Self::parse(&text)
    }
}

impl From<AllowedHost> for String {
    fn from(host: AllowedHost) -> Self {
        host.0
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Limits of one project. The server's are the ceiling; unset limits are the server's. `disk_bytes` and `files` hold for what
/// people store through the API, `memory_bytes` and `processes` for everything that runs in the project's sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectLimits {
    /// The maximum number of bytes of all files together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub disk_bytes: Option<u64>,
    /// The maximum number of files and folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub files: Option<u64>,
    /// The maximum memory of all processes in the sandbox together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub memory_bytes: Option<u64>,
    /// The maximum number of processes and threads in the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub processes: Option<u64>,
}

/// The limits that hold: the server's, or those of a project.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProjectCeilings {
    pub disk_bytes: u64,
    pub files: u64,
    pub memory_bytes: u64,
    pub processes: u64,
}

impl Default for ProjectCeilings {
    fn default() -> Self {
        Self { disk_bytes: 10_000_000_000, files: 500_000, memory_bytes: 4 << 30, processes: 512 }
    }
}

impl ProjectCeilings {
    /// The limits of a project: each is at most the server's, also for a project that was stored with more.
    pub fn with(self, set: &ProjectLimits) -> Self {
        let lower = |value: Option<u64>, ceiling: u64| value.map_or(ceiling, |value| value.min(ceiling));
        Self {
            disk_bytes: lower(set.disk_bytes, self.disk_bytes),
            files: lower(set.files, self.files),
            memory_bytes: lower(set.memory_bytes, self.memory_bytes),
            processes: lower(set.processes, self.processes),
        }
    }

    /// The first limit of a project that is zero or higher than the server's, with the server's.
    pub fn first_unusable(&self, set: &ProjectLimits) -> Option<(&'static str, u64)> {
        let limits = [
            ("disk_bytes", set.disk_bytes, self.disk_bytes),
            ("files", set.files, self.files),
            ("memory_bytes", set.memory_bytes, self.memory_bytes),
            ("processes", set.processes, self.processes),
        ];
        let unusable = limits.into_iter().find(|(_, value, ceiling)| value.is_some_and(|it| it == 0 || it > *ceiling));
        unusable.map(|(name, _, ceiling)| (name, ceiling))
    }
}

/// What a sandbox is opened for: the folder of a project, or of a room without one, with the settings that hold there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProjectSpace {
    pub owner: Owner,
    pub key: SpaceKey,
    /// Exists, and is the working directory of agents.
    pub folder: PathBuf,
    pub settings: ProjectSettings,
}

impl ProjectSpace {
    /// The space of a room without a project: its own folder, and nothing allowed.
    pub fn scratch(owner: Owner, room: RoomId, folder: PathBuf) -> Self {
        Self { owner, key: SpaceKey::Room(room), folder, settings: ProjectSettings::default() }
    }
}

/// A room without a project has a space of its own, which nothing else shares.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SpaceKey {
    Project(ProjectId),
    Room(RoomId),
}

impl SpaceKey {
    pub fn project_id(self) -> Option<ProjectId> {
        match self {
            Self::Project(id) => Some(id),
            Self::Room(_) => None,
        }
    }
}

/// What the sandbox of a project enforces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProjectIsolation {
    pub tier: SandboxTier,
    /// Files outside of the project cannot be read or changed.
    pub file: EnforcementLevel,
    /// Nothing outside of the sandbox can be reached, but the allowed hosts.
    pub network: EnforcementLevel,
    /// Other processes cannot be seen, signaled or read.
    pub process: EnforcementLevel,
    /// The memory of all processes together is limited.
    pub memory: EnforcementLevel,
    /// The number of processes is limited.
    pub pids: EnforcementLevel,
    /// The disk space is limited.
    pub disk: EnforcementLevel,
    /// What is not enforced, in sentences for people.
    pub warnings: Vec<String>,
}

/// Ordered from strong to weak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxTier {
    /// Namespaces, Landlock and a filter of system calls.
    Native,
    Docker,
    /// Landlock, without namespaces.
    Landlock,
    /// Nothing is isolated.
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnforcementLevel {
    Full,
    /// Something is enforced, and a warning says what is not.
    Partial,
    None,
}

#[cfg(test)]
mod tests {
    use super::{AllowedHost, NetworkAccess, ProjectCeilings, ProjectLimits, ProjectSettings, SandboxChoice};

    #[test]
    fn only_full_names_of_hosts_can_be_allowed() {
        for (text, host) in [("pypi.org", "pypi.org"), (" Files.PythonHosted.org ", "files.pythonhosted.org")] {
            assert_eq!(AllowedHost::parse(text).unwrap().as_str(), host);
        }
        assert_eq!(AllowedHost::parse("*.example.com").unwrap().as_str(), "*.example.com");
        let long = format!("{}.org", "a".repeat(64));
        for bad in [
            "",
            "localhost",
            "10.0.0.1",
            "::1",
            "pypi.org:443",
            "https://pypi.org",
            "pypi.org/simple",
            "*",
            "*.",
            "*.*.org",
            "a..org",
            "-a.org",
            "a-.org",
            "pypi.org.",
            "münchen.de",
            "a b.org",
            "127.1",
            long.as_str(),
        ] {
            assert!(AllowedHost::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_wildcard_covers_names_below_and_not_the_name_itself() {
        let network: NetworkAccess = serde_json::from_str(r#"{"allow": ["pypi.org", "*.example.com"]}"#).unwrap();
        for host in ["pypi.org", "PyPI.org", "pypi.org.", "a.example.com", "a.b.EXAMPLE.com"] {
            assert!(network.allows(host), "{host}");
        }
        for host in ["example.com", "badexample.com", "evil-pypi.org", "pypi.org.evil.net", "", "é.example.co"] {
            assert!(!network.allows(host), "{host}");
        }
    }

    #[test]
    fn a_project_can_only_lower_the_limits_of_the_server() {
        let server = ProjectCeilings { disk_bytes: 100, files: 10, memory_bytes: 1000, processes: 5 };
        let set = ProjectLimits { disk_bytes: Some(50), files: Some(11), ..ProjectLimits::default() };
        assert_eq!(server.with(&set), ProjectCeilings { disk_bytes: 50, ..server });
        assert_eq!(server.first_unusable(&set), Some(("files", 10)));
        assert_eq!(server.first_unusable(&ProjectLimits { processes: Some(0), ..set }), Some(("files", 10)));
        let none = ProjectLimits { processes: Some(0), ..ProjectLimits::default() };
        assert_eq!(server.first_unusable(&none), Some(("processes", 5)));
        assert_eq!(server.first_unusable(&ProjectLimits::default()), None);
    }

    #[test]
    fn settings_without_fields_are_the_strict_ones() {
        let settings: ProjectSettings = serde_json::from_str("{}").unwrap();
        assert_eq!(settings, ProjectSettings::default());
        assert_eq!((settings.sandbox, settings.network.allow.len()), (SandboxChoice::Auto, 0));
        let weak = [SandboxChoice::Auto, SandboxChoice::Native, SandboxChoice::Docker, SandboxChoice::Landlock]
            .map(SandboxChoice::is_weak);
        assert_eq!(weak, [false, false, false, true]);
        assert!(SandboxChoice::None.is_weak());
    }
}
