//! The audit log: who did what, by which credential and from where.

use crate::{App, auth::Caller, error::Problem, extract::QueryParams};
use axum::{Json, extract::State};
use domain::{
    ids::{RoomId, UserId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::IpAddr;
use store::{AuditFilter, AuditRecord};
use uuid::Uuid;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditParams {
    /// The `next` of the previous page.
    #[param(pattern = "^[0-9]{1,18}$", example = "120")]
    before: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// Only this action, such as `sign_in`, `refuse` or `delete`.
    action: Option<String>,
    /// Only what this user did.
    user_id: Option<UserId>,
    /// Only what was done to this kind of object, such as `token` or `room`.
    object: Option<String>,
    /// The entries of all workspaces. Only for the operator.
    #[serde(default)]
    all: bool,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct AuditPage {
    entries: Vec<AuditEntryView>,
    /// Send it as `before` to get the next page; `null` on the last page.
    next: Option<String>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditEntryView {
    id: i64,
    created_at: Timestamp,
    #[schema(examples("sign_in"))]
    action: String,
    #[schema(examples("browser_session"))]
    object: String,
    /// The id of the object, or its name: of a refused request, the method and the route.
    object_id: String,
    room_id: Option<RoomId>,
    workspace: String,
    /// `null` if no person did it, or nobody was authenticated.
    user_id: Option<UserId>,
    user_name: Option<String>,
    /// `none` if nobody was authenticated.
    #[schema(examples("owner"))]
    role: String,
    /// `local_key`, `no_auth`, `token`, `browser_session`, `agent`, `system` or `none`.
    #[schema(examples("token"))]
    credential: String,
    /// The id of the token, the browser session or the agent's run.
    #[schema(value_type = Option<Uuid>)]
    credential_id: Option<Uuid>,
    #[schema(value_type = Option<String>)]
    address: Option<IpAddr>,
    /// How often it happened within a minute; more than 1 only for refused requests and started programs.
    count: u64,
    #[schema(value_type = Option<Object>)]
    detail: Option<Value>,
}

impl From<AuditRecord> for AuditEntryView {
    fn from(record: AuditRecord) -> Self {
        Self {
            id: record.id,
            created_at: record.created_at,
            action: record.action,
            object: record.object,
            object_id: record.object_id,
            room_id: record.room_id,
            workspace: record.workspace,
            user_id: record.user_id,
            user_name: record.user_name,
            role: record.role.map_or("none", |role| role.as_str()).to_owned(),
            credential: record.credential,
            credential_id: record.credential_id,
            address: record.address,
            count: record.count,
            detail: record.detail,
        }
    }
}

/// List the audit log
///
/// Who did what in this workspace, newest first, in pages: changes, sign-ins, tokens, approvals, cancels and refused
/// requests. The operator's workspace also has requests that nobody was authenticated for, and the programs that were
/// started. Entries are kept for 400 days.
#[utoipa::path(get, path = "/api/audit", tag = "audit", params(AuditParams), responses((status = 200, body = AuditPage)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(params): QueryParams<AuditParams>,
) -> Result<Json<AuditPage>, Problem> {
    let limit = match params.limit.unwrap_or(50) {
        limit @ 1..=200 => limit,
        _ => return Err(Problem::invalid("limit: a number from 1 to 200.")),
    };
    let before = params.before.as_deref().map(str::parse).transpose();
    let before = before.map_err(|_| Problem::invalid("before: the `next` of a page, which is a number."))?;
    let AuditParams { action, user_id, object, all, .. } = params;
    // One extra row shows whether there is a next page.
    let filter = AuditFilter { before, action, object, user_id, limit: limit + 1 };
    let mut found = match all {
        true => app.engine.whole_audit_log(&caller, &filter).await?,
        false => app.engine.audit_log(&caller, &filter).await?,
    };
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| more).map(|last| last.id.to_string());
    Ok(Json(AuditPage { entries: found.into_iter().map(AuditEntryView::from).collect(), next }))
}
