//! `greenroom budget`: what runs may cost, and how much of it is spent.

use super::{
    Exit, ServerArgs,
    client::{
        ApiClient, REQUEST_DEADLINE,
        responses::{AgentListResponse, BudgetListResponse, BudgetResponse, CreatedBudgetResponse},
    },
};
use crate::terminal::table;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use domain::ids::{BudgetId, RoomId};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io::{self, Write as _},
};
use uuid::Uuid;

#[derive(Args, Debug)]
pub struct BudgetArgs {
    #[command(subcommand)]
    command: BudgetCommand,
}

#[derive(Subcommand, Debug)]
enum BudgetCommand {
    /// List the budgets and what is spent of them.
    List(ServerArgs),
    /// Limit what runs may cost. Replaces the budgets of the same subject and period.
    Set(SetBudgetArgs),
    /// Delete a budget.
    Delete(DeleteBudgetArgs),
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("subject").required(true))]
struct SetBudgetArgs {
    /// The limit in US dollars, such as 50 or 0.25.
    #[arg(value_name = "DOLLARS", value_parser = dollars)]
    limit: f64,
    /// When it starts again, in UTC.
    #[arg(long, value_enum, default_value_t = PeriodArg::Month)]
    period: PeriodArg,
    /// All runs of the workspace.
    #[arg(long, group = "subject")]
    workspace: bool,
    /// The runs that answer this user's messages, by name or id.
    #[arg(long, value_name = "USER", group = "subject")]
    user: Option<String>,
    /// The runs of this agent, by name or id.
    #[arg(long, value_name = "AGENT", group = "subject")]
    agent: Option<String>,
    /// The runs in this room, by its id.
    #[arg(long, value_name = "ID", group = "subject")]
    room: Option<RoomId>,
    #[command(flatten)]
    connection: ServerArgs,
}

#[derive(Args, Debug)]
struct DeleteBudgetArgs {
    /// The budget's id, from the list.
    id: BudgetId,
    #[command(flatten)]
    connection: ServerArgs,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum PeriodArg {
    Day,
    Week,
    Month,
    /// Never: the budget is for all time.
    Total,
}

impl PeriodArg {
    fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Total => "total",
        }
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix('$').unwrap_or(text).parse().ok();
    number
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or_else(|| "a number of dollars, more than 0".into())
}

pub async fn run(arguments: &BudgetArgs) -> anyhow::Result<Exit> {
    match &arguments.command {
        BudgetCommand::List(connection) => list(&ApiClient::new(connection)?).await?,
        BudgetCommand::Set(set) => replace(&ApiClient::new(&set.connection)?, set).await?,
        BudgetCommand::Delete(delete) => {
            ApiClient::new(&delete.connection)?.delete(&format!("/api/budgets/{}", delete.id)).await?;
            writeln!(io::stdout().lock(), "budget {} is deleted", delete.id)?;
        }
    }
    Ok(Exit::Success)
}

async fn list(client: &ApiClient) -> anyhow::Result<()> {
    let BudgetListResponse { budgets } = client.get("/api/budgets", &[]).await?;
    let names = client.get::<AgentListResponse>("/api/agents", &[]).await?.names();
    let names: HashMap<Uuid, String> = names.into_iter().map(|(id, name)| (id.0, name)).collect();
    let rows: Vec<Vec<String>> = budgets.into_iter().map(|budget| row(budget, &names)).collect();
    let head = ["id", "scope", "of", "period", "spent", "limit", "resets"];
    Ok(table::print(&mut io::stdout().lock(), &head, &rows)?)
}

fn row(budget: BudgetResponse, agents: &HashMap<Uuid, String>) -> Vec<String> {
    let subject = budget.subject_id.map(|id| agents.get(&id).cloned().unwrap_or_else(|| id.to_string()));
    let is_used_up = budget.spent_usd >= budget.limit_usd;
    vec![
        budget.id.to_string(),
        budget.scope,
        subject.unwrap_or_default(),
        budget.period,
        format!("${:.4}{}", budget.spent_usd, if is_used_up { " (used up)" } else { "" }),
        format!("${:.2}", budget.limit_usd),
        budget.resets_at.unwrap_or_else(|| "never".to_owned()),
    ]
}

/// First the new one, so that there is no moment without a limit.
async fn replace(client: &ApiClient, set: &SetBudgetArgs) -> anyhow::Result<()> {
    let (scope, field, subject) = match (&set.agent, &set.user, set.room) {
        (Some(agent), _, _) => ("agent", "id", json!(client.find_agent(agent).await?)),
        (_, Some(user), _) => ("user", if user.parse::<Uuid>().is_ok() { "id" } else { "user" }, json!(user)),
        (_, _, Some(room)) => ("room", "id", json!(room)),
        (None, None, None) => ("workspace", "id", Value::Null),
    };
    let period = set.period.as_str();
    let new = json!({"scope": scope, "period": period, "limit_usd": set.limit, field: subject});
    let created: CreatedBudgetResponse = client.post("/api/budgets", &new, REQUEST_DEADLINE).await?;
    let BudgetListResponse { budgets } = client.get("/api/budgets", &[]).await?;
    let (new, old): (Vec<_>, Vec<_>) = budgets.iter().partition(|budget| budget.id == created.id);
    let is_replaced = |old: &&&BudgetResponse| {
        new.iter().any(|new| (&old.scope, old.subject_id, &old.period) == (&new.scope, new.subject_id, &new.period))
    };
    for old in old.iter().filter(is_replaced) {
        client.delete(&format!("/api/budgets/{}", old.id)).await?;
    }
    writeln!(io::stdout().lock(), "budget {}: ${} per {period}", created.id, set.limit)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::dollars;

    #[test]
    fn a_limit_is_a_positive_number() {
        assert_eq!((dollars("50"), dollars("$0.25")), (Ok(50.0), Ok(0.25)));
        for bad in ["", "0", "-1", "nan", "inf", "five"] {
            assert!(dollars(bad).is_err(), "{bad}");
        }
    }
}
