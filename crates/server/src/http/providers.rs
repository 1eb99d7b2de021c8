//! Providers: the adapters that can run agents on this server.

use crate::{App, auth::Caller, error::Problem};
use axum::{Json, extract::State};
use engine::commands::ProviderView;
use serde::Serialize;

#[derive(Serialize, utoipa::ToSchema)]
pub struct ProviderList {
    providers: Vec<ProviderView>,
}

/// List providers
///
/// The capabilities of each provider, and whether its requirements are installed. Cached for a minute.
#[utoipa::path(get, path = "/api/providers", tag = "providers", responses((status = 200, body = ProviderList)))]
pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<ProviderList>, Problem> {
    Ok(Json(ProviderList { providers: app.engine.providers_of(&caller).await }))
}
