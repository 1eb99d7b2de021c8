//! Skill training: training rooms, ratings of answers, and proposals of a new body that are accepted or dropped.

use super::{rooms::NewRoom, skills::reject_invalid};
use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    ids::{AgentId, MessageId, ProposalId, RoomId},
    message::Author,
    name::{MAX_CHARS, Name},
    owner::Owner,
    permission::Permission,
    room::RoomPolicy,
    skill::{Proposal, ProposalStatus, Remarks, Round, Score, SkillName, TrainingRoom, document, proposed_body},
};
use store::{IdempotentRequest, NewProposal, NewRound};
use workbench::skills::unified_diff;

/// A person's rating of an answer.
#[derive(Debug, Clone)]
pub struct NewRating {
    pub score: Score,
    pub remarks: Remarks,
    /// The rated answer; `None` for a rating of the skill as a whole.
    pub message_id: Option<MessageId>,
}

/// Where a proposed body comes from.
#[derive(Debug, Clone)]
pub enum ProposalSource {
    /// An agent's answer in a training room.
    Answer(MessageId),
    Body(String),
}

const MAX_TEXT: usize = 4000;
const MAX_REMARKS: usize = 50;

impl Engine {
    pub async fn open_training(
        &self,
        actor: &Actor,
        skill: &SkillName,
        agent: AgentId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<TrainingRoom, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        let trained = self.store().skill(owner, skill).await?;
        let title: String = format!("Training: {}", trained.spec.title()).chars().take(MAX_CHARS).collect();
        let name = Name::parse(&title).map_err(|error| EngineError::Invalid(error.to_string()))?;
        let new = NewRoom { name, agents: vec![agent], project_id: None, policy: RoomPolicy::for_new_room() };
        let room = self.create_room(actor, new, attempt).await.map_err(|error| match error {
            // The request has one agent, not a list.
            EngineError::Refused { detail, .. } => EngineError::refused("/agent_id", detail),
            other => other,
        })?;
        self.store().add_training_room(actor, skill, room.id, agent).await?;
        Ok(TrainingRoom { room_id: room.id, agent_id: agent, created_at: room.created_at })
    }

    pub async fn rate_skill(
        &self,
        actor: &Actor,
        skill: &SkillName,
        rating: NewRating,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Round, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        check_remarks(&rating.remarks)?;
        self.store().skill(owner, skill).await?;
        let room_id = match rating.message_id {
            Some(message) => Some(self.training_answer(owner, skill, message).await?.0),
            None => None,
        };
        let NewRating { score, remarks, message_id } = rating;
        Ok(self.store().rate_skill(actor, skill, NewRound { score, remarks, room_id, message_id }, attempt).await?)
    }

    pub async fn propose_skill(
        &self,
        actor: &Actor,
        skill: &SkillName,
        source: ProposalSource,
        note: Option<String>,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Proposal, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        if note.as_ref().is_some_and(|note| note.chars().count() > MAX_TEXT) {
            return Err(EngineError::invalid_field("/note", format!("note: at most {MAX_TEXT} characters")));
        }
        let current = self.store().skill(owner, skill).await?;
        let (body, message_id) = match source {
            ProposalSource::Body(body) => (body, None),
            ProposalSource::Answer(message) => {
                let (_, text) = self.training_answer(owner, skill, message).await?;
                let body = proposed_body(&text).ok_or_else(|| EngineError::Refused {
                    pointer: "/message_id".into(),
                    detail: "this answer has no fenced block that begins with ````skill; ask the agent to propose the \
                             complete new body in one"
                        .into(),
                })?;
                (body, Some(message))
            }
        };
        // Some models write a frontmatter anyway; only the body counts.
        let body = document::split_frontmatter(&body).1.to_owned();
        let mut improved = current.spec.clone();
        improved.body.clone_from(&body);
        reject_invalid(&improved)?;
        let new = NewProposal { base_version: current.version, body, note, message_id };
        Ok(self.store().create_proposal(actor, skill, new, attempt).await?)
    }

    /// Returns a proposal with the diff to its base version.
    pub async fn skill_proposal(
        &self,
        actor: &Actor,
        skill: &SkillName,
        proposal: Proposal,
    ) -> Result<(Proposal, String), EngineError> {
        let owner = actor.require(Permission::Read)?;
        let old = match self.store().skill_version(owner, skill, proposal.base_version).await {
            Ok(version) => version.spec.body,
            // The base version is no longer stored.
            Err(store::StoreError::NotFound) => return Ok((proposal, String::new())),
            Err(error) => return Err(error.into()),
        };
        let (new, base) = (proposal.body.clone(), format!("version {}", proposal.base_version));
        let diff = tokio::task::spawn_blocking(move || unified_diff(&old, &new, &base, "proposal"));
        Ok((proposal, diff.await?))
    }

    /// Accepts a proposal: its body becomes a new version.
    pub async fn accept_proposal(
        &self,
        actor: &Actor,
        skill: &SkillName,
        id: ProposalId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Proposal, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        let proposal = self.open_proposal(owner, skill, id).await?;
        let mut spec = self.store().skill_version(owner, skill, proposal.base_version).await?.spec;
        spec.body.clone_from(&proposal.body);
        reject_invalid(&spec)?;
        Ok(self.store().accept_proposal(actor, skill, &proposal, &spec, attempt).await?)
    }

    pub async fn drop_proposal(
        &self,
        actor: &Actor,
        skill: &SkillName,
        id: ProposalId,
        comment: Option<String>,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Proposal, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        let remarks = Remarks { comment, ..Remarks::default() };
        check_remarks(&remarks)?;
        let proposal = self.open_proposal(owner, skill, id).await?;
        Ok(self.store().drop_proposal(actor, skill, &proposal, remarks, attempt).await?)
    }

    async fn open_proposal(&self, owner: &Owner, skill: &SkillName, id: ProposalId) -> Result<Proposal, EngineError> {
        let proposal = self.store().proposal(owner, skill, id).await?;
        match proposal.status {
            ProposalStatus::Open => Ok(proposal),
            decided => Err(EngineError::Conflict(format!("this proposal is already {decided}"))),
        }
    }

    /// The room and the text of an agent's answer in one of the skill's training rooms.
    async fn training_answer(
        &self,
        owner: &Owner,
        skill: &SkillName,
        id: MessageId,
    ) -> Result<(RoomId, String), EngineError> {
        let refused = |detail: &str| EngineError::Refused { pointer: "/message_id".into(), detail: detail.to_owned() };
        let room = match self.store().room_of_message(owner, id).await {
            Err(store::StoreError::NotFound) => return Err(refused("the message does not exist")),
            found => found?,
        };
        if self.store().skill_trained_in(owner, room).await?.as_ref() != Some(skill) {
            return Err(refused("this message is not from a training room of this skill"));
        }
        let message = self.store().message(owner, room, id).await?;
        match message.author {
            Author::Agent { .. } => Ok((room, message.text)),
            Author::Person { .. } => Err(refused("this message is from a person; choose an agent's answer")),
        }
    }
}

fn check_remarks(remarks: &Remarks) -> Result<(), EngineError> {
    let fits = |text: &String| text.chars().count() <= MAX_TEXT && !text.contains('\0');
    let lists = [&remarks.issues, &remarks.improvements];
    if remarks.comment.iter().all(fits) && lists.iter().all(|list| list.len() <= MAX_REMARKS && list.iter().all(fits)) {
        return Ok(());
    }
    Err(EngineError::Invalid(format!(
        "comment, issues and improvements have at most {MAX_TEXT} characters each, and at most {MAX_REMARKS} in a list"
    )))
}
