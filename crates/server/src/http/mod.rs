//! One file per resource: handlers turn a request into one command or query and its result into JSON. They make no
//! decisions. Start here: [`add_routes`] lists every route.

pub mod agent_files;
pub mod agents;
pub mod aliases;
pub mod approvals;
pub mod audit;
pub mod budgets;
pub mod doctor;
pub mod effective;
pub mod events;
pub mod execute;
pub mod health;
pub mod initiate;
pub mod mcp;
pub mod mcp_servers;
pub mod mcp_servers_live;
pub mod mcp_trust;
pub mod mcp_variables;
pub mod memories;
pub mod merge_patch;
pub mod messages;
pub mod named_page;
pub mod project_commands;
pub mod project_files;
pub mod project_ports;
pub mod projects;
pub mod providers;
pub mod remembered_tools;
pub mod room_forks;
pub mod room_policy;
pub mod rooms;
pub mod run_tree;
pub mod runs;
pub mod search;
pub mod session;
pub mod skill_files;
pub mod skill_training;
pub mod skill_transfer;
pub mod skill_trust;
pub mod skill_versions;
pub mod skills;
pub mod tape;
pub mod tickets;
pub mod tokens;
mod upload_body;
pub mod uploads;
pub mod usage;

use crate::{
    App,
    error::{Code, Problem},
    extract::{Fingerprint, IdempotencyKey},
    metrics, openapi, routes,
    routing::{
        Policy::{Needs, NeedsBearerOrTicket, Public},
        RouteGuard, RouterBuilder,
    },
    web,
};
use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{
    actor::Actor,
    permission::Permission::{
        Approve, ManageAgents, ManageBudgets, ManageMcpServers, ManageProviders, ManageSkills, ManageTokens, Operate,
        Post, Read, ReadAudit,
    },
};
use serde::{Deserialize, Deserializer, Serialize};
use store::IdempotentRequest;

pub fn add_routes(builder: RouterBuilder) -> RouterBuilder {
    let for_files = RouteGuard { policy: Needs(Post), max_body_bytes: uploads::MAX_BODY_BYTES, is_counted: true };
    let for_project_files = RouteGuard { max_body_bytes: project_files::MAX_BYTES, ..for_files };
    let builder = builder
        .add_health_check(routes!(health::healthz))
        .add_health_check(routes!(health::readyz))
        .add(Public, routes!(openapi::openapi_json))
        // Public, because this is how a browser signs in.
        .add(Public, routes!(session::show, session::sign_in, session::sign_out))
        .add(Needs(Operate), routes!(session::create_link))
        // For the operator: route names and counts reveal how everybody uses the server.
        .add(Needs(Operate), routes!(metrics::prometheus))
        .add(Needs(Read), routes!(providers::list))
        .add(Needs(ManageProviders), routes!(providers::create))
        .add(Needs(Read), routes!(providers::show))
        .add(Needs(ManageProviders), routes!(providers::put_settings, providers::delete_settings))
        .add(Needs(ManageProviders), routes!(providers::test))
        .add(Needs(Read), routes!(providers::models))
        .add(Needs(Read), routes!(agents::list))
        .add(Needs(ManageAgents), routes!(agents::create))
        .add(Needs(Read), routes!(agents::show))
        .add(Needs(ManageAgents), routes!(agents::change, agents::delete))
        .add(Needs(Read), routes!(agent_files::export))
        .add(Needs(ManageAgents), routes!(agent_files::import))
        .add(Needs(Read), routes!(memories::list))
        .add(Needs(ManageAgents), routes!(memories::change, memories::delete))
        .add(Needs(Read), routes!(effective::effective))
        .add(Needs(Read), routes!(mcp_servers::list))
        .add(Needs(ManageMcpServers), routes!(mcp_servers::create))
        .add(Needs(ManageMcpServers), routes!(mcp_servers::import))
        .add(Needs(Read), routes!(mcp_servers::export))
        .add(Needs(Read), routes!(mcp_servers::show))
        .add(Needs(ManageMcpServers), routes!(mcp_servers::change, mcp_servers::delete))
        .add(Needs(Read), routes!(mcp_servers_live::status))
        .add(Needs(ManageMcpServers), routes!(mcp_servers_live::test))
        .add(Needs(Read), routes!(mcp_servers_live::tools))
        .add(Needs(ManageMcpServers), routes!(mcp_servers_live::call))
        .add(Needs(ManageMcpServers), routes!(mcp_servers_live::logs))
        .add(Needs(Operate), routes!(mcp_variables::variables))
        .add(Needs(Operate), routes!(mcp_variables::allow_variable, mcp_variables::disallow_variable))
        .add(Needs(Read), routes!(projects::list))
        .add(Needs(Post), routes!(projects::create))
        .add(Needs(Read), routes!(projects::show))
        .add(Needs(Post), routes!(projects::change, projects::delete))
        .add_guarded(for_project_files, routes!(initiate::initiate))
        .add(Needs(Read), routes!(project_commands::list))
        .add(Needs(Post), routes!(project_commands::start))
        .add(Needs(Read), routes!(project_commands::show))
        .add(Needs(Post), routes!(project_commands::stop))
        .add(Needs(Read), routes!(project_commands::stream))
        .add(Needs(Read), routes!(project_ports::list_ports))
        .add(Needs(Post), routes!(project_ports::open_preview))
        .add(Needs(Read), routes!(project_files::list))
        .add_guarded(for_project_files, routes!(project_files::upload, project_files::delete))
        .add(Needs(Read), routes!(project_files::read))
        .add_guarded(for_project_files, routes!(project_files::write))
        .add(Needs(Post), routes!(project_files::rename))
        .add(Needs(Read), routes!(project_files::archive))
        .add(Needs(Read), routes!(rooms::list))
        .add(Needs(Post), routes!(rooms::create))
        .add(Needs(Read), routes!(rooms::show))
        .add(Needs(Post), routes!(rooms::change, rooms::delete))
        .add(Needs(Post), routes!(rooms::cancel))
        .add(Needs(Post), routes!(room_forks::fork))
        .add(Needs(Read), routes!(tape::show))
        .add(Needs(Post), routes!(tape::pause))
        .add(Needs(Post), routes!(tape::resume))
        .add(Needs(Post), routes!(tape::step))
        .add(Needs(Post), routes!(tape::skip))
        .add(Needs(Post), routes!(tape::insert))
        .add(Needs(Post), routes!(tape::reorder))
        .add(Needs(Post), routes!(tape::start_run))
        .add(Needs(Read), routes!(remembered_tools::remembered))
        .add(Needs(Approve), routes!(remembered_tools::forget))
        .add(Needs(Read), routes!(mcp_trust::mcp_trust))
        .add(Needs(ManageMcpServers), routes!(mcp_trust::trust_mcp, mcp_trust::distrust_mcp))
        .add(Needs(Read), routes!(skill_trust::skill_trust))
        .add(Needs(ManageSkills), routes!(skill_trust::trust_skills, skill_trust::distrust_skills))
        .add(Needs(Read), routes!(messages::history))
        .add(Needs(Post), routes!(messages::post))
        .add(Needs(Read), routes!(events::read))
        .add(Needs(Read), routes!(events::socket))
        .add(Needs(Read), routes!(runs::list))
        .add(Needs(Read), routes!(runs::show))
        .add(Needs(Read), routes!(run_tree::tree))
        .add(Needs(Read), routes!(runs::timeline))
        .add(Needs(Read), routes!(runs::context))
        .add(Needs(Read), routes!(runs::stream))
        .add(Needs(Post), routes!(runs::cancel))
        .add(Needs(Read), routes!(approvals::list))
        .add(Needs(Approve), routes!(runs::approve))
        .add_guarded(for_files, routes!(uploads::create))
        .add(Needs(Read), routes!(uploads::list))
        .add(Needs(Read), routes!(uploads::show))
        .add(Needs(Post), routes!(uploads::delete))
        .add(Needs(Read), routes!(search::search))
        .add(Needs(Read), routes!(usage::usage))
        .add(Needs(Read), routes!(budgets::list))
        .add(Needs(ManageBudgets), routes!(budgets::create))
        .add(Needs(ManageBudgets), routes!(budgets::delete))
        .add(Needs(Read), routes!(budgets::billing_status))
        .add(Needs(ManageTokens), routes!(tokens::list, tokens::create))
        .add(Needs(ManageTokens), routes!(tokens::revoke))
        .add(Needs(ReadAudit), routes!(audit::list))
        .add(Needs(Operate), routes!(doctor::examine))
        .add(Needs(Post), routes!(tickets::create))
        .add(NeedsBearerOrTicket(Post), routes!(execute::get))
        .add(Needs(Post), routes!(execute::post));
    web::add_routes(mcp::add_routes(aliases::add_routes(skills::add_routes(builder))))
}

/// The routes of a server that only executes runs: clients use the others.
pub fn add_worker_routes(builder: RouterBuilder) -> RouterBuilder {
    let builder = builder
        .add_health_check(routes!(health::healthz))
        .add_health_check(routes!(health::readyz))
        .add(Needs(Operate), routes!(metrics::prometheus));
    mcp::add_worker_routes(builder)
}

/// The response to a request that created something: 201 with its path.
pub struct Created<T> {
    location: String,
    body: T,
}

impl<T> Created<T> {
    /// `id` is the last segment of the path; an id or a name without characters that a URL escapes.
    pub fn at(collection: &str, id: impl std::fmt::Display, body: T) -> Self {
        Self { location: format!("{collection}/{id}"), body }
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, [(header::LOCATION, self.location)], Json(self.body)).into_response()
    }
}

/// The idempotency key of a request with its fingerprint, if the client sent a key.
fn attempt(key: IdempotencyKey, fingerprint: Fingerprint) -> Option<IdempotentRequest> {
    key.0.map(|key| IdempotentRequest { key, fingerprint: fingerprint.0 })
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PurgeParams {
    /// Erase it without waiting for the grace period (`store.erase_after_seconds`). For owners and admins. What is deleted
    /// already can be purged too.
    #[serde(default)]
    purge: bool,
}

/// Tells `null` from a field that is left out: for a field with `default`.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The outcome of an idempotent write.
enum WriteOutcome<T> {
    Done(T),
    /// An earlier request with the same key did it; this is the id of its result.
    AlreadyDone(String),
}

async fn run_once<T>(
    app: &App,
    actor: &Actor,
    attempt: Option<&IdempotentRequest>,
    write: impl Future<Output = Result<T, Problem>>,
) -> Result<WriteOutcome<T>, Problem> {
    if let Some(id) = app.engine.earlier_result(actor, attempt).await? {
        return Ok(WriteOutcome::AlreadyDone(id));
    }
    match write.await {
        // A concurrent request with the same key, perhaps a delete, was faster: return its result.
        Err(problem) if matches!(problem.code(), Code::IdempotencyConflict | Code::NotFound) => {
            app.engine.earlier_result(actor, attempt).await?.map(WriteOutcome::AlreadyDone).ok_or(problem)
        }
        done => done.map(WriteOutcome::Done),
    }
}
