//! A running agent program with one session, kept between the turns of a conversation.
//!
//! The protocol allows many sessions per process, and some agents run them concurrently. There is still one process for
//! each room and agent: a program that ignores an interrupt is killed, which must not end the turn of another room.

use super::{
    ending, folder,
    gemini::{self, WorkspaceOverrides},
    preset::{HomeLayout, ModelChoice, Preset},
    session::AcpSession,
};
use crate::{
    AgentWorkspace, TurnEvent,
    agent_tokens::{AgentTokenLease, AgentTokenScope, HostToolsAccess},
    gateway::GatewayAccess,
    host_tools::{HostToolAgent, HostToolDefinition},
    jsonrpc::{CallError, CloseReason, RpcConnection, RpcError, RpcFormat, RpcIncoming, RpcPeer},
    pool::PooledProcess,
    program::{self, AgentProgram, STOP_TIMEOUTS},
};
use domain::{
    provider_settings::WorkspaceProviders,
    run::{Receipt, RunError},
};
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use tokio::sync::mpsc;
use workbench::{
    process::{LaunchedProcess, ProcessHandle, ProcessSet, ProcessSpec, ProgramExit},
    project_sandbox::SandboxSpec,
    skills::SkillFolder,
};

/// Some agents take seconds to load, and longer on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Some agents replay a session's history after they have responded to the load request. The replay has ended when
/// nothing arrives for this long.
const REPLAY_QUIET_TIME: Duration = Duration::from_millis(300);
/// The maximum duration of a replay.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a program's stderr is included in an error message.
const STDERR_BYTES: usize = 2048;

pub struct AcpProcess {
    pub peer: RpcPeer,
    pub incoming: mpsc::Receiver<RpcIncoming>,
    /// `None` until a session is opened.
    pub session: Option<AcpSession>,
    /// Its token for the host tools.
    pub agent_token: AgentTokenLease,
    /// Its token for the model gateway, if it is in a sandbox.
    pub access: Option<Arc<GatewayAccess>>,
    /// Whether its environment sets a proxy.
    pub is_proxied: bool,
    /// The settings that it was started with. Other settings need a new process.
    pub launch_settings: AcpLaunchSettings,
    connection: RpcConnection,
    handle: Box<dyn ProcessHandle>,
    /// `None` until the agent is initialized.
    pub capabilities: Option<AcpCapabilities>,
}

/// The settings that a running process cannot change.
#[derive(Clone, PartialEq, Debug)]
pub struct AcpLaunchSettings {
    workspace: PathBuf,
    sandbox: Option<Arc<SandboxSpec>>,
    model: Option<String>,
    system_prompt: Option<String>,
    skills: Vec<SkillFolder>,
    mcp_servers: Vec<domain::mcp::NamedMcpServer>,
    /// The workspace's own keys and addresses.
    provider_settings: WorkspaceProviders,
    /// The program lists them once.
    pub host_tools: Vec<HostToolDefinition>,
    /// The tool policy as rules for the program.
    rules: String,
    pub overrides: WorkspaceOverrides,
}

impl AcpLaunchSettings {
    pub fn new(preset: &Preset, workspace: &AgentWorkspace, overrides: WorkspaceOverrides) -> Self {
        let has_rules = preset.home == HomeLayout::Gemini;
        Self {
            workspace: workspace.folder.clone(),
            sandbox: workspace.sandbox.clone(),
            model: workspace.agent.spec.model.clone(),
            system_prompt: workspace.agent.spec.system_prompt.clone(),
            skills: workspace.skills.clone(),
            mcp_servers: workspace.mcp_servers.clone(),
            provider_settings: workspace
                .provider_settings
                .only(&preset.wires().iter().map(|wire| wire.settings).collect::<Vec<_>>()),
            host_tools: workspace.host_tools.offered(&HostToolAgent::with_program(workspace.clone())),
            rules: if has_rules { gemini::rules(&workspace.agent.spec.tools) } else { String::new() },
            overrides,
        }
    }
}

/// The capabilities that the agent reported.
#[derive(Clone, Copy, Debug)]
pub struct AcpCapabilities {
    /// Supports loading an earlier session.
    pub load: bool,
    /// Supports MCP servers over HTTP.
    pub http: bool,
    /// Supports MCP servers over SSE.
    pub sse: bool,
    /// Takes messages during a prompt, by the method `_session/steering`. It is an extension of the protocol's version 1.
    pub steer: bool,
}

/// Starts agent processes; shared by all turns of a provider.
#[derive(Debug)]
pub struct AcpLauncher {
    pub preset: Preset,
    pub program: AgentProgram,
    pub host_tools_endpoint: HostToolsAccess,
    /// Whether the program has said that it takes messages during a prompt. It is not known before its first start.
    pub can_steer: AtomicBool,
}

impl AcpLauncher {
    /// Starts the program without initializing it.
    pub async fn start(&self, workspace: &AgentWorkspace) -> Result<AcpProcess, RunError> {
        let name = &self.preset.name;
        let Some(path) = self.program.locate() else {
            return Err(RunError::new("program_missing", self.install_advice()));
        };
        let start_error =
            |why: &dyn std::fmt::Display| RunError::new("program_crashed", format!("{name} cannot start: {why}"));
        let (wires, settings) = (self.preset.wires(), &workspace.provider_settings);
        let program = self.program.for_workspace(&wires, settings);
        let access = workspace.sandbox.as_ref().map(|sandbox| {
            let AgentProgram { gateway, environment, .. } = &program;
            gateway.issue(&sandbox.key, &wires, environment, settings, &workspace.mcp_servers).map(Arc::new)
        });
        let access = access.transpose().map_err(|error| start_error(&error))?;
        let (preset, at) = (self.preset.clone(), workspace.clone());
        let given = access.clone();
        let prepared = tokio::task::spawn_blocking(move || match (&at.sandbox, given) {
            (Some(sandbox), Some(access)) => folder::prepare_inside(&preset, &program, &at, sandbox, &access),
            _ => folder::prepare(&preset, &program, &at),
        })
        .await;
        let folder::PreparedHome { environment: env, args: further, overrides: surroundings, folder } =
            prepared.map_err(|panic| start_error(&panic))?.map_err(|error| start_error(&error))?;
        let mut args: Vec<OsString> = self.preset.args.iter().map(OsString::from).chain(further).collect();
        if let (ModelChoice::Flag(flag), Some(model)) = (self.preset.model, &workspace.agent.spec.model) {
            // Joined, so that a model that looks like an option is a model.
            args.push(format!("{flag}={model}").into());
        }
        args.extend(self.program.args.iter().map(OsString::from));
        let is_proxied = program::uses_proxy(&env);
        let command = ProcessSpec { program: path, args, env, folder, sandbox: workspace.sandbox.clone() };
        let tokens = &self.host_tools_endpoint.tokens;
        let token = tokens.issue(workspace, &[AgentTokenScope::HostTools]).map_err(|error| start_error(&error))?;
        let launched = self.program.launcher.launch(command).await.map_err(|error| start_error(&error))?;
        let made_for = AcpLaunchSettings::new(&self.preset, workspace, surroundings);
        let agent = AcpProcess::new(launched, made_for, token);
        Ok(AcpProcess { is_proxied, access, ..agent })
    }

    pub fn install_advice(&self) -> String {
        format!("{} is not installed: {}.", self.program.command, self.preset.install)
    }

    /// Stops an agent whose session could not be opened. Returns the error.
    pub async fn open_failed(&self, agent: AcpProcess, reason: &CallError) -> (RunError, Receipt) {
        match reason {
            // The agent reported the problem; its stderr adds nothing.
            CallError::Refused { .. } => (ending::run_error(&self.preset, reason), agent.stop().await),
            _ => self.crashed(agent, reason).await,
        }
    }

    /// Stops an agent whose connection failed. Returns the error with the exit status and stderr.
    pub async fn crashed(&self, agent: AcpProcess, reason: &CallError) -> (RunError, Receipt) {
        let (ended, stderr, receipt) = agent.stop_with_details().await;
        let mut error = ending::run_error(&self.preset, reason);
        match ended {
            Some(ProgramExit::Code(code)) => error.message.push_str(&format!(" (exit code {code})")),
            Some(ProgramExit::Signal(signal)) => error.message.push_str(&format!(" (killed by signal {signal})")),
            Some(ProgramExit::Unknown) | None => {}
        }
        if !stderr.is_empty() {
            error.message.push_str(&format!("\n{stderr}"));
        }
        (error, receipt)
    }
}

impl AcpProcess {
    pub fn new(launched: LaunchedProcess, launch_settings: AcpLaunchSettings, token: AgentTokenLease) -> Self {
        let LaunchedProcess { stdin, stdout, handle } = launched;
        let (connection, peer, incoming) = RpcConnection::start(stdout, stdin, RpcFormat { with_version_field: true });
        Self {
            peer,
            incoming,
            session: None,
            agent_token: token,
            access: None,
            is_proxied: false,
            launch_settings,
            connection,
            handle,
            capabilities: None,
        }
    }

    /// Whether the connection is still open.
    pub fn is_alive(&self) -> bool {
        self.peer.close_reason().is_none()
    }

    /// Initializes the agent, unless that was already done.
    pub async fn initialize(&mut self) -> Result<(), CallError> {
        if self.capabilities.is_some() {
            return Ok(());
        }
        // Neither files nor terminals are offered: the program accesses the workspace directly, inside its kill domain,
        // and asks permission for its actions.
        let nothing = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let client = json!({"name": "greenroom", "title": "Greenroom", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": 1, "clientCapabilities": nothing, "clientInfo": client});
        let result = self.request("initialize", params, START_TIMEOUT).await?;
        if let Some(version) = result["protocolVersion"].as_u64().filter(|version| *version != 1) {
            return Err(protocol_error(&format!("it uses protocol version {version}; only version 1 is supported")));
        }
        let abilities = &result["agentCapabilities"];
        let can = |ability: &Value| ability.as_bool().unwrap_or(false);
        let load = can(&abilities["loadSession"]);
        let mcp = &abilities["mcpCapabilities"];
        let steer = can(&result["_meta"]["steering"]["supported"]);
        self.capabilities = Some(AcpCapabilities { load, http: can(&mcp["http"]), sse: can(&mcp["sse"]), steer });
        tracing::debug!(agent = %result["agentInfo"], can = ?self.capabilities, "initialized an ACP agent");
        Ok(())
    }

    /// Sends a request, and discards the agent's other messages meanwhile; outside of a prompt, none of them are shown.
    pub async fn request(&mut self, method: &str, params: Value, deadline: Duration) -> Result<Value, CallError> {
        let Self { peer, incoming, .. } = self;
        let answer = peer.request(method, params, deadline);
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return answer,
                Some(message) = incoming.recv() => handle_unsolicited(peer, message),
            }
        }
    }

    /// Discards the replayed history of a loaded session, which the room already has.
    pub async fn drain_replay(&mut self) -> Result<(), CallError> {
        let (peer, incoming) = (&self.peer, &mut self.incoming);
        let all = async {
            while let Ok(Some(message)) = tokio::time::timeout(REPLAY_QUIET_TIME, incoming.recv()).await {
                handle_unsolicited(peer, message);
            }
        };
        tokio::time::timeout(REPLAY_TIMEOUT, all).await.map_err(|_| CallError::Timeout)
    }

    /// Discards messages that arrived between turns.
    pub fn drain_incoming(&mut self) {
        while let Ok(message) = self.incoming.try_recv() {
            handle_unsolicited(&self.peer, message);
        }
    }

    /// Kills the processes that its tools left running, and returns them.
    pub fn end_strays(&self) -> ProcessSet {
        self.handle.end_orphans()
    }

    /// The program's process id.
    pub fn process_id(&self) -> i32 {
        self.handle.process_id()
    }

    /// Stops the program and all its descendants.
    pub async fn stop(self) -> Receipt {
        let Self { connection, handle, peer, agent_token: token, access, .. } = self;
        drop((peer, token, access));
        connection.close().await;
        handle.stop(STOP_TIMEOUTS).await
    }

    /// Stops the program. Returns how it exited, the end of its stderr, and the receipt.
    async fn stop_with_details(mut self) -> (Option<ProgramExit>, String, Receipt) {
        let ended = tokio::time::timeout(Duration::from_secs(1), self.handle.wait()).await.ok();
        let tail = self.handle.stderr().text();
        let from = tail.len().saturating_sub(STDERR_BYTES);
        let from = (from..tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(tail.len());
        (ended, tail[from..].to_owned(), self.stop().await)
    }
}

impl PooledProcess for AcpProcess {
    async fn shut_down(self) {
        let receipt = self.stop().await;
        tracing::debug!(?receipt, "stopped an idle ACP agent");
    }
}

/// Handles a message outside of a prompt: requests are refused, everything else is dropped.
fn handle_unsolicited(peer: &RpcPeer, message: RpcIncoming) {
    if let RpcIncoming::Request { id, method, .. } = message {
        let answer = refusal(&method);
        if let Err(error) = peer.respond(id, answer) {
            tracing::debug!(%error, method, "could not respond to a request");
        }
    }
}

/// The response to a request that is denied or unknown.
pub fn refusal(method: &str) -> Result<Value, RpcError> {
    match method {
        "session/request_permission" => Ok(json!({"outcome": {"outcome": "cancelled"}})),
        _ => Err(RpcError::unknown_method(method)),
    }
}

/// The error for a program that violates the protocol.
pub fn protocol_error(what: &str) -> CallError {
    CallError::Closed(CloseReason::BadOutput(what.to_owned()))
}

pub fn status(status: &str, message: String) -> TurnEvent {
    TurnEvent::Status { status: status.to_owned(), message }
}

/// The first line of what the program prints for `--version`.
pub async fn version(program: &AgentProgram, path: &Path) -> Option<String> {
    let env = program.environment(&[], &[("NO_COLOR", std::ffi::OsStr::new("1"))]);
    let folder = PathBuf::from("/");
    let (program_path, args) = (path.to_owned(), vec!["--version".into()]);
    let command = ProcessSpec { program: program_path, args, env, folder, sandbox: None };
    let mut child = program.launcher.launch(command).await.ok()?;
    drop(child.stdin);
    let line = child.stdout.next().await.ok()??;
    let version: String = line.trim().chars().take(100).collect();
    (!version.is_empty()).then_some(version)
}
