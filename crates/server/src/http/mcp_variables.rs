//! The environment variables that settings of MCP servers may use.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::Id,
};
use axum::{Json, extract::State, http::StatusCode};
use engine::commands::AllowedVariableView;
use serde::Serialize;

#[derive(Serialize, utoipa::ToSchema)]
pub struct AllowedVariableList {
    /// The variables, by name.
    variables: Vec<AllowedVariableView>,
}

/// List allowed variables
///
/// The environment variables that settings of the operator's MCP servers may use, as `${NAME}`. Values are never shown.
#[utoipa::path(get, path = "/api/mcp-variables", tag = "mcp-servers",
               responses((status = 200, body = AllowedVariableList)))]
pub async fn variables(State(app): State<App>, caller: Caller) -> Result<Json<AllowedVariableList>, Problem> {
    Ok(Json(AllowedVariableList { variables: app.engine.allowed_variables(&caller).await? }))
}

/// Allow a variable
///
/// From now on the operator's MCP servers get its value. Repeating it changes nothing.
#[utoipa::path(put, path = "/api/mcp-variables/{name}", tag = "mcp-servers", params(("name" = String, Path, description = "The name of the environment variable")),
               responses((status = 204),
                         (status = 422, description = "A variable of this name cannot be allowed",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn allow_variable(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
) -> Result<StatusCode, Problem> {
    app.engine.allow_variable(&caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Disallow a variable
///
/// Servers that run already keep the value that they were started with.
#[utoipa::path(delete, path = "/api/mcp-variables/{name}", tag = "mcp-servers", params(("name" = String, Path, description = "The name of the environment variable")),
               responses((status = 204),
                         (status = 409, description = "It is allowed by the configuration",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn disallow_variable(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<String>,
) -> Result<StatusCode, Problem> {
    app.engine.disallow_variable(&caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
