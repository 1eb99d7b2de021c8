//! Training a skill: rooms, ratings, proposals.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody},
    http::{WriteOutcome, attempt, run_once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    actor::Actor,
    ids::{AgentId, MessageId, ProposalId, RoundId},
    skill::{Proposal, ProposalStatus, Remarks, Round, Score, SkillName, TrainingRoom},
    time::Timestamp,
};
use engine::commands::{NewRating, ProposalSource};
use serde::{Deserialize, Serialize};

/// How many rounds of the history are returned.
const ROUNDS: u32 = 200;

#[derive(Serialize, utoipa::ToSchema)]
pub struct TrainingView {
    /// 0 to 100; `null` before the first rating.
    experience: Option<u8>,
    rooms: Vec<TrainingRoom>,
    /// Newest first.
    rounds: Vec<Round>,
    /// Newest first, without their bodies.
    proposals: Vec<ProposalView>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Proposal)]
pub struct ProposalView {
    id: ProposalId,
    status: ProposalStatus,
    /// The version that the proposal improves.
    base_version: u32,
    note: Option<String>,
    message_id: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Unified diff against the base version.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    accepted_version: Option<u32>,
    created_at: Timestamp,
    decided_at: Option<Timestamp>,
}

impl ProposalView {
    fn brief(proposal: Proposal) -> Self {
        let Proposal { id, status, base_version, note, message_id, accepted_version, created_at, decided_at, .. } =
            proposal;
        let (body, diff) = (None, None);
        Self { id, status, base_version, note, message_id, body, diff, accepted_version, created_at, decided_at }
    }

    async fn whole(app: &App, actor: &Actor, skill: &SkillName, proposal: Proposal) -> Result<Json<Self>, Problem> {
        let (proposal, diff) = app.engine.skill_proposal(actor, skill, proposal).await?;
        let body = proposal.body.clone();
        Ok(Json(Self { body: Some(body), diff: Some(diff), ..Self::brief(proposal) }))
    }
}

/// Get a skill's training
///
/// Its experience, training rooms, ratings and proposals.
#[utoipa::path(get, path = "/api/skills/{name}/training", tag = "skills", params(("name" = String, Path)),
               responses((status = 200, body = TrainingView)))]
pub async fn training(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
) -> Result<Json<TrainingView>, Problem> {
    let (queries, owner) = (app.engine.queries(), &caller.workspace);
    let (skill, rooms, rounds, proposals) = tokio::try_join!(
        queries.skill(owner, &name),
        queries.training_rooms(owner, &name),
        queries.training_rounds(owner, &name, ROUNDS),
        queries.proposals(owner, &name)
    )?;
    let proposals = proposals.into_iter().map(ProposalView::brief).collect();
    Ok(Json(TrainingView { experience: skill.experience, rooms, rounds, proposals }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginTraining {
    /// The agent that uses the skill in the training room.
    agent_id: AgentId,
}

/// Create a training room
///
/// The agent has the skill there, and its system prompt says how to propose an improved body.
#[utoipa::path(post, path = "/api/skills/{name}/training", tag = "skills", params(("name" = String, Path)),
               request_body = BeginTraining, responses((status = 201, body = TrainingRoom)))]
pub async fn begin(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    key: IdempotencyKey,
    JsonBody(BeginTraining { agent_id }, fingerprint): JsonBody<BeginTraining>,
) -> Result<(StatusCode, Json<TrainingRoom>), Problem> {
    let attempt = attempt(key, fingerprint);
    let room = app.engine.open_training(&caller, &name, agent_id, attempt.as_ref()).await?;
    Ok((StatusCode::CREATED, Json(room)))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RateRequest {
    /// An agent's answer in one of the skill's training rooms. Without it, the rating is for the skill as a whole.
    message_id: Option<MessageId>,
    score: Score,
    #[schema(max_length = 4000, pattern = r"^[^\x00]*$")]
    comment: Option<String>,
    #[serde(default)]
    #[schema(value_type = Vec<TrainingRemark>, max_items = 50)]
    issues: Vec<String>,
    #[serde(default)]
    #[schema(value_type = Vec<TrainingRemark>, max_items = 50)]
    improvements: Vec<String>,
}

/// What a person wrote about an answer.
#[derive(utoipa::ToSchema)]
#[schema(value_type = String, max_length = 4000, pattern = r"^[^\x00]*$", examples("Too formal."))]
#[expect(dead_code, reason = "only its schema is used")]
pub struct TrainingRemark(String);

/// Rate an answer
///
/// Appends a round to the training history and updates the skill's experience.
#[utoipa::path(post, path = "/api/skills/{name}/training/rounds", tag = "skills", params(("name" = String, Path)),
               request_body = RateRequest,
               responses((status = 201, body = Round),
                         (status = 422, description = "The message is not an answer in a training room of this skill",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn rate(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    key: IdempotencyKey,
    JsonBody(request, fingerprint): JsonBody<RateRequest>,
) -> Result<(StatusCode, Json<Round>), Problem> {
    let RateRequest { message_id, score, comment, issues, improvements } = request;
    let rating = NewRating { score, remarks: Remarks { comment, issues, improvements }, message_id };
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.rate_skill(actor, &name, rating, attempt.as_ref()).await?) };
    let round = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(round) => round,
        WriteOutcome::AlreadyDone(id) => {
            let id: RoundId = id.parse().map_err(Problem::internal)?;
            app.engine.queries().training_round(&actor.workspace, &name, id).await?
        }
    };
    Ok((StatusCode::CREATED, Json(round)))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeRequest {
    /// An agent's answer with the complete new body in a fenced `skill` block.
    message_id: Option<MessageId>,
    /// The body itself, instead of `message_id`.
    body: Option<String>,
    /// Why it is better: one line.
    #[schema(max_length = 500, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    note: Option<String>,
}

/// Propose an improved body
///
/// From an answer in a training room, or as text. It changes nothing until it is accepted.
#[utoipa::path(post, path = "/api/skills/{name}/training/proposals", tag = "skills", params(("name" = String, Path)),
               request_body = ProposeRequest,
               responses((status = 201, body = ProposalView),
                         (status = 422, description = "The answer has no proposal, or the proposal breaks a rule",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn propose(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    key: IdempotencyKey,
    JsonBody(request, fingerprint): JsonBody<ProposeRequest>,
) -> Result<(StatusCode, Json<ProposalView>), Problem> {
    let source = match (request.message_id, request.body) {
        (Some(message), None) => ProposalSource::Answer(message),
        (None, Some(body)) => ProposalSource::Body(body),
        _ => return Err(Problem::unprocessable("Send either `message_id` or `body`.")),
    };
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.propose_skill(actor, &name, source, request.note, attempt.as_ref()).await?) };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok((StatusCode::CREATED, written_proposal(&app, actor, &name, done).await?))
}

/// Get a proposal with its diff
///
/// The diff is against the version that it was made for.
#[utoipa::path(get, path = "/api/skills/{name}/training/proposals/{id}", tag = "skills",
               params(("name" = String, Path), ("id" = ProposalId, Path)), responses((status = 200, body = ProposalView)))]
pub async fn proposal(
    State(app): State<App>,
    caller: Caller,
    Id((name, id)): Id<(SkillName, ProposalId)>,
) -> Result<Json<ProposalView>, Problem> {
    let proposal = app.engine.queries().proposal(&caller.workspace, &name, id).await?;
    ProposalView::whole(&app, &caller, &name, proposal).await
}

/// Accept a proposal
///
/// Its body becomes a new version of the skill.
#[utoipa::path(post, path = "/api/skills/{name}/training/proposals/{id}/accept", tag = "skills",
               params(("name" = String, Path), ("id" = ProposalId, Path)),
               responses((status = 200, body = ProposalView),
                         (status = 409, description = "The proposal was already decided, or the skill has changed",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn accept(
    State(app): State<App>,
    caller: Caller,
    Id((name, id)): Id<(SkillName, ProposalId)>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<Json<ProposalView>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.accept_proposal(actor, &name, id, attempt.as_ref()).await?) };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    written_proposal(&app, actor, &name, done).await
}

#[derive(Deserialize, Default, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DropRequest {
    /// The reason, for the training history.
    comment: Option<String>,
}

/// Reject a proposal
///
/// It stays in the history with the comment.
#[utoipa::path(post, path = "/api/skills/{name}/training/proposals/{id}/drop", tag = "skills",
               params(("name" = String, Path), ("id" = ProposalId, Path)), request_body = DropRequest,
               responses((status = 200, body = ProposalView),
                         (status = 409, description = "The proposal was already decided",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn reject(
    State(app): State<App>,
    caller: Caller,
    Id((name, id)): Id<(SkillName, ProposalId)>,
    key: IdempotencyKey,
    JsonBody(DropRequest { comment }, fingerprint): JsonBody<DropRequest>,
) -> Result<Json<ProposalView>, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.drop_proposal(actor, &name, id, comment, attempt.as_ref()).await?) };
    let done = run_once(&app, actor, attempt.as_ref(), write).await?;
    written_proposal(&app, actor, &name, done).await
}

async fn written_proposal(
    app: &App,
    actor: &Actor,
    skill: &SkillName,
    done: WriteOutcome<Proposal>,
) -> Result<Json<ProposalView>, Problem> {
    let proposal = match done {
        WriteOutcome::Done(proposal) => proposal,
        WriteOutcome::AlreadyDone(id) => {
            let id: ProposalId = id.parse().map_err(Problem::internal)?;
            app.engine.queries().proposal(&actor.workspace, skill, id).await?
        }
    };
    ProposalView::whole(app, actor, skill, proposal).await
}
