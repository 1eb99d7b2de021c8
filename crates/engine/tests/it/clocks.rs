//! Time limits for a silent provider. The unit tests of `clocks` define what counts as silence.

use crate::harness::EngineHarness;
use domain::{limits::Limits, run::RunStatus};
use providers::{SavedInSession, TurnCommand, TurnEnd, TurnEvent};
use serde_json::json;
use std::time::Duration;
use testkit::database::TestDatabase;

contract! { status_events_do_not_extend_the_first_byte_limit, a_running_tool_has_its_own_silence_limit }

/// Limits that a test does not need are too long to matter.
fn limits() -> Limits {
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(600));
    Limits { first_byte: short, idle: long, tool: long, wall: long, ..Limits::default() }
}

async fn status_events_do_not_extend_the_first_byte_limit(database: TestDatabase) {
    let mut harness = EngineHarness::with(database, |config| config.limits = limits()).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let run = harness.post(room, "hello").await.runs[0].id;
    let mut turn = harness.turn().await;
    turn.session("s").await;
    for _ in 0..3 {
        turn.report(TurnEvent::Status { status: "retrying".into(), message: "Trying again".into() }).await;
    }
    assert_eq!(turn.next_command().await, TurnCommand::Interrupt);
    turn.end(TurnEnd::Stopped, SavedInSession::Nothing);
    let ended = harness.ended(run).await;
    assert_eq!((ended.status, ended.error.unwrap().code.as_str()), (RunStatus::Failed, "limit_first_byte"));
    harness.stop().await;
}

async fn a_running_tool_has_its_own_silence_limit(database: TestDatabase) {
    let short = Limits { first_byte: limits().idle, idle: Duration::from_secs(1), ..limits() };
    let limits = Limits { tool: Duration::from_secs(2), ..short };
    let mut harness = EngineHarness::with(database, |config| config.limits = limits).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let call = TurnEvent::ToolUse { id: "t".into(), name: "build".into(), input: json!({}) };
    for (event, code) in [(call, "limit_tool"), (TurnEvent::ModelCall, "limit_idle")] {
        let run = harness.post(room, "hello").await.runs[0].id;
        let mut turn = harness.turn().await;
        turn.report(event).await;
        assert_eq!(turn.next_command().await, TurnCommand::Interrupt);
        turn.end(TurnEnd::Stopped, SavedInSession::Nothing);
        assert_eq!(harness.ended(run).await.error.unwrap().code, code);
    }
    harness.stop().await;
}
