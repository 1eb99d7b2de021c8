//! MCP servers at work, and what an agent really has, through the doors.

use super::scene::{agent, delete, get, post, room_of};
use domain::ids::RoomId;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use testkit::{client::Api, database::TestDatabase, server::TestServer};

doors! {
    server: a_server_is_tried_listed_called_and_read, a_server_that_fails_is_said_to_fail;
    database: effective_explains_a_conflict_of_three_tiers, nothing_of_a_project_starts_before_it_is_trusted;
}

const SERVERS: &str = "/api/mcp-servers";

fn fake(name: &str, mode: &str) -> Value {
    json!({"name": name, "command": testkit::programs::fake_mcp(), "args": [mode]})
}

async fn a_server_is_tried_listed_called_and_read(api: &Api) {
    post(api, SERVERS, &fake("fake", "good")).await.is(201);
    let at = |path: &str| format!("{SERVERS}/fake/{path}");
    let tried = post(api, &at("test"), &json!({})).await.is(200);
    assert_eq!((&tried["ok"], &tried["error"]), (&json!(true), &json!(null)), "{tried}");
    assert!(tried["stderr"].as_str().unwrap().contains("is up"), "{tried}");
    assert_eq!(get(api, &at("status")).await.is(200)["state"], "stopped", "a test leaves nothing running");

    let listing = get(api, &at("tools")).await.is(200);
    let echo = listing["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!((&echo["full_name"], &echo["input_schema"]), (&json!("mcp__fake__echo"), &json!({"type": "object"})));
    let status = get(api, &at("status")).await.is(200);
    assert_eq!((&status["state"], &status["transport"]), (&json!("ready"), &json!("stdio")), "{status}");

    let called = post(api, &at("call"), &json!({"tool": "echo", "arguments": {"text": "hé"}})).await.is(200);
    assert_eq!((&called["content"], &called["is_error"]), (&json!([{"type": "text", "text": "hé"}]), &json!(false)));
    let refused = post(api, &at("call"), &json!({"tool": "fail"})).await.is(200);
    assert_eq!(refused["is_error"], true, "what a tool refuses is an answer");
    let late = post(api, &at("call"), &json!({"tool": "hang", "deadline_ms": 100})).await.is_refused(502, "mcp_failed");
    assert_eq!(late["failure"], "mcp_timeout");
    for bad in [
        json!({}),
        json!({"tool": "echo", "deadline_ms": 0}),
        json!({"tool": "echo", "deadline_ms": 600_000}),
        json!({"tool": "echo", "arguments": []}),
        json!({"tool": "echo", "more": 1}),
    ] {
        post(api, &at("call"), &bad).await.is_refused(400, "invalid_request");
    }
    let logs = get(api, &at("logs")).await.is(200);
    assert!(logs["stderr"].as_str().unwrap().contains("fake-mcp good is up"), "{logs}");
    assert_eq!(get(api, SERVERS).await.is(200)["servers"][0]["status"]["calls"].as_u64().unwrap(), 3);
    delete(api, &format!("{SERVERS}/fake")).await.is(204);
}

async fn a_server_that_fails_is_said_to_fail(api: &Api) {
    post(api, SERVERS, &json!({"name": "gone", "command": "no-such-program"})).await.is(201);
    post(api, SERVERS, &fake("exits", "exit")).await.is(201);
    post(api, SERVERS, &json!({"name": "closed", "url": "http://127.0.0.1:1/mcp"})).await.is(201);
    for name in ["gone", "exits", "closed"] {
        let tried = post(api, &format!("{SERVERS}/{name}/test"), &json!({})).await.is(200);
        assert_eq!(tried["ok"], false, "{tried}");
        assert!(tried["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{tried}");
        let failed = get(api, &format!("{SERVERS}/{name}/tools")).await.is_refused(502, "mcp_failed");
        assert!(failed["failure"].as_str().unwrap().starts_with("mcp_"), "{failed}");
    }
    let ada = agent(api, "Ada", json!({"mcp_servers": ["gone", "exits"]})).await;
    let view = get(api, &format!("/api/agents/{ada}/effective")).await.is(200);
    for server in view["servers"].as_array().unwrap() {
        assert_eq!((&server["state"], &server["tools"]), (&json!("used"), &json!(null)));
        assert!(server["problem"]["code"].as_str().unwrap().starts_with("mcp_"), "{server}");
    }
}

fn workplace(database: &TestDatabase, room: RoomId) -> PathBuf {
    let folder = database.folder().join("rooms").join(room.to_string());
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn write(folder: PathBuf, servers: &Value) {
    fs::write(folder.join(".mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
}

async fn effective_explains_a_conflict_of_three_tiers(database: TestDatabase) {
    let skill = database.folder().join("skills/review");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: review\ndescription: Reviews.\n---\n# Review").unwrap();
    let command = testkit::programs::fake_mcp();
    write(skill, &json!({"tools": {"command": command, "args": ["good"]}}));
    let server = TestServer::start(database).await;
    let api = server.api();
    post(api, SERVERS, &json!({"name": "tools", "command": "of-the-agent"})).await.is(201);
    let policy = json!({"allow": ["mcp__tools__*"], "ask": ["mcp__tools__add"], "deny": ["*crash"]});
    let settings = json!({"skills": ["review"], "mcp_servers": ["tools"], "tools": policy});
    let ada = agent(api, "Ada", settings).await;
    let room = room_of(api, &[ada]).await;
    let project = json!({"tools": {"command": "of-the-project"}, "mine": {"command": "of-the-project"}});
    write(workplace(server.database(), room), &project);

    let view = get(api, &format!("/api/agents/{ada}/effective?room={room}")).await.is(200);
    let servers = view["servers"].as_array().unwrap();
    let (mine, tools) = (&servers[0], &servers[1]);
    assert_eq!(
        (&mine["name"], &mine["tier"], &mine["state"]),
        (&json!("mine"), &json!("project"), &json!("untrusted"))
    );
    assert_eq!(
        (&tools["tier"], &tools["skill"], &tools["source"], &tools["state"], &tools["problem"]),
        (&json!("skill"), &json!("review"), &json!("skill"), &json!("used"), &json!(null)),
        "{tools}"
    );
    assert_eq!(tools["shadowed"], json!([{"tier": "agent", "skill": null}, {"tier": "project", "skill": null}]));
    let verdict = |name: &str| {
        let listed = tools["tools"].as_array().unwrap();
        listed.iter().find(|tool| tool["name"] == name).unwrap()["verdict"].clone()
    };
    assert_eq!((verdict("echo"), verdict("add"), verdict("crash")), (json!("allow"), json!("ask"), json!("deny")));
    assert_eq!(view["project"]["state"], "untrusted");
    let quiet = get(api, &format!("/api/agents/{ada}/effective?tools=false")).await.is(200);
    assert_eq!(
        (&quiet["servers"][0]["tools"], &quiet["project"], &quiet["room_id"]),
        (&json!(null), &json!(null), &json!(null))
    );
    get(api, &format!("/api/agents/{ada}/effective?room={}", RoomId::generate())).await.is_refused(404, "not_found");
    get(api, &format!("/api/agents/{ada}/effective?rooms=x")).await.is_refused(400, "invalid_request");
    server.finish().await;
}

async fn nothing_of_a_project_starts_before_it_is_trusted(database: TestDatabase) {
    let server = TestServer::start(database).await;
    let api = server.api();
    let ada = agent(api, "Ada", json!({})).await;
    let room = room_of(api, &[ada]).await;
    let trust = format!("/api/rooms/{room}/mcp-trust");
    assert_eq!(get(api, &trust).await.is(200)["state"], "none");
    post(api, &trust, &json!({"digest": "0".repeat(64)})).await.is_refused(422, "unprocessable");

    let folder = workplace(server.database(), room);
    let witness = folder.join("started");
    let started = format!("touch {}; exec {} good", witness.display(), testkit::programs::fake_mcp().display());
    write(folder.clone(), &json!({"own": {"command": "sh", "args": ["-c", started], "env": {"A": "s3cret-value"}}}));
    let effective = format!("/api/agents/{ada}/effective?room={room}");
    assert_eq!(get(api, &effective).await.is(200)["servers"][0]["state"], "untrusted");
    assert!(!witness.exists(), "nothing was started");
    let seen = get(api, &trust).await;
    assert!(!seen.text.contains("s3cret-value"));
    let seen = seen.is(200);
    assert_eq!((&seen["servers"][0]["command"], &seen["servers"][0]["env"]), (&json!("sh"), &json!({"A": "***"})));
    post(api, &trust, &json!({"digest": "0".repeat(64)})).await.is_refused(409, "conflict");
    post(api, &trust, &json!({"digest": "../x"})).await.is_refused(409, "conflict");
    assert_eq!(post(api, &trust, &json!({"digest": seen["digest"]})).await.is(200)["state"], "trusted");

    let view = get(api, &effective).await.is(200);
    assert_eq!(view["servers"][0]["state"], "used");
    assert!(view["servers"][0]["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "{view}");
    assert!(witness.exists(), "and now it was");
    assert_eq!(delete(api, &trust).await.status, 204);
    assert_eq!(get(api, &trust).await.is(200)["state"], "untrusted");
    for path in [trust, effective] {
        let foreign = path.replace(&room.to_string(), &RoomId::generate().to_string());
        get(api, &foreign).await.is_refused(404, "not_found");
    }
    server.finish().await;
}
