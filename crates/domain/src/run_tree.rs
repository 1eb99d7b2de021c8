//! Run trees: a run that an agent started is the child of the run that started it (invariant 25).

use crate::{
    ids::{AgentId, RoomId, RunId, UserId},
    name::Name,
    run::{Receipt, Run},
    usage::{Cost, Usage},
};
use serde::{Deserialize, Serialize};

/// How far below the first run of a tree another one may be. The first run has depth 0.
pub const MAX_TREE_DEPTH: u32 = 3;
/// How many runs may be started below the first run of a tree, all levels together.
pub const MAX_TREE_RUNS: u32 = 64;

/// Where a child is in its tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreePlace {
    pub parent_id: RunId,
    /// The first run of the tree.
    pub root_id: RunId,
    pub depth: u32,
    /// The person whose message the tree answers: budgets of that person count the child too.
    pub user_id: Option<UserId>,
}

/// Why a run cannot have a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TreeLimit {
    #[error(
        "this run is {MAX_TREE_DEPTH} levels below the first one, which is the limit for agents that start other agents; \
         do the task yourself"
    )]
    Depth,
    #[error(
        "{MAX_TREE_RUNS} runs were started for this message already, which is the limit; go on without another one"
    )]
    Runs,
}

/// The run that a tool call started, shown with the call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChildRun {
    pub run_id: RunId,
    /// The room of its own that it works in.
    pub room_id: RoomId,
    pub agent_id: AgentId,
    pub agent_name: Name,
}

/// What several runs have used together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TreeTotal {
    pub usage: Usage,
    /// The sum of the known costs; `None` if no cost is known.
    pub cost: Option<Cost>,
}

impl TreeTotal {
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let mut total = Self::default();
        for run in runs {
            total.usage += run.usage;
            total.cost = match (total.cost, run.cost) {
                (Some(sum), Some(more)) => Some(sum + more),
                (sum, more) => sum.or(more),
            };
        }
        total
    }
}

impl Receipt {
    /// The receipt of several runs that were stopped together.
    pub fn of_all(receipts: impl IntoIterator<Item = Self>) -> Self {
        receipts.into_iter().fold(Self::default(), |mut all, receipt| {
            all.processes = all.processes.saturating_add(receipt.processes);
            all.signals.extend(receipt.signals);
            all.millis = all.millis.max(receipt.millis);
            all
        })
    }
}

impl Run {
    /// The place of a run that this one starts.
    pub fn place_of_child(&self, user_id: Option<UserId>) -> Result<TreePlace, TreeLimit> {
        let depth = self.depth + 1;
        match depth > MAX_TREE_DEPTH {
            true => Err(TreeLimit::Depth),
            false => Ok(TreePlace { parent_id: self.id, root_id: self.root_id.unwrap_or(self.id), depth, user_id }),
        }
    }
}

/// Sorts the runs of a tree so that each follows its parent, children in the order they were started. The first of `runs`
/// is the top.
pub fn in_tree_order<T>(runs: Vec<T>, run_of: impl Fn(&T) -> &Run) -> Vec<T> {
    let mut left: Vec<Option<T>> = runs.into_iter().map(Some).collect();
    let mut sorted = Vec::with_capacity(left.len());
    let mut open: Vec<usize> = if left.is_empty() { Vec::new() } else { vec![0] };
    while let Some(at) = open.pop() {
        let Some(next) = left.get_mut(at).and_then(Option::take) else { continue };
        let id = run_of(&next).id;
        sorted.push(next);
        let is_child = |run: &Option<T>| run.as_ref().is_some_and(|run| run_of(run).parent_id == Some(id));
        open.extend(left.iter().enumerate().rev().filter(|(_, run)| is_child(run)).map(|(at, _)| at));
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::{MAX_TREE_DEPTH, TreeLimit, TreeTotal, in_tree_order};
    use crate::{
        ids::{AgentId, MessageId, RoomId, RunId},
        run::{Receipt, Run, RunStatus},
        time::Timestamp,
        usage::{Cost, Usage},
    };

    fn run(parent: Option<&Run>) -> Run {
        Run {
            id: RunId::generate(),
            room_id: RoomId::generate(),
            agent_id: AgentId::generate(),
            message_id: MessageId::generate(),
            parent_id: parent.map(|parent| parent.id),
            root_id: parent.map(|parent| parent.root_id.unwrap_or(parent.id)),
            depth: parent.map_or(0, |parent| parent.depth + 1),
            status: RunStatus::Running,
            queued_seq: 1,
            usage: Usage { input_tokens: 1, ..Usage::default() },
            cost: Some(Cost::from_nanos(5)),
            model: None,
            duration_ms: None,
            error: None,
            receipt: None,
            created_at: Timestamp::from_millis(0),
            started_at: None,
            ended_at: None,
        }
    }

    #[test]
    fn a_child_is_one_level_deeper_up_to_the_bound() {
        let mut last = run(None);
        let root = last.id;
        for depth in 1..=MAX_TREE_DEPTH {
            let place = last.place_of_child(None).unwrap();
            assert_eq!((place.parent_id, place.root_id, place.depth), (last.id, root, depth));
            last = run(Some(&last));
        }
        assert_eq!(last.place_of_child(None), Err(TreeLimit::Depth));
    }

    #[test]
    fn costs_and_receipts_add_up_and_an_unknown_cost_hides_no_other() {
        let (first, second) = (run(None), Run { cost: None, ..run(None) });
        let total = TreeTotal::of([&first, &second, &first]);
        assert_eq!((total.usage.input_tokens, total.cost), (3, Some(Cost::from_nanos(10))));
        assert_eq!(TreeTotal::of([&second]).cost, None);
        let one = Receipt { processes: 2, signals: vec!["term".into()], millis: 7 };
        let two = Receipt { processes: 1, signals: Vec::new(), millis: 3 };
        assert_eq!(Receipt::of_all([one, two]), Receipt { processes: 3, signals: vec!["term".into()], millis: 7 });
    }

    #[test]
    fn a_tree_is_sorted_by_parents() {
        let top = run(None);
        let (left, right) = (run(Some(&top)), run(Some(&top)));
        let below = run(Some(&left));
        let ids = |runs: &[Run]| runs.iter().map(|run| run.id).collect::<Vec<_>>();
        let sorted = in_tree_order(vec![top.clone(), left.clone(), right.clone(), below.clone()], |run| run);
        assert_eq!(ids(&sorted), [top.id, left.id, below.id, right.id]);
    }
}
