//! Tests of agents that use the host tools: their configuration, and their questions.

use super::{
    preset::Preset,
    testing::{AcpHarness, custom_preset},
};
use crate::{TurnEnd, TurnEvent, jsonrpc::fake_peer::FakeRpcPeer};
use domain::event::Decision;
use serde_json::{Value, json};

/// Returns the MCP server configuration for the host tools that the agent receives.
async fn own_server(harness: &mut AcpHarness, http: bool) -> Value {
    let capabilities = json!({"loadSession": true, "mcpCapabilities": {"http": http}});
    harness.answer("initialize", json!({"protocolVersion": 1, "agentCapabilities": capabilities})).await;
    let modes = json!({"currentModeId": "default"});
    let made = harness.answer("session/new", json!({"sessionId": "s1", "modes": modes})).await;
    made["mcpServers"].as_array().unwrap().last().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn invariant_17_secrets_stay_the_agent_token_is_in_a_header_or_in_the_environment() {
    let mut harness = AcpHarness::new(custom_preset());
    for (http, is_proxied) in [(true, false), (false, false), (true, true)] {
        harness.begin_with(|agent| agent.is_proxied = is_proxied).await;
        let server = own_server(&mut harness, http).await;
        let (prompt, _) = harness.accept_prompt().await;
        let secret = if http && !is_proxied {
            assert_eq!((&server["type"], &server["url"]), (&json!("http"), &json!("http://127.0.0.1:7878/mcp")));
            assert_eq!(server["headers"][0]["name"], "Authorization");
            server["headers"][0]["value"].as_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned()
        } else {
            assert_eq!((&server["command"], &server["args"]), (&json!("greenroom"), &json!(["mcp"])));
            let variable = |name: &str| {
                let all = server["env"].as_array().unwrap();
                all.iter().find(|one| one["name"] == name).unwrap()["value"].as_str().unwrap().to_owned()
            };
            assert_eq!(variable("GREENROOM_SERVER"), "http://127.0.0.1:7878");
            assert_eq!(variable("NO_PROXY"), "127.0.0.1", "the proxy is bypassed");
            variable("GREENROOM_TOKEN")
        };
        assert_eq!(server["name"], "greenroom");
        let tokens = &harness.shared.launcher.host_tools_endpoint.tokens.clone();
        assert!(tokens.find(secret.as_bytes()).is_some());
        harness.agent = FakeRpcPeer::new().2;
        harness.outcome().await;
        assert!(tokens.find(secret.as_bytes()).is_none(), "the token ends with the process ({prompt})");
    }
}

#[tokio::test(start_paused = true)]
async fn question_of_a_host_tool_is_answered_by_a_user() {
    let mut harness = AcpHarness::new(Preset::named("gemini").unwrap());
    harness.begin().await;
    let server = own_server(&mut harness, true).await;
    let (prompt, _) = harness.accept_prompt().await;

    // A host tool needs no approval.
    let options = json!([{"optionId": "all", "kind": "allow_always"}, {"optionId": "once", "kind": "allow_once"}]);
    let call = json!({"toolCallId": "mcp_greenroom_ask_people__1", "kind": "other"});
    let params = json!({"sessionId": "s1", "options": options, "toolCall": call});
    harness
        .agent
        .send(json!({"jsonrpc": "2.0", "id": 5, "method": "session/request_permission", "params": params}))
        .await;
    assert_eq!(harness.agent.next().await.unwrap()["result"]["outcome"]["optionId"], "once");

    let secret = server["headers"][0]["value"].as_str().unwrap().strip_prefix("Bearer ").unwrap();
    let (call, question) = (harness.call(secret), json!({"question": "Which?"}));
    let answering = async {
        let (approval, asked) = harness.approval().await;
        let TurnEvent::Approval { tool_use_id, name, input, is_question, .. } = asked else { panic!() };
        assert_eq!((tool_use_id.as_deref(), name.as_str()), (Some("mcp_greenroom_ask_people__1"), "ask_user"));
        assert_eq!((&input, is_question), (&question, true));
        harness.decide(approval, Decision::Allow, Some(json!({"answer": "that"}))).await;
    };
    let (outcome, ()) = tokio::join!(call.call_tool("ask_people", question.as_object().unwrap().clone()), answering);
    assert_eq!(outcome.unwrap().text, "that");
    harness.end(&prompt, "end_turn").await;
    assert_eq!(harness.outcome().await.1.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn question_is_withdrawn_when_its_request_is_dropped() {
    let mut harness = AcpHarness::new(custom_preset());
    harness.begin().await;
    let server = own_server(&mut harness, false).await;
    let (prompt, _) = harness.accept_prompt().await;
    let call = harness.call(server["env"][1]["value"].as_str().unwrap());
    let question = json!({"question": "Which?"});
    let approval = tokio::select! {
        answer = call.call_tool("ask_people", question.as_object().unwrap().clone()) => panic!("{answer:?}"),
        (approval, _) = harness.approval() => approval,
    };
    assert_eq!(harness.next_event().await, TurnEvent::ApprovalWithdrawn { id: approval });
    harness.end(&prompt, "end_turn").await;
    assert_eq!(harness.outcome().await.1.end, TurnEnd::Completed);
}
