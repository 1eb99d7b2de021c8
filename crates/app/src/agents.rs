//! Who can answer on this server: every provider, made from the configuration.

use crate::config::{Acp as AcpConfig, Config, Direct as DirectConfig, Endpoint, Starting, mcp_file};
use anyhow::Context as _;
use domain::mcp::Servers;
use engine::Variables;
use providers::{
    Provider, Registry,
    acp::{self, Acp, Preset},
    claude_code::{self, ClaudeCode},
    codex::{self, Codex},
    direct::{
        self, Api, Direct, Key,
        tools::{Managed, Toolbox},
    },
    host_tools::pass::{Door, Passes},
    program::Program,
    scripted::Scripted,
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
    mcp::{Manager, Settings},
    process::Supervisor,
};

/// `address` is where the server listens.
pub fn registry(config: &Config, supervisor: &Supervisor, mcp: &Manager, address: SocketAddr) -> Registry {
    let program = |starting: &Starting| Program {
        command: starting.command.clone(),
        args: starting.args.clone(),
        pass: starting.pass_env.clone(),
        share_login: starting.share_login,
        environment: config.environment.variables().clone(),
        supervisor: supervisor.clone(),
    };
    let claude = ClaudeCode::new(claude_code::Config {
        program: program(&config.claude_code.starting),
        pool: config.claude_code.processes,
        idle: config.claude_code.idle,
        spares: config.claude_code.spares,
    });
    let codex = Codex::new(codex::Config {
        program: program(&config.codex.starting),
        instances: config.codex.instances,
        idle: config.codex.idle,
    });
    let door = Door { address: own_address(address), program: config.own_program.clone(), passes: Passes::default() };
    let mut all: Vec<Arc<dyn Provider>> = vec![Arc::new(Scripted), Arc::new(claude), Arc::new(codex)];
    all.extend(presets(&config.acp).into_iter().map(|preset| {
        let starting = Starting {
            command: preset.command.clone(),
            args: Vec::new(),
            pass_env: config.acp.pass_env.clone(),
            share_login: config.acp.share_login,
        };
        let (pool, idle) = (config.acp.processes, config.acp.idle);
        let acp = acp::Config { preset, program: program(&starting), pool, idle, door: door.clone() };
        Arc::new(Acp::new(acp)) as Arc<dyn Provider>
    }));
    all.extend(models(config, &(Arc::new(Managed(mcp.clone())) as Arc<dyn Toolbox>)));
    Registry::new(all).with_passes(door.passes)
}

/// Where this machine reaches a server that listens there. "Everywhere" is no address to go to.
fn own_address(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

/// Those that ask a model's API themselves.
fn models(config: &Config, toolbox: &Arc<dyn Toolbox>) -> Vec<Arc<dyn Provider>> {
    let DirectConfig { anthropic, openai, endpoints, deadlines, retries } = &config.direct;
    let variable = |name: &String| config.environment.variables().get(OsStr::new(name))?.to_str();
    let make = |name: &str, api: Api, endpoint: &Endpoint, context_window: u32, answer_tokens: u32| {
        let config = direct::Config {
            name: name.to_owned(),
            api,
            base_url: endpoint.base_url.clone(),
            key: endpoint.key_variable.as_ref().and_then(variable).and_then(Key::new),
            key_variable: endpoint.key_variable.clone(),
            deadlines: deadlines.clone(),
            retries: *retries,
            default_model: None,
            context_window,
            answer_tokens,
        };
        Arc::new(Direct::new(config, Arc::clone(toolbox))) as Arc<dyn Provider>
    };
    let mut all = vec![
        make("anthropic", Api::Messages, anthropic, 200_000, 16_000),
        make("openai", Api::Chat, openai, 128_000, 16_000),
    ];
    // Most of them are small; an agent can say more.
    all.extend(endpoints.iter().map(|(name, endpoint)| make(name, Api::Chat, endpoint, 32_768, 4_096)));
    all
}

/// Those that are known, with the operator's command lines where there are such, and the operator's own.
fn presets(config: &AcpConfig) -> Vec<Preset> {
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

/// What a program needs to find others and to know where and in which language it runs. No secret is among it.
const COMMON: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL"];

/// What reaches MCP servers for this server and its agents.
pub fn mcp_manager(config: &Config, supervisor: &Supervisor) -> anyhow::Result<Manager> {
    let folder = config.store.data_dir.join("mcp");
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.with_context(|| format!("cannot make the folder of MCP servers, {}", folder.display()))?;
    let variables = config.environment.variables();
    let common = COMMON.iter().filter_map(|name| {
        let name = OsString::from(name);
        variables.get(&name).cloned().map(|value| (name, value))
    });
    let settings = Settings { environment: common.collect(), idle: config.mcp.idle, ..Settings::new(folder) };
    Ok(Manager::new(supervisor.clone(), settings))
}

/// What of the environment the settings of MCP servers may name.
pub fn mcp_variables(config: &Config) -> Variables {
    let value = |name: &String| config.environment.variables().get(&OsString::from(name))?.to_str().map(str::to_owned);
    Variables::new(config.mcp.variables.iter().map(|name| (name.clone(), value(name))))
}

/// The MCP servers that agents can be given by name.
pub fn mcp_servers(config: &Config) -> anyhow::Result<Servers> {
    let usual = config.store.data_dir.join("mcp.json");
    let file = match &config.agents.mcp_servers {
        Some(named) => named,
        None if usual.exists() => &usual,
        None => return Ok(Servers::new()),
    };
    mcp_file::read(file).with_context(|| format!("the MCP servers in {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::own_address;

    #[test]
    fn a_server_is_reached_where_it_listens_and_everywhere_is_here() {
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
