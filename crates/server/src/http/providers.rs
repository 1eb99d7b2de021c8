//! Providers: the adapters that can run agents, and what a workspace sets for them. Keys go in and never come out.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody},
    http::{Created, WriteOutcome, attempt, run_once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::provider_settings::{ModelLimits, ProviderSettings};
use engine::commands::{ModelView, NewEndpoint, ProviderTestView, ProviderView, SettingsPatch};
use serde::{Deserialize, Serialize};

#[derive(Serialize, utoipa::ToSchema)]
pub struct ProviderList {
    /// The providers, by id.
    providers: Vec<ProviderView>,
}

/// List providers
///
/// The providers of the server and those that the workspace has added: whether each is ready and the one thing to do, whose
/// key it uses, its capabilities. Programs are inspected once a minute; model servers on the server's machine (Ollama,
/// LM Studio) are looked for with each request.
#[utoipa::path(get, path = "/api/providers", tag = "providers", responses((status = 200, body = ProviderList)))]
pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<ProviderList>, Problem> {
    Ok(Json(ProviderList { providers: app.engine.providers_of(&caller).await? }))
}

/// Get a provider
///
/// As the list has it.
#[utoipa::path(get, path = "/api/providers/{id}", tag = "providers", params(("id" = String, Path)),
               responses((status = 200, body = ProviderView)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(id): Id<String>) -> Result<Json<ProviderView>, Problem> {
    Ok(Json(app.engine.provider_view(&caller, &id).await?))
}

/// A model API with chat completions, such as OpenRouter, vLLM or a company's gateway.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"id": "openrouter", "label": "OpenRouter", "base_url": "https://openrouter.ai/api/v1", "key": "sk-or-…"}))]
pub struct NewProvider {
    /// The name that agents set as their `provider`.
    #[schema(pattern = "^[a-z0-9_-]{1,64}$")]
    id: String,
    /// What people call it.
    label: Option<String>,
    /// The address to which `/chat/completions` is added.
    base_url: String,
    /// Stored encrypted, and never returned.
    #[schema(write_only)]
    key: Option<String>,
    /// The model of agents that choose none.
    default_model: Option<String>,
    /// Limits of model calls, for agents that do not set their own.
    #[serde(default)]
    limits: ModelLimits,
}

/// Add a provider
///
/// A server with OpenAI's chat completions. Its address must be public, unless the workspace is the operator's or the operator
/// allows it.
#[utoipa::path(post, path = "/api/providers", tag = "providers", request_body = NewProvider,
               responses((status = 201, body = ProviderView),
                         (status = 409, description = "A provider with this id already exists",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "The settings are not valid, or the address is not allowed",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(new, fingerprint): JsonBody<NewProvider>,
) -> Result<Created<ProviderView>, Problem> {
    let (engine, actor, attempt) = (&app.engine, &*caller, attempt(key, fingerprint));
    let NewProvider { id, label, base_url, key, default_model, limits } = new;
    let settings = ProviderSettings { is_endpoint: true, label, base_url: Some(base_url), key, default_model, limits };
    let endpoint = NewEndpoint { name: id, settings };
    let write = async { Ok(engine.create_endpoint(actor, endpoint, attempt.as_ref()).await?) };
    let provider = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(provider) => provider,
        WriteOutcome::AlreadyDone(id) => engine.provider_view(actor, &id).await?,
    };
    Ok(Created::at("/api/providers", provider.id.clone(), provider))
}

/// What a workspace sets for a provider.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ProviderSettings, example = json!({"key": "sk-ant-…", "default_model": "claude-sonnet-4-5"}))]
pub struct ProviderSettingsBody {
    /// Stored encrypted, and never returned. Left out: a stored key stays, unless `base_url` changes. `null` removes it.
    #[serde(default, deserialize_with = "super::present")]
    #[schema(value_type = Option<String>, write_only)]
    key: Option<Option<String>>,
    /// The address of the model API; left out for the server's.
    base_url: Option<String>,
    /// What people call a provider that the workspace has added.
    label: Option<String>,
    /// The model of agents that choose none.
    default_model: Option<String>,
    /// Limits of model calls, for agents that do not set their own.
    #[serde(default)]
    limits: ModelLimits,
}

/// Set a provider's settings
///
/// Replaces the settings; fields that are left out are cleared, except for the key. They hold from the next run on, on every
/// server. A key or an address of the workspace comes before the server's: its key is used for nothing then.
#[utoipa::path(put, path = "/api/providers/{id}/settings", tag = "providers", params(("id" = String, Path)),
               request_body = ProviderSettingsBody,
               responses((status = 200, body = ProviderView),
                         (status = 422, description = "A setting is not valid, or belongs to another provider",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn put_settings(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<String>,
    key: IdempotencyKey,
    JsonBody(body, fingerprint): JsonBody<ProviderSettingsBody>,
) -> Result<Json<ProviderView>, Problem> {
    let (engine, actor, attempt) = (&app.engine, &*caller, attempt(key, fingerprint));
    let ProviderSettingsBody { key, base_url, label, default_model, limits } = body;
    let patch = SettingsPatch { key, base_url, label, default_model, limits };
    let write = async { Ok(engine.put_provider_settings(actor, &id, patch, attempt.as_ref()).await?) };
    Ok(Json(match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(provider) => provider,
        WriteOutcome::AlreadyDone(id) => engine.provider_view(actor, &id).await?,
    }))
}

/// Delete a provider's settings
///
/// The server's own key and address are used again. A provider that the workspace has added is deleted: runs of its agents
/// fail with `no_provider`.
#[utoipa::path(delete, path = "/api/providers/{id}/settings", tag = "providers", params(("id" = String, Path)),
               responses((status = 204)))]
pub async fn delete_settings(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<String>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (engine, actor, attempt) = (&app.engine, &*caller, attempt(key, fingerprint));
    let write = async { Ok(engine.delete_provider_settings(actor, &id, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Test a provider
///
/// Makes a real and cheap call within ten seconds: the program prints its version, the model API lists its models. The response
/// is 200 whether or not it works; `message` says what is wrong.
#[utoipa::path(post, path = "/api/providers/{id}/test", tag = "providers", params(("id" = String, Path)),
               responses((status = 200, body = ProviderTestView)))]
pub async fn test(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<String>,
) -> Result<Json<ProviderTestView>, Problem> {
    Ok(Json(app.engine.test_provider(&caller, &id).await?))
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ModelList {
    /// By id; at most 1,000.
    models: Vec<ModelView>,
}

/// List a provider's models
///
/// As its API lists them; for a program, those of the API that it calls. Cached for a minute.
#[utoipa::path(get, path = "/api/providers/{id}/models", tag = "providers", params(("id" = String, Path)),
               responses((status = 200, body = ModelList),
                         (status = 502, description = "The API does not answer, rejects the key, or lists no models",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn models(State(app): State<App>, caller: Caller, Id(id): Id<String>) -> Result<Json<ModelList>, Problem> {
    Ok(Json(ModelList { models: app.engine.provider_models(&caller, &id).await? }))
}
