//! Budgets: a spent one starts no run, ends a running one between its model calls, and starts again with its period.

use crate::harness::{EngineHarness, TestTurn, me, post};
use domain::{
    agent::Agent,
    budget::{BudgetPeriod, BudgetScope},
    ids::{AgentId, RoomId},
    room::WhenBusy,
    run::RunStatus,
    usage::{Cost, Usage},
};
use engine::EngineError;
use providers::{SavedInSession, TurnCommand, TurnEnd, TurnEvent};
use testkit::database::TestDatabase;

contract! {
    a_running_answer_is_ended_between_its_model_calls_and_kept,
    a_spent_budget_starts_no_run,
    a_run_that_waited_in_the_queue_is_checked_again,
    each_scope_counts_its_own_runs,
}

const CENT: Cost = Cost::from_nanos(10_000_000);

async fn limit(harness: &EngineHarness, scope: BudgetScope, cents: i64) {
    let limit = Cost::from_nanos(CENT.as_nanos() * cents);
    harness.engine.create_budget(&me(), scope, BudgetPeriod::Day, limit, None).await.unwrap();
}

/// A model call that costs this many cents.
async fn spend(turn: &TestTurn, cents: i64) {
    let cost = Some(Cost::from_nanos(CENT.as_nanos() * cents));
    turn.report(TurnEvent::ModelCall).await;
    turn.report(TurnEvent::Usage { usage: Usage::default(), model: None, cost }).await;
}

/// Why a message is refused, and what is spent of the budget.
async fn refusal(harness: &EngineHarness, room: RoomId) -> Option<(BudgetScope, Cost)> {
    match harness.engine.post_message(&me(), room, post("hello", WhenBusy::Enqueue, &[]), None).await {
        Ok(_) => None,
        Err(EngineError::BudgetExceeded(status)) => Some((status.budget.scope, status.spent)),
        Err(other) => panic!("{other}"),
    }
}

async fn a_running_answer_is_ended_between_its_model_calls_and_kept(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    limit(&harness, BudgetScope::Workspace, 3).await;
    let run = harness.post(room, "hello").await.runs[0].id;
    let mut turn = harness.turn().await;
    turn.text("The first part").await;
    spend(&turn, 2).await;
    turn.text(" and the second").await;
    spend(&turn, 2).await;
    turn.report(TurnEvent::ModelCall).await;
    assert_eq!(turn.next_command().await, TurnCommand::Interrupt, "the third call is not made");
    turn.end(TurnEnd::Stopped, SavedInSession::Nothing);
    let ended = harness.ended(run).await;
    assert_eq!((ended.status, ended.error.unwrap().code.as_str()), (RunStatus::Failed, "limit_budget"));
    assert_eq!(ended.cost, Some(Cost::from_nanos(4 * CENT.as_nanos())), "every call is counted");
    let history = harness.store.history(&me().workspace, room, 0, None, 10).await.unwrap();
    assert_eq!(history.messages.last().unwrap().text, "The first part and the second");
    harness.stop().await;
}

async fn a_spent_budget_starts_no_run(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    limit(&harness, BudgetScope::Workspace, 5).await;
    let run = harness.post(room, "hello").await.runs[0].id;
    let turn = harness.turn().await;
    spend(&turn, 5).await;
    turn.answer("s", "hi").await;
    harness.ended(run).await;
    assert_eq!(refusal(&harness, room).await, Some((BudgetScope::Workspace, Cost::from_nanos(5 * CENT.as_nanos()))));
    let events = harness.store.history(&me().workspace, room, 0, None, 10).await.unwrap();
    assert_eq!(events.messages.len(), 2, "the refused message is not stored");
    let billing = harness.engine.billing_status(&me()).await.unwrap();
    assert!(billing.reason.unwrap().contains("$0.05 of $0.05"));
    let budget = billing.budgets[0].budget.id;
    harness.engine.delete_budget(&me(), budget, None).await.unwrap();
    assert_eq!(refusal(&harness, room).await, None);
    harness.turn().await.answer("s", "hi").await;
    harness.stop().await;
}

async fn a_run_that_waited_in_the_queue_is_checked_again(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    limit(&harness, BudgetScope::Room(room), 1).await;
    let first = harness.post(room, "hello").await.runs[0].id;
    let second = harness.post(room, "again").await.runs[0].id;
    let turn = harness.turn().await;
    spend(&turn, 1).await;
    turn.answer("s", "hi").await;
    let ended = harness.ended(first).await;
    assert_eq!(ended.status, RunStatus::Completed, "an answer that needs no further call is not cut off");
    let waited = harness.ended(second).await.error.unwrap();
    assert_eq!(waited.code, "limit_budget");
    assert!(waited.message.contains("budget of this room"), "{}", waited.message);
    harness.stop().await;
}

async fn each_scope_counts_its_own_runs(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let (one, two) = (harness.room(&[&ann]).await, harness.room(&[&bob]).await);
    let run = harness.post(one, "hello").await.runs[0].id;
    let turn = harness.turn().await;
    spend(&turn, 2).await;
    turn.answer("s", "hi").await;
    harness.ended(run).await;
    let user = me().user_id().unwrap();
    let scopes = |agent: &Agent, room| [BudgetScope::Agent(agent.id), BudgetScope::Room(room)];
    for scope in scopes(&bob, two) {
        limit(&harness, scope, 1).await;
        assert_eq!(refusal(&harness, two).await, None, "{scope:?}");
        harness.turn().await.answer("s", "hi").await;
    }
    for scope in [BudgetScope::User(user), BudgetScope::Agent(ann.id), BudgetScope::Room(one)] {
        limit(&harness, scope, 1).await;
        assert_eq!(refusal(&harness, one).await.unwrap().1, Cost::from_nanos(2 * CENT.as_nanos()), "{scope:?}");
        let budgets = harness.engine.budgets(&me()).await.unwrap();
        let last = budgets.last().unwrap().budget.id;
        harness.engine.delete_budget(&me(), last, None).await.unwrap();
    }
    let unknown = BudgetScope::Agent(AgentId::generate());
    let refused = harness.engine.create_budget(&me(), unknown, BudgetPeriod::Day, CENT, None).await;
    assert!(matches!(refused, Err(EngineError::Refused { pointer, .. }) if pointer == "/id"));
    harness.stop().await;
}
