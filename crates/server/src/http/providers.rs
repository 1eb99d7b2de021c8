//! Providers: who can answer here.

use crate::{App, auth::Caller, error::Problem};
use axum::{Json, extract::State};
use engine::commands::ProviderView;
use serde::Serialize;

#[derive(Serialize, utoipa::ToSchema)]
pub struct ProviderList {
    providers: Vec<ProviderView>,
}

/// The providers there are
///
/// What each can do, and whether what it needs is on this machine. Looked up at most once a minute.
#[utoipa::path(get, path = "/api/providers", tag = "providers", responses((status = 200, body = ProviderList)))]
pub async fn list(State(app): State<App>, _: Caller) -> Result<Json<ProviderList>, Problem> {
    Ok(Json(ProviderList { providers: app.engine.inspect_providers().await }))
}
