//! Budgets: what runs may cost. A budget is checked before a run is queued (here), before a queued run starts (`run::drive`),
//! and after every model call (`run::pump`); all three ask `Store::check_budget`. A run that passes its budget ends at its next
//! model call with what it has written so far.

use crate::{Engine, EngineError, error::budget_message};
use domain::{
    actor::Actor,
    budget::{Budget, BudgetPeriod, BudgetScope, BudgetStatus, BudgetSubjects},
    ids::BudgetId,
    owner::Owner,
    permission::Permission,
    time::Timestamp,
    usage::Cost,
};
use store::{IdempotentRequest, StoreError};

/// A billion dollars.
const MAX_LIMIT: Cost = Cost::from_nanos(1_000_000_000 * 1_000_000_000);

/// The budgets of a workspace, and why its user may not start runs.
#[derive(Debug)]
pub struct Billing {
    pub budgets: Vec<BudgetStatus>,
    pub reason: Option<String>,
}

impl Engine {
    pub async fn billing_status(&self, actor: &Actor) -> Result<Billing, EngineError> {
        let budgets = self.budgets(actor).await?;
        let stops = |status: &&BudgetStatus| match status.budget.scope {
            BudgetScope::Workspace => true,
            BudgetScope::User(user) => actor.user_id() == Some(user),
            BudgetScope::Agent(_) | BudgetScope::Room(_) => false,
        };
        let reason = budgets.iter().filter(stops).find(|status| status.is_used_up()).map(budget_message);
        Ok(Billing { budgets, reason })
    }

    pub async fn budgets(&self, actor: &Actor) -> Result<Vec<BudgetStatus>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        Ok(self.store().budgets(owner, Timestamp::now()).await?)
    }

    pub async fn create_budget(
        &self,
        actor: &Actor,
        scope: BudgetScope,
        period: BudgetPeriod,
        limit: Cost,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<BudgetId, EngineError> {
        let owner = actor.require(Permission::ManageBudgets)?;
        if limit <= Cost::ZERO || limit > MAX_LIMIT {
            let detail = "limit_usd: it must be more than 0, and at most 1000000000".into();
            return Err(EngineError::InvalidField { pointer: "/limit_usd".into(), detail });
        }
        self.check_scope(owner, scope).await?;
        let budget = Budget { id: BudgetId::generate(), scope, period, limit, created_at: Timestamp::now() };
        self.store().create_budget(actor, &budget, attempt).await?;
        Ok(budget.id)
    }

    pub async fn delete_budget(
        &self,
        actor: &Actor,
        id: BudgetId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::ManageBudgets)?;
        Ok(self.store().delete_budget(actor, id, attempt).await?)
    }

    /// What a budget counts must exist in its workspace.
    async fn check_scope(&self, owner: &Owner, scope: BudgetScope) -> Result<(), EngineError> {
        let found = match scope {
            BudgetScope::Workspace => Ok(()),
            BudgetScope::User(user) => self.store().role_of_member(owner, user).await.map(|_| ()),
            BudgetScope::Agent(agent) => self.store().agent(owner, agent).await.map(|_| ()),
            BudgetScope::Room(room) => self.store().room(owner, room).await.map(|_| ()),
        };
        match found {
            Err(StoreError::NotFound) => {
                let detail = format!("id: this workspace has no {} with this id", scope.as_str());
                Err(EngineError::refused("/id", detail))
            }
            found => Ok(found?),
        }
    }

    /// Refuses runs that a budget no longer allows.
    pub(crate) async fn check_budget(&self, owner: &Owner, subjects: BudgetSubjects<'_>) -> Result<(), EngineError> {
        match self.store().check_budget(owner, subjects, &[Timestamp::now()], Cost::ZERO).await? {
            Some(status) => Err(EngineError::BudgetExceeded(Box::new(status))),
            None => Ok(()),
        }
    }
}
