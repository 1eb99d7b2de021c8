//! One file per resource: handlers turn a request into one command or query and its result into JSON. They make no
//! decisions. Start here: [`add_routes`] lists every route.

pub mod agents;
pub mod doctor;
pub mod effective;
pub mod events;
pub mod execute;
pub mod health;
pub mod mcp;
pub mod mcp_servers;
pub mod mcp_servers_live;
pub mod mcp_trust;
pub mod messages;
pub mod providers;
pub mod remembered_tools;
pub mod rooms;
pub mod runs;
pub mod session;
pub mod skill_files;
pub mod skill_training;
pub mod skill_transfer;
pub mod skill_versions;
pub mod skills;
pub mod tokens;
pub mod uploads;
pub mod usage;

use crate::{
    App,
    error::{Code, Problem},
    extract::{Fingerprint, IdempotencyKey},
    metrics, openapi,
    routing::{AccessPolicy, RouteGuard, RouterBuilder},
    web,
};
use domain::actor::Actor;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use store::IdempotentRequest;
use utoipa_axum::routes;

pub fn add_routes(builder: RouterBuilder) -> RouterBuilder {
    let for_files = RouteGuard { policy: AccessPolicy::Owner, max_body_bytes: uploads::MAX_BYTES };
    let builder = builder
        .add(AccessPolicy::Public, routes!(health::healthz))
        .add(AccessPolicy::Public, routes!(health::readyz))
        .add(AccessPolicy::Public, routes!(openapi::openapi_json))
        // Public, because this is how a browser signs in.
        .add(AccessPolicy::Public, routes!(session::show, session::sign_in, session::sign_out))
        // Not public: route names and counts reveal how the server is used.
        .add(AccessPolicy::Owner, routes!(metrics::prometheus))
        .add(AccessPolicy::Owner, routes!(providers::list))
        .add(AccessPolicy::Owner, routes!(agents::list, agents::create))
        .add(AccessPolicy::Owner, routes!(agents::show, agents::change, agents::delete))
        .add(AccessPolicy::Owner, routes!(effective::effective))
        .add(AccessPolicy::Owner, routes!(mcp_servers::list, mcp_servers::create))
        .add(AccessPolicy::Owner, routes!(mcp_servers::import))
        .add(AccessPolicy::Owner, routes!(mcp_servers::export))
        .add(AccessPolicy::Owner, routes!(mcp_servers::show, mcp_servers::change, mcp_servers::delete))
        .add(AccessPolicy::Owner, routes!(mcp_servers_live::status))
        .add(AccessPolicy::Owner, routes!(mcp_servers_live::test))
        .add(AccessPolicy::Owner, routes!(mcp_servers_live::tools))
        .add(AccessPolicy::Owner, routes!(mcp_servers_live::call))
        .add(AccessPolicy::Owner, routes!(mcp_servers_live::logs))
        .add(AccessPolicy::Owner, routes!(rooms::list, rooms::create))
        .add(AccessPolicy::Owner, routes!(rooms::show, rooms::change, rooms::delete))
        .add(AccessPolicy::Owner, routes!(rooms::cancel))
        .add(AccessPolicy::Owner, routes!(remembered_tools::remembered))
        .add(AccessPolicy::Owner, routes!(remembered_tools::forget))
        .add(AccessPolicy::Owner, routes!(mcp_trust::mcp_trust, mcp_trust::trust_mcp, mcp_trust::distrust_mcp))
        .add(AccessPolicy::Owner, routes!(messages::history, messages::post))
        .add(AccessPolicy::Owner, routes!(events::read))
        .add(AccessPolicy::Owner, routes!(events::socket))
        .add(AccessPolicy::Owner, routes!(runs::list))
        .add(AccessPolicy::Owner, routes!(runs::show))
        .add(AccessPolicy::Owner, routes!(runs::timeline))
        .add(AccessPolicy::Owner, routes!(runs::stream))
        .add(AccessPolicy::Owner, routes!(runs::cancel))
        .add(AccessPolicy::Owner, routes!(runs::approve))
        .add_guarded(for_files, routes!(uploads::create))
        .add(AccessPolicy::Owner, routes!(uploads::show, uploads::delete))
        .add(AccessPolicy::Owner, routes!(usage::usage))
        .add(AccessPolicy::Owner, routes!(tokens::list, tokens::create))
        .add(AccessPolicy::Owner, routes!(tokens::revoke))
        .add(AccessPolicy::Owner, routes!(doctor::examine))
        .add(AccessPolicy::Owner, routes!(execute::get, execute::post));
    web::add_routes(mcp::add_routes(skills::add_routes(builder)))
}

/// The idempotency key of a request with its fingerprint, if the client sent a key.
fn attempt(key: IdempotencyKey, fingerprint: Fingerprint) -> Option<IdempotentRequest> {
    key.0.map(|key| IdempotentRequest { key, fingerprint: fingerprint.0 })
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

/// Applies a merge patch (RFC 7396) to one level of settings: named fields are replaced, `null` clears a field.
fn apply_merge_patch<T: Serialize + DeserializeOwned>(current: &T, patch: Value) -> Result<T, Problem> {
    let Value::Object(patch) = patch else {
        return Err(Problem::invalid("The body must be an object with the settings to change."));
    };
    let mut merged = serde_json::to_value(current).map_err(Problem::internal)?;
    if let Value::Object(settings) = &mut merged {
        for (name, value) in patch {
            match value {
                Value::Null => drop(settings.remove(&name)),
                value => drop(settings.insert(name, value)),
            }
        }
    }
    serde_path_to_error::deserialize(merged).map_err(|error| {
        let path = error.path().to_string();
        Problem::invalid(format!("{path}: {}", error.into_inner()))
    })
}
