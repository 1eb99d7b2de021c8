//! Refused requests in the audit log: one row per minute and address, with a count.

use super::request_source::RequestSource;
use crate::App;
use axum::{http::StatusCode, response::Response};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditedObject, CountedAuthor, CountedEntry},
    owner::Owner,
};
use serde_json::json;

/// The caller of a request that was refused after it was authenticated. An extension of the response.
#[derive(Clone, Debug)]
pub struct RefusedCaller(pub Actor);

pub fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// Records a response that is a refusal. `route` is the path of the route, without ids: what was asked for may be secret.
pub fn record(app: &App, response: &mut Response, source: &RequestSource, method: &str, route: &str) {
    let status = response.status();
    if !is_refusal(status) {
        return;
    }
    let caller = response.extensions_mut().remove::<RefusedCaller>().map(|RefusedCaller(actor)| actor);
    app.engine.accounts().count_audit(CountedEntry {
        workspace: caller.as_ref().map_or_else(Owner::local, |actor| actor.workspace.clone()),
        by: caller.as_ref().map(CountedAuthor::of),
        address: source.client_address(),
        action: AuditAction::Refuse,
        object: AuditedObject::Request,
        object_id: format!("{method} {route}"),
        detail: Some(json!({"status": status.as_u16()})),
    });
}
