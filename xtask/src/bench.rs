//! `cargo xtask bench`: builds the server and the load driver, then becomes the driver.

use std::process::ExitCode;

use crate::clis::InstalledClis;
use crate::mcp_servers::InstalledMcpServers;
use crate::prerequisites::{self, C_COMPILER, NODE, PYTHON};
use crate::progress::{TextOutput, minutes, timed};
use crate::repository::{BuildProfile, Repository, XtaskResult, become_program};
use crate::steps::Steps;

/// Measured with the real CLIs, and only when asked for by name.
const WITH_CLIS: &str = "providers";
/// Compared with servers on the official SDKs, and only when asked for by name.
const WITH_MCP_SERVERS: &str = "mcp";
const PROFILE: BuildProfile = BuildProfile::Release;

pub fn command(arguments: &[String]) -> XtaskResult<ExitCode> {
    let repository = Repository::locate()?;
    let steps = Steps::open(&repository, "bench", TextOutput::Stderr)?;
    prerequisites::ensure(&[C_COMPILER], &steps)?;
    let asks_for = |name: &str| arguments.iter().any(|argument| argument == name);
    let clis = match asks_for(WITH_CLIS) {
        true => Some(prerequisites::ensure(&[NODE], &steps).and_then(|()| InstalledClis::install(&steps))?),
        false => None,
    };
    let mcp_servers = match asks_for(WITH_MCP_SERVERS) {
        true => {
            Some(prerequisites::ensure(&[NODE, PYTHON], &steps).and_then(|()| InstalledMcpServers::install(&steps))?)
        }
        false => None,
    };
    let mut build = repository.build(PROFILE, &["greenroom", "testkit"], &["greenroom", "bench", "fake-mcp"]);
    let (built, took) = timed(|| steps.build("Building the server and the benchmark", &mut build));
    built?;
    steps.say(&format!("Built in {}. Log: {}", minutes(took), steps.log_name()));
    drop(steps);
    let mut bench = repository.program(&repository.binary(PROFILE, "bench"));
    bench.args(arguments);
    if !asks_for("--binary") {
        bench.arg("--binary").arg(repository.binary(PROFILE, "greenroom"));
    }
    if let Some(clis) = clis {
        clis.pass_to(&mut bench);
    }
    if let Some(mcp_servers) = mcp_servers {
        mcp_servers.pass_to(&mut bench);
    }
    Err(become_program(&mut bench))
}
