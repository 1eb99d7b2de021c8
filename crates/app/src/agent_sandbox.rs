//! Where the programs of agents run: chooses the sandbox when the server starts, and connects its ports with the server.

use crate::{
    config::{AgentIsolation, AppConfig},
    machine_sandboxes::MachineSandboxes,
};
use domain::project::SandboxChoice;
use providers::{
    AgentSandboxes,
    acp::Preset,
    gateway::{GATEWAY_PORT, HOST_TOOLS_PORT},
};
use sandbox::BindMount;
use server::guest::GuestEndpoints;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
    sync::Arc,
};
use tokio::net::TcpStream;
use workbench::{
    process::{LaunchedProcess, Launcher, ProcessFuture, ProcessSpec, ProcessStartError, Supervisor},
    project_sandbox::{
        EGRESS_PORT, EgressProxy, GuestFuture, GuestPort, GuestService, MountedProgram, SandboxLauncher, SandboxSpec,
    },
};

/// Tries the sandbox that the operator wants. There is no weaker one instead: then agents' programs do not start.
pub async fn choose(config: &AppConfig, machine: &MachineSandboxes) -> AgentSandboxes {
    if config.sandbox.agents == AgentIsolation::None || !config.server.role.executes_runs() {
        return AgentSandboxes::Outside;
    }
    match machine.manager(SandboxChoice::Native).await {
        Ok(manager) => AgentSandboxes::Inside(manager),
        Err(why) => AgentSandboxes::Refused(refusal(&why)),
    }
}

/// Why the programs of agents cannot run, and what to do.
pub fn refusal(why: &str) -> String {
    format!(
        "The programs of agents run only in a sandbox, and {why}. docs/sandbox.md says what it needs; the setting \
         sandbox.agents = \"none\" lets them run with all rights of the server's user."
    )
}

/// Starts programs where their specs say: in the sandboxes of this machine, or outside.
pub struct MachineLauncher {
    pub machine: Arc<MachineSandboxes>,
    pub supervisor: Supervisor,
    /// The server's `PATH`, where the interpreters of scripts are.
    pub search_path: Option<OsString>,
}

impl Launcher for MachineLauncher {
    fn launch(&self, spec: ProcessSpec) -> ProcessFuture<'_, Result<LaunchedProcess, ProcessStartError>> {
        Box::pin(async move {
            let supervisor = self.supervisor.clone();
            if spec.sandbox.is_none() {
                return supervisor.launch(spec).await;
            }
            let program = spec.program.display().to_string();
            let sandboxes = self.machine.manager(SandboxChoice::Native).await;
            let sandboxes = sandboxes.map_err(|reason| ProcessStartError::Refused { program, reason })?;
            let search_path = self.search_path.clone();
            SandboxLauncher { sandboxes, supervisor, search_path }.launch(spec).await
        })
    }
}

/// The server's `PATH`.
pub fn search_path(config: &AppConfig) -> Option<OsString> {
    config.environment.variables().get(OsStr::new("PATH")).cloned()
}

/// What every sandbox has: the programs of all providers that are installed, and what the operator adds.
pub fn programs(config: &AppConfig) -> Vec<BindMount> {
    let search_path = search_path(config);
    let named = config.acp.agents.iter().map(|agent| agent.command.clone());
    let presets = Preset::all().into_iter().map(|preset| preset.command);
    let own = [config.claude_code.starting.command.clone(), config.codex.starting.command.clone()];
    let mut mounts = BTreeMap::new();
    for command in own.into_iter().chain(named).chain(presets) {
        let found = locate(&command, search_path.as_deref());
        let mounted = found.and_then(|file| MountedProgram::find(&file, search_path.as_deref()).ok());
        for mount in mounted.into_iter().flat_map(|mounted| mounted.mounts) {
            mounts.insert(mount.target, mount.source);
        }
    }
    mounts.extend(config.sandbox.programs.iter().map(|path| (path.clone(), path.clone())));
    mounts.into_iter().map(|(target, source)| BindMount { source, target }).collect()
}

fn locate(command: &str, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let path = PathBuf::from(command);
    if path.components().count() > 1 {
        return Some(path);
    }
    std::env::split_paths(search_path?).map(|folder| folder.join(command)).find(|file| file.is_file())
}

/// Lets the server answer the ports inside.
pub async fn connect(machine: &MachineSandboxes, app: &server::App, config: &AppConfig) {
    let endpoints = GuestEndpoints::new(app);
    let egress = EgressProxy { policy: Arc::new(crate::provider_setup::egress_policy(config)) };
    let ports = vec![
        GuestPort { port: GATEWAY_PORT, service: Arc::new(GatewayPort(endpoints.clone())) },
        GuestPort { port: HOST_TOOLS_PORT, service: Arc::new(HostToolsPort(endpoints)) },
        GuestPort { port: EGRESS_PORT, service: Arc::new(egress) },
    ];
    machine.set_ports(ports).await;
}

struct GatewayPort(GuestEndpoints);

impl GuestService for GatewayPort {
    fn serve(&self, sandbox: Arc<SandboxSpec>, connection: TcpStream) -> GuestFuture {
        Box::pin(self.0.clone().serve_gateway(sandbox.key.to_string(), connection))
    }
}

struct HostToolsPort(GuestEndpoints);

impl GuestService for HostToolsPort {
    fn serve(&self, _: Arc<SandboxSpec>, connection: TcpStream) -> GuestFuture {
        Box::pin(self.0.clone().serve_host_tools(connection))
    }
}
