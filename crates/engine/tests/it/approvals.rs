//! Questions of a provider's to people, and their answers.

use crate::scene::{Stage, me, within};
use domain::{
    event::{Decision, EventBody},
    ids::{ApprovalId, RoomId, RunId},
    run::RunStatus,
};
use engine::{Error, commands::Approval};
use providers::{TurnCommand, TurnEvent};
use serde_json::json;
use std::time::Duration;
use testkit::database::TestDatabase;

contract! { one_that_was_withdrawn_is_over_and_the_run_goes_on }

/// Waits until the run is so.
async fn becomes(stage: &Stage, run: RunId, status: RunStatus) {
    within("a status", async {
        while stage.store.run(&me(), run).await.unwrap().status != status {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

async fn resolved(stage: &Stage, room: RoomId, run: RunId) -> Vec<(ApprovalId, Decision)> {
    let events = stage.store.run_events(room, run, 0).await.unwrap();
    let resolved = events.iter().filter_map(|event| match event.body().unwrap() {
        EventBody::ApprovalResolved(e) => Some((e.approval_id, e.decision)),
        _ => None,
    });
    resolved.collect()
}

async fn one_that_was_withdrawn_is_over_and_the_run_goes_on(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let run = stage.post(room, "hello").await.runs[0].id;
    let mut turn = stage.turn().await;
    let ids = [ApprovalId::generate(), ApprovalId::generate()];
    for id in ids {
        let name = "deploy".to_owned();
        turn.says(TurnEvent::Approval { id, tool_use_id: None, name, input: json!({}), is_question: false }).await;
        becomes(&stage, run, RunStatus::WaitingForApproval).await;
        if id == ids[0] {
            turn.says(TurnEvent::Withdrawn { id }).await;
            becomes(&stage, run, RunStatus::Running).await;
        }
    }
    let allow = || Approval { decision: Decision::Allow, input: None, remember: false };
    let late = stage.engine.approve(&me(), run, ids[0], allow()).await;
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    stage.engine.approve(&me(), run, ids[1], allow()).await.unwrap();
    // The first that the provider hears is the answer to what it still asks.
    let answer = TurnCommand::Answer { approval: ids[1], decision: Decision::Allow, input: None };
    assert_eq!(turn.told().await, answer);
    turn.completes();
    assert_eq!(stage.ended(run).await.status, RunStatus::Completed);
    assert_eq!(resolved(&stage, room, run).await, [(ids[0], Decision::Expired), (ids[1], Decision::Allow)]);
    stage.stop().await;
}
