//! Running MCP servers: status, tools, test calls, logs.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Id, JsonBody},
};
use axum::{Json, extract::State};
use engine::commands::{McpCallView, McpListingView, McpLogsView, McpStatusView, McpTestView, McpToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// Get server status
///
/// Does not start the server.
#[utoipa::path(get, path = "/api/mcp-servers/{name}/status", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpStatusView)))]
pub async fn status(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
) -> Result<Json<McpStatusView>, Problem> {
    Ok(Json(app.engine.mcp_status(&caller, &name).await?))
}

/// Test a server
///
/// Starts a second instance, lists its tools and stops it. A failing server is reported in a successful response.
#[utoipa::path(post, path = "/api/mcp-servers/{name}/test", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpTestView)))]
pub async fn test(State(app): State<App>, caller: Caller, Id(name): Id<String>) -> Result<Json<McpTestView>, Problem> {
    Ok(Json(app.engine.test_mcp_server(&caller, &name).await?))
}

/// List a server's tools
///
/// Starts the server if necessary. Unavailable tools are listed with the reason.
#[utoipa::path(get, path = "/api/mcp-servers/{name}/tools", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpListingView),
                         (status = 502, description = "The server failed; see `failure`",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn tools(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
) -> Result<Json<McpListingView>, Problem> {
    Ok(Json(app.engine.mcp_tools(&caller, &name).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpCallRequest {
    /// The tool's name on the server.
    tool: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    arguments: Map<String, Value>,
    /// How long the tool may take.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 50_000)]
    deadline_ms: Option<u64>,
}

/// Call a tool
///
/// Really runs the tool, without checking any tool policy. An error of the tool itself is a successful response with
/// `is_error`.
#[utoipa::path(post, path = "/api/mcp-servers/{name}/call", tag = "mcp-servers", params(("name" = String, Path)),
               request_body = McpCallRequest,
               responses((status = 200, body = McpCallView),
                         (status = 502, description = "The server failed; see `failure`",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn call(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
    JsonBody(McpCallRequest { tool, arguments, deadline_ms }, _): JsonBody<McpCallRequest>,
) -> Result<Json<McpCallView>, Problem> {
    let call = McpToolCall { tool, arguments, deadline: deadline_ms.map(Duration::from_millis) };
    Ok(Json(app.engine.call_mcp_tool(&caller, &name, call).await?))
}

/// Get a server's logs
///
/// The last lines of its standard error and of its log messages. Only the operator sees the logs of servers in the
/// operator's file.
#[utoipa::path(get, path = "/api/mcp-servers/{name}/logs", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpLogsView)))]
pub async fn logs(State(app): State<App>, caller: Caller, Id(name): Id<String>) -> Result<Json<McpLogsView>, Problem> {
    Ok(Json(app.engine.mcp_logs(&caller, &name).await?))
}
