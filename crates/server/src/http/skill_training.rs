//! Training a skill: rooms, ratings, proposals.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Body, Fingerprint, Id, IdempotencyKey},
    http::{Write, attempt, once},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    ids::{AgentId, MessageId, ProposalId, RoundId},
    owner::Owner,
    skill::{Proposal, ProposalStatus, Remarks, Round, Score, SkillName, TrainingRoom},
    time::Timestamp,
};
use engine::commands::{NewRating, ProposalSource};
use serde::{Deserialize, Serialize};

/// How much of the history is shown.
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
    /// The version that it improves.
    base_version: u32,
    note: Option<String>,
    message_id: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Unified, against the version that it improves.
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

    async fn whole(app: &App, owner: &Owner, skill: &SkillName, proposal: Proposal) -> Result<Json<Self>, Problem> {
        let (proposal, diff) = app.engine.skill_proposal(owner, skill, proposal).await?;
        let body = proposal.body.clone();
        Ok(Json(Self { body: Some(body), diff: Some(diff), ..Self::brief(proposal) }))
    }
}

/// The training of a skill
#[utoipa::path(get, path = "/api/skills/{name}/training", tag = "skills", params(("name" = String, Path)),
               responses((status = 200, body = TrainingView)))]
pub async fn training(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
) -> Result<Json<TrainingView>, Problem> {
    let (store, owner) = (app.engine.store(), &caller.owner);
    let (skill, rooms, rounds, proposals) = tokio::try_join!(
        store.skill(owner, &name),
        store.training_rooms(owner, &name),
        store.rounds(owner, &name, ROUNDS),
        store.proposals(owner, &name)
    )?;
    let proposals = proposals.into_iter().map(ProposalView::brief).collect();
    Ok(Json(TrainingView { experience: skill.experience, rooms, rounds, proposals }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginTraining {
    /// Who is to use the skill there.
    agent_id: AgentId,
}

/// Open a training room
///
/// In it the agent has the skill, and its system prompt says how to propose an improved body.
#[utoipa::path(post, path = "/api/skills/{name}/training", tag = "skills", params(("name" = String, Path)),
               request_body = BeginTraining, responses((status = 201, body = TrainingRoom)))]
pub async fn begin(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    key: IdempotencyKey,
    Body(BeginTraining { agent_id }, fingerprint): Body<BeginTraining>,
) -> Result<(StatusCode, Json<TrainingRoom>), Problem> {
    let attempt = attempt(key, fingerprint);
    let room = app.engine.open_training(&caller.owner, &name, agent_id, attempt.as_ref()).await?;
    Ok((StatusCode::CREATED, Json(room)))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RateRequest {
    /// An agent's answer in one of the skill's training rooms; without it, the skill as a whole is meant.
    message_id: Option<MessageId>,
    score: Score,
    comment: Option<String>,
    #[serde(default)]
    issues: Vec<String>,
    #[serde(default)]
    improvements: Vec<String>,
}

/// Rate an answer
///
/// Appends a round to the training history; the skill's experience follows from it.
#[utoipa::path(post, path = "/api/skills/{name}/training/rounds", tag = "skills", params(("name" = String, Path)),
               request_body = RateRequest,
               responses((status = 201, body = Round),
                         (status = 422, description = "The message is no answer of a training room of this skill",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn rate(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    key: IdempotencyKey,
    Body(request, fingerprint): Body<RateRequest>,
) -> Result<(StatusCode, Json<Round>), Problem> {
    let RateRequest { message_id, score, comment, issues, improvements } = request;
    let rating = NewRating { score, remarks: Remarks { comment, issues, improvements }, message_id };
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.rate_skill(owner, &name, rating, attempt.as_ref()).await?) };
    let round = match once(&app, owner, attempt.as_ref(), write).await? {
        Write::Now(round) => round,
        Write::Before(id) => {
            let id: RoundId = id.parse().map_err(Problem::internal)?;
            app.engine.store().round(owner, &name, id).await?
        }
    };
    Ok((StatusCode::CREATED, Json(round)))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeRequest {
    /// An agent's answer that holds the whole new body in a fenced block of the kind `skill`.
    message_id: Option<MessageId>,
    /// Or the body itself.
    body: Option<String>,
    note: Option<String>,
}

/// Propose an improved body
#[utoipa::path(post, path = "/api/skills/{name}/training/proposals", tag = "skills", params(("name" = String, Path)),
               request_body = ProposeRequest,
               responses((status = 201, body = ProposalView),
                         (status = 422, description = "The answer proposes nothing, or what it proposes breaks a rule",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn propose(
    State(app): State<App>,
    caller: Caller,
    Id(name): Id<SkillName>,
    key: IdempotencyKey,
    Body(request, fingerprint): Body<ProposeRequest>,
) -> Result<(StatusCode, Json<ProposalView>), Problem> {
    let source = match (request.message_id, request.body) {
        (Some(message), None) => ProposalSource::Answer(message),
        (None, Some(body)) => ProposalSource::Body(body),
        _ => return Err(Problem::invalid("Send either `message_id` or `body`.")),
    };
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.propose_skill(owner, &name, source, request.note, attempt.as_ref()).await?) };
    let done = once(&app, owner, attempt.as_ref(), write).await?;
    Ok((StatusCode::CREATED, settled(&app, owner, &name, done).await?))
}

/// One proposal, as a difference
#[utoipa::path(get, path = "/api/skills/{name}/training/proposals/{id}", tag = "skills",
               params(("name" = String, Path), ("id" = ProposalId, Path)), responses((status = 200, body = ProposalView)))]
pub async fn proposal(
    State(app): State<App>,
    caller: Caller,
    Id((name, id)): Id<(SkillName, ProposalId)>,
) -> Result<Json<ProposalView>, Problem> {
    let proposal = app.engine.store().proposal(&caller.owner, &name, id).await?;
    ProposalView::whole(&app, &caller.owner, &name, proposal).await
}

/// Accept a proposal
///
/// Its body becomes a new version of the skill.
#[utoipa::path(post, path = "/api/skills/{name}/training/proposals/{id}/accept", tag = "skills",
               params(("name" = String, Path), ("id" = ProposalId, Path)),
               responses((status = 200, body = ProposalView),
                         (status = 409, description = "It was decided already, or the skill has changed since",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn accept(
    State(app): State<App>,
    caller: Caller,
    Id((name, id)): Id<(SkillName, ProposalId)>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<Json<ProposalView>, Problem> {
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.accept_proposal(owner, &name, id, attempt.as_ref()).await?) };
    let done = once(&app, owner, attempt.as_ref(), write).await?;
    settled(&app, owner, &name, done).await
}

#[derive(Deserialize, Default, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DropRequest {
    /// Why, for the training history.
    comment: Option<String>,
}

/// Drop a proposal
#[utoipa::path(post, path = "/api/skills/{name}/training/proposals/{id}/drop", tag = "skills",
               params(("name" = String, Path), ("id" = ProposalId, Path)), request_body = DropRequest,
               responses((status = 200, body = ProposalView),
                         (status = 409, description = "It was decided already",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn reject(
    State(app): State<App>,
    caller: Caller,
    Id((name, id)): Id<(SkillName, ProposalId)>,
    key: IdempotencyKey,
    Body(DropRequest { comment }, fingerprint): Body<DropRequest>,
) -> Result<Json<ProposalView>, Problem> {
    let (owner, attempt) = (&caller.owner, attempt(key, fingerprint));
    let write = async { Ok(app.engine.drop_proposal(owner, &name, id, comment, attempt.as_ref()).await?) };
    let done = once(&app, owner, attempt.as_ref(), write).await?;
    settled(&app, owner, &name, done).await
}

async fn settled(
    app: &App,
    owner: &Owner,
    skill: &SkillName,
    done: Write<Proposal>,
) -> Result<Json<ProposalView>, Problem> {
    let proposal = match done {
        Write::Now(proposal) => proposal,
        Write::Before(id) => {
            let id: ProposalId = id.parse().map_err(Problem::internal)?;
            app.engine.store().proposal(owner, skill, id).await?
        }
    };
    ProposalView::whole(app, owner, skill, proposal).await
}
