//! Messages for a prompt in progress, with a fake agent.

use super::testing::{AcpHarness, custom_preset};
use crate::{TurnCommand, TurnEnd, TurnEvent};
use domain::ids::MessageId;
use serde_json::json;
use std::sync::atomic::Ordering;

#[tokio::test(start_paused = true)]
async fn a_message_during_a_prompt_is_taken_by_agents_that_say_so() {
    for (outcome, taken) in [("injected", true), ("promptRequired", false), ("startedNewTurn", false)] {
        let mut harness = AcpHarness::new(custom_preset());
        harness.begin().await;
        harness.accept_steerable_session().await;
        let (prompt, _) = harness.accept_prompt().await;
        assert!(harness.shared.launcher.can_steer.load(Ordering::Relaxed));
        let message = MessageId::generate();
        let steer = TurnCommand::Steer { message, text: "left".into(), attachments: Vec::new() };
        harness.commands.send(steer).await.unwrap();
        let request = harness.agent.expect("_session/steering").await;
        assert_eq!(request["params"]["sessionId"], "s1");
        assert_eq!(request["params"]["prompt"], json!([{"type": "text", "text": "left"}]));
        assert_eq!(request["params"]["_meta"]["steering"]["idleBehavior"], "promptRequired");
        // The prompt may end before the reply arrives.
        harness.end(&prompt, "end_turn").await;
        let reply = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}});
        harness.agent.send(reply).await;
        let (events, end) = harness.outcome().await;
        assert!(events.contains(&TurnEvent::Steered { message, taken }), "{outcome}: {events:?}");
        assert_eq!(end.end, TurnEnd::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_agent_does_not_confirm_is_declined() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    harness.accept_steerable_session().await;
    let (prompt, _) = harness.accept_prompt().await;
    let (refused, unanswered) = (MessageId::generate(), MessageId::generate());
    for message in [refused, unanswered] {
        let steer = TurnCommand::Steer { message, text: "left".into(), attachments: Vec::new() };
        harness.commands.send(steer).await.unwrap();
    }
    harness.refuse("_session/steering", -32601, "no such method").await;
    harness.agent.expect("_session/steering").await;
    harness.end(&prompt, "end_turn").await;
    let (events, _) = harness.outcome().await;
    for message in [refused, unanswered] {
        assert!(events.contains(&TurnEvent::Steered { message, taken: false }), "{events:?}");
    }
}
