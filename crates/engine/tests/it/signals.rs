//! Signals: a stored request to a run is carried out, whatever becomes of the server that stored it (invariant 23).

use crate::harness::{EngineHarness, me, within};
use domain::{
    event::{Decision, EventType},
    ids::{ApprovalId, RoomId, RunId, SignalId},
    run::RunStatus,
    signal::{Signal, SignalBody, SignalOutcome},
};
use engine::{EngineError, commands::ApprovalResponse};
use providers::{TurnCommand, TurnEvent};
use serde_json::json;
use std::time::Duration;
use store::journal::{Commit, Guard, RowChange};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;

contract! {
    invariant_23_signals_are_durable_a_stored_answer_is_carried_out_without_its_sender,
    invariant_23_signals_are_durable_a_message_to_a_crashed_run_gets_a_run_of_its_own,
    an_answer_to_a_run_that_crashes_is_not_waited_for,
    an_answer_to_a_queued_run_is_not_found,
}

/// Stores a signal as a server does that dies at once: nobody wakes the run.
async fn store_signal(harness: &EngineHarness, room: RoomId, run: RunId, body: SignalBody) -> SignalId {
    let signal = Signal::new(run, body);
    let (id, changes) = (signal.id, vec![RowChange::StoreSignal { signal }]);
    harness.store.commit(Commit { room_id: room, guard: Guard::None, events: Vec::new(), changes }).await.unwrap();
    id
}

async fn wait_for_outcome(harness: &EngineHarness, signal: SignalId) -> SignalOutcome {
    within("an outcome", async {
        loop {
            if let Some(outcome) = harness.store.signal_outcome(signal).await.unwrap() {
                return outcome;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

async fn wait_for_approval(harness: &EngineHarness, run: RunId) {
    within("an approval", async {
        while harness.store.run(&me().workspace, run).await.unwrap().status != RunStatus::WaitingForApproval {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

fn allow() -> ApprovalResponse {
    ApprovalResponse { decision: Decision::Allow, input: None, remember: None }
}

async fn invariant_23_signals_are_durable_a_stored_answer_is_carried_out_without_its_sender(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let run = harness.post(room, "hello").await.runs[0].id;
    let mut turn = harness.turn().await;
    let id = ApprovalId::generate();
    let name = "deploy".to_owned();
    turn.report(TurnEvent::Approval { id, tool_use_id: None, name, input: json!({}), is_question: false }).await;
    wait_for_approval(&harness, run).await;
    let (decision, input) = (Decision::Allow, None);
    let answer = SignalBody::AnswerApproval {
        approval_id: id,
        decision,
        input,
        remember: false,
        scope: None,
        user_id: None,
        author: None,
    };
    let signal = store_signal(&harness, room, run, answer).await;
    assert_eq!(turn.next_command().await, TurnCommand::ResolveApproval { approval: id, decision, input: None });
    assert_eq!(wait_for_outcome(&harness, signal).await, SignalOutcome::CarriedOut);
    let events = harness.store.run_events(room, run, 0).await.unwrap();
    assert!(events.iter().any(|event| event.kind == EventType::ApprovalResolved), "stored in the same commit");
    harness.engine.approve(&me(), run, id, allow()).await.unwrap();
    turn.complete();
    harness.ended(run).await;
    harness.stop().await;
}

async fn invariant_23_signals_are_durable_a_message_to_a_crashed_run_gets_a_run_of_its_own(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let crashed = harness.post(room, "one").await.runs[0].id;
    let mut turn = harness.turn().await;
    let message = tokio::select! {
        posted = harness.steer(room, &[], None) => panic!("{posted:?}"),
        command = turn.next_command() => match command {
            TurnCommand::Steer { message, .. } => message,
            other => panic!("{other:?}"),
        },
    };
    harness.crash().await;
    harness.start().await;
    assert_eq!(harness.ended(crashed).await.status, RunStatus::Interrupted);
    let turn = harness.turn().await;
    assert_eq!(turn.request.prompt, "left");
    let answering = harness.store.run(&me().workspace, turn.request.run_id).await.unwrap();
    assert_eq!((answering.message_id, answering.agent_id), (message, ann.id));
    turn.complete();
    harness.ended(answering.id).await;
    assert!(harness.store.unfinished_runs(&me().workspace, room).await.unwrap().is_empty(), "one run answers it");
    harness.stop().await;
}

async fn an_answer_to_a_run_that_crashes_is_not_waited_for(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let run = harness.post(room, "hello").await.runs[0].id;
    let turn = harness.turn().await;
    let id = ApprovalId::generate();
    let name = "deploy".to_owned();
    turn.report(TurnEvent::Approval { id, tool_use_id: None, name, input: json!({}), is_question: false }).await;
    wait_for_approval(&harness, run).await;
    harness.crash().await;
    let engine = harness.engine.clone();
    let mut answering = JoinSet::new();
    answering.spawn(async move { engine.approve(&me(), run, id, allow()).await });
    within("the signal to be stored", async {
        while harness.store.pending_signals(run).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    harness.start().await;
    let answered = within("the answer", answering.join_next()).await.unwrap().unwrap();
    assert!(matches!(answered, Err(EngineError::RunEnded)), "{answered:?}");
    harness.stop().await;
}

async fn an_answer_to_a_queued_run_is_not_found(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.crash().await;
    let run = harness.post(room, "hello").await.runs[0].id;
    let answered = harness.engine.approve(&me(), run, ApprovalId::generate(), allow()).await;
    assert!(matches!(answered, Err(EngineError::NotFound)), "{answered:?}");
    harness.start().await;
    harness.turn().await.complete();
    harness.ended(run).await;
    harness.stop().await;
}
