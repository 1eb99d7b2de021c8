//! `expose_port`.

use super::{ProjectToolbox, ToolResult, number, reading};
use crate::host_tools::{HostCall, HostToolDefinition, HostToolOutcome};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long a program that was just started may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(200);

pub fn definition() -> HostToolDefinition {
    let properties = json!({"port": {"type": "integer", "minimum": 1, "maximum": 65535}});
    let description = "Checks that a server which was started with execute_command in the background answers on a port, and tells \
                       people that they can open it. Nobody else can reach the port.";
    reading("expose_port", description, properties, &["port"])
}

pub async fn expose(toolbox: ProjectToolbox, call: HostCall) -> ToolResult {
    let port = number(&call, "port").and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    let port = port.ok_or("port: send a number from 1 to 65535")?;
    let key = call.agent.workspace.space.key;
    let lease = toolbox.sandboxes.find(key).await;
    let lease =
        lease.ok_or("The sandbox does not run; start the server with execute_command in the background first")?;
    if !lease.has_own_network() {
        return Err("The sandbox of this project has no network of its own, so its ports cannot be opened".to_owned());
    }
    let patience = Instant::now() + PATIENCE;
    loop {
        match timeout(PATIENCE, lease.connect(port)).await {
            Ok(Ok(_)) => break,
            _ if Instant::now() >= patience => {
                return Err(format!(
                    "Nothing listens on port {port}; look at the output of the server with check_command"
                ));
            }
            _ => sleep(PAUSE).await,
        }
    }
    call.report(&format!("Port {port} of the project can be opened.")).await;
    Ok(HostToolOutcome::success(format!(
        "Port {port} answers. Tell people that they can open it under Ports of the project."
    )))
}
