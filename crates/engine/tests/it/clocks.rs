//! A provider that is silent for too long. What counts as silence is in the clocks' own tests.

use crate::scene::Stage;
use domain::{limits::Limits, run::RunStatus};
use providers::{Kept, TurnCommand, TurnEnd, TurnEvent};
use serde_json::json;
use std::time::Duration;
use testkit::database::TestDatabase;

contract! { who_only_says_that_it_tries_has_not_begun, a_tool_may_be_silent_for_longer_than_a_model }

/// The clocks that are not looked at are too long to matter.
fn limits() -> Limits {
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(600));
    Limits { first_byte: short, idle: long, tool: long, wall: long, ..Limits::default() }
}

async fn who_only_says_that_it_tries_has_not_begun(database: TestDatabase) {
    let mut stage = Stage::with(database, |config| config.limits = limits()).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let run = stage.post(room, "hello").await.runs[0].id;
    let mut turn = stage.turn().await;
    turn.session("s").await;
    for _ in 0..3 {
        turn.says(TurnEvent::Status { status: "retrying".into(), message: "Trying again".into() }).await;
    }
    assert_eq!(turn.told().await, TurnCommand::Interrupt);
    turn.ends(TurnEnd::Stopped, Kept::Nothing);
    let ended = stage.ended(run).await;
    assert_eq!((ended.status, ended.error.unwrap().code.as_str()), (RunStatus::Failed, "limit_first_byte"));
    stage.stop().await;
}

async fn a_tool_may_be_silent_for_longer_than_a_model(database: TestDatabase) {
    let short = Limits { first_byte: limits().idle, idle: Duration::from_secs(1), ..limits() };
    let limits = Limits { tool: Duration::from_secs(2), ..short };
    let mut stage = Stage::with(database, |config| config.limits = limits).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let call = TurnEvent::ToolUse { id: "t".into(), name: "build".into(), input: json!({}) };
    for (event, code) in [(call, "limit_tool"), (TurnEvent::ModelCall, "limit_idle")] {
        let run = stage.post(room, "hello").await.runs[0].id;
        let mut turn = stage.turn().await;
        turn.says(event).await;
        assert_eq!(turn.told().await, TurnCommand::Interrupt);
        turn.ends(TurnEnd::Stopped, Kept::Nothing);
        assert_eq!(stage.ended(run).await.error.unwrap().code, code);
    }
    stage.stop().await;
}
