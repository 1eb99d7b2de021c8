//! Approvals: requests of a provider, and people's answers.

use crate::harness::{EngineHarness, me, within};
use domain::{
    event::{Decision, EventBody},
    ids::{ApprovalId, RoomId, RunId, UserId},
    run::RunStatus,
};
use engine::{EngineError, commands::ApprovalResponse};
use providers::{TurnCommand, TurnEvent};
use serde_json::json;
use std::time::Duration;
use testkit::database::TestDatabase;

contract! { a_withdrawn_approval_expires_and_the_run_continues }

/// Waits until the run has this status.
async fn wait_for_status(harness: &EngineHarness, run: RunId, status: RunStatus) {
    within("a status", async {
        while harness.store.run(&me().workspace, run).await.unwrap().status != status {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

async fn resolved(harness: &EngineHarness, room: RoomId, run: RunId) -> Vec<(ApprovalId, Decision, Option<UserId>)> {
    let events = harness.store.run_events(room, run, 0).await.unwrap();
    let resolved = events.iter().filter_map(|event| match event.body().unwrap() {
        EventBody::ApprovalResolved(e) => Some((e.approval_id, e.decision, e.user_id)),
        _ => None,
    });
    resolved.collect()
}

async fn a_withdrawn_approval_expires_and_the_run_continues(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let run = harness.post(room, "hello").await.runs[0].id;
    let mut turn = harness.turn().await;
    let ids = [ApprovalId::generate(), ApprovalId::generate()];
    for id in ids {
        let name = "deploy".to_owned();
        turn.report(TurnEvent::Approval { id, tool_use_id: None, name, input: json!({}), is_question: false }).await;
        wait_for_status(&harness, run, RunStatus::WaitingForApproval).await;
        if id == ids[0] {
            turn.report(TurnEvent::ApprovalWithdrawn { id }).await;
            wait_for_status(&harness, run, RunStatus::Running).await;
        }
    }
    let allow = || ApprovalResponse { decision: Decision::Allow, input: None, remember: None };
    let late = harness.engine.approve(&me(), run, ids[0], allow()).await;
    assert!(matches!(late, Err(EngineError::Conflict(_))), "{late:?}");
    harness.engine.approve(&me(), run, ids[1], allow()).await.unwrap();
    // The first command that the provider gets is the answer to the pending approval.
    let answer = TurnCommand::ResolveApproval { approval: ids[1], decision: Decision::Allow, input: None };
    assert_eq!(turn.next_command().await, answer);
    turn.complete();
    assert_eq!(harness.ended(run).await.status, RunStatus::Completed);
    let by_me = (ids[1], Decision::Allow, me().user_id());
    assert_eq!(resolved(&harness, room, run).await, [(ids[0], Decision::Expired, None), by_me]);
    let log = harness.store.audit_log(&me().workspace, 10).await.unwrap();
    assert!(log.iter().any(|entry| entry.action == "approve" && entry.object_id == ids[1].to_string()), "{log:?}");
    harness.stop().await;
}
