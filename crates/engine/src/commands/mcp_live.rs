//! Running MCP servers: status, test, tool list, tool call, logs. For people who try a server; agents reach theirs
//! through their providers.

use super::{
    McpCallView, McpFailureView, McpListingView, McpLogLine, McpLogsView, McpStateView, McpStatusView, McpTestView,
};
use crate::{
    Engine, EngineError,
    mcp_servers::{CatalogServer, McpServerSource},
};
use domain::{actor::Actor, mcp::NamedMcpServer, permission::Permission};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use workbench::mcp::{CallOptions, McpFailure, McpServerState};

/// The time limit for a request; shorter than the timeout of the HTTP route.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(50);
/// The time limit for a call that does not set one.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A tool call made by a person.
#[derive(Debug, Clone)]
pub struct McpToolCall {
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub deadline: Option<Duration>,
}

impl Engine {
    /// Returns the status of a server without starting it.
    pub async fn mcp_status(&self, actor: &Actor, name: &str) -> Result<McpStatusView, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let known = self.catalog_server(owner, name).await?;
        let transport = known.config.as_ref().ok().map(|config| config.transport.kind());
        if known.config.as_ref().is_ok_and(|config| config.disabled) {
            return Ok(McpStatusView::idle(McpStateView::Disabled, transport));
        }
        Ok(match self.resolve_server(owner, known.source, &known.name, &known.config, None) {
            Ok(server) => {
                let secrets = self.secrets_of(&server);
                McpStatusView::of(self.mcp().status(&server), &secrets, actor.may(Permission::Operate))
            }
            Err(problem) => McpStatusView {
                last_error: Some(problem.message),
                ..McpStatusView::idle(McpStateView::Invalid, transport)
            },
        })
    }

    /// Starts a second instance of the server, lists its tools and stops it.
    pub async fn test_mcp_server(&self, actor: &Actor, name: &str) -> Result<McpTestView, EngineError> {
        let owner = actor.require(Permission::ManageMcpServers)?;
        let known = self.catalog_server(owner, name).await?;
        // A disabled server can be tested before it is enabled.
        let server = self.resolve_server(owner, known.source, &known.name, &known.config, None)?;
        let began = Instant::now();
        let failed = |code: &str, message: String| McpTestView {
            ok: false,
            millis: millis(began),
            error: Some(McpFailureView { code: code.to_owned(), message }),
            listing: None,
            stderr: String::new(),
            noise_lines: 0,
        };
        let test = async {
            // Each test starts a program.
            let _slot = self.mcp_test_slots().take(owner).await;
            self.mcp().test(&server).await
        };
        let Ok(report) = timeout(REQUEST_TIMEOUT, test).await else {
            let message =
                format!("the test of the MCP server {name:?} did not finish within {} s", REQUEST_TIMEOUT.as_secs());
            return Ok(failed("mcp_timeout", message));
        };
        let secrets = self.secrets_of(&server);
        let error = report
            .error
            .map(|error| McpFailureView { code: error.code.to_owned(), message: secrets.redact(error.message) });
        Ok(McpTestView {
            ok: report.ok,
            millis: report.millis,
            error,
            listing: report.listing.as_ref().map(|listing| McpListingView::of(name, listing)),
            stderr: if may_read_output(actor, &known) { secrets.redact(report.stderr) } else { String::new() },
            noise_lines: report.noise_lines,
        })
    }

    /// Lists the tools of a server; starts it if needed, unless the actor may only read.
    pub async fn mcp_tools(&self, actor: &Actor, name: &str) -> Result<McpListingView, EngineError> {
        actor.require(Permission::Read)?;
        let (_, server) = self.usable_server(actor, name).await?;
        if !actor.may(Permission::Post) && self.mcp().status(&server).state != McpServerState::Ready {
            return Err(EngineError::Conflict(format!(
                "the MCP server {name:?} is not running, and your role does not start programs; ask again when an agent \
                 uses it, or ask a member of the workspace"
            )));
        }
        match timeout(REQUEST_TIMEOUT, self.mcp().tools(&server)).await {
            Ok(Ok(listing)) => Ok(McpListingView::of(name, &listing)),
            Ok(Err(failure)) => Err(self.mcp_failed(&server, &failure)),
            Err(_) => Err(timeout_error(&server, REQUEST_TIMEOUT)),
        }
    }

    pub async fn call_mcp_tool(
        &self,
        actor: &Actor,
        name: &str,
        call: McpToolCall,
    ) -> Result<McpCallView, EngineError> {
        actor.require(Permission::ManageMcpServers)?;
        let (_, server) = self.usable_server(actor, name).await?;
        let deadline = call.deadline.unwrap_or(DEFAULT_CALL_TIMEOUT);
        if deadline.is_zero() || deadline > REQUEST_TIMEOUT {
            return Err(EngineError::invalid_field(
                "/deadline_ms",
                format!("deadline_ms: 1 to {}", REQUEST_TIMEOUT.as_millis()),
            ));
        }
        let began = Instant::now();
        let options = CallOptions { deadline: Some(deadline), ..CallOptions::default() };
        // Cancels the call on the server if the client disconnects.
        let _cancel_on_drop = options.cancel.clone().drop_guard();
        let called = self.mcp().call(&server, &call.tool, call.arguments, options);
        let result = match timeout_at(began + REQUEST_TIMEOUT, called).await {
            Ok(Ok(result)) => result,
            Ok(Err(failure)) => return Err(self.mcp_failed(&server, &failure)),
            Err(_) => return Err(timeout_error(&server, REQUEST_TIMEOUT)),
        };
        let secrets = self.secrets_of(&server);
        let block = |content| {
            let mut value = serde_json::to_value(content).unwrap_or_default();
            secrets.redact_value(&mut value);
            value
        };
        let mut structured = result.structured;
        structured.iter_mut().for_each(|value| secrets.redact_value(value));
        Ok(McpCallView {
            content: result.content.iter().map(block).collect(),
            structured,
            is_error: result.is_error,
            code: result.code,
            notices: result.notices.iter().map(|notice| secrets.redact(notice.to_string())).collect(),
            millis: millis(began),
        })
    }

    /// Returns the logs of a server. A server may be shared by all owners, so only its configurer may read its output.
    pub async fn mcp_logs(&self, actor: &Actor, name: &str) -> Result<McpLogsView, EngineError> {
        let owner = actor.require(Permission::ManageMcpServers)?;
        let known = self.catalog_server(owner, name).await?;
        if !may_read_output(actor, &known) {
            return Err(EngineError::OperatorOnly(format!(
                "The MCP server {name:?} belongs to the operator and is shared; only the operator may read its logs."
            )));
        }
        let server = self.resolve_server(owner, known.source, &known.name, &known.config, None)?;
        let secrets = self.secrets_of(&server);
        let logs = self.mcp().logs(&server);
        let line = |line: workbench::mcp::ServerLogLine| McpLogLine {
            at: line.at,
            source: line.source.to_owned(),
            text: secrets.redact(line.text),
        };
        Ok(McpLogsView { lines: logs.lines.into_iter().map(line).collect(), stderr: secrets.redact(logs.stderr) })
    }

    async fn usable_server(&self, actor: &Actor, name: &str) -> Result<(CatalogServer, NamedMcpServer), EngineError> {
        let owner = &actor.workspace;
        let known = self.catalog_server(owner, name).await?;
        let server = self.resolve_server(owner, known.source, &known.name, &known.config, None)?;
        if server.config.disabled {
            let detail = format!("the MCP server {name:?} is disabled; enable it first");
            return Err(EngineError::Refused { pointer: "".into(), detail });
        }
        Ok((known, server))
    }

    /// The failure text continues the sentence that begins with the server's name.
    pub(super) fn mcp_failed(&self, server: &NamedMcpServer, failure: &McpFailure) -> EngineError {
        let message = format!("the MCP server {:?} {failure}", server.name);
        EngineError::McpFailed { code: failure.code(), message: self.secrets_of(server).redact(message) }
    }
}

fn may_read_output(actor: &Actor, known: &CatalogServer) -> bool {
    known.source != McpServerSource::File || actor.may(Permission::Operate)
}

pub(super) fn timeout_error(server: &NamedMcpServer, waited: Duration) -> EngineError {
    let message = format!("the MCP server {:?} was not ready within {} s", server.name, waited.as_secs());
    EngineError::McpFailed { code: "mcp_timeout", message }
}

fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}
