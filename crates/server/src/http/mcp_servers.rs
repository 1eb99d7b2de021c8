//! MCP server configuration. Agents refer to servers by name. Running servers are in `mcp_servers_live`.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams, value_reader::whole_numbers},
    http::{Created, WriteOutcome, attempt, merge_patch::MergePatch, named_page::NamedPageParams, run_once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{mcp::McpServerEntry, permission::Permission};
use engine::commands::{ImportedServer, McpServerView};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Serialize, utoipa::ToSchema)]
pub struct McpServerList {
    servers: Vec<McpServerView>,
    /// Send it as `after` to get the next page; `null` on the last page.
    next: Option<String>,
    /// Whether the caller may define stdio servers, which start programs.
    may_define_stdio: bool,
}

/// List MCP servers
///
/// The servers of the operator's file and the caller's own, by name. Values of variables and headers are never shown.
#[utoipa::path(get, path = "/api/mcp-servers", tag = "mcp-servers", params(NamedPageParams),
               responses((status = 200, body = McpServerList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<NamedPageParams>,
) -> Result<Json<McpServerList>, Problem> {
    let (servers, next) = page.cut(app.engine.mcp_servers(&caller).await?, |server| server.name.clone())?;
    Ok(Json(McpServerList { servers, next, may_define_stdio: caller.may(Permission::Operate) }))
}

/// A server and its name.
#[derive(utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct McpServerSpec {
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    name: String,
    #[schema(inline)]
    #[serde(flatten)]
    entry: McpServerEntry,
}

/// Create an MCP server
///
/// The settings are those of a `.mcp.json` entry. Only the operator may create a stdio server.
#[utoipa::path(post, path = "/api/mcp-servers", tag = "mcp-servers", request_body = McpServerSpec,
               responses((status = 201, body = McpServerView),
                         (status = 409, description = "A server with this name already exists",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "The settings are not valid",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(mut settings, fingerprint): JsonBody<Map<String, Value>>,
) -> Result<Created<McpServerView>, Problem> {
    settings.values_mut().for_each(whole_numbers);
    let Some(Value::String(name)) = settings.remove("name") else {
        return Err(Problem::invalid("name: a string of 1 to 64 letters, digits, _ and -.").with("pointer", "/name"));
    };
    let (engine, actor, attempt) = (&app.engine, &*caller, attempt(key, fingerprint));
    let write = async { Ok(engine.create_mcp_server(actor, &name, settings, attempt.as_ref()).await?) };
    let server = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(server) => server,
        WriteOutcome::AlreadyDone(name) => engine.mcp_server(actor, &name).await?,
    };
    Ok(Created::at("/api/mcp-servers", name, server))
}

/// Get an MCP server
///
/// Its settings, without the values of variables and headers.
#[utoipa::path(get, path = "/api/mcp-servers/{name}", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 200, body = McpServerView)))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
) -> Result<Json<McpServerView>, Problem> {
    Ok(Json(app.engine.mcp_server(&caller, &name).await?))
}

type McpServerPatch = MergePatch<McpServerEntry>;

/// Update an MCP server
///
/// A merge patch (RFC 7396) on its settings: fields in the body are replaced, `null` clears a field, all others stay.
/// The value `***` keeps the stored value. The name cannot be changed. Runs that have started keep the old settings.
#[utoipa::path(patch, path = "/api/mcp-servers/{name}", tag = "mcp-servers", params(("name" = String, Path)),
               request_body = McpServerPatch,
               responses((status = 200, body = McpServerView),
                         (status = 409, description = "The server is defined in the operator's file; change it there",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "The settings are not valid",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
    key: IdempotencyKey,
    JsonBody(mut patch, fingerprint): JsonBody<Map<String, Value>>,
) -> Result<Json<McpServerView>, Problem> {
    patch.values_mut().for_each(whole_numbers);
    let (engine, actor, attempt) = (&app.engine, &*caller, attempt(key, fingerprint));
    let write = async { Ok(engine.change_mcp_server(actor, &name, patch, attempt.as_ref()).await?) };
    Ok(Json(match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(server) => server,
        WriteOutcome::AlreadyDone(name) => engine.mcp_server(actor, &name).await?,
    }))
}

/// Delete an MCP server
///
/// Runs of agents that still name it fail with `mcp_server_missing`.
#[utoipa::path(delete, path = "/api/mcp-servers/{name}", tag = "mcp-servers", params(("name" = String, Path)),
               responses((status = 204),
                         (status = 409, description = "The server is defined in the operator's file; remove it there",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_mcp_server(actor, &name, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The content of a `.mcp.json` file. Other keys are ignored.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct McpFile {
    /// The servers by name, each as `McpServerConfig`. The report says what is wrong with one.
    #[serde(rename = "mcpServers")]
    #[schema(value_type = BTreeMap<String, Object>)]
    servers: Map<String, Value>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct McpImportParams {
    /// Replace servers with the same name; otherwise they are refused.
    #[serde(default)]
    replace: bool,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct McpImportReport {
    servers: Vec<ImportedServer>,
}

/// Import a .mcp.json
///
/// Reports the result for each server. An invalid server does not prevent the import of the others.
#[utoipa::path(post, path = "/api/mcp-servers/import", tag = "mcp-servers", params(McpImportParams), request_body = McpFile,
               responses((status = 200, body = McpImportReport)))]
pub async fn import(
    State(app): State<App>,
    caller: Caller,
    QueryParams(McpImportParams { replace }): QueryParams<McpImportParams>,
    key: IdempotencyKey,
    JsonBody(McpFile { servers }, fingerprint): JsonBody<McpFile>,
) -> Result<Json<McpImportReport>, Problem> {
    let attempt = attempt(key, fingerprint);
    let servers = app.engine.import_mcp_servers(&caller, servers, replace, attempt.as_ref()).await?;
    Ok(Json(McpImportReport { servers }))
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct McpExport {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, McpServerEntry>,
}

/// Export as .mcp.json
///
/// The caller's own servers, with `***` for every value of a variable or header. Importing the file here keeps the
/// stored values.
#[utoipa::path(get, path = "/api/mcp-servers/export", tag = "mcp-servers", responses((status = 200, body = McpExport)))]
pub async fn export(State(app): State<App>, caller: Caller) -> Result<Json<McpExport>, Problem> {
    Ok(Json(McpExport { servers: app.engine.export_mcp_servers(&caller).await? }))
}
