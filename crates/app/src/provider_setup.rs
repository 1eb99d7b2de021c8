//! Creates the providers and the MCP server manager from the configuration.

use crate::config::{
    AcpSection as AcpConfig, AppConfig, DirectSection as DirectConfig, Environment, ModelEndpoint, ProgramSection,
    mcp_file,
};
use anyhow::Context as _;
use domain::{mcp::McpFileServers, prices::PriceSource};
use engine::{McpVariables, ProjectServices};
use providers::{
    AgentSandboxes, Provider, ProviderRegistry,
    acp::{self, AcpProvider, Preset},
    agent_tokens::{AgentTokens, HostToolsAccess},
    claude_code::{self, ClaudeCodeProvider},
    codex::{self, CodexProvider},
    direct::{
        self, ApiAccess, ApiHeader, ApiKey, DirectProvider, LocalServer, ModelApiKind, ModelEndpoints, ModelHttp,
        tools::{ManagedToolbox, McpToolbox},
    },
    gateway::ModelGateway,
    host_tools::{self, HostTools, tools::project::ProjectToolbox},
    program::AgentProgram,
    scripted::ScriptedProvider,
};
use std::{
    collections::BTreeMap,
    ffi::OsString,
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
    sandboxes: AgentSandboxes,
) -> ProviderRegistry {
    let gateway = ModelGateway::new(egress_policy(config));
    let program = |starting: &ProgramSection| AgentProgram {
        command: starting.command.clone(),
        args: starting.args.clone(),
        allowed_variables: starting.pass_env.clone(),
        share_login: starting.share_login,
        environment: config.environment.variables().clone(),
        launcher: Arc::clone(launcher),
        gateway: gateway.clone(),
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
    let toolbox: Arc<dyn McpToolbox> = Arc::new(ManagedToolbox(mcp.clone()));
    let http = ModelHttp::new(config.direct.deadlines.connect, egress_policy(config));
    all.extend(direct_providers(config, &toolbox, &http));
    let local = config.direct.local_servers.iter().map(|(name, base_url)| LocalServer {
        name: name.clone(),
        label: local_label(name).to_owned(),
        base_url: base_url.clone(),
    });
    let endpoints = ModelEndpoints {
        local: local.collect(),
        toolbox,
        http,
        deadlines: config.direct.deadlines.clone(),
        retries: config.direct.retries,
    };
    ProviderRegistry::new(all)
        .with_endpoints(endpoints)
        .with_agent_tokens(endpoint.tokens)
        .with_login_grants(config.agents.lend_login_to.clone())
        .with_sandboxes(sandboxes, gateway)
}

/// The tools that Greenroom gives to agents.
pub fn host_tools(projects: &ProjectServices) -> anyhow::Result<HostTools> {
    let (storage, commands) = (Arc::clone(&projects.storage), projects.commands.clone());
    let sandboxes = Arc::clone(&projects.sandboxes);
    let of_projects = host_tools::tools::project::all(&ProjectToolbox { storage, commands, sandboxes });
    HostTools::new(host_tools::tools::all().into_iter().chain(of_projects)).context("the host tools of this server")
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
fn direct_providers(config: &AppConfig, toolbox: &Arc<dyn McpToolbox>, http: &ModelHttp) -> Vec<Arc<dyn Provider>> {
    let DirectConfig { anthropic, openai, google, endpoints, deadlines, retries, .. } = &config.direct;
    let make = |name: &str, api: ModelApiKind, endpoint: &ModelEndpoint, is_vendor: bool, tokens: (u32, u32)| {
        let vendor = is_vendor.then(|| vendor_of(api));
        let config = direct::DirectProviderConfig {
            name: name.to_owned(),
            label: vendor.as_ref().map_or(name, |vendor| vendor.label).to_owned(),
            // Both APIs of a vendor have one key.
            settings: vendor.as_ref().map_or(name, |vendor| vendor.name).to_owned(),
            is_vendor,
            api,
            access: api_access(&config.environment, endpoint, vendor.as_ref()),
            prices: price_source(&config.direct, name, endpoint, vendor.as_ref()),
            deadlines: deadlines.clone(),
            retries: *retries,
            default_model: None,
            context_window: tokens.0,
            answer_tokens: tokens.1,
        };
        Arc::new(DirectProvider::new(config, Arc::clone(toolbox), http.clone())) as Arc<dyn Provider>
    };
    let mut all = vec![
        make("anthropic", ModelApiKind::Messages, anthropic, true, (200_000, 16_000)),
        make("openai", ModelApiKind::Chat, openai, true, (128_000, 16_000)),
        make("openai_responses", ModelApiKind::Responses, openai, true, (128_000, 16_000)),
        make("google", ModelApiKind::Gemini, google, true, (200_000, 16_000)),
    ];
    // Most of these models are small; an agent can set larger values.
    all.extend(
        endpoints.iter().map(|(name, endpoint)| make(name, ModelApiKind::Chat, endpoint, false, (32_768, 4_096))),
    );
    all
}

/// What people call a model server that runs on their machine.
fn local_label(name: &str) -> &str {
    match name {
        "ollama" => "Ollama",
        "lm_studio" => "LM Studio",
        name => name,
    }
}

/// What is special about a vendor's own API.
struct VendorApiFacts {
    /// The name in the price table, and in the provider settings.
    name: &'static str,
    label: &'static str,
    host: &'static str,
    /// Variables of its SDK that become headers. A header without a name is a list of lines `Name: value`.
    headers: &'static [(&'static str, Option<&'static str>)],
}

fn vendor_of(api: ModelApiKind) -> VendorApiFacts {
    match api {
        ModelApiKind::Messages => VendorApiFacts {
            name: "anthropic",
            label: "Anthropic API",
            host: "api.anthropic.com",
            headers: &[("ANTHROPIC_AUTH_TOKEN", Some("authorization")), ("ANTHROPIC_CUSTOM_HEADERS", None)],
        },
        ModelApiKind::Chat | ModelApiKind::Responses => VendorApiFacts {
            name: "openai",
            label: if api == ModelApiKind::Responses { "OpenAI API (Responses)" } else { "OpenAI API (Chat)" },
            host: direct::OPENAI_HOST,
            headers: &[("OPENAI_ORG_ID", Some("openai-organization")), ("OPENAI_PROJECT_ID", Some("openai-project"))],
        },
        ModelApiKind::Gemini => {
            let host = "generativelanguage.googleapis.com";
            VendorApiFacts { name: "google", label: "Gemini API", host, headers: &[] }
        }
    }
}

fn api_access(environment: &Environment, endpoint: &ModelEndpoint, vendor: Option<&VendorApiFacts>) -> ApiAccess {
    let variable = |name: &str| environment.get(name)?.to_str().map(str::trim).filter(|text| !text.is_empty());
    let mut headers = Vec::new();
    for (source, name) in vendor.map_or(&[][..], |vendor| vendor.headers) {
        let Some(text) = variable(source) else { continue };
        match name {
            Some("authorization") => {
                headers.extend(ApiHeader::new("authorization", &format!("Bearer {text}"), *source));
            }
            Some(name) => headers.extend(ApiHeader::new(name, text, *source)),
            None => {
                let lines = text.lines().filter_map(|line| line.split_once(':'));
                headers.extend(lines.filter_map(|(name, value)| ApiHeader::new(name, value, *source)));
            }
        }
    }
    ApiAccess {
        base_url: endpoint.base_url.clone(),
        base_url_variable: endpoint.base_url_variable.clone(),
        key: endpoint.key_variables.iter().find_map(|name| ApiKey::new(variable(name)?, name.as_str())),
        key_variables: endpoint.key_variables.clone(),
        headers,
        is_guarded: false,
    }
}

/// A vendor's prices apply at the vendor's own address. What another server charges, only the operator can know.
fn price_source(
    config: &DirectConfig,
    name: &str,
    endpoint: &ModelEndpoint,
    vendor: Option<&VendorApiFacts>,
) -> PriceSource {
    let is_in = |list: &[String]| list.iter().any(|listed| listed == name);
    match vendor {
        _ if is_in(&config.free) => PriceSource::Free,
        Some(vendor) if direct::is_at_host(&endpoint.base_url, vendor.host) => PriceSource::Vendor(vendor.name),
        _ if !is_in(&config.vendor_prices) => PriceSource::Unknown,
        Some(vendor) => PriceSource::Vendor(vendor.name),
        None => PriceSource::Table,
    }
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
        egress: Arc::new(egress_policy(config)),
        ..McpClientSettings::new(folder)
    };
    Ok(McpManager::new(launcher, settings))
}

/// Which addresses besides public ones others than the operator may reach.
pub fn egress_policy(config: &AppConfig) -> EgressPolicy {
    EgressPolicy { allow: config.mcp.egress_allow.clone() }
}

/// The environment variables that MCP server settings may use.
pub fn mcp_variables(config: &AppConfig) -> McpVariables {
    let value = |name: &str| config.environment.variables().get(&OsString::from(name))?.to_str().map(str::to_owned);
    let others = config.environment.variables().iter();
    let others = others.filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())));
    McpVariables::new(config.mcp.variables.iter().map(|name| (name.clone(), value(name))))
        .with_home(value("HOME"))
        .with_environment(others)
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
