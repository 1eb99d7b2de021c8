//! Skills. Versions, files, archives and training are in separate files.

use crate::{
    App,
    auth::Caller,
    error::{Code, Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams, json},
    http::{
        Created, WriteOutcome, attempt, merge_patch::MergePatch, named_page::NamedPageParams, run_once, skill_files,
        skill_training, skill_transfer, skill_versions,
    },
    routes,
    routing::{Policy::Needs, RouterBuilder},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    actor::Actor,
    ids::SkillId,
    name::Name,
    permission::Permission::{ManageSkills, Read},
    skill::{
        FileEntry, FindingLevel, Parameter, ParameterValues, Skill, SkillFinding, SkillName, SkillRequests, SkillSpec,
    },
    time::Timestamp,
};
use engine::commands::{CheckedSkill, SkillRevision, check_document, check_spec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::SkillStats;

pub fn add_routes(builder: RouterBuilder) -> RouterBuilder {
    builder
        .add(Needs(Read), routes!(list))
        .add(Needs(ManageSkills), routes!(create))
        .add(Needs(Read), routes!(check))
        .add(Needs(ManageSkills), routes!(skill_transfer::import))
        .add(Needs(ManageSkills), routes!(skill_transfer::accept_import))
        .add(Needs(Read), routes!(show))
        .add(Needs(ManageSkills), routes!(change, delete))
        .add(Needs(Read), routes!(skill_versions::versions))
        .add(Needs(Read), routes!(skill_versions::version))
        .add(Needs(ManageSkills), routes!(skill_versions::restore))
        .add(Needs(Read), routes!(skill_files::read))
        .add(Needs(ManageSkills), routes!(skill_files::write, skill_files::remove))
        .add(Needs(Read), routes!(skill_transfer::export))
        .add(Needs(Read), routes!(skill_training::training))
        .add(Needs(ManageSkills), routes!(skill_training::begin))
        .add(Needs(ManageSkills), routes!(skill_training::rate))
        .add(Needs(ManageSkills), routes!(skill_training::propose))
        .add(Needs(Read), routes!(skill_training::proposal))
        .add(Needs(ManageSkills), routes!(skill_training::accept))
        .add(Needs(ManageSkills), routes!(skill_training::reject))
}

type SkillPatch = MergePatch<SkillSpec>;

/// The current version of a skill
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Skill)]
pub struct SkillView {
    id: SkillId,
    #[serde(flatten)]
    spec: SkillSpec,
    /// The number of the newest version.
    version: u32,
    files: Vec<FileEntry>,
    /// Warnings.
    findings: Vec<SkillFinding>,
    /// 0 to 100, from its training ratings; `null` before the first rating.
    experience: Option<u8>,
    /// What an imported skill asks for; all of it is off until it is accepted. `null` if there is nothing to accept.
    review: Option<SkillRequests>,
    usage: SkillUsage,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl SkillView {
    pub(super) fn name(&self) -> SkillName {
        self.spec.name.clone()
    }
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
    /// The skill was imported, and what it asks for is not accepted yet.
    needs_review: bool,
    usage: SkillUsage,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// `offered` counts runs that had the skill; the other fields count runs in which a person invoked it.
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
    /// Send it as `after` to get the next page; `null` on the last page.
    next: Option<String>,
    /// Skills in the data folder that can be imported.
    folders: Vec<FolderSkill>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct FolderSkill {
    name: String,
    description: Option<String>,
}

/// List skills
///
/// Those of the workspace, and folders that can be imported.
#[utoipa::path(get, path = "/api/skills", tag = "skills", params(NamedPageParams),
               responses((status = 200, body = SkillList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<NamedPageParams>,
) -> Result<Json<SkillList>, Problem> {
    let queries = app.engine.queries();
    let (skills, figures) =
        tokio::try_join!(queries.skills(&caller.workspace), queries.skill_stats(&caller.workspace))?;
    let (skills, next) = page.cut(skills, |skill| skill.spec.name.to_string())?;
    let summary = |skill: Skill| {
        let usage = figures.get(&skill.id).copied().map_or_else(SkillUsage::default, usage);
        let Skill { id, spec, version, files, experience, needs_review, created_at, updated_at } = skill;
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
            needs_review,
            usage,
            created_at,
            updated_at,
        }
    };
    let folders = app.engine.folder_skills().await?.into_iter();
    let folders = folders.map(|(name, description)| FolderSkill { name, description }).collect();
    Ok(Json(SkillList { skills: skills.into_iter().map(summary).collect(), next, folders }))
}

/// Create a skill
///
/// As its first version.
#[utoipa::path(post, path = "/api/skills", tag = "skills", request_body = SkillSpec,
               responses((status = 201, body = SkillView),
                         (status = 422, description = "The skill breaks a rule; see `findings`",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(spec, fingerprint): JsonBody<SkillSpec>,
) -> Result<Created<SkillView>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.create_skill(actor, spec, attempt.as_ref()).await?) };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    let skill = written_skill(&app, actor, done).await?;
    Ok(Created::at("/api/skills", skill.name(), skill))
}

/// Get a skill
///
/// Its newest version with its files, findings and usage.
#[utoipa::path(get, path = "/api/skills/{name}", tag = "skills", params(("name" = String, Path)),
               responses((status = 200, body = SkillView)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(name): Id<SkillName>) -> Result<Json<SkillView>, Problem> {
    let skill = app.engine.queries().skill(&caller.workspace, &name).await?;
    Ok(Json(view(&app, &caller, skill).await?))
}

/// The base version and the note of a change
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChangeParams {
    /// The version that the change is based on; 409 if there is a newer one.
    base: Option<u32>,
    /// A note for the list of versions: one line.
    #[param(max_length = 500, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    note: Option<String>,
}

impl From<ChangeParams> for SkillRevision {
    fn from(ChangeParams { base, note }: ChangeParams) -> Self {
        Self { base, note }
    }
}

/// Update a skill
///
/// A merge patch (RFC 7396): fields in the body are replaced, `null` clears a field, all others stay. Creates a new
/// version for the next run; runs that have started keep theirs.
#[utoipa::path(patch, path = "/api/skills/{name}", tag = "skills", params(("name" = String, Path), ChangeParams),
               request_body = SkillPatch,
               responses((status = 200, body = SkillView),
                         (status = 409, description = "There is a newer version than `base`",
                          content_type = "application/problem+json", body = ProblemSchema),
                         (status = 422, description = "The skill breaks a rule; see `findings`",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn change(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    QueryParams(params): QueryParams<ChangeParams>,
    key: IdempotencyKey,
    JsonBody(patch, fingerprint): JsonBody<SkillPatch>,
) -> Result<Json<SkillView>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async {
        let current = app.engine.queries().skill(&actor.workspace, &name).await?;
        let spec = patch.apply_to(&current.spec)?;
        Ok(app.engine.change_skill(actor, current, spec, params.into(), attempt.as_ref()).await?)
    };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(Json(written_skill(&app, actor, done).await?))
}

/// Delete a skill
///
/// Also deletes its versions, files and training history. Agents that still name it fail; started runs continue.
#[utoipa::path(delete, path = "/api/skills/{name}", tag = "skills", params(("name" = String, Path)),
               responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_skill(actor, &name, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What to check: a document or settings
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// A complete `SKILL.md`.
    text: Option<String>,
    /// The settings of a skill, instead of `text`.
    skill: Option<Value>,
    /// Parameter values for the preview.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, domain::skill::ParameterValue>)]
    values: ParameterValues,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct CheckView {
    /// The parsed skill.
    skill: Option<SkillSpec>,
    findings: Vec<SkillFinding>,
    /// The `SKILL.md` that a run would get.
    preview: Option<String>,
}

/// Check a skill without saving it
///
/// Takes a `SKILL.md` or a skill's settings, and returns findings and a preview of what a run would get.
#[utoipa::path(post, path = "/api/skills/check", tag = "skills", request_body = CheckRequest,
               responses((status = 200, body = CheckView)))]
pub async fn check(
    _: Caller,
    _: IdempotencyKey,
    JsonBody(request, _): JsonBody<CheckRequest>,
) -> Result<Json<CheckView>, Problem> {
    let checked = match (request.text, request.skill) {
        (Some(text), None) => check_document(&text, &request.values),
        (None, Some(skill)) => match json::read::<SkillSpec>(skill) {
            Ok(spec) => check_spec(spec, &request.values),
            Err(problem) => {
                let finding = SkillFinding::error(problem.pointer(), problem.detail().to_owned());
                CheckedSkill { skill: None, findings: vec![finding], preview: None }
            }
        },
        _ => return Err(Problem::unprocessable("Send either `text` or `skill`.")),
    };
    let CheckedSkill { skill, findings, preview } = checked;
    Ok(Json(CheckView { skill, findings, preview }))
}

/// The skill after a write, whether this request or an earlier one with the same key did it.
pub(super) async fn written_skill(app: &App, actor: &Actor, done: WriteOutcome<Skill>) -> Result<SkillView, Problem> {
    let skill = match done {
        WriteOutcome::Done(skill) => skill,
        WriteOutcome::AlreadyDone(name) => {
            let name = name.parse().map_err(|_| Problem::new(Code::NotFound, "The skill was deleted."))?;
            app.engine.queries().skill(&actor.workspace, &name).await?
        }
    };
    view(app, actor, skill).await
}

async fn view(app: &App, actor: &Actor, skill: Skill) -> Result<SkillView, Problem> {
    let figures = app.engine.queries().skill_stats(&actor.workspace).await?;
    let usage = figures.get(&skill.id).copied().map_or_else(SkillUsage::default, usage);
    let Skill { id, spec, version, files, experience, needs_review, created_at, updated_at } = skill;
    let review = needs_review.then(|| SkillRequests::of(&spec, &files));
    let findings = spec.findings().into_iter().filter(|finding| finding.level == FindingLevel::Warning).collect();
    Ok(SkillView { id, spec, version, files, findings, experience, review, usage, created_at, updated_at })
}

fn usage(figures: SkillStats) -> SkillUsage {
    let SkillStats { offered, invoked, completed, failed, stopped, last_used_at } = figures;
    SkillUsage { offered, invoked, completed, failed, stopped, last_used_at }
}
