//! `cargo xtask bench`: builds the server and the load driver, then becomes the driver.

use std::process::ExitCode;

use crate::clis::Clis;
use crate::mcp_servers::McpServers;
use crate::prerequisites::{self, C_COMPILER, NODE, PYTHON};
use crate::workspace::{Outcome, Profile, Workspace, become_program};

/// What is measured with the real CLIs, and only when it is asked for by name.
const WITH_CLIS: &str = "providers";
/// What is measured beside servers on the official SDKs, and only when it is asked for by name.
const WITH_MCP_SERVERS: &str = "mcp";

pub fn command(arguments: &[String]) -> Outcome<ExitCode> {
    let workspace = Workspace::locate()?;
    prerequisites::ensure(&[C_COMPILER])?;
    let asks_for = |name: &str| arguments.iter().any(|argument| argument == name);
    let clis = match asks_for(WITH_CLIS) {
        true => Some(prerequisites::ensure(&[NODE]).and_then(|()| Clis::install())?),
        false => None,
    };
    let mcp_servers = match asks_for(WITH_MCP_SERVERS) {
        true => Some(prerequisites::ensure(&[NODE, PYTHON]).and_then(|()| McpServers::install())?),
        false => None,
    };
    workspace.build(Profile::Release, &["greenroom", "testkit"], &["greenroom", "bench", "fake-mcp"])?;
    let mut bench = workspace.program(&workspace.binary(Profile::Release, "bench"));
    bench.args(arguments);
    if !asks_for("--binary") {
        bench.arg("--binary").arg(workspace.binary(Profile::Release, "greenroom"));
    }
    if let Some(clis) = clis {
        clis.hand_to(&mut bench);
    }
    if let Some(mcp_servers) = mcp_servers {
        mcp_servers.hand_to(&mut bench);
    }
    Err(become_program(&mut bench))
}
