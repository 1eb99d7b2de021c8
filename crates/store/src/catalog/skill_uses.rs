//! Which runs had a skill, and how they ended.

use super::skills::checked_number;
use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::{Result, unsigned},
    row::row,
};
use domain::{
    ids::{RunId, SkillId},
    owner::Owner,
    time::Timestamp,
};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A skill that was available to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillUse {
    pub skill: SkillId,
    pub version: u32,
    /// Whether a user invoked the skill by name.
    pub invoked: bool,
}

/// How the runs ended in which a user invoked the skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkillStats {
    /// The number of runs that had the skill.
    pub offered: u64,
    pub invoked: u64,
    pub completed: u64,
    pub failed: u64,
    pub stopped: u64,
    /// The time of the last invocation.
    pub last_used_at: Option<Timestamp>,
}

row! {
    struct SkillStatsRow {
        skill_id: Uuid,
        offered: i64,
        invoked: i64,
        completed: i64,
        failed: i64,
        stopped: i64,
        last_used_at: Option<i64>,
    }
}

const FIGURES: &str = "SELECT u.skill_id, COUNT(*) AS offered, COUNT(CASE WHEN u.invoked = 1 THEN 1 END) AS invoked, \
     COUNT(CASE WHEN u.invoked = 1 AND r.status = 'completed' THEN 1 END) AS completed, \
     COUNT(CASE WHEN u.invoked = 1 AND r.status = 'failed' THEN 1 END) AS failed, \
     COUNT(CASE WHEN u.invoked = 1 AND r.status IN ('cancelled', 'interrupted') THEN 1 END) AS stopped, \
     MAX(CASE WHEN u.invoked = 1 THEN u.created_at END) AS last_used_at \
     FROM skills s JOIN skill_uses u ON u.skill_id = s.id LEFT JOIN runs r ON r.id = u.run_id \
     WHERE s.owner = $1 GROUP BY u.skill_id";

impl Store {
    /// Records the skills of a run. Repeating it has no effect.
    pub async fn record_skill_uses(&self, owner: &Owner, run: RunId, uses: &[SkillUse]) -> Result<()> {
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            for one in uses {
                sqlx::query(
                    "INSERT INTO skill_uses (skill_id, run_id, version, invoked, created_at) \
                     SELECT id, $3, $4, $5, $6 FROM skills WHERE id = $1 AND owner = $2 \
                     ON CONFLICT (skill_id, run_id) DO NOTHING",
                )
                .bind(one.skill.0)
                .bind(owner.as_str())
                .bind(run.0)
                .bind(i64::from(one.version))
                .bind(i64::from(one.invoked))
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            }
        });
        Ok::<(), StoreError>(())
    }

    /// Returns statistics of all skills that were ever used.
    pub async fn skill_stats(&self, owner: &Owner) -> Result<BTreeMap<SkillId, SkillStats>> {
        let rows: Vec<SkillStatsRow> =
            reading!(self.database(), |pool| sqlx::query_as(FIGURES).bind(owner.as_str()).fetch_all(pool).await)?;
        let figures = |row: SkillStatsRow| {
            let figures = SkillStats {
                offered: unsigned(row.offered)?,
                invoked: unsigned(row.invoked)?,
                completed: unsigned(row.completed)?,
                failed: unsigned(row.failed)?,
                stopped: checked_number(row.stopped)?,
                last_used_at: row.last_used_at.map(Timestamp::from_millis),
            };
            Ok((SkillId(row.skill_id), figures))
        };
        rows.into_iter().map(figures).collect()
    }
}
