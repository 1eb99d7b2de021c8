//! The tools and resources of the MCP server, compared with the other endpoints.

use super::{
    mcp_requests::{Session, Stream, message, messages, modern, reply},
    requests::{agent, get, post, post_text, response_to, room, wait_for_end, within},
};
use domain::run::RunStatus;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::client::TestClient;
use tokio::{task::JoinSet, time::sleep};

on_both_databases! {
    server: run_agent_with_progress, conversation_tools, approval_tools, disconnect_and_cancel_of_runs, change_notifications, file_and_skill_resources,
            no_fixtures_are_served, sse_session_from_connect_to_delete;
}

async fn run_agent_with_progress(api: &TestClient) {
    let session = Session::begin(api).await;
    let call = json!({"name": "run_agent", "arguments": {"agent": "scripted", "message": "!count 40 20"},
                      "_meta": {"progressToken": "mine"}});
    for sent in [
        session.request(Method::POST).json(&message(3, "tools/call", &call)),
        modern(api, 3, "tools/call", call.clone()),
    ] {
        let told = response_to(sent).await;
        let all = messages(&told.text);
        let progress: Vec<&Value> = all.iter().filter(|one| one["method"] == "notifications/progress").collect();
        assert!(progress.len() > 2 && progress.iter().all(|one| one["params"]["progressToken"] == "mine"), "{told:?}");
        let counts: Vec<f64> = progress.iter().map(|one| one["params"]["progress"].as_f64().unwrap()).collect();
        assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
        let result = &reply(&told, 3)["result"]["structuredContent"];
        assert_eq!(result["text"], super::requests::counted(40), "{result}");
        assert_eq!((&result["status"], &result["approvals"]), (&json!("completed"), &json!([])));
        // The room has the same text.
        let run = api.run(result["run_id"].as_str().unwrap().parse().unwrap()).await.unwrap();
        assert_eq!(super::requests::message_of(api, &run).await.text, super::requests::counted(40));
    }
    // Without a progress token there is no progress, and a quick response of the newest revision is plain JSON.
    let quick = json!({"name": "run_agent", "arguments": {"agent": "scripted", "message": "Hi"}});
    let told = response_to(modern(api, 4, "tools/call", quick)).await;
    assert_eq!(told.header("content-type"), "application/json");
    // A slow response becomes a stream before the result is ready.
    let slow = json!({"name": "run_agent", "arguments": {"agent": "scripted", "message": "!count 30 100"}});
    let told = response_to(modern(api, 5, "tools/call", slow)).await;
    assert!(told.header("content-type").starts_with("text/event-stream"));
    assert_eq!(reply(&told, 5)["result"]["structuredContent"]["status"], "completed");
}

async fn conversation_tools(api: &TestClient) {
    let session = Session::begin(api).await;
    let room = room(api).await;
    let posted =
        session.call("post_message", json!({"room": room, "text": "!count 3", "mentions": ["Scripted"]})).await;
    let waited = session.call("wait_for_run", json!({"run_id": posted["runs"][0]["run_id"]})).await;
    assert_eq!((&waited["text"], &waited["status"]), (&json!("1 2 3"), &json!("completed")));
    session.call("run_agent", json!({"agent": "scripted", "message": "!count 2", "room": room})).await;
    let read = session.call("read_room", json!({"room": room})).await;
    let texts: Vec<&Value> = read["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!(texts, ["!count 3", "1 2 3", "!count 2", "1 2"]);
    let (newest, more) = (session.call("read_room", json!({"room": room, "limit": 1})).await, &json!(true));
    assert_eq!((&newest["messages"][0]["text"], &newest["more"]), (&json!("1 2"), more));
    let before = session.call("read_room", json!({"room": room, "before": newest["messages"][0]["seq"]})).await;
    assert_eq!((before["messages"].as_array().unwrap().len(), &before["more"]), (3, &json!(false)));
    let rooms = session.call("list_rooms", json!({})).await;
    assert!(rooms["rooms"].as_array().unwrap().iter().any(|one| one["id"] == json!(room)));
    let uri = format!("greenroom://rooms/{room}");
    let resource = session.ask("resources/read", json!({"uri": uri})).await;
    let told: Value = serde_json::from_str(resource["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(told["messages"], read["messages"]);
    let run = format!("greenroom://runs/{}", waited["run_id"].as_str().unwrap());
    let resource = session.ask("resources/read", json!({"uri": run})).await;
    let told: Value = serde_json::from_str(resource["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&told["text"], &told["status"]), (&json!("1 2 3"), &json!("completed")));
}

async fn approval_tools(api: &TestClient) {
    let session = Session::begin(api).await;
    let asked = json!({"agent": "scripted", "message": r#"!ask Bash {"cmd":"ls"}"#});
    let waiting = session.call("run_agent", asked).await;
    assert_eq!(waiting["status"], "waiting_for_approval");
    let approval = &waiting["approvals"][0];
    assert_eq!((&approval["tool"], &approval["input"]), (&json!("Bash"), &json!({"cmd": "ls"})));
    assert!(waiting["next"].as_str().unwrap().contains("answer_approval"));
    let run = &waiting["run_id"];
    let wrong = json!({"run_id": run, "approval_id": uuid::Uuid::now_v7(), "decision": "allow"});
    assert!(session.refused("answer_approval", wrong).await.contains("wait_for_run"));
    let listed = session.call("list_approvals", json!({})).await;
    let one = &listed["approvals"][0];
    assert_eq!((&one["approval_id"], &one["run_id"]), (&approval["approval_id"], run), "{listed}");
    assert_eq!((&one["tool"], &one["input"]), (&approval["tool"], &approval["input"]));
    let yes = json!({"run_id": run, "approval_id": approval["approval_id"], "decision": "allow"});
    session.call("answer_approval", yes).await;
    assert_eq!(session.call("list_approvals", json!({})).await, json!({"approvals": []}));
    let done = session.call("wait_for_run", json!({"run_id": run})).await;
    assert_eq!((&done["status"], &done["approvals"]), (&json!("completed"), &json!([])));
}

async fn disconnect_and_cancel_of_runs(api: &TestClient) {
    let session = Session::begin(api).await;
    let running = async |room: domain::ids::RoomId| {
        within("the run to begin", async {
            loop {
                if let Some(run) = api.runs(room, RunStatus::Running, 1).await.unwrap().pop() {
                    return run.id;
                }
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await
    };
    let call = |room, on_disconnect: &str| {
        json!({"name": "run_agent",
               "arguments": {"agent": "scripted", "message": "!hang", "room": room, "on_disconnect": on_disconnect}})
    };
    // In the newest revision, a disconnect cancels the request.
    for (on_disconnect, goes_on) in [("cancel", false), ("continue", true)] {
        let room = room(api).await;
        let mut asked = JoinSet::new();
        asked.spawn(modern(api, 3, "tools/call", call(room, on_disconnect)).send());
        let run = running(room).await;
        drop(asked);
        match goes_on {
            true => {
                // There is no event to wait for if nothing happens; a cancel takes a few milliseconds.
                sleep(Duration::from_millis(500)).await;
                assert_eq!(api.run(run).await.unwrap().status, RunStatus::Running);
                assert_eq!(session.call("cancel_run", json!({"run_id": run})).await["status"], "cancelled");
            }
            false => assert_eq!(wait_for_end(api, run).await.status, RunStatus::Cancelled),
        }
    }
    // In older revisions, a notification cancels the request.
    let room = room(api).await;
    let asked = session.request(Method::POST).json(&message(33, "tools/call", &call(room, "cancel")));
    let mut asked = Stream::open(asked).await;
    asked.until("retry").await;
    let run = running(room).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 33}});
    assert_eq!(response_to(session.request(Method::POST).json(&cancelled)).await.status, 202);
    assert_eq!(wait_for_end(api, run).await.status, RunStatus::Cancelled);
    // After the wait time, an active run is returned as it is.
    let run = post_text(api, room, "!hang").await;
    let waited = session.call("wait_for_run", json!({"run_id": run, "wait_seconds": 1})).await;
    assert!(waited["next"].as_str().unwrap().contains("wait_for_run"), "{waited}");
    session.call("cancel_run", json!({"run_id": run})).await;
}

async fn change_notifications(api: &TestClient) {
    let session = Session::begin(api).await;
    let (mut old, room) = (session.listen().await, room(api).await);
    let uri = format!("greenroom://rooms/{room}");
    assert!(session.ask("resources/subscribe", json!({"uri": uri})).await["result"].is_object());
    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true,
                                          "resourceSubscriptions": [uri]}});
    let mut new = Stream::open(modern(api, 9, "subscriptions/listen", wanted)).await;
    new.until("acknowledged").await;
    post_text(api, room, "Hi").await;
    for stream in [&mut old, &mut new] {
        stream.until("notifications/resources/updated").await;
        assert!(stream.seen.contains(&uri));
    }
    agent(api, "Newcomer", json!({})).await;
    let skill = json!({"name": "greet", "description": "Greets.", "body": "Say {{what}} to them.",
                       "parameters": [{"name": "what", "type": "choice", "choices": ["hello", "hi"], "required": true}]});
    post(api, "/api/skills", &skill).await.expect_status(201);
    for stream in [&mut old, &mut new] {
        stream.until("notifications/tools/list_changed").await;
        stream.until("notifications/prompts/list_changed").await;
    }
    assert!(!new.seen.contains("resources/list_changed"), "not subscribed: {}", new.seen);
    let tools = session.ask("tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let asks = tools.iter().find(|tool| tool["name"] == "run_agent").unwrap();
    assert!(asks["description"].as_str().unwrap().contains("Newcomer"), "{asks}");
    // Runs can be subscribed too, and unsubscribing stops notifications.
    assert!(session.ask("resources/unsubscribe", json!({"uri": uri})).await["result"].is_object());
    let run = post_text(api, room, "!count 3").await;
    let about = format!("greenroom://runs/{run}");
    wait_for_end(api, run).await;
    assert!(session.ask("resources/subscribe", json!({"uri": about})).await["result"].is_object());
    let hang = post_text(api, room, "!hang").await;
    let other = format!("greenroom://runs/{hang}");
    assert!(session.ask("resources/subscribe", json!({"uri": other})).await["result"].is_object());
    session.call("cancel_run", json!({"run_id": hang})).await;
    old.until(&other).await;
    assert!(!old.seen.contains(&about), "an ended run must not be notified");
}

async fn file_and_skill_resources(api: &TestClient) {
    let session = Session::begin(api).await;
    let skill = json!({"name": "greet", "description": "Greets.", "body": "Say {{what}} to them.",
                       "parameters": [{"name": "what", "type": "choice", "choices": ["hello", "hi"], "required": true}]});
    post(api, "/api/skills", &skill).await.expect_status(201);
    let prompts = session.ask("prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"][0]["arguments"][0]["required"], true, "{prompts}");
    let filled = session.ask("prompts/get", json!({"name": "greet", "arguments": {"what": "hi"}})).await;
    assert_eq!(filled["result"]["messages"][0]["content"]["text"], "Say hi to them.", "{filled}");
    let missing = session.ask("prompts/get", json!({"name": "greet"})).await;
    assert_eq!(missing["error"]["code"], -32602);
    let offered = json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "what", "value": "he"}});
    let offered = session.ask("completion/complete", offered).await;
    assert_eq!(offered["result"]["completion"]["values"], json!(["hello"]));
    let document = session.ask("resources/read", json!({"uri": "greenroom://skills/greet"})).await;
    assert!(document["result"]["contents"][0]["text"].as_str().unwrap().contains("{{what}}"));
    assert!(
        session.call("get_skill", json!({"name": "greet"})).await["document"].as_str().unwrap().contains("Greets.")
    );
    let listed = session.ask("resources/list", json!({})).await;
    assert!(
        listed["result"]["resources"].as_array().unwrap().iter().any(|one| one["uri"] == "greenroom://skills/greet")
    );

    let room = room(api).await;
    let uploaded =
        api.request(Method::POST, "/api/uploads?name=notes.txt").header("content-type", "text/plain").body("rain");
    let uploaded = response_to(uploaded).await.expect_status(201);
    let attached = json!({"text": "Look", "attachments": [{"name": "notes.txt", "media_type": "text/plain", "url": uploaded["url"]}]});
    let posted = super::requests::post_body(api, room, attached).await.expect_status(202);
    wait_for_end(api, super::requests::runs_of(&posted)[0]).await;
    let folder = format!("greenroom://rooms/{room}/files");
    let read = async |uri: &str| session.ask("resources/read", json!({"uri": uri})).await;
    let there = read(&folder).await;
    assert!(there["result"]["contents"][0]["text"].as_str().unwrap().contains("attachments/"), "{there}");
    let inside = read(&format!("{folder}/attachments")).await;
    let names: Value = serde_json::from_str(inside["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    let file = format!("{folder}/attachments/{}", names["entries"][0].as_str().unwrap().trim_end_matches('/'));
    let text = match read(&file).await {
        found if found["result"]["contents"][0]["mimeType"] == "application/json" => {
            let names: Value = serde_json::from_str(found["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
            read(&format!("{file}/{}", names["entries"][0].as_str().unwrap())).await
        }
        found => found,
    };
    assert_eq!(text["result"]["contents"][0]["text"], "rain", "{text}");
    for out in ["/../../greenroom.db", "/%2e%2e/%2e%2e/greenroom.db", "/nothing"] {
        assert!(read(&format!("{folder}{out}")).await["error"]["code"].is_i64(), "{out}");
    }
}

async fn no_fixtures_are_served(api: &TestClient) {
    let session = Session::begin(api).await;
    let tools = session.ask("tools/list", json!({})).await;
    let names: Vec<&str> =
        tools["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 11, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("test")), "{names:?}");
    // The list equals the REST list.
    let listed = session.call("list_agents", json!({})).await;
    let agents = get(api, "/api/agents").await.expect_status(200);
    assert_eq!(listed["agents"][0]["id"], agents["agents"][0]["id"]);
}

async fn sse_session_from_connect_to_delete(api: &TestClient) {
    let stream = || api.request(Method::GET, "/sse?events=typed").header("accept", "text/event-stream");
    let mut first = Stream::open(stream()).await;
    first.until("event: connected").await;
    assert!(first.seen.starts_with("event: endpoint\ndata: /message?sessionId="), "{}", first.seen);
    assert!(first.seen.contains("data: {\"type\":\"connected\"}\n\n"));
    let id = first.header("mcp-session-id");
    let send = async |body: &Value, status: u16| {
        let post = api.request(Method::POST, &format!("/message?sessionId={id}")).json(body);
        assert_eq!(response_to(post).await.status, status, "{body}");
    };
    send(&super::mcp_requests::initialize(), 202).await;
    first.until("serverInfo").await;
    send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), 204).await;
    // The newest stream gets the messages; after it closes, the older one does.
    let mut second = Stream::open(stream().header("mcp-session-id", &id)).await;
    second.until("event: connected").await;
    send(&message(2, "tools/call", &json!({"name": "list_agents"})), 202).await;
    second.until("scripted").await;
    assert!(second.seen.contains("event: message\ndata: {"));
    drop(second);
    within("the first stream to get messages again", async {
        let mut asked = 2;
        while !first.seen.contains("list_skills") {
            asked += 1;
            send(&message(asked, "tools/list", &json!({})), 202).await;
            if tokio::time::timeout(Duration::from_secs(1), first.until("list_skills")).await.is_ok() {
                break;
            }
        }
    })
    .await;
    // A message that cannot be read is reported on the stream, too.
    let cut = api.request(Method::POST, &format!("/message?sessionId={id}")).body("{");
    let refused = response_to(cut).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32700)));
    first.until("event: error\ndata: {\"").await;
    first.until("-32700").await;
    let end = api.request(Method::DELETE, "/sse").header("mcp-session-id", &id);
    assert_eq!(response_to(end).await.status, 204);
    assert!(first.end().await.contains(": closed, the client ended it"));
    assert_eq!(response_to(api.request(Method::GET, "/sse").header("accept", "application/json")).await.status, 405);
}
