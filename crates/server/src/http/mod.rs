//! One file per resource: handlers turn a request into one command or query and its result into JSON. They decide
//! nothing. Start here: [`open`] lists every door there is.

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
pub mod remembered;
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
    doors::{Doors, Gate, Policy},
    error::{Code, Problem},
    extract::{Fingerprint, IdempotencyKey},
    metrics, openapi, web,
};
use domain::owner::Owner;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use store::Attempt;
use utoipa_axum::routes;

pub fn open(doors: Doors) -> Doors {
    let for_files = Gate { policy: Policy::Owner, body_bytes: uploads::MAX_BYTES };
    let doors = doors
        .open(Policy::Public, routes!(health::healthz))
        .open(Policy::Public, routes!(health::readyz))
        .open(Policy::Public, routes!(openapi::openapi_json))
        // How one comes to be let in, so it cannot ask for that.
        .open(Policy::Public, routes!(session::show, session::sign_in, session::sign_out))
        // Route names and counts tell of use; they are the owner's.
        .open(Policy::Owner, routes!(metrics::prometheus))
        .open(Policy::Owner, routes!(providers::list))
        .open(Policy::Owner, routes!(agents::list, agents::create))
        .open(Policy::Owner, routes!(agents::show, agents::change, agents::delete))
        .open(Policy::Owner, routes!(effective::effective))
        .open(Policy::Owner, routes!(mcp_servers::list, mcp_servers::create))
        .open(Policy::Owner, routes!(mcp_servers::import))
        .open(Policy::Owner, routes!(mcp_servers::export))
        .open(Policy::Owner, routes!(mcp_servers::show, mcp_servers::change, mcp_servers::delete))
        .open(Policy::Owner, routes!(mcp_servers_live::status))
        .open(Policy::Owner, routes!(mcp_servers_live::test))
        .open(Policy::Owner, routes!(mcp_servers_live::tools))
        .open(Policy::Owner, routes!(mcp_servers_live::call))
        .open(Policy::Owner, routes!(mcp_servers_live::logs))
        .open(Policy::Owner, routes!(rooms::list, rooms::create))
        .open(Policy::Owner, routes!(rooms::show, rooms::change, rooms::delete))
        .open(Policy::Owner, routes!(rooms::cancel))
        .open(Policy::Owner, routes!(remembered::remembered))
        .open(Policy::Owner, routes!(remembered::forget))
        .open(Policy::Owner, routes!(mcp_trust::mcp_trust, mcp_trust::trust_mcp, mcp_trust::distrust_mcp))
        .open(Policy::Owner, routes!(messages::history, messages::post))
        .open(Policy::Owner, routes!(events::read))
        .open(Policy::Owner, routes!(events::socket))
        .open(Policy::Owner, routes!(runs::list))
        .open(Policy::Owner, routes!(runs::show))
        .open(Policy::Owner, routes!(runs::timeline))
        .open(Policy::Owner, routes!(runs::stream))
        .open(Policy::Owner, routes!(runs::cancel))
        .open(Policy::Owner, routes!(runs::approve))
        .open_for(for_files, routes!(uploads::create))
        .open(Policy::Owner, routes!(uploads::show, uploads::delete))
        .open(Policy::Owner, routes!(usage::usage))
        .open(Policy::Owner, routes!(tokens::list, tokens::create))
        .open(Policy::Owner, routes!(tokens::revoke))
        .open(Policy::Owner, routes!(doctor::examine))
        .open(Policy::Owner, routes!(execute::get, execute::post));
    web::open(mcp::open(skills::open(doors)))
}

/// The request as something that may be tried again, if its client said so.
fn attempt(key: IdempotencyKey, fingerprint: Fingerprint) -> Option<Attempt> {
    key.0.map(|key| Attempt { key, fingerprint: fingerprint.0 })
}

/// What a write that may be tried again came to.
enum Write<T> {
    Now(T),
    /// A request with the same key did it, and this is the id of what it made.
    Before(String),
}

async fn once<T>(
    app: &App,
    owner: &Owner,
    attempt: Option<&Attempt>,
    write: impl Future<Output = Result<T, Problem>>,
) -> Result<Write<T>, Problem> {
    if let Some(id) = app.engine.earlier(owner, attempt).await? {
        return Ok(Write::Before(id));
    }
    match write.await {
        // Someone with the same key was quicker, perhaps in deleting it: answer as they were answered.
        Err(problem) if matches!(problem.code(), Code::IdempotencyConflict | Code::NotFound) => {
            app.engine.earlier(owner, attempt).await?.map(Write::Before).ok_or(problem)
        }
        done => done.map(Write::Now),
    }
}

/// A merge patch (RFC 7396) on one level of settings: what is named is replaced, `null` clears.
fn merge<T: Serialize + DeserializeOwned>(current: &T, patch: Value) -> Result<T, Problem> {
    let Value::Object(patch) = patch else {
        return Err(Problem::invalid("The body is an object with the settings to change."));
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
