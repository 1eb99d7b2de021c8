//! MCP servers: configured once, named by agents. What runs is in `mcp_servers_live`.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Body, Fingerprint, Id, IdempotencyKey, Params},
    http::{Write, attempt, once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::mcp::Entry;
use engine::commands::{Imported, McpServerView};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Serialize, utoipa::ToSchema)]
pub struct McpServerList {
    servers: Vec<McpServerView>,
    /// Whether the caller may say which programs are started.
    may_define_stdio: bool,
}

/// The MCP servers there are
///
/// By name: those of the operator's file and the caller's own. No value of a variable or a header is ever shown.
#[utoipa::path(get, path = "/api/mcp-servers", tag = "mcp-servers", responses((status = 200, body = McpServerList)))]
pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<McpServerList>, Problem> {
    let servers = app.engine.mcp_servers(&caller.owner).await?;
    Ok(Json(McpServerList { servers, may_define_stdio: caller.owner.is_operator() }))
}

/// A server and its name.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "it is only described")]
pub struct McpServerSpec {
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    name: String,
    #[schema(inline)]
    #[serde(flatten)]
    entry: Entry,
}

/// Add an MCP server
///
/// The settings are those of an entry of `.mcp.json`. Only the operator may add one of type stdio.
#[utoipa::path(post, path = "/api/mcp-servers", tag = "mcp-servers", request_body = McpServerSpec,
               responses((status = 201, body = McpServerView),
                         (status = 409, description = "There is one of this name",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "The settings make no server",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    Body(mut settings, fingerprint): Body<Map<String, Value>>,
) -> Result<(StatusCode, Json<McpServerView>), Problem> {
    let Some(Value::String(name)) = settings.remove("name") else {
        return Err(Problem::invalid("name: a text of 1 to 64 letters, digits, _ and -.").with("pointer", "/name"));
    };
    let (engine, owner, attempt) = (&app.engine, &caller.owner, attempt(key, fingerprint));
    let write = async { Ok(engine.create_mcp_server(owner, &name, settings, attempt.as_ref()).await?) };
    let server = match once(&app, owner, attempt.as_ref(), write).await? {
        Write::Now(server) => server,
        Write::Before(name) => engine.mcp_server(owner, &name).await?,
    };
    Ok((StatusCode::CREATED, Json(server)))
}

/// One MCP server
#[utoipa::path(get, path = "/api/mcp-servers/{name}", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpServerView)))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
) -> Result<Json<McpServerView>, Problem> {
    Ok(Json(app.engine.mcp_server(&caller.owner, &name).await?))
}

/// Change an MCP server
///
/// A merge patch (RFC 7396) on its settings: what the body names is replaced, `null` clears, the rest stays. A value
/// `***` keeps what is stored. The name cannot be changed. Runs that have begun keep the old settings.
#[utoipa::path(patch, path = "/api/mcp-servers/{name}", tag = "mcp-servers", params(("name" = String, Path)),
               request_body = Entry,
               responses((status = 200, body = McpServerView),
                         (status = 409, description = "It is in the operator's file and is changed there",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "The settings make no server",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
    key: IdempotencyKey,
    Body(patch, fingerprint): Body<Map<String, Value>>,
) -> Result<Json<McpServerView>, Problem> {
    let (engine, owner, attempt) = (&app.engine, &caller.owner, attempt(key, fingerprint));
    let write = async { Ok(engine.change_mcp_server(owner, &name, patch, attempt.as_ref()).await?) };
    Ok(Json(match once(&app, owner, attempt.as_ref(), write).await? {
        Write::Now(server) => server,
        Write::Before(name) => engine.mcp_server(owner, &name).await?,
    }))
}

/// Delete an MCP server
///
/// The runs of agents that still name it fail with `mcp_server_missing`.
#[utoipa::path(delete, path = "/api/mcp-servers/{name}", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 204),
                         (status = 409, description = "It is in the operator's file and is removed there",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_mcp_server(owner, &name, attempt.as_ref()).await?) };
    once(&app, owner, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a `.mcp.json` holds; other keys in it are passed over.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct McpFile {
    #[serde(rename = "mcpServers")]
    #[schema(value_type = BTreeMap<String, Entry>)]
    servers: Map<String, Value>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ImportParams {
    /// Those of the same name are replaced; otherwise they are refused.
    #[serde(default)]
    replace: bool,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct McpImportReport {
    servers: Vec<Imported>,
}

/// Import a .mcp.json
///
/// Says for each server what became of it; one that is wrong does not keep the others out.
#[utoipa::path(post, path = "/api/mcp-servers/import", tag = "mcp-servers", params(ImportParams), request_body = McpFile,
               responses((status = 200, body = McpImportReport)))]
pub async fn import(
    State(app): State<App>,
    caller: Caller,
    Params(ImportParams { replace }): Params<ImportParams>,
    key: IdempotencyKey,
    Body(McpFile { servers }, fingerprint): Body<McpFile>,
) -> Result<Json<McpImportReport>, Problem> {
    let attempt = attempt(key, fingerprint);
    let servers = app.engine.import_mcp_servers(&caller.owner, servers, replace, attempt.as_ref()).await?;
    Ok(Json(McpImportReport { servers }))
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct McpExport {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, Entry>,
}

/// Export as .mcp.json
///
/// The caller's own, with `***` for every value of a variable or a header: imported here again, they are kept.
#[utoipa::path(get, path = "/api/mcp-servers/export", tag = "mcp-servers", responses((status = 200, body = McpExport)))]
pub async fn export(State(app): State<App>, caller: Caller) -> Result<Json<McpExport>, Problem> {
    Ok(Json(McpExport { servers: app.engine.export_mcp_servers(&caller.owner).await? }))
}
