//! Responses to MCP clients: plain or streamed, equal in both cases, and resumable after a lost connection.

use super::{
    mcp_requests::{ACCEPT, MODERN, Session, Stream, message, messages, modern, reply},
    requests::{post, post_text, response_to, room, wait_for_end, within},
};
use domain::run::RunStatus;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::client::TestClient;
use tokio::time::sleep;

on_both_databases! {
    server: plain_and_streamed_responses_are_equal, invalid_headers_are_rejected, lost_response_can_be_resumed, missed_notifications_are_resent,
            unread_notifications_are_merged, duplicate_ids_and_unknown_event_ids;
}

/// Responses are streamed with a progress token and plain without one. The content is the same.
async fn plain_and_streamed_responses_are_equal(api: &TestClient) {
    let skill = json!({"name": "review", "description": "Reviews.", "body": "# Review {{what}}",
                       "parameters": [{"name": "what", "type": "text", "description": "What."}]});
    post(api, "/api/skills", &skill).await.expect_status(201);
    let room = room(api).await;
    let session = Session::begin(api).await;
    wait_until_initialized(&session).await;
    let tool = |name: &str, arguments: Value| ("tools/call", json!({"name": name, "arguments": arguments}));
    let questions = [
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/list", json!({"cursor": "x"})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": format!("greenroom://rooms/{room}")})),
        ("resources/read", json!({"uri": "greenroom://skills/nothing"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "review", "arguments": {"what": "all"}})),
        ("prompts/get", json!({"name": "nothing"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "greenroom://skills/{name}"},
                   "argument": {"name": "name", "value": "re"}}),
        ),
        tool("list_agents", json!({})),
        tool("list_agents", json!({"more": 1})),
        tool("list_rooms", json!({"limit": 1})),
        tool("read_room", json!({"room": room})),
        tool("read_room", json!({"room": "x"})),
        tool("list_skills", json!({})),
        tool("get_skill", json!({"name": "review"})),
    ];
    for (method, params) in questions {
        let mut watched = params.clone();
        watched["_meta"] = json!({"progressToken": "mine"});
        let ask = |params: &Value| session.request(Method::POST).json(&message(7, method, params));
        let (plain, streamed) = (response_to(ask(&params)).await, response_to(ask(&watched)).await);
        assert_eq!(plain.header("content-type"), "application/json", "{method} {params}");
        assert!(streamed.header("content-type").starts_with("text/event-stream"), "{method} {params}");
        assert_eq!(reply(&plain, 7), reply(&streamed, 7), "{method} {params}");

        let (plain, library) = (
            response_to(modern(api, 7, method, params.clone())).await,
            response_to(modern(api, 7, method, watched)).await,
        );
        assert_eq!((plain.status, plain.header("content-type")), (library.status, "application/json"), "{method}");
        assert_eq!(reply(&plain, 7), reply(&library, 7), "{method} {params}");
    }
    // Ids are returned unchanged.
    for id in [json!("7"), json!(-1), json!("ü/\u{1}")] {
        let mut asked = message(0, "ping", &json!({}));
        asked["id"] = id.clone();
        let told = response_to(session.request(Method::POST).json(&asked)).await.json();
        assert_eq!(told, json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
}

/// Waits until the server has processed the initialized notification.
async fn wait_until_initialized(session: &Session) {
    within("plain answers", async {
        let ping = || session.request(Method::POST).json(&message(2, "ping", &json!({})));
        while response_to(ping()).await.header("content-type") != "application/json" {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn invalid_headers_are_rejected(api: &TestClient) {
    let session = Session::begin(api).await;
    wait_until_initialized(&session).await;
    let list = message(3, "tools/list", &json!({}));
    let bare = || api.request(Method::POST, "/mcp").header("mcp-session-id", &session.id);
    for accept in ["application/json", "text/event-stream", "text/html"] {
        assert_eq!(response_to(bare().header("accept", accept).json(&list)).await.status, 406, "{accept}");
    }
    let told = response_to(bare().header("accept", ACCEPT).json(&list)).await;
    assert_eq!(told.status, 200, "a missing version means an old client");
    let unknown = bare().header("accept", ACCEPT).header("mcp-protocol-version", "1999-01-01");
    assert_eq!(response_to(unknown.json(&list)).await.status, 400);
    let mut mixed = list.clone();
    mixed["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": MODERN});
    let told = response_to(session.request(Method::POST).json(&mixed)).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!(-32020)), "{told:?}");
    for broken in [json!({"id": 3, "method": "ping"}), json!({"jsonrpc": "1.0", "id": 3, "method": "ping"})] {
        assert_eq!(response_to(session.request(Method::POST).json(&broken)).await.status, 400, "{broken}");
    }

    let call = json!({"name": "list_agents", "arguments": {}});
    let request = || modern(api, 3, "tools/call", call.clone()).build().unwrap();
    let sent = async |change: fn(&mut reqwest::header::HeaderMap)| {
        let mut request = request();
        change(request.headers_mut());
        let told = within("an answer", reqwest::Client::new().execute(request)).await.unwrap();
        (told.status().as_u16(), told.json::<Value>().await.unwrap()["error"]["code"].clone())
    };
    let refused = (400, json!(-32020));
    assert_eq!(sent(|headers| drop(headers.insert("mcp-name", "cancel_run".parse().unwrap()))).await, refused);
    assert_eq!(sent(|headers| drop(headers.insert("mcp-method", "tools/list".parse().unwrap()))).await, refused);
    assert_eq!(sent(|headers| drop(headers.remove("mcp-name"))).await, refused);
    assert_eq!(sent(|headers| assert!(headers.append("mcp-name", "list_agents".parse().unwrap()))).await, refused);
    assert_eq!(sent(|headers| drop(headers.remove("mcp-protocol-version"))).await, refused);
    assert_eq!(
        sent(|headers| drop(headers.insert("mcp-name", "=?base64?bGlzdF9hZ2VudHM=?=".parse().unwrap()))).await,
        (200, Value::Null)
    );
    // Not part of that revision.
    let ping = response_to(modern(api, 3, "ping", json!({}))).await;
    assert_eq!((ping.status, &ping.json()["error"]["code"]), (404, &json!(-32601)));
}

async fn lost_response_can_be_resumed(api: &TestClient) {
    let session = Session::begin(api).await;
    let room = room(api).await;
    let call = json!({"name": "run_agent", "arguments": {"agent": "scripted", "message": "!count 30 20", "room": room},
                      "_meta": {"progressToken": "mine"}});
    let mut asked = Stream::open(session.request(Method::POST).json(&message(5, "tools/call", &call))).await;
    asked.until("notifications/progress").await;
    let ids: Vec<String> = asked
        .seen
        .lines()
        .filter_map(|line| line.strip_prefix("id: ").or(line.strip_prefix("id:")))
        .map(str::to_owned)
        .collect();
    assert!(ids.len() >= 2, "{}", asked.seen);
    drop(asked);
    // During the run and after its end, from the first and from a later event.
    for last in [&ids[0], &ids[1], &ids[0]] {
        let again = Stream::open(session.request(Method::GET).header("last-event-id", last)).await;
        let told = again.end().await;
        let all = messages(&told);
        let answered = all.iter().find(|one| one["id"] == 5).unwrap_or_else(|| panic!("{last}: {told}"));
        assert_eq!(answered["result"]["structuredContent"]["text"], super::requests::counted(30));
        assert!(all.iter().all(|one| one["id"] == 5 || one["params"]["progressToken"] == "mine"), "{told}");
        let runs = api.runs(room, RunStatus::Completed, 10).await.unwrap();
        assert_eq!(runs.len(), 1, "the run must not be repeated");
    }
}

async fn missed_notifications_are_resent(api: &TestClient) {
    let session = Session::begin(api).await;
    let room = room(api).await;
    let uri = format!("greenroom://rooms/{room}");
    within("the subscription", async {
        while session.ask("resources/subscribe", json!({"uri": uri})).await.get("error").is_some() {}
    })
    .await;
    let mut listening = session.listen().await;
    listening.until("retry").await;
    let first = listening.seen.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim().to_owned();
    wait_for_end(api, post_text(api, room, "!count 1").await).await;
    listening.until("resources/updated").await;
    drop(listening);
    let mut again = Stream::open(session.request(Method::GET).header("last-event-id", &first)).await;
    again.until("resources/updated").await;
    let numbers: Vec<&str> = again.seen.lines().filter_map(|line| line.strip_prefix("id:")).map(str::trim).collect();
    let expected: Vec<String> = (1..=numbers.len()).map(|number| number.to_string()).collect();
    assert_eq!((first.as_str(), numbers), ("0", expected.iter().map(String::as_str).collect()), "{}", again.seen);
    // A new stream does not repeat notifications.
    drop(again);
    let mut fresh = session.listen().await;
    fresh.until("retry").await;
    assert!(!fresh.seen.contains("id: 0\n"), "{}", fresh.seen);
}

async fn unread_notifications_are_merged(api: &TestClient) {
    let session = Session::begin(api).await;
    within("the subscriptions", async {
        for _ in 0..3 {
            let uri = format!("greenroom://rooms/{}", room(api).await);
            while session.ask("resources/subscribe", json!({"uri": uri})).await.get("error").is_some() {}
        }
    })
    .await;
    let level = session.ask("logging/setLevel", json!({"level": "debug"})).await;
    assert_eq!(level["result"], json!({}));
    for _ in 0..30 {
        let told = session.call("run_agent", json!({"agent": "scripted", "message": "!tool Read {}"})).await;
        assert!(told["run_id"].is_string());
    }
    assert!(session.call("list_agents", json!({})).await["agents"].is_array(), "the session must still work");
    let mut listening = session.listen().await;
    listening.until("list_changed").await;
    assert!(
        listening.seen.matches("resources/list_changed").count() <= 2,
        "notifications must be merged: {}",
        listening.seen
    );
}

async fn duplicate_ids_and_unknown_event_ids(api: &TestClient) {
    let session = Session::begin(api).await;
    let room = room(api).await;
    let run = post_text(api, room, "!hang").await;
    let wait = json!({"name": "wait_for_run", "arguments": {"run_id": run}});
    let ask = || session.request(Method::POST).json(&message(5, "tools/call", &wait));
    let mut asked = Stream::open(ask()).await;
    asked.until("retry").await;
    let again = response_to(ask()).await;
    assert_eq!((again.status, &again.json()["error"]["code"]), (400, &json!(-32600)), "duplicate ids must be rejected");
    for event in ["x", "999", "0/999", "999/0", "-1", "0/0/0", "9".repeat(400).as_str()] {
        let resumed = Stream::open(session.request(Method::GET).header("last-event-id", event)).await;
        assert!(messages(&resumed.end().await).is_empty(), "{event}");
    }
    // A cancelled request gets no response, and its stream ends.
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    assert_eq!(response_to(session.request(Method::POST).json(&cancel)).await.status, 202);
    assert!(messages(&asked.end().await).iter().all(|one| one["id"] != 5));
    api.cancel_run(run).await.unwrap();
    assert!(session.call("list_agents", json!({})).await["agents"].is_array());
}
