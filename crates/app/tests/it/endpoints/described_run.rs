//! The sequences that other agent servers describe, as their clients play them: an agent is created, executed and
//! cancelled; a skill is created and changed; a subscriber of agents loses its connection and fills the gap.

use super::requests::{ApiResponse, agent, delete, get, post, response_to, room_of, within};
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::{ReceivedFrameParser, TestClient, socket_request};
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, tungstenite::Message};

on_both_databases! {
    server: agent_is_created_executed_and_cancelled, every_described_shape, skill_is_created_and_changed,
            subscriber_of_agents_fills_the_gap;
}

/// The events of a stream as their names and data. Checks what every described stream has.
pub fn described(answer: &ApiResponse) -> Vec<(String, Value)> {
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"), "{answer:?}");
    assert!(answer.text.starts_with(": "), "a comment comes first: {}", answer.text);
    let mut frames = Vec::new();
    ReceivedFrameParser::default().push(answer.text.as_bytes(), &mut frames).unwrap();
    let last = frames.pop().unwrap();
    assert_eq!((last.event, last.data.as_str()), (None, "done"));
    let parsed = frames.into_iter().map(|frame| {
        let (event, data): (String, Value) = (frame.event.unwrap(), serde_json::from_str(&frame.data).unwrap());
        assert_eq!(data["type"], json!(event), "the type is in the data, too");
        (event, data)
    });
    parsed.collect()
}

/// The events without their status reports.
pub fn without_status(events: Vec<(String, Value)>) -> Vec<Value> {
    events.into_iter().filter(|(event, _)| event != "status").map(|(_, data)| data).collect()
}

pub fn assistant(text: &str) -> Value {
    json!({"type": "message",
           "content": {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}})
}

async fn agent_is_created_executed_and_cancelled(api: &TestClient) {
    let new = json!({"directory": "/x", "agent": {"name": "Writer", "systemPrompt": "Write.", "provider": "scripted",
                     "toolConfig": {"allowedTools": ["Read"], "disallowedTools": ["Bash"]}, "enabled": true}});
    let created = post(api, "/api/strapi/agents", &new).await.expect_status(201);
    assert_eq!((&created["success"], &created["agent"]["systemPrompt"]), (&json!(true), &json!("Write.")));
    let id = created["agentId"].as_str().unwrap().to_owned();
    let path = format!("/api/strapi/agents/{id}");
    let own = get(api, &format!("/api/agents/{id}")).await.expect_status(200);
    assert_eq!((&own["tools"]["allow"], &own["tools"]["deny"]), (&json!(["Read"]), &json!(["Bash"])));
    let changed = response_to(api.request(Method::PUT, &path).json(&json!({"systemPrompt": "Write well."}))).await;
    assert_eq!(changed.expect_status(200)["agent"]["systemPrompt"], "Write well.");
    let shown = get(api, &path).await.expect_status(200);
    assert_eq!((&shown["name"], &shown["disallowedTools"]), (&json!("Writer"), &json!(["Bash"])), "the rest stays");
    let listed = get(api, "/api/strapi/agents?search=writ&enabled=true&sort=name&page=1&pageSize=10").await;
    let listed = listed.expect_status(200);
    assert_eq!((&listed["data"][0], &listed["meta"]["total"]), (&shown, &json!(1)));
    post(api, "/api/strapi/agents", &json!({"systemPrompt": "x"})).await.expect_problem(422, "unprocessable");

    let execute = format!("/api/execute/agent/{id}?dialect=messages");
    let first = post(api, &execute, &json!({"message": "!count 3"})).await;
    let events = described(&first);
    let (event, status) = &events[0];
    assert_eq!((event.as_str(), &status["status"]), ("status", &json!("Loading agent...")));
    assert_eq!(status.as_object().unwrap().len(), 3, "type, status and timestamp: {status}");
    assert!(status["timestamp"].as_str().unwrap().ends_with('Z'));
    let [said, completion] = &without_status(events)[..] else { panic!("{first:?}") };
    assert_eq!(*said, assistant("1 2 3"));
    let mut fields: Vec<&String> = completion.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["cost", "duration", "tokens", "type"]);
    assert!(completion["tokens"]["input"].is_u64() && completion["tokens"]["output"].is_u64(), "{completion}");
    assert!(completion["duration"].as_f64().unwrap() < 60.0, "in seconds: {completion}");

    let failed = described(&post(api, &execute, &json!({"message": "!fail over_loaded Later"})).await);
    let error = json!({"type": "error", "error": "Later", "details": "over_loaded"});
    assert_eq!(without_status(failed), [assistant("I am about to fail."), error], "what it has said is kept");

    let session = post(api, "/api/chat/sessions", &json!({"title": "T", "agentId": id})).await.expect_status(201);
    let session = session["session"]["id"].as_str().unwrap().to_owned();
    let (messages, hang) = (format!("/api/chat/sessions/{session}/messages"), json!({"message": "!hang"}));
    let hanging = post(api, &messages, &hang);
    let cancel = async {
        let runs = format!("/api/runs?room={session}&status=running");
        within("the run to begin", async {
            while get(api, &runs).await.expect_status(200)["runs"].as_array().unwrap().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
        post(api, &format!("/api/chat/sessions/{session}/cancel"), &json!({})).await.expect_status(200)
    };
    let (stream, cancelled) = tokio::join!(hanging, cancel);
    assert_eq!(cancelled, json!({"success": true}));
    assert_eq!(without_status(described(&stream)).last(), Some(&json!({"type": "cancelled"})));

    assert_eq!(delete(api, &path).await.status, 204);
    get(api, &path).await.expect_problem(404, "not_found");
}

async fn every_described_shape(api: &TestClient) {
    let script = r#"!script [{"status":{"status":"warming_up","message":"Warm"}},{"thinking":"hm"},{"text":"no","item":"x"},
        {"retract":"x"},{"text":"look"},{"text":"ing"},{"tool_use":{"id":"t","name":"look","input":{"at":1}}},
        {"tool_result":{"id":"t","content":"seen","is_error":false}},{"text":"yes"}]"#;
    let agent = api.scripted_agent().await.unwrap();
    let path = format!("/api/execute/agent/{agent}");
    let asked = json!({"message": script, "dialect": "messages"});
    let events = described(&post(api, &path, &asked).await);
    let warm = events.iter().find(|(_, data)| data["status"] == "Warm");
    assert!(warm.is_some_and(|(event, _)| event == "status"), "{events:?}");
    let said = without_status(events);
    let content = |content: Value| json!({"type": "message", "content": content});
    assert_eq!(
        said[..said.len() - 1],
        [
            content(json!({"type": "thinking", "thinking": "hm"})),
            assistant("looking"),
            content(json!({"type": "tool_use", "id": "t", "name": "look", "input": {"at": 1}})),
            content(json!({"type": "tool_result", "tool_use_id": "t", "content": "seen"})),
            assistant("yes"),
        ]
    );
    let query = format!("{path}?message=!count%202&dialect=messages");
    assert_eq!(without_status(described(&get(api, &query).await))[0], assistant("1 2"));
    get(api, &format!("{path}?message=x&dialect=esperanto")).await.expect_problem(400, "invalid_request");
}

async fn skill_is_created_and_changed(api: &TestClient) {
    let new = json!({"name": "review", "displayName": "Review", "description": "Reviews code.", "skillmd": "# Review\nRead it.",
                     "category": "custom", "isPublic": true, "version": "1.0.0", "allowedTools": ["Read"]});
    let created = post(api, "/api/strapi/skills", &new).await.expect_status(201);
    assert_eq!((&created["success"], &created["skill"]["skillmd"]), (&json!(true), &json!("# Review\nRead it.")));
    let id = created["skill"]["id"].as_str().unwrap().to_owned();
    let own = get(api, "/api/skills/review").await.expect_status(200);
    assert_eq!((&own["body"], &own["tools"]["allow"]), (&json!("# Review\nRead it."), &json!(["Read"])));
    let document = "---\nname: review\ndescription: Reviews all code.\n---\n\nRead all of it.\n";
    let change = api.request(Method::PUT, &format!("/api/strapi/skills/{id}")).json(&json!({"skillmd": document}));
    let changed = response_to(change).await.expect_status(200);
    assert_eq!(changed["skill"]["description"], "Reviews all code.");
    let own = get(api, "/api/skills/review").await.expect_status(200);
    assert_eq!((own["body"].as_str().unwrap().trim(), &own["version"]), ("Read all of it.", &json!(2)));
    let listed = get(api, "/api/strapi/skills").await.expect_status(200);
    assert_eq!((&listed["data"][0]["id"], &listed["meta"]["total"]), (&json!(id), &json!(1)));
    assert_eq!(get(api, "/api/strapi/skills/review").await.expect_status(200)["id"], json!(id));
    assert_eq!(delete(api, &format!("/api/strapi/skills/{id}")).await.status, 204);
    get(api, &format!("/api/strapi/skills/{id}")).await.expect_problem(404, "not_found");
}

struct AgentSubscriber(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl AgentSubscriber {
    async fn open(api: &TestClient, request: Value) -> (Self, Value) {
        let (socket, _) = tokio_tungstenite::connect_async(socket_request(api).unwrap()).await.unwrap();
        let mut subscriber = Self(socket);
        subscriber.0.send(Message::text(request.to_string())).await.unwrap();
        let subscribed = subscriber.next().await;
        (subscriber, subscribed)
    }

    /// The next message that is not a heartbeat.
    async fn next(&mut self) -> Value {
        within("a message", async {
            loop {
                let Message::Text(text) = self.0.next().await.unwrap().unwrap() else { continue };
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["type"] != "heartbeat" {
                    return message;
                }
            }
        })
        .await
    }
}

async fn subscriber_of_agents_fills_the_gap(api: &TestClient) {
    let (mut all, subscribed) = AgentSubscriber::open(api, json!({"type": "subscribe_agents"})).await;
    assert_eq!(
        (&subscribed["type"], &subscribed["agents"][0]["name"]),
        (&json!("subscribed_agents"), &json!("scripted"))
    );
    let ada = agent(api, "ada", json!({})).await;
    let created = all.next().await;
    assert_eq!((&created["type"], &created["agent"]["id"]), (&json!("agent:created"), &json!(ada)));
    let request = json!({"type": "subscribe_agents", "agents": [ada]});
    let (mut hers, subscribed) = AgentSubscriber::open(api, request.clone()).await;
    assert_eq!(subscribed["agents"].as_array().unwrap().len(), 1);

    // A new room, which did not exist when they subscribed, and an agent that joins a room.
    let room = room_of(api, &[ada]).await;
    let post_path = format!("/api/rooms/{room}/messages");
    let run = post(api, &post_path, &json!({"text": "!count 3"})).await.expect_status(202)["runs"][0]["id"].clone();
    let about = |message: &Value| {
        assert_eq!((&message["agentId"], &message["roomId"], &message["runId"]), (&json!(ada), &json!(room), &run));
    };
    for subscriber in [&mut all, &mut hers] {
        let said = subscriber.next().await;
        about(&said);
        assert_eq!((&said["type"], &said["content"]), (&json!("agent:message"), &assistant("1 2 3")["content"]));
        let complete = subscriber.next().await;
        about(&complete);
        assert_eq!(complete["type"], "agent:complete");
        assert!(complete["tokens"]["output"].is_u64() && complete["duration"].is_number(), "{complete}");
    }
    let messages = format!("/api/agents/{ada}/messages");
    let known = get(api, &messages).await.expect_status(200);
    let last = &known["messages"][0];
    assert_eq!((&last["content"], &last["runId"]), (&json!("1 2 3"), &run));

    // Its connection is lost; meanwhile the agent answers twice, once in a one-shot room.
    drop(hers);
    let execute = format!("/api/execute/agent/{ada}");
    described(&post(api, &format!("{execute}?dialect=messages"), &json!({"message": "!count 4"})).await);
    let failed = post(api, &post_path, &json!({"text": "!fail bad Sorry"})).await.expect_status(202);
    super::requests::wait_for_end(api, failed["runs"][0]["id"].as_str().unwrap().parse().unwrap()).await;
    let mut seen = Vec::new();
    while seen.last() != Some(&json!("agent:error")) {
        seen.push(all.next().await["type"].clone());
    }
    assert_eq!(seen, ["agent:message", "agent:complete", "agent:message", "agent:error"]);
    let (_, subscribed) = AgentSubscriber::open(api, request).await;
    assert_eq!(subscribed["type"], "subscribed_agents");
    let missed = get(api, &format!("{messages}?since={}", last["sequenceNumber"])).await.expect_status(200);
    let texts: Vec<&Value> = missed["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(texts[0], "1 2 3 4", "{missed}");
    let newest = &missed["messages"].as_array().unwrap().last().unwrap()["sequenceNumber"];
    let none = get(api, &format!("{messages}?since={newest}")).await.expect_status(200);
    assert_eq!(none, json!({"messages": []}));

    let change = api.request(Method::PATCH, &format!("/api/agents/{ada}")).json(&json!({"system_prompt": "Be kind."}));
    response_to(change).await.expect_status(200);
    let updated = all.next().await;
    assert_eq!((&updated["type"], &updated["agent"]["system_prompt"]), (&json!("agent:updated"), &json!("Be kind.")));
    assert_eq!(delete(api, &format!("/api/agents/{ada}")).await.status, 204);
    assert_eq!(all.next().await, json!({"type": "agent:deleted", "agentId": ada}));
    let request = json!({"type": "subscribe_agents", "agents": [ada]});
    let (_, refused) = AgentSubscriber::open(api, request).await;
    assert_eq!((&refused["type"], &refused["code"]), (&json!("error"), &json!("not_found")));
}
