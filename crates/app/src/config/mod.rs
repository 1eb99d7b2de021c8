//! The configuration: `default.toml` (embedded; also the manual) → file → environment → flags, parsed into one
//! validated struct per section.
//!
//! Start at [`AppConfig::load`]. `layers` collects values from their sources, `reader` validates them. No other code
//! reads the environment or parses a scheme, a unit or a range again.

mod database;
mod direct;
mod environment;
mod layers;
pub mod mcp_file;
mod programs;
mod reader;
mod sandbox;
mod secret;
mod tls;

pub use self::sandbox::{AgentIsolation, SandboxSection};
pub use database::{DatabaseSetting, DatabaseUrl};
pub use direct::{DirectSection, ModelEndpoint};
pub use environment::Environment;
pub use programs::{
    AcpAgentEntry, AcpSection, AgentsSection, ClaudeCodeSection, CodexSection, McpSection, ProgramSection,
};
pub use secret::SecretString;
pub use tls::TlsSetting;

use config::ValueKind;
use reader::ConfigReader;
use server::{
    auth::client_address::{AddressRange, TrustedProxies},
    shares::ShareLimits,
};
use std::{
    ffi::OsString,
    io,
    net::{Ipv6Addr, SocketAddr},
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Debug, thiserror::Error)]
pub enum AppConfigError {
    #[error("cannot read the configuration file {}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("cannot parse the configuration file {}: {detail}", file.display())]
    Syntax { file: PathBuf, detail: String },
    #[error("unknown key {key} in {origin}; {allowed}")]
    Unknown { key: String, origin: String, allowed: String },
    #[error("{key} is {given} ({origin}); it must be {allowed}")]
    Value { key: String, given: String, origin: String, allowed: String },
    #[error("cannot find the working directory")]
    WorkingDirectory(#[source] io::Error),
    #[error("cannot find the path of this program")]
    OwnProgram(#[source] io::Error),
}

/// Settings from the command line.
#[derive(Clone, Debug, Default)]
pub struct ConfigFlags {
    pub config: Option<PathBuf>,
    pub listen: Option<String>,
    pub role: Option<String>,
    pub data_dir: Option<String>,
    pub database: Option<SecretString>,
    pub tls_certificate: Option<String>,
    pub tls_key: Option<String>,
    pub tls_self_signed: bool,
    pub behind_tls_proxy: bool,
    /// Only as a flag: nobody turns authentication off by an old file or variable.
    pub no_auth: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub struct AppConfig {
    /// The configuration file that was read, if any.
    pub file: Option<PathBuf>,
    pub server: ServerSection,
    pub tls: TlsSetting,
    pub store: StoreSection,
    pub feed: FeedSection,
    pub mcp_server: McpServerSection,
    pub limits: SharesSection,
    pub projects: ProjectsSection,
    pub runs: RunsSection,
    pub agents: AgentsSection,
    pub claude_code: ClaudeCodeSection,
    pub codex: CodexSection,
    pub acp: AcpSection,
    pub mcp: McpSection,
    pub sandbox: SandboxSection,
    pub direct: DirectSection,
    pub log: LogSection,
    /// The server's environment. Agents' programs get only variables that are selected by name.
    pub environment: Environment,
    /// The path of this program, for agents to start `greenroom mcp`.
    pub own_program: PathBuf,
    /// The path of this program, for the server to start keepers. It is the same version even if the file was replaced.
    pub keeper: PathBuf,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerSection {
    pub listen: SocketAddr,
    /// Lower case, without a port; an IPv6 address is in brackets.
    pub public_hosts: Vec<String>,
    pub preview_domain: String,
    /// As browsers send them: `scheme://host`, with a port that is not the scheme's own.
    pub cors_origins: Vec<String>,
    pub cors_credentials: bool,
    pub max_connections: usize,
    pub max_connections_per_address: usize,
    pub trusted_proxies: TrustedProxies,
    pub body_bytes: usize,
    pub shutdown: Duration,
    pub role: NodeRole,
    /// Whether a proxy with TLS is in front, and nothing else reaches the address.
    pub behind_tls_proxy: bool,
    /// Whether direct requests on loopback need no credential.
    pub no_auth: bool,
}

/// What one of several servers on the same database does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeRole {
    All,
    /// Serves clients; starts no agent.
    Web,
    /// Executes runs; serves only health, metrics, and the host tools of its own agents.
    Worker,
}

impl NodeRole {
    pub const NAMES: [&str; 3] = ["all", "web", "worker"];

    fn parse(text: &str) -> Option<Self> {
        match text {
            "all" => Some(Self::All),
            "web" => Some(Self::Web),
            "worker" => Some(Self::Worker),
            _ => None,
        }
    }

    pub fn serves_clients(self) -> bool {
        self != Self::Worker
    }

    pub fn executes_runs(self) -> bool {
        self != Self::Web
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreSection {
    pub data_dir: PathBuf,
    pub database: DatabaseSetting,
    pub read_connections: u32,
    pub tail_bytes: usize,
    /// How long after its delete a room or an agent is erased.
    pub erase_after: Duration,
    /// The keys with which secrets are stored.
    pub secrets_key_file: PathBuf,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedSection {
    pub heartbeat: Duration,
    pub stall: Duration,
}

/// `[mcp_server]`: Greenroom as an MCP server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpServerSection {
    pub session_idle: Duration,
    pub max_sessions: usize,
    pub max_sessions_per_user: usize,
}

/// `[limits]`: what one user and one workspace may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharesSection {
    pub requests_per_second: NonZeroU32,
    pub burst: NonZeroU32,
    pub user: ShareLimits,
    pub socket_messages_per_second: NonZeroU32,
    pub socket_message_burst: NonZeroU32,
    pub workspace: engine::WorkspaceLimits,
    pub projects: usize,
    pub commands: usize,
}

/// `[projects]`: what one project may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProjectsSection {
    pub ceilings: domain::project::ProjectCeilings,
    pub free_bytes: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunsSection {
    pub concurrency: usize,
    pub concurrency_per_workspace: usize,
    pub unfinished_per_workspace: usize,
    pub lease: Duration,
    /// Limits of one run, unless its agent sets others.
    pub limits: domain::limits::Limits,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogSection {
    /// Valid filter directives of `tracing`.
    pub level: String,
    pub format: LogFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    Text,
    Json,
}

impl AppConfig {
    /// Reads the process's own environment and working directory.
    pub fn load(flags: &ConfigFlags) -> Result<Self, AppConfigError> {
        let working_dir = std::env::current_dir().map_err(AppConfigError::WorkingDirectory)?;
        #[expect(clippy::disallowed_methods, reason = "the one place that reads settings from the environment")]
        let variables = std::env::vars_os();
        Self::load_from(flags, variables, &working_dir)
    }

    pub fn load_from(
        flags: &ConfigFlags,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        working_dir: &Path,
    ) -> Result<Self, AppConfigError> {
        let (known, defaults) = layers::defaults()?;
        let variables: Vec<(OsString, OsString)> = environment.into_iter().collect();
        let environment = layers::from_environment(variables.iter().cloned(), &known)?;
        let from_flags = layers::from_flags(flags);

        // The file may be in the data directory, so the file itself cannot set the data directory for this search.
        let value = |key| [&from_flags, &environment, &defaults].into_iter().find_map(|layer| layer.get(key));
        let data_dir = match value("store.data_dir") {
            Some(ValueKind::String(path)) => working_dir.join(path),
            _ => working_dir.to_owned(),
        };
        let mut builder = config::Config::builder().add_source(defaults);
        let file = layers::find_file(flags.config.as_deref(), &data_dir, working_dir)?;
        if let Some(path) = &file {
            builder = builder.add_source(layers::from_file(path, &known)?);
        }
        let merged = builder.add_source(environment).add_source(from_flags).build();
        // Layers are plain maps with checked keys, so merging does not fail.
        let reader = ConfigReader::new(merged.unwrap_or_default());
        let mut config = Self::read(&reader, file, Environment::new(variables), working_dir)?;
        config.server.no_auth = flags.no_auth;
        Ok(config)
    }

    fn read(
        from: &ConfigReader,
        file: Option<PathBuf>,
        environment: Environment,
        working_dir: &Path,
    ) -> Result<Self, AppConfigError> {
        let data_dir = from.parsed("store.data_dir", "the path of a directory", path)?;
        let database =
            from.parsed("store.database", database::ALLOWED, |text| DatabaseSetting::parse(text, &data_dir))?;
        let secrets_key_file =
            from.parsed("store.secrets_key_file", "the path of a file, or empty", |text| match text.trim() {
                "" => Some(data_dir.join("secrets.key")),
                _ => path(text),
            })?;
        // Two servers cannot share an SQLite file.
        let is_shared = matches!(database, DatabaseSetting::Postgres { .. });
        let roles = match is_shared {
            true => "\"all\", \"web\" or \"worker\"",
            false => "\"all\" with SQLite, which only one server can use; set store.database to a postgres:// URL",
        };
        let role = |text: &str| NodeRole::parse(text).filter(|role| is_shared || *role == NodeRole::All);
        Ok(Self {
            file,
            server: ServerSection {
                listen: from.parsed("server.listen", "an address and a port, for example 127.0.0.1:7878", address)?,
                public_hosts: from.list("server.public_hosts", "a list of host names without scheme or port", host)?,
                preview_domain: from.parsed(
                    "server.preview_domain",
                    "a host name without scheme or port",
                    preview_domain,
                )?,
                cors_origins: from.list(
                    "server.cors_origins",
                    "a list of exact origins such as \"https://app.example.org\" or \"http://localhost:6274\"",
                    origin,
                )?,
                cors_credentials: from.boolean("server.cors_credentials")?,
                max_connections: from.integer("server.max_connections", 1..=1_000_000)?,
                max_connections_per_address: from.integer("server.max_connections_per_address", 1..=1_000_000)?,
                trusted_proxies: TrustedProxies(from.list(
                    "server.trusted_proxies",
                    "a list of addresses or networks such as 10.0.0.0/8",
                    |text| AddressRange::parse(text.trim()),
                )?),
                body_bytes: from.integer("server.body_bytes", 1024..=1 << 30)?,
                shutdown: from.seconds("server.shutdown_seconds", 1..=300)?,
                role: from.parsed("server.role", roles, role)?,
                behind_tls_proxy: from.boolean("server.behind_tls_proxy")?,
                no_auth: false,
            },
            tls: TlsSetting::read(from)?,
            store: StoreSection {
                data_dir,
                database,
                read_connections: from.integer("store.read_connections", 1..=64)?,
                tail_bytes: from.integer("store.tail_bytes", 1 << 16..=1 << 34)?,
                erase_after: from.seconds("store.erase_after_seconds", 0..=31_536_000)?,
                secrets_key_file,
            },
            feed: FeedSection {
                heartbeat: from.seconds("feed.heartbeat_seconds", 1..=60)?,
                stall: from.seconds("feed.stall_seconds", 1..=3600)?,
            },
            mcp_server: McpServerSection {
                session_idle: from.seconds("mcp_server.session_idle_seconds", 1..=604_800)?,
                max_sessions: from.integer("mcp_server.max_sessions", 1..=1_000_000)?,
                max_sessions_per_user: from.integer("mcp_server.max_sessions_per_user", 1..=1_000_000)?,
            },
            limits: SharesSection {
                requests_per_second: positive(from.integer("limits.requests_per_second", 1..=1_000_000)?),
                burst: positive(from.integer("limits.burst", 1..=10_000_000)?),
                user: ShareLimits {
                    streams: from.integer("limits.streams_per_user", 1..=1_000_000)?,
                    subscriptions: from.integer("limits.subscriptions_per_user", 1..=10_000_000)?,
                },
                socket_messages_per_second: positive(from.integer("limits.socket_messages_per_second", 1..=1_000_000)?),
                socket_message_burst: positive(from.integer("limits.socket_message_burst", 1..=10_000_000)?),
                workspace: engine::WorkspaceLimits {
                    rooms: from.integer("limits.rooms_per_workspace", 1..=10_000_000)?,
                    stored_bytes: from.integer("limits.stored_bytes_per_workspace", 1 << 20..=1_000_000_000_000_000)?,
                },
                projects: from.integer("limits.projects_per_workspace", 1..=100_000)?,
                commands: from.integer("limits.commands_per_workspace", 1..=10_000)?,
            },
            projects: ProjectsSection {
                ceilings: domain::project::ProjectCeilings {
                    disk_bytes: from.integer("projects.disk_bytes", 1 << 20..=1_000_000_000_000_000)?,
                    files: from.integer("projects.files", 1..=1_000_000_000)?,
                    memory_bytes: from.integer("projects.memory_bytes", 64 << 20..=1_000_000_000_000)?,
                    processes: from.integer("projects.processes", 8..=1_000_000)?,
                },
                free_bytes: from.integer("projects.free_bytes", 0..=1_000_000_000_000_000)?,
            },
            runs: RunsSection {
                concurrency: from.integer("runs.concurrency", 1..=10_000)?,
                concurrency_per_workspace: from.integer("runs.concurrency_per_workspace", 1..=10_000)?,
                unfinished_per_workspace: from.integer("runs.unfinished_per_workspace", 1..=1_000_000)?,
                lease: from.seconds("runs.lease_seconds", 2..=600)?,
                limits: domain::limits::Limits {
                    turns: from.integer("runs.turns", 1..=100_000)?,
                    wall: from.seconds("runs.wall_seconds", 1..=604_800)?,
                    first_byte: from.seconds("runs.first_byte_seconds", 1..=86_400)?,
                    idle: from.seconds("runs.idle_seconds", 1..=86_400)?,
                    tool: from.seconds("runs.tool_seconds", 1..=86_400)?,
                    output_bytes: from.integer("runs.output_bytes", 1024..=1 << 30)?,
                    approval: from.seconds("runs.approval_seconds", 1..=604_800)?,
                },
            },
            agents: AgentsSection::read(from, working_dir)?,
            claude_code: ClaudeCodeSection::read(from)?,
            codex: CodexSection::read(from)?,
            acp: AcpSection::read(from)?,
            mcp: McpSection::read(from)?,
            sandbox: SandboxSection::read(from)?,
            direct: DirectSection::read(from, &environment)?,
            environment,
            own_program: std::env::current_exe().map_err(AppConfigError::OwnProgram)?,
            keeper: PathBuf::from("/proc/self/exe"),
            log: LogSection {
                level: from.parsed(
                    "log.level",
                    "error, warn, info, debug, trace, or directives such as \"info,engine=debug\"",
                    directives,
                )?,
                format: from.parsed("log.format", "\"text\" or \"json\"", |text| match text {
                    "text" => Some(LogFormat::Text),
                    "json" => Some(LogFormat::Json),
                    _ => None,
                })?,
            },
        })
    }
}

fn positive(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

fn path(text: &str) -> Option<PathBuf> {
    let usable = !text.trim().is_empty() && !text.contains('\0');
    usable.then(|| PathBuf::from(text))
}

fn address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))),
        None => text.parse().ok(),
    }
}

fn preview_domain(text: &str) -> Option<String> {
    host(text)
        .filter(|name| name.parse::<std::net::IpAddr>().is_err() && !name.starts_with('[') && !name.starts_with('.'))
}

fn host(text: &str) -> Option<String> {
    let name = text.trim().to_ascii_lowercase();
    if let Some(inner) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address: Ipv6Addr = inner.parse().ok()?;
        return Some(format!("[{address}]"));
    }
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    ((1..=253).contains(&name.len()) && name.chars().all(letter)).then_some(name)
}

/// An origin, as a browser writes it: without the port that the scheme has anyway. `*` and `null` are none.
fn origin(text: &str) -> Option<String> {
    let (scheme, authority) = text.trim().split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let own_port = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let (name, port) = match authority.rsplit_once(':') {
        // The colons of an IPv6 address are inside its brackets.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port.parse::<u16>().ok()?)),
        _ => (authority, None),
    };
    let host = host(name)?;
    Some(match port.filter(|port| *port != own_port) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}

fn directives(text: &str) -> Option<String> {
    let accepted = !text.trim().is_empty() && tracing_subscriber::EnvFilter::try_new(text).is_ok();
    // The filter takes any word as a target name, so `level = "verbose"` would silently be accepted.
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    let bare = text.split(',').filter(|part| !part.contains(['=', '[']));
    let sensible = bare.into_iter().all(|part| levels.contains(&part.trim().to_ascii_lowercase().as_str()));
    (accepted && sensible).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
