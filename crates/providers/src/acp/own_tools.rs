//! Agents that use Greenroom's own tools: what they are given for it, and what becomes of their questions.

use super::{
    preset::Preset,
    testing::{Stage, tame},
};
use crate::{TurnEnd, TurnEvent, jsonrpc::far_end::FarEnd};
use domain::event::Decision;
use serde_json::{Value, json};

/// What the agent is given for the host tools.
async fn own_server(stage: &mut Stage, http: bool) -> Value {
    let capabilities = json!({"loadSession": true, "mcpCapabilities": {"http": http}});
    stage.answer("initialize", json!({"protocolVersion": 1, "agentCapabilities": capabilities})).await;
    let modes = json!({"currentModeId": "default"});
    let made = stage.answer("session/new", json!({"sessionId": "s1", "modes": modes})).await;
    made["mcpServers"].as_array().unwrap().last().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn invariant_17_secrets_stay_the_pass_is_in_a_header_or_in_an_environment() {
    let mut stage = Stage::new(tame());
    for (http, is_proxied) in [(true, false), (false, false), (true, true)] {
        stage.begin_with(|agent| agent.is_proxied = is_proxied).await;
        let server = own_server(&mut stage, http).await;
        let (prompt, _) = stage.prompted().await;
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
            assert_eq!(variable("NO_PROXY"), "127.0.0.1", "no proxy is told");
            variable("GREENROOM_TOKEN")
        };
        assert_eq!(server["name"], "greenroom");
        let passes = &stage.shared.maker.door.passes.clone();
        assert!(passes.find(secret.as_bytes()).is_some());
        stage.agent = FarEnd::new().2;
        stage.outcome().await;
        assert!(passes.find(secret.as_bytes()).is_none(), "it ends with the process ({prompt})");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_with_a_pass_is_answered_by_a_person() {
    let mut stage = Stage::new(Preset::named("gemini").unwrap());
    stage.begin().await;
    let server = own_server(&mut stage, true).await;
    let (prompt, _) = stage.prompted().await;

    // A tool of ours needs no permission of a person's.
    let options = json!([{"optionId": "all", "kind": "allow_always"}, {"optionId": "once", "kind": "allow_once"}]);
    let call = json!({"toolCallId": "mcp_greenroom_ask_people__1", "kind": "other"});
    let params = json!({"sessionId": "s1", "options": options, "toolCall": call});
    stage
        .agent
        .send(json!({"jsonrpc": "2.0", "id": 5, "method": "session/request_permission", "params": params}))
        .await;
    assert_eq!(stage.agent.next().await.unwrap()["result"]["outcome"]["optionId"], "once");

    let secret = server["headers"][0]["value"].as_str().unwrap().strip_prefix("Bearer ").unwrap();
    let (call, question) = (stage.call(secret), json!({"question": "Which?"}));
    let answering = async {
        let (approval, asked) = stage.approval().await;
        let TurnEvent::Approval { tool_use_id, name, input, is_question, .. } = asked else { panic!() };
        assert_eq!((tool_use_id.as_deref(), name.as_str()), (Some("mcp_greenroom_ask_people__1"), "ask_user"));
        assert_eq!((&input, is_question), (&question, true));
        stage.decide(approval, Decision::Allow, Some(json!({"answer": "that"}))).await;
    };
    let (outcome, ()) = tokio::join!(call.tool("ask_people", &question), answering);
    assert_eq!(outcome.unwrap().text, "that");
    stage.end(&prompt, "end_turn").await;
    assert_eq!(stage.outcome().await.1.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_asker_hangs_up_is_withdrawn() {
    let mut stage = Stage::new(tame());
    stage.begin().await;
    let server = own_server(&mut stage, false).await;
    let (prompt, _) = stage.prompted().await;
    let call = stage.call(server["env"][1]["value"].as_str().unwrap());
    let question = json!({"question": "Which?"});
    let approval = tokio::select! {
        answer = call.tool("ask_people", &question) => panic!("{answer:?}"),
        (approval, _) = stage.approval() => approval,
    };
    assert_eq!(stage.next().await, TurnEvent::Withdrawn { id: approval });
    stage.end(&prompt, "end_turn").await;
    assert_eq!(stage.outcome().await.1.end, TurnEnd::Completed);
}
