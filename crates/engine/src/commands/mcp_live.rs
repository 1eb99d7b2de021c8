//! MCP servers at work: how one does, what tools it has, what a tool answers. For people who try one; agents reach theirs
//! through their providers.

use super::{McpCallView, McpFailureView, McpListingView, McpLogLine, McpLogsView, McpStatusView, McpTestView};
use crate::{
    Engine, Error,
    equipment::{Known, Source},
};
use domain::{mcp::Server, owner::Owner};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::{
    sync::SemaphorePermit,
    time::{Instant, timeout, timeout_at},
};
use workbench::mcp::{CallOptions, Failure};

/// For whatever a person waits for at a door; less than the door itself waits.
const PATIENCE: Duration = Duration::from_secs(50);
/// For a call that does not say how long it may take.
const CALL: Duration = Duration::from_secs(30);

/// A tool that a person wants to try.
#[derive(Debug, Clone)]
pub struct McpCall {
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub deadline: Option<Duration>,
}

impl Engine {
    /// Starts nothing.
    pub async fn mcp_status(&self, owner: &Owner, name: &str) -> Result<McpStatusView, Error> {
        let known = self.known_server(owner, name).await?;
        let transport = known.config.as_ref().ok().map(|config| config.transport.kind());
        if known.config.as_ref().is_ok_and(|config| config.disabled) {
            return Ok(McpStatusView::idle("disabled", transport));
        }
        Ok(match self.ready(owner, known.source, &known.name, &known.config, None) {
            Ok(server) => {
                let secrets = self.secrets_of(&server);
                McpStatusView::of(self.mcp().status(&server), &secrets, owner.is_operator())
            }
            Err(problem) => {
                McpStatusView { last_error: Some(problem.message), ..McpStatusView::idle("invalid", transport) }
            }
        })
    }

    /// Starts it beside the one that may run already, lists its tools and stops it.
    pub async fn test_mcp_server(&self, owner: &Owner, name: &str) -> Result<McpTestView, Error> {
        let known = self.known_server(owner, name).await?;
        // One that is switched off can be tried before it is switched on.
        let server = self.ready(owner, known.source, &known.name, &known.config, None)?;
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
            let _turn = self.turn_to_try().await;
            self.mcp().test(&server).await
        };
        let Ok(report) = timeout(PATIENCE, test).await else {
            let message = format!("the MCP server {name:?} was not done within {} s", PATIENCE.as_secs());
            return Ok(failed("mcp_timeout", message));
        };
        let secrets = self.secrets_of(&server);
        let error = report
            .error
            .map(|error| McpFailureView { code: error.code.to_owned(), message: secrets.strike(error.message) });
        Ok(McpTestView {
            ok: report.ok,
            millis: report.millis,
            error,
            listing: report.listing.as_ref().map(|listing| McpListingView::of(name, listing)),
            stderr: if may_look(owner, &known) { secrets.strike(report.stderr) } else { String::new() },
            noise_lines: report.noise_lines,
        })
    }

    /// Starts it if need be.
    pub async fn mcp_tools(&self, owner: &Owner, name: &str) -> Result<McpListingView, Error> {
        let (_, server) = self.usable(owner, name).await?;
        match timeout(PATIENCE, self.mcp().tools(&server)).await {
            Ok(Ok(listing)) => Ok(McpListingView::of(name, &listing)),
            Ok(Err(failure)) => Err(self.mcp_failed(&server, &failure)),
            Err(_) => Err(too_slow(&server, PATIENCE)),
        }
    }

    pub async fn call_mcp_tool(&self, owner: &Owner, name: &str, call: McpCall) -> Result<McpCallView, Error> {
        let (_, server) = self.usable(owner, name).await?;
        let deadline = call.deadline.unwrap_or(CALL);
        if deadline.is_zero() || deadline > PATIENCE {
            return Err(Error::Invalid(format!("deadline_ms: 1 to {}", PATIENCE.as_millis())));
        }
        let began = Instant::now();
        let options = CallOptions { deadline: Some(deadline), ..CallOptions::default() };
        // When nobody waits any more, neither does the server: it is told so.
        let _gone = options.cancel.clone().drop_guard();
        let called = self.mcp().call(&server, &call.tool, call.arguments, options);
        let result = match timeout_at(began + PATIENCE, called).await {
            Ok(Ok(result)) => result,
            Ok(Err(failure)) => return Err(self.mcp_failed(&server, &failure)),
            Err(_) => return Err(too_slow(&server, PATIENCE)),
        };
        let secrets = self.secrets_of(&server);
        let block = |content| {
            let mut value = serde_json::to_value(content).unwrap_or_default();
            secrets.strike_value(&mut value);
            value
        };
        let mut structured = result.structured;
        structured.iter_mut().for_each(|value| secrets.strike_value(value));
        Ok(McpCallView {
            content: result.content.iter().map(block).collect(),
            structured,
            is_error: result.is_error,
            code: result.code,
            notices: result.notices.iter().map(|notice| secrets.strike(notice.to_string())).collect(),
            millis: millis(began),
        })
    }

    /// One program may serve everybody: what it wrote is for whoever configured it.
    pub async fn mcp_logs(&self, owner: &Owner, name: &str) -> Result<McpLogsView, Error> {
        let known = self.known_server(owner, name).await?;
        if !may_look(owner, &known) {
            return Err(Error::OperatorOnly(format!(
                "The MCP server {name:?} is the operator's, and serves others too; only the operator may read its logs."
            )));
        }
        let server = self.ready(owner, known.source, &known.name, &known.config, None)?;
        let secrets = self.secrets_of(&server);
        let logs = self.mcp().logs(&server);
        let line = |line: workbench::mcp::LogLine| McpLogLine {
            at: line.at,
            source: line.source.to_owned(),
            text: secrets.strike(line.text),
        };
        Ok(McpLogsView { lines: logs.lines.into_iter().map(line).collect(), stderr: secrets.strike(logs.stderr) })
    }

    async fn usable(&self, owner: &Owner, name: &str) -> Result<(Known, Server), Error> {
        let known = self.known_server(owner, name).await?;
        let server = self.ready(owner, known.source, &known.name, &known.config, None)?;
        if server.config.disabled {
            let detail = format!("the MCP server {name:?} is switched off; switch it on first");
            return Err(Error::Refused { pointer: "", detail });
        }
        Ok((known, server))
    }

    /// What it says goes on after its name.
    pub(super) fn mcp_failed(&self, server: &Server, failure: &Failure) -> Error {
        let message = format!("the MCP server {:?} {failure}", server.name);
        Error::McpFailed { code: failure.code(), message: self.secrets_of(server).strike(message) }
    }

    /// A few at a time: each test is a program.
    async fn turn_to_try(&self) -> Option<SemaphorePermit<'_>> {
        self.mcp_tests().acquire().await.ok()
    }
}

fn may_look(owner: &Owner, known: &Known) -> bool {
    known.source != Source::File || owner.is_operator()
}

pub(super) fn too_slow(server: &Server, waited: Duration) -> Error {
    let message = format!("the MCP server {:?} was not ready within {} s", server.name, waited.as_secs());
    Error::McpFailed { code: "mcp_timeout", message }
}

fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}
