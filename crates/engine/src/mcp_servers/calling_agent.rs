//! Tells a Greenroom server that an agent uses as an MCP server which agent calls it, so that the runs that the agent starts
//! there are its children. Other servers are told nothing.

use domain::{
    calling_agent::CallingAgent,
    mcp::{McpTransport, NamedMcpServer},
};
use std::path::Path;

/// How the tokens of Greenroom begin.
const TOKEN: &str = "grm_";

pub(crate) fn introduce_caller(servers: &mut [NamedMcpServer], caller: CallingAgent) {
    for server in servers {
        match &mut server.config.transport {
            McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } => {
                let is_ours = |(name, value): (&String, &String)| {
                    let token = value.split_once(' ').map_or(value.as_str(), |(_, token)| token.trim_start());
                    name.eq_ignore_ascii_case("authorization") && token.starts_with(TOKEN)
                };
                if headers.iter().any(is_ours) {
                    headers.retain(|name, _| !name.eq_ignore_ascii_case(CallingAgent::HEADER));
                    headers.insert(CallingAgent::HEADER.to_owned(), caller.to_string());
                }
            }
            // `greenroom mcp`, which forwards to such a server.
            McpTransport::Stdio { command, args, env } => {
                let is_ours = Path::new(command).file_name().is_some_and(|name| name == "greenroom");
                if is_ours && args.first().is_some_and(|first| first == "mcp") {
                    env.insert(CallingAgent::VARIABLE.to_owned(), caller.to_string());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::introduce_caller;
    use domain::{
        calling_agent::CallingAgent,
        ids::{AgentId, RoomId},
        mcp::{McpServerConfig, McpTransport, NamedMcpServer},
    };
    use std::collections::BTreeMap;

    fn server(transport: McpTransport) -> NamedMcpServer {
        NamedMcpServer { name: "server".into(), config: McpServerConfig::new(transport), owner: None }
    }

    fn http(header: &str, value: &str) -> NamedMcpServer {
        let headers = BTreeMap::from([(header.to_owned(), value.to_owned())]);
        server(McpTransport::Http { url: "https://example.org/mcp".into(), headers })
    }

    fn stdio(command: &str, args: &[&str]) -> NamedMcpServer {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        server(McpTransport::Stdio { command: command.into(), args, env: BTreeMap::new() })
    }

    #[test]
    fn only_greenroom_servers_are_told_who_calls() {
        let caller = CallingAgent { room_id: RoomId::generate(), agent_id: AgentId::generate() };
        for (server, is_told) in [
            (http("Authorization", "Bearer grm_secret"), true),
            (http("authorization", "bearer  grm_secret"), true),
            (http("Authorization", "Bearer ghp_secret"), false),
            (http("X-Key", "Bearer grm_secret"), false),
            (stdio("greenroom", &["mcp"]), true),
            (stdio("/usr/local/bin/greenroom", &["mcp", "--server", "http://h"]), true),
            (stdio("greenroom", &["serve"]), false),
            (stdio("npx", &["mcp"]), false),
        ] {
            let mut servers = [server];
            introduce_caller(&mut servers, caller);
            let told = match &servers[0].config.transport {
                McpTransport::Stdio { env, .. } => env.get(CallingAgent::VARIABLE),
                McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } => {
                    headers.get(CallingAgent::HEADER)
                }
            };
            assert_eq!(told.is_some(), is_told, "{:?}", servers[0].config.transport.kind());
            assert!(told.is_none_or(|told| *told == caller.to_string()));
        }
    }
}
