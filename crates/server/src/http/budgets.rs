//! Budgets: what runs may cost, and how much of it is spent.

use super::{WriteOutcome, attempt, named_page::NamedPageParams, run_once};
use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
};
use axum::{Json, extract::State, http::StatusCode};
use domain::{
    budget::{BudgetPeriod, BudgetScope, BudgetStatus},
    ids::{AgentId, BudgetId, RoomId, UserId},
    name::Name,
    time::Timestamp,
    usage::Cost,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Clone, Copy, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScopeName {
    Workspace,
    User,
    Agent,
    Room,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Budget)]
pub struct BudgetView {
    id: BudgetId,
    scope: BudgetScopeName,
    /// The user, agent or room that the budget counts; `null` for the workspace.
    #[schema(value_type = Option<Uuid>)]
    subject_id: Option<Uuid>,
    period: BudgetPeriod,
    /// In US dollars.
    limit_usd: Cost,
    /// What the runs of this period have cost so far, in US dollars. Runs of models with unknown prices are not counted.
    spent_usd: Cost,
    /// When the next period begins; `null` if the budget is for all time.
    resets_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl From<BudgetStatus> for BudgetView {
    fn from(status: BudgetStatus) -> Self {
        let BudgetStatus { budget, spent, resets_at } = status;
        let (scope, subject_id) = match budget.scope {
            BudgetScope::Workspace => (BudgetScopeName::Workspace, None),
            BudgetScope::User(id) => (BudgetScopeName::User, Some(id.0)),
            BudgetScope::Agent(id) => (BudgetScopeName::Agent, Some(id.0)),
            BudgetScope::Room(id) => (BudgetScopeName::Room, Some(id.0)),
        };
        Self {
            id: budget.id,
            scope,
            subject_id,
            period: budget.period,
            limit_usd: budget.limit,
            spent_usd: spent,
            resets_at,
            created_at: budget.created_at,
        }
    }
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct BudgetList {
    budgets: Vec<BudgetView>,
    /// Send it as `after` to get the next page; `null` on the last page.
    next: Option<String>,
}

/// List budgets
///
/// In the order of their creation, in pages, with what was spent in the current period of each.
#[utoipa::path(get, path = "/api/budgets", tag = "usage", params(NamedPageParams),
               responses((status = 200, body = BudgetList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(page): QueryParams<NamedPageParams>,
) -> Result<Json<BudgetList>, Problem> {
    let (found, next) = page.cut(app.engine.budgets(&caller).await?, |found| found.budget.id.to_string())?;
    Ok(Json(BudgetList { budgets: found.into_iter().map(BudgetView::from).collect(), next }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBudget {
    scope: BudgetScopeName,
    /// The user, agent or room that the budget counts; left out for the workspace.
    #[schema(value_type = Option<Uuid>, examples("0199c1de-7d3f-7000-8000-000000000001"))]
    id: Option<Uuid>,
    /// The name of the user that the budget counts, instead of the `id`.
    user: Option<Name>,
    period: BudgetPeriod,
    /// In US dollars; more than 0.
    #[schema(value_type = f64, minimum = 0.000000001, maximum = 1000000000)]
    limit_usd: Cost,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct CreatedBudget {
    #[schema(value_type = Uuid)]
    id: String,
}

/// Create a budget
///
/// Limits what runs may cost in a period, in UTC. It is checked before a run starts and after every model call: a spent
/// budget refuses messages with 402 `budget_exceeded`, and ends running answers, whose text is kept. A budget can be
/// passed by the cost of the model calls that are in progress when it is used up.
#[utoipa::path(post, path = "/api/budgets", tag = "usage", request_body = NewBudget,
               responses((status = 201, body = CreatedBudget),
                         (status = 422, description = "There are too many budgets",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    key: IdempotencyKey,
    JsonBody(new, fingerprint): JsonBody<NewBudget>,
) -> Result<(StatusCode, Json<CreatedBudget>), Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let id = match (new.scope, new.id, &new.user) {
        (_, id, None) => id,
        (BudgetScopeName::User, None, Some(name)) => {
            let user = app.engine.queries().member_named(&actor.workspace, name).await?;
            let unknown = || Problem::unprocessable(format!("user: no user of this workspace is called {name}."));
            Some(user.ok_or_else(|| unknown().with("pointer", "/user"))?.0)
        }
        (_, _, Some(_)) => {
            let detail = "user: only for a budget of a user, and without an id";
            return Err(Problem::unprocessable(detail).with("pointer", "/user"));
        }
    };
    let scope = match (new.scope, id) {
        (BudgetScopeName::Workspace, None) => BudgetScope::Workspace,
        (BudgetScopeName::User, Some(id)) => BudgetScope::User(UserId(id)),
        (BudgetScopeName::Agent, Some(id)) => BudgetScope::Agent(AgentId(id)),
        (BudgetScopeName::Room, Some(id)) => BudgetScope::Room(RoomId(id)),
        (BudgetScopeName::Workspace, Some(_)) => {
            return Err(Problem::unprocessable("id: leave it out for a budget of the workspace").with("pointer", "/id"));
        }
        (_, None) => {
            return Err(
                Problem::unprocessable("id: say which user, agent or room the budget counts").with("pointer", "/id")
            );
        }
    };
    let write = async {
        Ok(app.engine.create_budget(actor, scope, new.period, new.limit_usd, attempt.as_ref()).await?.to_string())
    };
    let id = match run_once(&app, actor, attempt.as_ref(), write).await? {
        WriteOutcome::Done(id) | WriteOutcome::AlreadyDone(id) => id,
    };
    Ok((StatusCode::CREATED, Json(CreatedBudget { id })))
}

/// Delete a budget
///
/// Runs that it stopped stay stopped; new ones may start.
#[utoipa::path(delete, path = "/api/budgets/{id}", tag = "usage", params(("id" = BudgetId, Path)),
               responses((status = 204)))]
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BudgetId>,
    key: IdempotencyKey,
    fingerprint: Fingerprint,
) -> Result<StatusCode, Problem> {
    let (actor, attempt) = (&*caller, attempt(key, fingerprint));
    let write = async { Ok(app.engine.delete_budget(actor, id, attempt.as_ref()).await?) };
    run_once(&app, actor, attempt.as_ref(), write).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct BillingStatus {
    /// Whether you may start runs. A budget of an agent or a room stops only that agent or room.
    allowed: bool,
    /// Which budget is used up.
    reason: Option<String>,
    budgets: Vec<BudgetView>,
}

/// Get the billing status
///
/// Whether runs may start now, and what every budget has left.
#[utoipa::path(get, path = "/api/billing/status", tag = "usage", responses((status = 200, body = BillingStatus)))]
pub async fn billing_status(State(app): State<App>, caller: Caller) -> Result<Json<BillingStatus>, Problem> {
    let status = app.engine.billing_status(&caller).await?;
    Ok(Json(BillingStatus {
        allowed: status.reason.is_none(),
        reason: status.reason,
        budgets: status.budgets.into_iter().map(BudgetView::from).collect(),
    }))
}
