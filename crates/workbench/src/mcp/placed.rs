//! An MCP server and where its program runs.

use super::McpClientSettings;
use crate::{
    process::ProcessSpec,
    project_sandbox::{SandboxKey, SandboxSpec, proxy_variables},
};
use domain::mcp::{McpServerConfig, McpTransport, NamedMcpServer};
use sandbox::{CommandSpec, GUEST_WORKSPACE};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Runs a program by its name or path inside of a sandbox. It is in every one.
const ENV: &str = "/usr/bin/env";

#[derive(Clone, Debug)]
pub struct PlacedMcpServer {
    pub server: NamedMcpServer,
    /// The sandbox that a stdio server runs in. `None`: it has the rights of the server's user.
    pub sandbox: Option<Arc<SandboxSpec>>,
}

impl From<NamedMcpServer> for PlacedMcpServer {
    /// A server outside of sandboxes.
    fn from(server: NamedMcpServer) -> Self {
        Self { server, sandbox: None }
    }
}

impl PlacedMcpServer {
    /// A server as an agent uses it whose stdio servers run in this sandbox.
    pub fn new(server: NamedMcpServer, sandbox: Option<&Arc<SandboxSpec>>) -> Self {
        let is_program = matches!(server.config.transport, McpTransport::Stdio { .. });
        Self { server, sandbox: sandbox.filter(|_| is_program).cloned() }
    }

    pub(super) fn sandbox_key(&self) -> Option<&SandboxKey> {
        self.sandbox.as_ref().map(|sandbox| &sandbox.key)
    }
}

/// The program to start. Outside, its environment is that of the settings plus that of the config; inside, that of a command
/// plus that of the config.
pub(super) fn command(
    config: &McpServerConfig,
    sandbox: Option<&Arc<SandboxSpec>>,
    settings: &McpClientSettings,
) -> Result<ProcessSpec, String> {
    let McpTransport::Stdio { command, args, env } = &config.transport else {
        return Err("it is not a program".to_owned());
    };
    let args = args.iter().map(OsString::from);
    let env = env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let program = Path::new(command);
    let is_path = program.components().count() > 1;
    let Some(sandbox) = sandbox else {
        let folder = settings.folder.join(config.folder.as_deref().unwrap_or(Path::new("")));
        let program = if is_path { folder.join(program) } else { program.to_owned() };
        let mut environment = settings.environment.clone();
        environment.extend(env);
        return Ok(ProcessSpec { program, args: args.collect(), env: environment, folder, sandbox: None });
    };
    let workspace = PathBuf::from(GUEST_WORKSPACE);
    let folder = config.folder.as_deref().and_then(|folder| sandbox.path_inside(folder)).unwrap_or(workspace);
    // A program of the project may be named by its path on this machine.
    let named = sandbox.path_inside(program).unwrap_or_else(|| program.to_owned());
    let named = if is_path { folder.join(named) } else { named };
    let usual = CommandSpec::new([""; 0]).env.into_iter();
    let proxy = proxy_variables().into_iter().filter(|_| !sandbox.allowed_hosts.is_empty());
    let proxy = proxy.map(|(name, value)| (name.to_owned(), value));
    let environment = usual.chain(proxy).map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Ok(ProcessSpec {
        program: ENV.into(),
        args: std::iter::once(named.into_os_string()).chain(args).collect(),
        env: environment.chain(env).collect(),
        folder,
        sandbox: Some(Arc::clone(sandbox)),
    })
}

#[cfg(test)]
mod tests {
    use super::{PlacedMcpServer, command};
    use crate::{
        mcp::McpClientSettings,
        project_sandbox::{SandboxKey, SandboxSpec},
    };
    use domain::mcp::{McpTransport, NamedMcpServer};
    use std::{collections::BTreeMap, ffi::OsStr, path::Path, sync::Arc};

    fn stdio(command: &str) -> NamedMcpServer {
        let env = BTreeMap::from([("TOKEN".to_owned(), "t".to_owned())]);
        NamedMcpServer::new("files", McpTransport::Stdio { command: command.into(), args: vec!["-v".into()], env })
    }

    fn sandbox() -> Arc<SandboxSpec> {
        Arc::new(SandboxSpec::new(SandboxKey::new("project", 7), "/data/projects/7", "/data/homes/7"))
    }

    #[test]
    fn a_program_inside_is_found_there_and_has_nothing_of_this_machine() {
        let mut settings = McpClientSettings::new("/data/mcp".into());
        settings.environment.insert("HOME".into(), "/root".into());
        let sandbox = sandbox();
        for (named, inside) in [
            ("npx", "npx"),
            ("./serve.sh", "/workspace/serve.sh"),
            ("/data/projects/7/serve.sh", "/workspace/serve.sh"),
            ("/usr/bin/python3", "/usr/bin/python3"),
        ] {
            let spec = command(&stdio(named).config, Some(&sandbox), &settings).unwrap();
            assert_eq!(
                (spec.program.as_path(), spec.folder.as_path()),
                (Path::new(super::ENV), Path::new("/workspace"))
            );
            let args: Vec<&str> = spec.args.iter().filter_map(|argument| argument.to_str()).collect();
            // Joining leaves the dot of a relative path.
            assert_eq!([&*args[0].replace("/./", "/"), args[1]], [inside, "-v"]);
            let variable = |name: &str| spec.env.get(OsStr::new(name)).and_then(|value| value.to_str());
            assert_eq!((variable("HOME"), variable("TOKEN")), (Some("/home/agent"), Some("t")));
            assert_eq!(variable("HTTP_PROXY"), None);
            assert!(spec.sandbox.is_some());
        }
        let outside = command(&stdio("npx").config, None, &settings).unwrap();
        assert_eq!((outside.program.as_path(), outside.folder.as_path()), (Path::new("npx"), Path::new("/data/mcp")));
        assert!(outside.sandbox.is_none());
    }

    #[test]
    fn only_programs_run_in_a_sandbox() {
        let remote = NamedMcpServer::new(
            "web",
            McpTransport::Http { url: "https://example.org".into(), headers: BTreeMap::new() },
        );
        assert!(PlacedMcpServer::new(remote, Some(&sandbox())).sandbox.is_none());
        assert!(PlacedMcpServer::new(stdio("npx"), Some(&sandbox())).sandbox.is_some());
    }
}
