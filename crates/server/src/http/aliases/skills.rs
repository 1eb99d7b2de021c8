//! `/api/strapi/skills`: skills with the field names of a content management system.

use super::{AliasPage, AliasPageInfo};
use crate::{
    App,
    auth::Caller,
    error::Problem,
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
    http::{WriteOutcome, attempt, run_once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    actor::Actor,
    ids::SkillId,
    name::Name,
    skill::{ParameterValues, Skill, SkillName, SkillSpec},
    time::Timestamp,
};
use engine::{
    EngineError,
    commands::{SkillRevision, check_document},
};
use serde::{Deserialize, Serialize};
use store::StoreError;

/// A skill. Other fields are ignored.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrapiSkillSpec {
    /// The name of the skill; required to create one.
    name: Option<SkillName>,
    /// The name shown to people.
    display_name: Option<Name>,
    /// What the skill does and when to use it.
    description: Option<String>,
    /// A complete `SKILL.md`, or only its body.
    skillmd: Option<String>,
    /// A word to group skills by.
    category: Option<String>,
    /// The author's version label.
    version: Option<String>,
    /// The license of the skill.
    license: Option<String>,
    /// Tools that need no approval when a user invokes the skill.
    allowed_tools: Option<Vec<String>>,
    /// Tools that no run with this skill may use.
    disallowed_tools: Option<Vec<String>>,
}

impl StrapiSkillSpec {
    /// The settings of a new skill.
    fn into_new(self) -> Result<SkillSpec, Problem> {
        let missing = |field: &str| {
            Problem::unprocessable(format!("{field}: a skill needs it.")).with("pointer", format!("/{field}"))
        };
        let name = self.name.clone().ok_or_else(|| missing("name"))?;
        let description = self.description.clone().unwrap_or_default();
        self.apply(SkillSpec::new(name, description, String::new()))
    }

    /// The settings with the fields that are present.
    fn apply(self, current: SkillSpec) -> Result<SkillSpec, Problem> {
        let mut spec = match self.skillmd {
            Some(text) if text.trim_start().starts_with("---") => {
                let checked = check_document(&text, &ParameterValues::new());
                let spec = checked.skill.ok_or(EngineError::Findings(checked.findings))?;
                SkillSpec { name: current.name, ..spec }
            }
            Some(body) => SkillSpec { body, ..current },
            None => current,
        };
        spec.description = self.description.unwrap_or(spec.description);
        spec.display_name = self.display_name.or(spec.display_name);
        spec.category = self.category.or(spec.category);
        spec.label = self.version.or(spec.label);
        spec.license = self.license.or(spec.license);
        spec.tools.allow = self.allowed_tools.unwrap_or(spec.tools.allow);
        spec.tools.deny = self.disallowed_tools.unwrap_or(spec.tools.deny);
        Ok(spec)
    }
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrapiSkill {
    /// The id of the skill.
    id: SkillId,
    /// The name of the skill.
    #[schema(value_type = String)]
    name: SkillName,
    /// The name shown to people.
    display_name: Option<Name>,
    /// What the skill does and when to use it.
    description: String,
    /// The body of its `SKILL.md`.
    skillmd: String,
    /// A word to group skills by.
    category: Option<String>,
    /// The author's version label.
    version: Option<String>,
    /// The license of the skill.
    license: Option<String>,
    /// 0 to 100, from its training ratings; `null` before the first rating.
    experience_score: Option<u8>,
    /// Tools that need no approval when a user invokes the skill.
    allowed_tools: Vec<String>,
    /// Tools that no run with this skill may use.
    disallowed_tools: Vec<String>,
    /// When the skill was created.
    created_at: Timestamp,
    /// When the skill was last changed.
    updated_at: Timestamp,
}

impl From<Skill> for StrapiSkill {
    fn from(skill: Skill) -> Self {
        let Skill { id, spec, experience, created_at, updated_at, .. } = skill;
        Self {
            id,
            name: spec.name,
            display_name: spec.display_name,
            description: spec.description,
            skillmd: spec.body,
            category: spec.category,
            version: spec.label,
            license: spec.license,
            experience_score: experience,
            allowed_tools: spec.tools.allow,
            disallowed_tools: spec.tools.deny,
            created_at,
            updated_at,
        }
    }
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct StrapiSkillList {
    /// The skills of the page.
    data: Vec<StrapiSkill>,
    /// Which page it is.
    meta: AliasPageInfo,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct StrapiSkillSaved {
    /// Always true; an error is a problem with its status.
    success: bool,
    /// The skill as it is now.
    skill: StrapiSkill,
    /// What was done, for people.
    message: &'static str,
}

/// List skills at another server's path
///
/// Alias of `GET /api/skills`.
#[utoipa::path(get, path = "/api/strapi/skills", tag = "aliases", params(AliasPage),
               responses((status = 200, body = StrapiSkillList)))]
pub async fn list_strapi_skills(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<AliasPage>,
) -> Result<Json<StrapiSkillList>, Problem> {
    let skills = app.engine.queries().skills(&caller.workspace).await?;
    let (skills, meta) = page.select(skills, |skill| [skill.spec.name.to_string(), skill.spec.description.clone()]);
    Ok(Json(StrapiSkillList { data: skills.into_iter().map(StrapiSkill::from).collect(), meta }))
}

/// Get a skill at another server's path
///
/// Alias of `GET /api/skills/{name}`; takes the id or the name.
#[utoipa::path(get, path = "/api/strapi/skills/{id}", tag = "aliases", params(("id" = String, Path)),
               responses((status = 200, body = StrapiSkill)))]
pub async fn get_strapi_skill(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<String>,
) -> Result<Json<StrapiSkill>, Problem> {
    Ok(Json(find(&app, &caller, &id).await?.into()))
}

async fn find(app: &App, actor: &Actor, id: &str) -> Result<Skill, Problem> {
    if let Ok(name) = id.parse::<SkillName>() {
        match app.engine.queries().skill(&actor.workspace, &name).await {
            // An id may look like a name.
            Err(StoreError::NotFound) => {}
            found => return Ok(found?),
        }
    }
    let id: SkillId = id.parse().map_err(|_| Problem::not_found())?;
    let mut skills = app.engine.queries().skills(&actor.workspace).await?.into_iter();
    skills.find(|skill| skill.id == id).ok_or_else(Problem::not_found)
}

/// Create a skill at another server's path
///
/// Alias of `POST /api/skills`.
#[utoipa::path(post, path = "/api/strapi/skills", tag = "aliases", request_body = StrapiSkillSpec,
               responses((status = 201, body = StrapiSkillSaved)))]
pub async fn create_strapi_skill(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(body, fingerprint): JsonBody<StrapiSkillSpec>,
) -> Result<(StatusCode, Json<StrapiSkillSaved>), Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let spec = body.into_new()?;
    let write = async { Ok(app.engine.create_skill(actor, spec, attempt.as_ref()).await?) };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    let skill = written(&app, actor, done).await?.into();
    Ok((StatusCode::CREATED, Json(StrapiSkillSaved { success: true, skill, message: "Skill created" })))
}

async fn written(app: &App, actor: &Actor, done: WriteOutcome<Skill>) -> Result<Skill, Problem> {
    match done {
        WriteOutcome::Done(skill) => Ok(skill),
        WriteOutcome::AlreadyDone(name) => find(app, actor, &name).await,
    }
}

/// Update a skill at another server's path
///
/// Alias of `PATCH /api/skills/{name}`: fields in the body are replaced, all others stay. The name stays, too.
#[utoipa::path(put, path = "/api/strapi/skills/{id}", tag = "aliases", params(("id" = String, Path)),
               request_body = StrapiSkillSpec, responses((status = 200, body = StrapiSkillSaved)))]
pub async fn update_strapi_skill(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<String>,
    key: IdempotencyKey,
    JsonBody(body, fingerprint): JsonBody<StrapiSkillSpec>,
) -> Result<Json<StrapiSkillSaved>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async {
        let current = find(&app, actor, &id).await?;
        let spec = body.apply(current.spec.clone())?;
        let revision = SkillRevision { base: None, note: None };
        Ok(app.engine.change_skill(actor, current, spec, revision, attempt.as_ref()).await?)
    };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    let skill = written(&app, actor, done).await?.into();
    Ok(Json(StrapiSkillSaved { success: true, skill, message: "Skill updated" }))
}

/// Delete a skill at another server's path
///
/// Alias of `DELETE /api/skills/{name}`.
#[utoipa::path(delete, path = "/api/strapi/skills/{id}", tag = "aliases", params(("id" = String, Path)),
               responses((status = 204)))]
pub async fn delete_strapi_skill(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<String>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async {
        let skill = find(&app, actor, &id).await?;
        Ok(app.engine.delete_skill(actor, &skill.spec.name, attempt.as_ref()).await?)
    };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}
