//! The training of skills: rooms, rounds, proposals. Each write locks the skill's row first, so that concurrent writes
//! are serialized.

use super::{
    audit::store_audit,
    idempotency::store_key,
    skill_files::{SkillFilesChange, change_files},
    skills::{checked_number, write_version},
};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{reading, writing},
    error::Result,
    row::row,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::{AgentId, MessageId, ProposalId, RoomId, RoundId, SkillId},
    owner::Owner,
    skill::{
        Proposal, ProposalStatus, Remarks, Round, RoundKind, Score, SkillName, SkillSpec, TrainingRoom, experience,
    },
    time::Timestamp,
};
use uuid::Uuid;

const KEPT_ROUNDS: i64 = 2000;
const KEPT_PROPOSALS: i64 = 200;
const MAX_ROOMS: i64 = 200;

/// A new rating. The skill's experience is computed from all ratings.
#[derive(Debug, Clone)]
pub struct NewRound {
    pub score: Score,
    pub remarks: Remarks,
    pub room_id: Option<RoomId>,
    pub message_id: Option<MessageId>,
}

#[derive(Debug, Clone)]
pub struct NewProposal {
    pub base_version: u32,
    pub body: String,
    pub note: Option<String>,
    pub message_id: Option<MessageId>,
}

row! {
    struct RoundRow {
        id: Uuid,
        kind: String,
        score: Option<i64>,
        remarks: String,
        version: i64,
        room_id: Option<Uuid>,
        message_id: Option<Uuid>,
        proposal_id: Option<Uuid>,
        experience: Option<i64>,
        created_at: i64,
    }
}

impl TryFrom<RoundRow> for Round {
    type Error = StoreError;
    fn try_from(row: RoundRow) -> Result<Self> {
        Ok(Self {
            id: RoundId(row.id),
            kind: row.kind.parse().map_err(StoreError::unreadable)?,
            score: row.score.map(score).transpose()?,
            remarks: serde_json::from_str(&row.remarks)?,
            version: checked_number(row.version)?,
            room_id: row.room_id.map(RoomId),
            message_id: row.message_id.map(MessageId),
            proposal_id: row.proposal_id.map(ProposalId),
            experience: row.experience.map(checked_number).transpose()?,
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

fn score(stored: i64) -> Result<Score> {
    Score::try_from(checked_number::<u8>(stored)?).map_err(StoreError::unreadable)
}

row! {
    struct ProposalRow {
        id: Uuid,
        status: String,
        base_version: i64,
        body: String,
        note: Option<String>,
        message_id: Option<Uuid>,
        accepted_version: Option<i64>,
        created_at: i64,
        decided_at: Option<i64>,
    }
}

impl TryFrom<ProposalRow> for Proposal {
    type Error = StoreError;
    fn try_from(row: ProposalRow) -> Result<Self> {
        Ok(Self {
            id: ProposalId(row.id),
            status: row.status.parse().map_err(StoreError::unreadable)?,
            base_version: checked_number(row.base_version)?,
            body: row.body,
            note: row.note,
            message_id: row.message_id.map(MessageId),
            accepted_version: row.accepted_version.map(checked_number).transpose()?,
            created_at: Timestamp::from_millis(row.created_at),
            decided_at: row.decided_at.map(Timestamp::from_millis),
        })
    }
}

const ROUNDS: &str = "SELECT r.id, r.kind, r.score, r.remarks, r.version, r.room_id, r.message_id, r.proposal_id, \
     r.experience, r.created_at FROM skills s JOIN skill_rounds r ON r.skill_id = s.id \
     WHERE s.owner = $1 AND s.name = $2 ORDER BY r.id DESC LIMIT $3";
const ROUND: &str = "SELECT r.id, r.kind, r.score, r.remarks, r.version, r.room_id, r.message_id, r.proposal_id, \
     r.experience, r.created_at FROM skills s JOIN skill_rounds r ON r.skill_id = s.id \
     WHERE s.owner = $1 AND s.name = $2 AND r.id = $3";
const PROPOSALS: &str = "SELECT p.id, p.status, p.base_version, p.body, p.note, p.message_id, p.accepted_version, \
     p.created_at, p.decided_at FROM skills s JOIN skill_proposals p ON p.skill_id = s.id \
     WHERE s.owner = $1 AND s.name = $2 ORDER BY p.id DESC LIMIT $3";
const PROPOSAL: &str = "SELECT p.id, p.status, p.base_version, p.body, p.note, p.message_id, p.accepted_version, \
     p.created_at, p.decided_at FROM skills s JOIN skill_proposals p ON p.skill_id = s.id \
     WHERE s.owner = $1 AND s.name = $2 AND p.id = $3";

/// Locks the skill's row. Returns its id, version and experience.
macro_rules! lock_skill {
    ($transaction:ident, $owner:expr, $name:expr) => {{
        let locked: (Uuid, i64, Option<i64>) = sqlx::query_as(
            "UPDATE skills SET updated_at = updated_at WHERE owner = $1 AND name = $2 RETURNING id, version, experience",
        )
        .bind($owner.as_str())
        .bind($name.as_str())
        .fetch_one(&mut *$transaction)
        .await?;
        locked
    }};
}

/// Deletes all but the newest rows of a skill.
macro_rules! keep_newest {
    ($transaction:ident, $skill:expr, $table:literal, $most:expr) => {
        sqlx::query(concat!(
            "DELETE FROM ",
            $table,
            " WHERE skill_id = $1 AND id NOT IN (SELECT id FROM ",
            $table,
            " WHERE skill_id = $1 ORDER BY id DESC LIMIT $2)"
        ))
        .bind($skill)
        .bind($most)
        .execute(&mut *$transaction)
        .await?
    };
}

macro_rules! append_round {
    ($transaction:ident, $skill:expr, $round:expr) => {{
        let round: &Round = $round;
        sqlx::query(
            "INSERT INTO skill_rounds (id, skill_id, kind, score, remarks, version, room_id, message_id, proposal_id, \
             experience, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        )
        .bind(round.id.0)
        .bind($skill)
        .bind(round.kind.as_str())
        .bind(round.score.map(|score| i64::from(u8::from(score))))
        .bind(serde_json::to_string(&round.remarks)?)
        .bind(i64::from(round.version))
        .bind(round.room_id.map(|id| id.0))
        .bind(round.message_id.map(|id| id.0))
        .bind(round.proposal_id.map(|id| id.0))
        .bind(round.experience.map(i64::from))
        .bind(round.created_at.as_millis())
        .execute(&mut *$transaction)
        .await?;
        keep_newest!($transaction, $skill, "skill_rounds", KEPT_ROUNDS);
    }};
}

/// Decides a proposal. Fails if it is already decided.
macro_rules! decide {
    ($transaction:ident, $id:expr, $status:expr, $version:expr, $now:expr) => {
        let decided = sqlx::query(
            "UPDATE skill_proposals SET status = $2, accepted_version = $3, decided_at = $4 \
             WHERE id = $1 AND status = 'open'",
        )
        .bind($id.0)
        .bind($status.as_str())
        .bind($version)
        .bind($now.as_millis())
        .execute(&mut *$transaction)
        .await?;
        if decided.rows_affected() == 0 {
            return Err(StoreError::SkillChanged);
        }
    };
}

impl Store {
    /// Adds a training room of a skill. The room must belong to the owner.
    pub async fn add_training_room(&self, actor: &Actor, name: &SkillName, room: RoomId, agent: AgentId) -> Result<()> {
        let owner = &actor.workspace;
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            let (skill, ..) = lock_skill!(transaction, owner, name);
            sqlx::query(
                "INSERT INTO skill_rooms (room_id, skill_id, agent_id, created_at) SELECT id, $2, $3, $4 FROM rooms \
                 WHERE id = $1 AND owner = $5 ON CONFLICT (room_id) DO NOTHING",
            )
            .bind(room.0)
            .bind(skill)
            .bind(agent.0)
            .bind(now.as_millis())
            .bind(owner.as_str())
            .execute(&mut *transaction)
            .await?;
            let entry = AuditEntry::new(actor, AuditAction::Update, AuditedObject::Skill, name).in_room(room);
            store_audit!(transaction, entry, now);
        });
        Ok::<(), StoreError>(())
    }

    /// Returns the training rooms of a skill, newest first, without deleted rooms.
    pub async fn training_rooms(&self, owner: &Owner, name: &SkillName) -> Result<Vec<TrainingRoom>> {
        let rows: Vec<(Uuid, Uuid, i64)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT t.room_id, t.agent_id, t.created_at FROM skills s JOIN skill_rooms t ON t.skill_id = s.id \
                 JOIN rooms r ON r.id = t.room_id WHERE s.owner = $1 AND s.name = $2 AND r.deleted_at IS NULL \
                 ORDER BY t.room_id DESC LIMIT $3",
            )
            .bind(owner.as_str())
            .bind(name.as_str())
            .bind(MAX_ROOMS)
            .fetch_all(pool)
            .await
        })?;
        let room = |(room, agent, at)| TrainingRoom {
            room_id: RoomId(room),
            agent_id: AgentId(agent),
            created_at: Timestamp::from_millis(at),
        };
        Ok(rows.into_iter().map(room).collect())
    }

    /// Returns the skill that is trained in a room, if any.
    pub async fn skill_trained_in(&self, owner: &Owner, room: RoomId) -> Result<Option<SkillName>> {
        let name: Option<String> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT s.name FROM skill_rooms t JOIN skills s ON s.id = t.skill_id WHERE t.room_id = $1 AND s.owner = $2",
            )
            .bind(room.0)
            .bind(owner.as_str())
            .fetch_optional(pool)
            .await
        })?;
        name.map(|name| name.parse().map_err(StoreError::unreadable)).transpose()
    }

    /// Returns training rounds, newest first.
    pub async fn training_rounds(&self, owner: &Owner, name: &SkillName, limit: u32) -> Result<Vec<Round>> {
        let rows: Vec<RoundRow> = reading!(self.database(), |pool| {
            sqlx::query_as(ROUNDS).bind(owner.as_str()).bind(name.as_str()).bind(i64::from(limit)).fetch_all(pool).await
        })?;
        rows.into_iter().map(Round::try_from).collect()
    }

    pub async fn training_round(&self, owner: &Owner, name: &SkillName, id: RoundId) -> Result<Round> {
        let row: RoundRow = reading!(self.database(), |pool| {
            sqlx::query_as(ROUND).bind(owner.as_str()).bind(name.as_str()).bind(id.0).fetch_one(pool).await
        })?;
        row.try_into()
    }

    pub async fn rate_skill(
        &self,
        actor: &Actor,
        name: &SkillName,
        new: NewRound,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Round> {
        let owner = &actor.workspace;
        let (id, created_at) = (RoundId::generate(), Timestamp::now());
        let round = writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, created_at);
            store_audit!(
                transaction,
                AuditEntry::new(actor, AuditAction::Rate, AuditedObject::Skill, name),
                created_at
            );
            let (skill, version, _) = lock_skill!(transaction, owner, name);
            let scores: Vec<i64> = sqlx::query_scalar(
                "SELECT score FROM skill_rounds WHERE skill_id = $1 AND score IS NOT NULL ORDER BY id",
            )
            .bind(skill)
            .fetch_all(&mut *transaction)
            .await?;
            let mut scores = scores.into_iter().map(score).collect::<Result<Vec<Score>>>()?;
            scores.push(new.score);
            let round = Round {
                id,
                kind: RoundKind::Rating,
                score: Some(new.score),
                remarks: new.remarks.clone(),
                version: checked_number(version)?,
                room_id: new.room_id,
                message_id: new.message_id,
                proposal_id: None,
                experience: experience(scores),
                created_at,
            };
            append_round!(transaction, skill, &round);
            sqlx::query("UPDATE skills SET experience = $2 WHERE id = $1")
                .bind(skill)
                .bind(round.experience.map(i64::from))
                .execute(&mut *transaction)
                .await?;
            round
        });
        Ok(round)
    }

    /// Returns proposals, newest first.
    pub async fn proposals(&self, owner: &Owner, name: &SkillName) -> Result<Vec<Proposal>> {
        let rows: Vec<ProposalRow> = reading!(self.database(), |pool| {
            sqlx::query_as(PROPOSALS)
                .bind(owner.as_str())
                .bind(name.as_str())
                .bind(KEPT_PROPOSALS)
                .fetch_all(pool)
                .await
        })?;
        rows.into_iter().map(Proposal::try_from).collect()
    }

    pub async fn proposal(&self, owner: &Owner, name: &SkillName, id: ProposalId) -> Result<Proposal> {
        let row: ProposalRow = reading!(self.database(), |pool| {
            sqlx::query_as(PROPOSAL).bind(owner.as_str()).bind(name.as_str()).bind(id.0).fetch_one(pool).await
        })?;
        row.try_into()
    }

    pub async fn create_proposal(
        &self,
        actor: &Actor,
        name: &SkillName,
        new: NewProposal,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Proposal> {
        let owner = &actor.workspace;
        let (id, now) = (ProposalId::generate(), Timestamp::now());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Propose, AuditedObject::Proposal, id), now);
            let (skill, ..) = lock_skill!(transaction, owner, name);
            sqlx::query(
                "INSERT INTO skill_proposals (id, skill_id, status, base_version, body, note, message_id, created_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            )
            .bind(id.0)
            .bind(skill)
            .bind(ProposalStatus::Open.as_str())
            .bind(i64::from(new.base_version))
            .bind(new.body.as_str())
            .bind(new.note.as_deref())
            .bind(new.message_id.map(|id| id.0))
            .bind(now.as_millis())
            .execute(&mut *transaction)
            .await?;
            keep_newest!(transaction, skill, "skill_proposals", KEPT_PROPOSALS);
        });
        self.proposal(owner, name, id).await
    }

    /// Creates a new version with the proposed body and adds a training round, in one transaction.
    pub async fn accept_proposal(
        &self,
        actor: &Actor,
        name: &SkillName,
        proposal: &Proposal,
        spec: &SkillSpec,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Proposal> {
        let owner = &actor.workspace;
        let (now, json) = (Timestamp::now(), serde_json::to_string(spec)?);
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, proposal.id, now);
            store_audit!(
                transaction,
                AuditEntry::new(actor, AuditAction::Accept, AuditedObject::Proposal, proposal.id),
                now
            );
            let (skill, base, experience) = lock_skill!(transaction, owner, name);
            if base != i64::from(proposal.base_version) {
                return Err(StoreError::SkillChanged);
            }
            let version = base + 1;
            decide!(transaction, proposal.id, ProposalStatus::Accepted, Some(version), now);
            sqlx::query("UPDATE skills SET version = $2, updated_at = $3 WHERE id = $1")
                .bind(skill)
                .bind(version)
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            let id = SkillId(skill);
            write_version!(transaction, id, version, json.as_str(), proposal.note.as_deref(), now);
            change_files!(transaction, id, version, &SkillFilesChange::SameAs(proposal.base_version));
            let round = decision(proposal, RoundKind::Accepted, Remarks::default(), version, experience, now)?;
            append_round!(transaction, skill, &round);
        });
        self.proposal(owner, name, proposal.id).await
    }

    pub async fn drop_proposal(
        &self,
        actor: &Actor,
        name: &SkillName,
        proposal: &Proposal,
        remarks: Remarks,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Proposal> {
        let owner = &actor.workspace;
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, proposal.id, now);
            store_audit!(
                transaction,
                AuditEntry::new(actor, AuditAction::Reject, AuditedObject::Proposal, proposal.id),
                now
            );
            let (skill, version, experience) = lock_skill!(transaction, owner, name);
            decide!(transaction, proposal.id, ProposalStatus::Dropped, None::<i64>, now);
            let round = decision(proposal, RoundKind::Dropped, remarks.clone(), version, experience, now)?;
            append_round!(transaction, skill, &round);
        });
        self.proposal(owner, name, proposal.id).await
    }
}

fn decision(
    proposal: &Proposal,
    kind: RoundKind,
    remarks: Remarks,
    version: i64,
    experience: Option<i64>,
    created_at: Timestamp,
) -> Result<Round> {
    Ok(Round {
        id: RoundId::generate(),
        kind,
        score: None,
        remarks,
        version: checked_number(version)?,
        room_id: None,
        message_id: proposal.message_id,
        proposal_id: Some(proposal.id),
        experience: experience.map(checked_number).transpose()?,
        created_at,
    })
}
