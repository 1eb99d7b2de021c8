//! Training a skill: a room opened on it, answers rated, an improved body proposed, and accepted or dropped.

use super::{rooms::NewRoom, skills::check};
use crate::{Engine, Error};
use domain::{
    ids::{AgentId, MessageId, ProposalId, RoomId},
    message::Author,
    name::{MAX_CHARS, Name},
    owner::Owner,
    room::RoomPolicy,
    skill::{Proposal, ProposalStatus, Remarks, Round, Score, SkillName, TrainingRoom, document, proposed_body},
};
use store::{Attempt, NewProposal, NewRound};
use workbench::skills::unified;

/// What a person says of an answer.
#[derive(Debug, Clone)]
pub struct NewRating {
    pub score: Score,
    pub remarks: Remarks,
    /// The answer; a note on the skill as a whole has none.
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
        owner: &Owner,
        skill: &SkillName,
        agent: AgentId,
        attempt: Option<&Attempt>,
    ) -> Result<TrainingRoom, Error> {
        let trained = self.store().skill(owner, skill).await?;
        let title: String = format!("Training: {}", trained.spec.title()).chars().take(MAX_CHARS).collect();
        let name = Name::parse(&title).map_err(|error| Error::Invalid(error.to_string()))?;
        let new = NewRoom { name, agents: vec![agent], project_id: None, policy: RoomPolicy::default() };
        let room = self.create_room(owner, new, attempt).await?;
        self.store().open_training(owner, skill, room.id, agent).await?;
        Ok(TrainingRoom { room_id: room.id, agent_id: agent, created_at: room.created_at })
    }

    pub async fn rate_skill(
        &self,
        owner: &Owner,
        skill: &SkillName,
        rating: NewRating,
        attempt: Option<&Attempt>,
    ) -> Result<Round, Error> {
        check_remarks(&rating.remarks)?;
        self.store().skill(owner, skill).await?;
        let room_id = match rating.message_id {
            Some(message) => Some(self.answer(owner, skill, message).await?.0),
            None => None,
        };
        let NewRating { score, remarks, message_id } = rating;
        Ok(self.store().rate(owner, skill, NewRound { score, remarks, room_id, message_id }, attempt).await?)
    }

    pub async fn propose_skill(
        &self,
        owner: &Owner,
        skill: &SkillName,
        source: ProposalSource,
        note: Option<String>,
        attempt: Option<&Attempt>,
    ) -> Result<Proposal, Error> {
        if note.as_ref().is_some_and(|note| note.chars().count() > MAX_TEXT) {
            return Err(Error::Invalid(format!("note: at most {MAX_TEXT} characters")));
        }
        let current = self.store().skill(owner, skill).await?;
        let (body, message_id) = match source {
            ProposalSource::Body(body) => (body, None),
            ProposalSource::Answer(message) => {
                let (_, text) = self.answer(owner, skill, message).await?;
                let body = proposed_body(&text).ok_or_else(|| Error::Refused {
                    pointer: "/message_id",
                    detail:
                        "this answer holds no fenced block that begins with ````skill; ask the agent to propose the \
                             whole new body in one"
                            .into(),
                })?;
                (body, Some(message))
            }
        };
        // Some write a frontmatter all the same; what counts is the body.
        let body = document::split(&body).1.to_owned();
        let mut improved = current.spec.clone();
        improved.body.clone_from(&body);
        check(&improved)?;
        let new = NewProposal { base_version: current.version, body, note, message_id };
        Ok(self.store().propose(owner, skill, new, attempt).await?)
    }

    /// A proposal, and how its body differs from the one it improves.
    pub async fn skill_proposal(
        &self,
        owner: &Owner,
        skill: &SkillName,
        proposal: Proposal,
    ) -> Result<(Proposal, String), Error> {
        let old = match self.store().skill_version(owner, skill, proposal.base_version).await {
            Ok(version) => version.spec.body,
            // So old that its version is not kept any more.
            Err(store::Error::NotFound) => return Ok((proposal, String::new())),
            Err(error) => return Err(error.into()),
        };
        let (new, base) = (proposal.body.clone(), format!("version {}", proposal.base_version));
        let diff = tokio::task::spawn_blocking(move || unified(&old, &new, &base, "proposal"));
        Ok((proposal, diff.await.map_err(|error| Error::Unavailable(error.to_string()))?))
    }

    /// The proposed body becomes a new version.
    pub async fn accept_proposal(
        &self,
        owner: &Owner,
        skill: &SkillName,
        id: ProposalId,
        attempt: Option<&Attempt>,
    ) -> Result<Proposal, Error> {
        let proposal = self.open_proposal(owner, skill, id).await?;
        let mut spec = self.store().skill_version(owner, skill, proposal.base_version).await?.spec;
        spec.body.clone_from(&proposal.body);
        check(&spec)?;
        Ok(self.store().accept_proposal(owner, skill, &proposal, &spec, attempt).await?)
    }

    pub async fn drop_proposal(
        &self,
        owner: &Owner,
        skill: &SkillName,
        id: ProposalId,
        comment: Option<String>,
        attempt: Option<&Attempt>,
    ) -> Result<Proposal, Error> {
        let remarks = Remarks { comment, ..Remarks::default() };
        check_remarks(&remarks)?;
        let proposal = self.open_proposal(owner, skill, id).await?;
        Ok(self.store().drop_proposal(owner, skill, &proposal, remarks, attempt).await?)
    }

    async fn open_proposal(&self, owner: &Owner, skill: &SkillName, id: ProposalId) -> Result<Proposal, Error> {
        let proposal = self.store().proposal(owner, skill, id).await?;
        match proposal.status {
            ProposalStatus::Open => Ok(proposal),
            decided => Err(Error::Conflict(format!("this proposal was {decided} already"))),
        }
    }

    /// The room and the text of an agent's answer in one of the skill's training rooms.
    async fn answer(&self, owner: &Owner, skill: &SkillName, id: MessageId) -> Result<(RoomId, String), Error> {
        let unfit = |detail: &str| Error::Refused { pointer: "/message_id", detail: detail.to_owned() };
        let room = match self.store().room_of_message(owner, id).await {
            Err(store::Error::NotFound) => return Err(unfit("there is no such message")),
            found => found?,
        };
        if self.store().skill_trained_in(owner, room).await?.as_ref() != Some(skill) {
            return Err(unfit("this message is not from a training room of this skill"));
        }
        let message = self.store().message(owner, room, id).await?;
        match message.author {
            Author::Agent { .. } => Ok((room, message.text)),
            Author::Person { .. } => Err(unfit("this message is a person's; only an agent's answer counts")),
        }
    }
}

fn check_remarks(remarks: &Remarks) -> Result<(), Error> {
    let fits = |text: &String| text.chars().count() <= MAX_TEXT && !text.contains('\0');
    let lists = [&remarks.issues, &remarks.improvements];
    if remarks.comment.iter().all(fits) && lists.iter().all(|list| list.len() <= MAX_REMARKS && list.iter().all(fits)) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "comment, issues and improvements have at most {MAX_TEXT} characters each, and at most {MAX_REMARKS} in a list"
    )))
}
