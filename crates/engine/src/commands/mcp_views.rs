//! Views of MCP servers for API responses. They contain no secrets, and process details are for the operator only.

use crate::mcp_servers::{McpSecrets, McpServerSource, ServerProblem, VariableUse};
use domain::{
    mcp::{McpServerEntry, tool_name},
    time::Timestamp,
};
use serde::Serialize;
use serde_json::{Map, Value};
use workbench::mcp;

/// An MCP server of the catalog.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpServer)]
pub struct McpServerView {
    pub name: String,
    pub source: McpServerSource,
    /// False for servers of the operator's file, which are edited there.
    pub editable: bool,
    /// The operator's file has a server of the same name, which is used instead.
    pub shadowed: bool,
    /// As in `.mcp.json`. Every value of `env` and `headers` is `***`.
    #[serde(flatten)]
    pub entry: McpServerEntry,
    pub variables: Vec<VariableUse>,
    /// Why the server cannot be used now.
    pub problem: Option<ServerProblem>,
    /// The status of a server that can be used and is not disabled.
    pub status: Option<McpStatusView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

/// The status of an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpStatus)]
pub struct McpStatusView {
    pub state: McpStateView,
    #[schema(value_type = Option<String>, examples("stdio", "http", "sse"))]
    pub transport: Option<&'static str>,
    pub protocol_version: Option<String>,
    pub server: Option<McpIdentity>,
    /// The number of tools, once they have been listed.
    pub tools: Option<usize>,
    pub quarantined: usize,
    pub calls: u64,
    pub failures: u64,
    pub restarts: u64,
    /// Lines on its standard output that are not MCP messages.
    pub noise_lines: u64,
    pub in_flight: usize,
    pub process_id: Option<i32>,
    pub uptime_ms: Option<u64>,
    /// The time until the next start attempt after repeated failures.
    pub retry_in_ms: Option<u64>,
    pub last_error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = McpState)]
#[serde(rename_all = "snake_case")]
pub enum McpStateView {
    Stopped,
    Starting,
    Ready,
    /// It failed repeatedly; the next start attempt is at `retry_in_ms`.
    #[serde(rename = "resting")]
    BackingOff,
    Failed,
    Disabled,
    /// Its settings cannot be used.
    Invalid,
}

/// The name and version that a server reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct McpIdentity {
    pub name: String,
    pub version: String,
    pub title: Option<String>,
}

/// The tools of a server.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpListing)]
pub struct McpListingView {
    pub protocol_version: String,
    pub server: Option<McpIdentity>,
    pub instructions: Option<String>,
    pub tools: Vec<McpToolView>,
    /// Tools that cannot be used, with the reason.
    pub quarantined: Vec<McpQuarantined>,
}

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpTool)]
pub struct McpToolView {
    pub name: String,
    /// The name that agents and tool policies use.
    #[schema(examples("mcp__files__read"))]
    pub full_name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    /// JSON Schema.
    #[schema(value_type = Object)]
    pub input_schema: Map<String, Value>,
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Map<String, Value>>,
    pub annotations: McpAnnotations,
    /// Changes when the server changes the tool's description or schema.
    pub fingerprint: String,
}

/// Hints of a server about a tool; not guarantees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct McpAnnotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct McpQuarantined {
    pub name: Option<String>,
    pub reason: String,
}

/// The result of starting a server, listing its tools and stopping it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpTestReport)]
pub struct McpTestView {
    pub ok: bool,
    pub millis: u64,
    pub error: Option<McpFailureView>,
    pub listing: Option<McpListingView>,
    /// The last part of its standard error.
    pub stderr: String,
    pub noise_lines: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = McpFailure)]
pub struct McpFailureView {
    #[schema(examples("mcp_start_failed", "mcp_timeout"))]
    pub code: String,
    pub message: String,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpCallResult)]
pub struct McpCallView {
    #[schema(value_type = Vec<mcp::McpContent>)]
    pub content: Vec<Value>,
    #[schema(value_type = Option<Object>)]
    pub structured: Option<Value>,
    pub is_error: bool,
    /// The code of a JSON-RPC error.
    pub code: Option<i64>,
    /// Notices during the call, for people.
    pub notices: Vec<String>,
    pub millis: u64,
}

/// The latest output of a server.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = McpLogs)]
pub struct McpLogsView {
    pub lines: Vec<McpLogLine>,
    pub stderr: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct McpLogLine {
    pub at: Timestamp,
    #[schema(examples("server", "stdout", "manager"))]
    pub source: String,
    pub text: String,
}

impl McpStatusView {
    /// The status of a server that the manager does not run.
    pub(super) fn idle(state: McpStateView, transport: Option<&'static str>) -> Self {
        Self {
            state,
            transport,
            protocol_version: None,
            server: None,
            tools: None,
            quarantined: 0,
            calls: 0,
            failures: 0,
            restarts: 0,
            noise_lines: 0,
            in_flight: 0,
            process_id: None,
            uptime_ms: None,
            retry_in_ms: None,
            last_error: None,
        }
    }

    pub(super) fn of(status: mcp::McpServerStatus, secrets: &McpSecrets, for_operator: bool) -> Self {
        let state = match status.state {
            mcp::McpServerState::Stopped => McpStateView::Stopped,
            mcp::McpServerState::Starting => McpStateView::Starting,
            mcp::McpServerState::Ready => McpStateView::Ready,
            mcp::McpServerState::Failed => McpStateView::Failed,
            mcp::McpServerState::BackingOff => McpStateView::BackingOff,
        };
        Self {
            state,
            transport: Some(status.transport),
            protocol_version: status.protocol_version,
            server: status.server.map(McpIdentity::from),
            tools: status.tools,
            quarantined: status.quarantined,
            calls: status.calls,
            failures: status.failures,
            restarts: status.restarts,
            noise_lines: status.noise_lines,
            in_flight: status.in_flight,
            process_id: status.process_id.filter(|_| for_operator),
            uptime_ms: status.uptime_ms,
            retry_in_ms: status.retry_in_ms,
            last_error: status.last_error.map(|error| secrets.redact(error)),
        }
    }
}

impl From<mcp::McpServerIdentity> for McpIdentity {
    fn from(identity: mcp::McpServerIdentity) -> Self {
        let mcp::McpServerIdentity { name, version, title } = identity;
        Self { name, version, title }
    }
}

impl McpListingView {
    pub(super) fn of(server: &str, listing: &mcp::McpToolListing) -> Self {
        let tool = |tool: &mcp::McpTool| McpToolView {
            name: tool.name.clone(),
            full_name: tool_name(server, &tool.name),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
            output_schema: tool.output_schema.clone(),
            annotations: McpAnnotations {
                read_only: tool.annotations.read_only,
                destructive: tool.annotations.destructive,
                idempotent: tool.annotations.idempotent,
                open_world: tool.annotations.open_world,
            },
            fingerprint: tool.fingerprint(),
        };
        let quarantined =
            |one: &mcp::QuarantinedTool| McpQuarantined { name: one.name.clone(), reason: one.reason.clone() };
        Self {
            protocol_version: listing.protocol_version.clone(),
            server: listing.server.clone().map(McpIdentity::from),
            instructions: listing.instructions.clone(),
            tools: listing.tools.iter().map(tool).collect(),
            quarantined: listing.quarantined.iter().map(quarantined).collect(),
        }
    }
}
