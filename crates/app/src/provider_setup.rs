//! Creates the providers and the MCP server manager from the configuration.

use crate::config::{
    AcpSection as AcpConfig, AppConfig, DirectSection as DirectConfig, ModelEndpoint, ProgramSection, mcp_file,
};
use anyhow::Context as _;
use domain::mcp::McpFileServers;
use engine::McpVariables;
use providers::{
    Provider, ProviderRegistry,
    acp::{self, AcpProvider, Preset},
    agent_tokens::{AgentTokens, HostToolsAccess},
    claude_code::{self, ClaudeCodeProvider},
    codex::{self, CodexProvider},
    direct::{
        self, ApiKey, DirectProvider, ModelApiKind,
        tools::{ManagedToolbox, McpToolbox},
    },
    host_tools::{self, HostTools},
    program::AgentProgram,
    scripted::ScriptedProvider,
};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::DirBuilder,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::DirBuilderExt as _,
    sync::Arc,
};
use workbench::{
    egress::EgressPolicy,
    mcp::{McpClientSettings, McpManager},
    process::Launcher,
};

/// `address` is where the server listens.
pub fn registry(
    config: &AppConfig,
    launcher: &Arc<dyn Launcher>,
    mcp: &McpManager,
    address: SocketAddr,
) -> ProviderRegistry {
    let program = |starting: &ProgramSection| AgentProgram {
        command: starting.command.clone(),
        args: starting.args.clone(),
        allowed_variables: starting.pass_env.clone(),
        share_login: starting.share_login,
        environment: config.environment.variables().clone(),
        launcher: Arc::clone(launcher),
    };
    let claude = ClaudeCodeProvider::new(claude_code::ClaudeCodeConfig {
        program: program(&config.claude_code.starting),
        pool: config.claude_code.processes,
        idle: config.claude_code.idle,
        spares: config.claude_code.spares,
    });
    let codex = CodexProvider::new(codex::CodexConfig {
        program: program(&config.codex.starting),
        instances: config.codex.instances,
        idle: config.codex.idle,
    });
    let endpoint = HostToolsAccess {
        address: own_address(address),
        program: config.own_program.clone(),
        tokens: AgentTokens::default(),
    };
    let mut all: Vec<Arc<dyn Provider>> = vec![Arc::new(ScriptedProvider), Arc::new(claude), Arc::new(codex)];
    all.extend(acp_presets(&config.acp).into_iter().map(|preset| {
        let starting = ProgramSection {
            command: preset.command.clone(),
            args: Vec::new(),
            pass_env: config.acp.pass_env.clone(),
            share_login: config.acp.share_login,
        };
        let (pool, idle) = (config.acp.processes, config.acp.idle);
        let acp =
            acp::AcpConfig { preset, program: program(&starting), pool, idle, host_tools_endpoint: endpoint.clone() };
        Arc::new(AcpProvider::new(acp)) as Arc<dyn Provider>
    }));
    all.extend(direct_providers(config, &(Arc::new(ManagedToolbox(mcp.clone())) as Arc<dyn McpToolbox>)));
    ProviderRegistry::new(all).with_agent_tokens(endpoint.tokens)
}

/// The tools that Greenroom gives to agents.
pub fn host_tools() -> anyhow::Result<HostTools> {
    HostTools::new(host_tools::tools::all()).context("the host tools of this server")
}

/// The address at which local programs reach the server. An unspecified address is replaced by loopback.
fn own_address(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

/// The providers that call a model API directly.
fn direct_providers(config: &AppConfig, toolbox: &Arc<dyn McpToolbox>) -> Vec<Arc<dyn Provider>> {
    let DirectConfig { anthropic, openai, endpoints, deadlines, retries } = &config.direct;
    let variable = |name: &String| config.environment.variables().get(OsStr::new(name))?.to_str();
    let make = |name: &str, api: ModelApiKind, endpoint: &ModelEndpoint, context_window: u32, answer_tokens: u32| {
        let config = direct::DirectProviderConfig {
            name: name.to_owned(),
            api,
            base_url: endpoint.base_url.clone(),
            key: endpoint.key_variable.as_ref().and_then(variable).and_then(ApiKey::new),
            key_variable: endpoint.key_variable.clone(),
            deadlines: deadlines.clone(),
            retries: *retries,
            default_model: None,
            context_window,
            answer_tokens,
        };
        Arc::new(DirectProvider::new(config, Arc::clone(toolbox))) as Arc<dyn Provider>
    };
    let mut all = vec![
        make("anthropic", ModelApiKind::Messages, anthropic, 200_000, 16_000),
        make("openai", ModelApiKind::Chat, openai, 128_000, 16_000),
    ];
    // Most of these models are small; an agent can set larger values.
    all.extend(endpoints.iter().map(|(name, endpoint)| make(name, ModelApiKind::Chat, endpoint, 32_768, 4_096)));
    all
}

/// The built-in ACP presets, with command lines from the configuration, and the operator's own agents.
fn acp_presets(config: &AcpConfig) -> Vec<Preset> {
    let mut presets: BTreeMap<String, Preset> =
        Preset::all().into_iter().map(|preset| (preset.name.clone(), preset)).collect();
    for agent in &config.agents {
        let preset = presets
            .remove(&agent.name)
            .map(|known| Preset { command: agent.command.clone(), args: agent.args.clone(), ..known })
            .unwrap_or_else(|| Preset::custom(&agent.name, &agent.command, &agent.args));
        presets.insert(agent.name.clone(), preset);
    }
    presets.into_values().collect()
}

/// The variables that every MCP server gets: search path, home, locale. None of them is secret.
const COMMON: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL"];

/// Creates the manager that runs MCP servers for this server and its agents.
pub fn mcp_manager(config: &AppConfig, launcher: impl Launcher + 'static) -> anyhow::Result<McpManager> {
    let folder = config.store.data_dir.join("mcp");
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.with_context(|| format!("cannot create the folder for MCP servers, {}", folder.display()))?;
    let variables = config.environment.variables();
    let common = COMMON.iter().filter_map(|name| {
        let name = OsString::from(name);
        variables.get(&name).cloned().map(|value| (name, value))
    });
    let settings = McpClientSettings {
        environment: common.collect(),
        idle_timeout: config.mcp.idle,
        egress: Arc::new(EgressPolicy { allow: config.mcp.egress_allow.clone() }),
        ..McpClientSettings::new(folder)
    };
    Ok(McpManager::new(launcher, settings))
}

/// The environment variables that MCP server settings may use.
pub fn mcp_variables(config: &AppConfig) -> McpVariables {
    let value = |name: &String| config.environment.variables().get(&OsString::from(name))?.to_str().map(str::to_owned);
    McpVariables::new(config.mcp.variables.iter().map(|name| (name.clone(), value(name))))
}

/// The MCP servers of the operator's file, by name.
pub fn mcp_servers(config: &AppConfig) -> anyhow::Result<McpFileServers> {
    let default = config.store.data_dir.join("mcp.json");
    let file = match &config.agents.mcp_servers {
        Some(named) => named,
        None if default.exists() => &default,
        None => return Ok(McpFileServers::new()),
    };
    mcp_file::read(file).with_context(|| format!("the MCP servers in {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::own_address;

    #[test]
    fn an_unspecified_listen_address_is_reached_at_loopback() {
        for (listening, reached) in [
            ("127.0.0.1:7878", "127.0.0.1:7878"),
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("[::ffff:0.0.0.0]:80", "127.0.0.1:80"),
            ("192.168.1.4:7878", "192.168.1.4:7878"),
            ("[2001:db8::1]:7878", "[2001:db8::1]:7878"),
        ] {
            assert_eq!(own_address(listening.parse().unwrap()).to_string(), reached, "{listening}");
        }
    }
}
