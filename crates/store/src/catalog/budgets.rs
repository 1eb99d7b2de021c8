//! Budgets, and what was spent of them. When a budget is checked is decided in `engine::commands::budgets`.

use super::{audit::store_audit, idempotency::store_key, owned::must_exist};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{reading, writing},
    error::{Result, signed, unsigned},
    row::row,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    budget::{Budget, BudgetPeriod, BudgetScope, BudgetStatus, BudgetSubjects},
    ids::{AgentId, BudgetId, RoomId, UserId},
    owner::Owner,
    time::Timestamp,
    usage::Cost,
};
use uuid::Uuid;

/// Budgets of one workspace. Each is summed up before a run starts.
const MAX_BUDGETS: i64 = 100;

row! {
    struct BudgetRow {
        id: Uuid,
        scope: String,
        subject: Option<Uuid>,
        period: String,
        limit_nanos: i64,
        created_at: i64,
    }
}

impl TryFrom<BudgetRow> for Budget {
    type Error = StoreError;
    fn try_from(row: BudgetRow) -> Result<Self> {
        let scope = match (row.scope.as_str(), row.subject) {
            ("workspace", None) => BudgetScope::Workspace,
            ("user", Some(id)) => BudgetScope::User(UserId(id)),
            ("agent", Some(id)) => BudgetScope::Agent(AgentId(id)),
            ("room", Some(id)) => BudgetScope::Room(RoomId(id)),
            (other, _) => return Err(StoreError::unreadable(format!("the scope {other:?} of a budget"))),
        };
        let period = BudgetPeriod::parse(&row.period)
            .ok_or_else(|| StoreError::unreadable(format!("the period {:?} of a budget", row.period)))?;
        Ok(Self {
            id: BudgetId(row.id),
            scope,
            period,
            limit: Cost::from_nanos(row.limit_nanos),
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

/// The sum of the costs of runs in a period: $1 owner, $2 its start, $3 its end, $4 the id that a scope names.
macro_rules! select_spent {
    ($joins:literal, $($condition:expr),*) => {
        concat!(
            "SELECT CAST(COALESCE(SUM(u.cost), 0) AS BIGINT) FROM runs u ",
            $joins,
            "WHERE u.owner = $1 AND u.created_at >= $2 AND u.created_at < $3"
            $(, $condition)*
        )
    };
}

/// A run that another one started counts with the runs above it too.
macro_rules! or_below {
    ($column:literal) => {
        concat!(
            " OR (u.parent_id IS NOT NULL AND EXISTS (WITH RECURSIVE above(id) AS (SELECT u.parent_id UNION ALL \
             SELECT p.parent_id FROM runs p JOIN above ON p.id = above.id WHERE p.parent_id IS NOT NULL) \
             SELECT 1 FROM above JOIN runs a ON a.id = above.id WHERE ",
            $column,
            " = $4))"
        )
    };
}

fn subject(scope: BudgetScope) -> Option<Uuid> {
    match scope {
        BudgetScope::Workspace => None,
        BudgetScope::User(id) => Some(id.0),
        BudgetScope::Agent(id) => Some(id.0),
        BudgetScope::Room(id) => Some(id.0),
    }
}

impl Store {
    /// Returns the unfinished runs of a workspace, up to `at_most`, and how many budgets it has. One query, because every
    /// post waits for it.
    pub async fn queue_and_budgets(&self, owner: &Owner, at_most: usize) -> Result<(usize, usize)> {
        let (runs, budgets): (i64, i64) = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM queue WHERE owner = $1 LIMIT $2) AS counted), \
                 (SELECT COUNT(*) FROM budgets WHERE owner = $1)",
            )
            .bind(owner.as_str())
            .bind(signed(at_most as u64))
            .fetch_one(pool)
            .await
        })?;
        let count = |number: i64| Ok::<_, StoreError>(usize::try_from(unsigned(number)?).unwrap_or(usize::MAX));
        Ok((count(runs)?, count(budgets)?))
    }

    /// Returns the budgets of a workspace with what was spent of each, oldest first.
    pub async fn budgets(&self, owner: &Owner, now: Timestamp) -> Result<Vec<BudgetStatus>> {
        let mut all = Vec::new();
        for budget in self.stored_budgets(owner).await? {
            all.push(self.budget_status(owner, budget, now).await?);
        }
        Ok(all)
    }

    /// Returns a budget that counts these subjects and is used up, if there is one. A run is counted in the period in which
    /// it was queued, so its own time is asked about besides the present. `unstored` is what the asking run has cost so far
    /// and has not stored yet.
    pub async fn check_budget(
        &self,
        owner: &Owner,
        subjects: BudgetSubjects<'_>,
        times: &[Timestamp],
        unstored: Cost,
    ) -> Result<Option<BudgetStatus>> {
        for budget in self.stored_budgets(owner).await?.into_iter().filter(|budget| budget.scope.covers(subjects)) {
            for at in times {
                let mut status = self.budget_status(owner, budget.clone(), *at).await?;
                status.spent = status.spent + unstored;
                if status.is_used_up() {
                    return Ok(Some(status));
                }
            }
        }
        Ok(None)
    }

    async fn stored_budgets(&self, owner: &Owner) -> Result<Vec<Budget>> {
        let rows: Vec<BudgetRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT id, scope, subject, period, limit_nanos, created_at FROM budgets WHERE owner = $1 ORDER BY id",
            )
            .bind(owner.as_str())
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(Budget::try_from).collect()
    }

    async fn budget_status(&self, owner: &Owner, budget: Budget, at: Timestamp) -> Result<BudgetStatus> {
        let (start, resets_at) = match budget.period.bounds(at) {
            Some((start, next)) => (start.as_millis(), Some(next)),
            None => (0, None),
        };
        let end = resets_at.map_or(i64::MAX, Timestamp::as_millis);
        let sql = match budget.scope {
            BudgetScope::Workspace => select_spent!("", ""),
            BudgetScope::Agent(_) => select_spent!("", " AND (u.agent_id = $4", or_below!("a.agent_id"), ")"),
            BudgetScope::Room(_) => select_spent!("", " AND (u.room_id = $4", or_below!("a.room_id"), ")"),
            BudgetScope::User(_) => select_spent!(
                "LEFT JOIN messages m ON m.id = u.message_id ",
                " AND COALESCE(u.user_id, m.user_id) = $4"
            ),
        };
        let spent: i64 = reading!(self.database(), |pool| {
            let query = sqlx::query_scalar(sql).bind(owner.as_str()).bind(start).bind(end);
            match subject(budget.scope) {
                Some(id) => query.bind(id).fetch_one(pool).await,
                None => query.fetch_one(pool).await,
            }
        })?;
        Ok(BudgetStatus { budget, spent: Cost::from_nanos(spent), resets_at })
    }

    pub async fn create_budget(
        &self,
        actor: &Actor,
        budget: &Budget,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let owner = &actor.workspace;
        let now = budget.created_at;
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, budget.id, now);
            let entry = AuditEntry::new(actor, AuditAction::Create, AuditedObject::Budget, budget.id);
            store_audit!(transaction, entry, now);
            let inserted = sqlx::query(
                "INSERT INTO budgets (id, owner, scope, subject, period, limit_nanos, created_at) \
                 SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (SELECT COUNT(*) FROM budgets WHERE owner = $2) < $8",
            )
            .bind(budget.id.0)
            .bind(owner.as_str())
            .bind(budget.scope.as_str())
            .bind(subject(budget.scope))
            .bind(budget.period.as_str())
            .bind(budget.limit.as_nanos())
            .bind(now.as_millis())
            .bind(MAX_BUDGETS)
            .execute(&mut *transaction)
            .await?;
            if inserted.rows_affected() == 0 {
                let detail = format!("a workspace has at most {MAX_BUDGETS} budgets; delete some first");
                return Err(StoreError::LimitReached(detail));
            }
        });
        Ok(())
    }

    pub async fn delete_budget(&self, actor: &Actor, id: BudgetId, attempt: Option<&IdempotentRequest>) -> Result<()> {
        let (owner, now) = (&actor.workspace, Timestamp::now());
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            let deleted = sqlx::query("DELETE FROM budgets WHERE id = $1 AND owner = $2")
                .bind(id.0)
                .bind(owner.as_str())
                .execute(&mut *transaction)
                .await?;
            must_exist(deleted.rows_affected())?;
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Delete, AuditedObject::Budget, id), now);
        });
        Ok(())
    }
}
