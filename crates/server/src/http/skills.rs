//! Skills. Versions, files, archives and training have files of their own.

use crate::{
    App,
    auth::Caller,
    doors::{Doors, Policy},
    error::{Code, Problem, ProblemSchema},
    extract::{Body, Fingerprint, Id, IdempotencyKey, Params, json},
    http::{Write, attempt, merge, once, skill_files, skill_training, skill_transfer, skill_versions},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    ids::SkillId,
    name::Name,
    owner::Owner,
    skill::{FileEntry, Finding, Given, Level, Parameter, Skill, SkillName, SkillSpec},
    time::Timestamp,
};
use engine::commands::{CheckedSkill, Revision, check_document, check_spec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::SkillFigures;
use utoipa_axum::routes;

pub fn open(doors: Doors) -> Doors {
    doors
        .open(Policy::Owner, routes!(list, create))
        .open(Policy::Owner, routes!(check))
        .open(Policy::Owner, routes!(skill_transfer::import))
        .open(Policy::Owner, routes!(show, change, delete))
        .open(Policy::Owner, routes!(skill_versions::versions))
        .open(Policy::Owner, routes!(skill_versions::version))
        .open(Policy::Owner, routes!(skill_versions::restore))
        .open(Policy::Owner, routes!(skill_files::read, skill_files::write, skill_files::remove))
        .open(Policy::Owner, routes!(skill_transfer::export))
        .open(Policy::Owner, routes!(skill_training::training, skill_training::begin))
        .open(Policy::Owner, routes!(skill_training::rate))
        .open(Policy::Owner, routes!(skill_training::propose))
        .open(Policy::Owner, routes!(skill_training::proposal))
        .open(Policy::Owner, routes!(skill_training::accept))
        .open(Policy::Owner, routes!(skill_training::reject))
}

/// A skill as it is now
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Skill)]
pub struct SkillView {
    id: SkillId,
    #[serde(flatten)]
    spec: SkillSpec,
    /// The number of the newest version.
    version: u32,
    files: Vec<FileEntry>,
    /// What is worth a look.
    findings: Vec<Finding>,
    /// 0 to 100, from its training; `null` before the first rating.
    experience: Option<u8>,
    usage: SkillUsage,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct SkillSummary {
    id: SkillId,
    name: SkillName,
    display_name: Option<Name>,
    description: String,
    category: Option<String>,
    label: Option<String>,
    parameters: Vec<Parameter>,
    version: u32,
    file_count: usize,
    experience: Option<u8>,
    usage: SkillUsage,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// `offered` counts runs that had the skill; the others are of runs that a person invoked it in.
#[derive(Serialize, Default, utoipa::ToSchema)]
pub struct SkillUsage {
    offered: u64,
    invoked: u64,
    completed: u64,
    failed: u64,
    stopped: u64,
    last_used_at: Option<Timestamp>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct SkillList {
    skills: Vec<SkillSummary>,
    /// Skills that lie in the data folder.
    folders: Vec<FolderSkill>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct FolderSkill {
    name: String,
    description: Option<String>,
}

/// The skills there are
#[utoipa::path(get, path = "/api/skills", tag = "skills", responses((status = 200, body = SkillList)))]
pub async fn list(State(app): State<App>, caller: Caller) -> Result<Json<SkillList>, Problem> {
    let store = app.engine.store();
    let (skills, figures) = tokio::try_join!(store.skills(&caller.owner), store.skill_figures(&caller.owner))?;
    let summary = |skill: Skill| {
        let usage = figures.get(&skill.id).copied().map_or_else(SkillUsage::default, usage);
        let Skill { id, spec, version, files, experience, created_at, updated_at } = skill;
        let SkillSpec { name, display_name, description, category, label, parameters, .. } = spec;
        let file_count = files.len();
        SkillSummary {
            id,
            name,
            display_name,
            description,
            category,
            label,
            parameters,
            version,
            file_count,
            experience,
            usage,
            created_at,
            updated_at,
        }
    };
    let folders = app.engine.folder_skills().await?.into_iter();
    let folders = folders.map(|(name, description)| FolderSkill { name, description }).collect();
    Ok(Json(SkillList { skills: skills.into_iter().map(summary).collect(), folders }))
}

/// Make a skill
#[utoipa::path(post, path = "/api/skills", tag = "skills", request_body = SkillSpec,
               responses((status = 201, body = SkillView),
                         (status = 422, description = "It breaks a rule; `findings` says which",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    Body(spec, fingerprint): Body<SkillSpec>,
) -> Result<(StatusCode, Json<SkillView>), Problem> {
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.create_skill(owner, spec, attempt.as_ref()).await?) };
    let done = once(&app, owner, attempt.as_ref(), write).await?;
    Ok((StatusCode::CREATED, Json(settled(&app, owner, done).await?)))
}

/// One skill
#[utoipa::path(get, path = "/api/skills/{name}", tag = "skills", params(("name" = String, Path)),
               responses((status = 200, body = SkillView)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(name): Id<SkillName>) -> Result<Json<SkillView>, Problem> {
    let skill = app.engine.store().skill(&caller.owner, &name).await?;
    Ok(Json(view(&app, &caller.owner, skill).await?))
}

/// What a change is made from, and why
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChangeParams {
    /// The version you have seen; 409 if there is a newer one.
    base: Option<u32>,
    /// Why, for the list of versions.
    note: Option<String>,
}

impl From<ChangeParams> for Revision {
    fn from(ChangeParams { base, note }: ChangeParams) -> Self {
        Self { base, note }
    }
}

/// Change a skill
///
/// A merge patch (RFC 7396): what the body names is replaced, `null` clears, the rest stays. It makes a new version, which
/// the next run gets; runs that have begun keep theirs.
#[utoipa::path(patch, path = "/api/skills/{name}", tag = "skills", params(("name" = String, Path), ChangeParams),
               request_body = Value,
               responses((status = 200, body = SkillView),
                         (status = 409, description = "There is a newer version than `base`",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "It breaks a rule; `findings` says which",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    Params(params): Params<ChangeParams>,
    key: IdempotencyKey,
    Body(patch, fingerprint): Body<Value>,
) -> Result<Json<SkillView>, Problem> {
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async {
        let current = app.engine.store().skill(owner, &name).await?;
        let spec: SkillSpec = merge(&current.spec, patch)?;
        Ok(app.engine.change_skill(owner, current, spec, params.into(), attempt.as_ref()).await?)
    };
    let done = once(&app, owner, attempt.as_ref(), write).await?;
    Ok(Json(settled(&app, owner, done).await?))
}

/// Delete a skill
///
/// With its versions, files and training history. Agents that name it fail until they do not; runs that have begun go on.
#[utoipa::path(delete, path = "/api/skills/{name}", tag = "skills", params(("name" = String, Path)),
               responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.store().delete_skill(owner, &name, attempt.as_ref()).await?) };
    once(&app, owner, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What is to be checked: a document, or settings
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// A whole `SKILL.md`.
    text: Option<String>,
    /// Or the settings of a skill.
    skill: Option<Value>,
    /// Values to fill in for the preview.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    values: Given,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct CheckView {
    /// What was understood of it.
    skill: Option<SkillSpec>,
    findings: Vec<Finding>,
    /// The `SKILL.md` that a run would get.
    preview: Option<String>,
}

/// Check a skill without keeping it
///
/// Takes a `SKILL.md` or a skill's settings and says what is wrong with it and how a run would get it.
#[utoipa::path(post, path = "/api/skills/check", tag = "skills", request_body = CheckRequest,
               responses((status = 200, body = CheckView)))]
pub async fn check(
    _: Caller,
    _: IdempotencyKey,
    Body(request, _): Body<CheckRequest>,
) -> Result<Json<CheckView>, Problem> {
    let checked = match (request.text, request.skill) {
        (Some(text), None) => check_document(&text, &request.values),
        (None, Some(skill)) => match json::parse::<SkillSpec>(skill.to_string().as_bytes()) {
            Ok(spec) => check_spec(spec, &request.values),
            Err(problem) => {
                let finding = Finding::error(problem.pointer(), problem.detail().to_owned());
                CheckedSkill { skill: None, findings: vec![finding], preview: None }
            }
        },
        _ => return Err(Problem::invalid("Send either `text` or `skill`.")),
    };
    let CheckedSkill { skill, findings, preview } = checked;
    Ok(Json(CheckView { skill, findings, preview }))
}

/// The skill that a write made or changed, now or when it was first sent.
pub(super) async fn settled(app: &App, owner: &Owner, done: Write<Skill>) -> Result<SkillView, Problem> {
    let skill = match done {
        Write::Now(skill) => skill,
        Write::Before(name) => {
            let name = name.parse().map_err(|_| Problem::new(Code::NotFound, "The skill is gone."))?;
            app.engine.store().skill(owner, &name).await?
        }
    };
    view(app, owner, skill).await
}

async fn view(app: &App, owner: &Owner, skill: Skill) -> Result<SkillView, Problem> {
    let figures = app.engine.store().skill_figures(owner).await?;
    let usage = figures.get(&skill.id).copied().map_or_else(SkillUsage::default, usage);
    let Skill { id, spec, version, files, experience, created_at, updated_at } = skill;
    let findings = spec.findings().into_iter().filter(|finding| finding.level == Level::Warning).collect();
    Ok(SkillView { id, spec, version, files, findings, experience, usage, created_at, updated_at })
}

fn usage(figures: SkillFigures) -> SkillUsage {
    let SkillFigures { offered, invoked, completed, failed, stopped, last_used_at } = figures;
    SkillUsage { offered, invoked, completed, failed, stopped, last_used_at }
}
