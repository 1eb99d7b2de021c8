//! What a process inside of a sandbox gets to reach the gateway.

use super::{GatewayLease, GatewayTurns, ModelGateway, ModelWire, wire::guest_url};
use crate::agent_tokens::{AgentTokenError, secret::AgentTokenSecret};
use domain::{
    mcp::{McpTransport, NamedMcpServer},
    provider_settings::WorkspaceProviders,
};
use reqwest::header::{HeaderName, HeaderValue};
use std::{collections::BTreeMap, ffi::OsString, fmt};
use workbench::project_sandbox::SandboxKey;

/// Stands for the token in settings that are made before there is one.
pub const TOKEN_PLACE: &str = "GREENROOM-GATEWAY-TOKEN";

/// One destination of a token.
#[derive(Clone, PartialEq, Eq)]
pub struct GatewayRoute {
    /// The part of the path after `/gateway/`.
    pub name: String,
    /// Without a slash at the end.
    pub base_url: String,
    /// Added to every request: the real key.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The answer if there is no key.
    pub missing_key: Option<String>,
    /// Whether only public addresses may be reached.
    pub is_guarded: bool,
    /// Whether it leads to a model API, whose calls belong to a run and cost something.
    pub is_model_api: bool,
}

impl fmt::Debug for GatewayRoute {
    /// Omits the headers: they hold the real key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayRoute").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A token for one process. Dropping it revokes the token.
pub struct GatewayAccess {
    token: AgentTokenSecret,
    variables: Vec<(OsString, OsString)>,
    turns: GatewayTurns,
    _lease: GatewayLease,
}

impl fmt::Debug for GatewayAccess {
    /// Omits the variables: they hold the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayAccess").field("token", &self.token).finish_non_exhaustive()
    }
}

impl ModelGateway {
    /// Issues a token for a process in this sandbox: for these APIs, with the keys of this environment, and for these MCP
    /// servers. The environment already has the workspace's own keys and addresses, which `settings` names.
    pub fn issue(
        &self,
        sandbox: &SandboxKey,
        wires: &[ModelWire],
        environment: &BTreeMap<OsString, OsString>,
        settings: &WorkspaceProviders,
        servers: &[NamedMcpServer],
    ) -> Result<GatewayAccess, AgentTokenError> {
        let is_guarded = |wire: &ModelWire| {
            !settings.is_operators && settings.get(wire.settings).is_some_and(|own| own.base_url.is_some())
        };
        let route = |wire: &ModelWire| GatewayRoute { is_guarded: is_guarded(wire), ..wire.route(environment) };
        let mut routes: Vec<GatewayRoute> = wires.iter().map(route).collect();
        routes.extend(servers.iter().filter_map(server_route));
        let token = AgentTokenSecret::generate()?;
        let variables = wires.iter().flat_map(|wire| wire.variables(environment, token.reveal())).collect();
        let turns = GatewayTurns::default();
        let lease = self.add(token.clone(), sandbox.clone(), routes, turns.clone());
        Ok(GatewayAccess { token, variables, turns, _lease: lease })
    }
}

impl GatewayAccess {
    /// The token; only for the process that it belongs to.
    pub fn reveal(&self) -> &str {
        self.token.reveal()
    }

    /// Binds the token to the runs of the process.
    pub fn turns(&self) -> &GatewayTurns {
        &self.turns
    }

    /// The variables by which the program finds its APIs at the gateway.
    pub fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> + '_ {
        self.variables.iter().cloned()
    }
}

/// The route to a remote MCP server. Its headers hold secrets, so they are added outside.
fn server_route(server: &NamedMcpServer) -> Option<GatewayRoute> {
    let McpTransport::Http { url, headers } = &server.config.transport else { return None };
    let headers = headers.iter().filter_map(|(name, value)| {
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    });
    Some(GatewayRoute {
        name: route_name(&server.name),
        base_url: url.trim_end_matches('/').to_owned(),
        headers: headers.collect(),
        missing_key: None,
        is_guarded: !server.is_from_operator(),
        is_model_api: false,
    })
}

/// Part of a path, so other characters than these are spelled out.
fn route_name(server: &str) -> String {
    let mut name = String::from("mcp-");
    for c in server.chars() {
        match c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
            true => name.push(c),
            false => name.push_str(&format!(".{:x}", u32::from(c))),
        }
    }
    name
}

/// A remote MCP server as programs inside of a sandbox see it: at the gateway, where `token` is their credential. A server
/// over SSE cannot be passed on, because it names its own address; `None`.
pub fn server_inside(server: &NamedMcpServer, token: &str) -> Option<NamedMcpServer> {
    let mut seen = server.clone();
    seen.config.transport = match &server.config.transport {
        stdio @ McpTransport::Stdio { .. } => stdio.clone(),
        McpTransport::Http { .. } => McpTransport::Http {
            url: guest_url(&route_name(&server.name)),
            headers: BTreeMap::from([("Authorization".to_owned(), format!("Bearer {token}"))]),
        },
        McpTransport::Sse { .. } => return None,
    };
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::{route_name, server_inside};
    use crate::gateway::{ModelGateway, ModelWire};
    use domain::{
        mcp::{McpTransport, NamedMcpServer},
        provider_settings::{ProviderSettings, WorkspaceProviders},
    };
    use std::collections::BTreeMap;
    use workbench::project_sandbox::SandboxKey;

    #[test]
    fn invariant_17_secrets_stay_a_token_is_valid_in_its_sandbox_as_long_as_its_process() {
        let (gateway, here, there) = (ModelGateway::default(), SandboxKey::new("room", 1), SandboxKey::new("room", 2));
        let environment = BTreeMap::from([("ANTHROPIC_API_KEY".into(), "sk-real".into())]);
        let access =
            gateway.issue(&here, &[ModelWire::ANTHROPIC], &environment, &WorkspaceProviders::default(), &[]).unwrap();
        let token = access.reveal().to_owned();
        assert!(!token.contains("sk-real"));
        assert!(gateway.find(token.as_bytes(), here.as_str()).is_some());
        assert!(gateway.find(token.as_bytes(), there.as_str()).is_none(), "another sandbox");
        assert!(gateway.find(b"sk-real", here.as_str()).is_none());
        assert!(!format!("{access:?} {gateway:?}").contains(&token));
        drop(access);
        assert!(gateway.find(token.as_bytes(), here.as_str()).is_none());
    }

    #[test]
    fn invariant_17_secrets_stay_a_workspaces_key_replaces_the_servers() {
        let wire = ModelWire::ANTHROPIC;
        let server = BTreeMap::from([
            ("ANTHROPIC_API_KEY".into(), "sk-real".into()),
            ("ANTHROPIC_AUTH_TOKEN".into(), "token".into()),
            ("ANTHROPIC_BASE_URL".into(), "https://server.example".into()),
        ]);
        let own = |key: Option<&str>, base_url: Option<&str>| {
            let settings = ProviderSettings {
                key: key.map(str::to_owned),
                base_url: base_url.map(str::to_owned),
                ..ProviderSettings::default()
            };
            let mut environment = server.clone();
            wire.replace(&mut environment, &settings);
            wire.route(&environment)
        };
        let with_key = own(Some("sk-own"), None);
        assert_eq!((with_key.base_url.as_str(), with_key.headers.len()), ("https://server.example", 1));
        assert_eq!(with_key.headers[0].1, "sk-own");
        let elsewhere = own(None, Some("https://own.example"));
        assert_eq!(elsewhere.base_url, "https://own.example");
        assert!(elsewhere.headers.is_empty() && elsewhere.missing_key.is_some(), "no key of the server goes there");
        // Only the operator may lead the gateway to an address of the server's network.
        for (is_operators, is_guarded) in [(true, false), (false, true)] {
            let settings =
                ProviderSettings { base_url: Some("http://127.0.0.1:1".into()), ..ProviderSettings::default() };
            let settings = [("anthropic".to_owned(), settings)].into();
            let settings = WorkspaceProviders { is_operators, settings, ..WorkspaceProviders::default() };
            let (gateway, sandbox) = (ModelGateway::default(), SandboxKey::new("room", 1));
            let access = gateway.issue(&sandbox, &[ModelWire::ANTHROPIC], &server, &settings, &[]).unwrap();
            let grant = gateway.find(access.reveal().as_bytes(), sandbox.as_str()).unwrap();
            assert_eq!(grant.routes[0].is_guarded, is_guarded);
        }
    }

    #[test]
    fn the_secrets_of_mcp_servers_are_added_outside() {
        let headers = BTreeMap::from([("X-Key".to_owned(), "secret".to_owned())]);
        let transport = McpTransport::Http { url: "https://example.org/mcp".into(), headers };
        let server = NamedMcpServer::new("my files", transport);
        let inside = server_inside(&server, "grp_1").unwrap();
        let McpTransport::Http { url, headers } = inside.config.transport else { panic!() };
        assert_eq!(url, "http://127.0.0.1:8080/gateway/mcp-my.20files");
        assert_eq!(headers["Authorization"], "Bearer grp_1");
        assert_eq!(headers.len(), 1);
        assert_ne!(route_name("a.20b"), route_name("a b"));
        let sse = McpTransport::Sse { url: "https://example.org/sse".into(), headers: BTreeMap::new() };
        assert!(server_inside(&NamedMcpServer::new("old", sse), "grp_1").is_none());
    }
}
