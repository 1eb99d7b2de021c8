//! The tree of a run: the runs that its agent has started, those that they have started, and what all of them cost.

use crate::{App, auth::Caller, error::Problem, extract::Id};
use axum::{Json, extract::State};
use domain::{
    ids::RunId,
    run::Run,
    run_tree::{TreeTotal, in_tree_order},
    usage::{Cost, Usage},
};
use serde::Serialize;
use store::NamedRun;

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = RunTree)]
pub struct RunTreeView {
    /// The run itself, then the runs below it: each follows its parent, children in the order they were started.
    runs: Vec<TreeRunView>,
    /// What all of them have used.
    usage: Usage,
    /// The sum of the known costs in US dollars; `null` if no cost is known.
    cost: Option<Cost>,
}

/// A run of a tree with the names of its room and its agent.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = TreeRun)]
pub struct TreeRunView {
    #[serde(flatten)]
    run: Run,
    room_name: String,
    agent_name: String,
}

/// Get the tree of a run
///
/// The run and all runs below it: those that its agent has started with `delegate` or `ask_agent`, and so on. A tree has at
/// most 64 runs below its first one, on three levels.
#[utoipa::path(get, path = "/api/runs/{id}/tree", tag = "runs", params(("id" = RunId, Path)),
               responses((status = 200, body = RunTreeView)))]
pub async fn tree(State(app): State<App>, caller: Caller, Id(id): Id<RunId>) -> Result<Json<RunTreeView>, Problem> {
    let runs = app.engine.queries().run_tree(&caller.workspace, id).await?;
    let TreeTotal { usage, cost } = TreeTotal::of(runs.iter().map(|named| &named.run));
    let view = |NamedRun { run, room_name, agent_name, .. }| TreeRunView { run, room_name, agent_name };
    let runs = in_tree_order(runs, |named| &named.run).into_iter().map(view).collect();
    Ok(Json(RunTreeView { runs, usage, cost }))
}
