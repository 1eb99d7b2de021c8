//! MCP servers at work: how one does, its tools, trying it.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Body, Id},
};
use axum::{Json, extract::State};
use engine::commands::{McpCall, McpCallView, McpListingView, McpLogsView, McpStatusView, McpTestView};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// How a server does
///
/// Starts nothing.
#[utoipa::path(get, path = "/api/mcp-servers/{name}/status", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpStatusView)))]
pub async fn status(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
) -> Result<Json<McpStatusView>, Problem> {
    Ok(Json(app.engine.mcp_status(&caller.owner, &name).await?))
}

/// Try whether a server works
///
/// Starts it beside the one that may run already, lists its tools and stops it. A server that fails is an answer, not an
/// error.
#[utoipa::path(post, path = "/api/mcp-servers/{name}/test", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpTestView)))]
pub async fn test(State(app): State<App>, caller: Caller, Id(name): Id<String>) -> Result<Json<McpTestView>, Problem> {
    Ok(Json(app.engine.test_mcp_server(&caller.owner, &name).await?))
}

/// The tools of a server
///
/// Starts it if need be. Those that cannot be used are there with the reason.
#[utoipa::path(get, path = "/api/mcp-servers/{name}/tools", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpListingView),
                         (status = 502, description = "The server failed; `failure` says how",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn tools(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
) -> Result<Json<McpListingView>, Problem> {
    Ok(Json(app.engine.mcp_tools(&caller.owner, &name).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpCallRequest {
    /// The server's own name for it.
    tool: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    arguments: Map<String, Value>,
    /// How long the tool may take.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 50_000)]
    deadline_ms: Option<u64>,
}

/// Try a tool
///
/// It does what it does: no policy is asked. What the tool itself refuses is an answer with `is_error`.
#[utoipa::path(post, path = "/api/mcp-servers/{name}/call", tag = "mcp-servers", params(("name" = String, Path)),
               request_body = McpCallRequest,
               responses((status = 200, body = McpCallView),
                         (status = 502, description = "The server failed; `failure` says how",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn call(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
    Body(McpCallRequest { tool, arguments, deadline_ms }, _): Body<McpCallRequest>,
) -> Result<Json<McpCallView>, Problem> {
    let call = McpCall { tool, arguments, deadline: deadline_ms.map(Duration::from_millis) };
    Ok(Json(app.engine.call_mcp_tool(&caller.owner, &name, call).await?))
}

/// What a server wrote
///
/// The end of its standard error and of what it logged. That of a server of the operator's file is for the operator.
#[utoipa::path(get, path = "/api/mcp-servers/{name}/logs", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpLogsView)))]
pub async fn logs(State(app): State<App>, caller: Caller, Id(name): Id<String>) -> Result<Json<McpLogsView>, Problem> {
    Ok(Json(app.engine.mcp_logs(&caller.owner, &name).await?))
}
