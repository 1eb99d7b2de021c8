//! Running MCP servers, and the effective tools of an agent, through the public endpoints.

use super::requests::{agent, delete, get, post, room_of};
use domain::ids::RoomId;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};

on_both_databases! {
    server: test_list_call_and_logs_of_a_server, failing_servers_are_reported;
    database: effective_view_explains_conflicts_of_three_tiers, project_servers_start_only_when_trusted;
}

const SERVERS: &str = "/api/mcp-servers";

fn fake(name: &str, mode: &str) -> Value {
    json!({"name": name, "command": testkit::programs::fake_mcp(), "args": [mode]})
}

async fn test_list_call_and_logs_of_a_server(api: &TestClient) {
    post(api, SERVERS, &fake("fake", "good")).await.expect_status(201);
    let at = |path: &str| format!("{SERVERS}/fake/{path}");
    let tried = post(api, &at("test"), &json!({})).await.expect_status(200);
    assert_eq!((&tried["ok"], &tried["error"]), (&json!(true), &json!(null)), "{tried}");
    assert!(tried["stderr"].as_str().unwrap().contains("is up"), "{tried}");
    assert_eq!(
        get(api, &at("status")).await.expect_status(200)["state"],
        "stopped",
        "a test must leave nothing running"
    );

    let listing = get(api, &at("tools")).await.expect_status(200);
    let echo = listing["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!((&echo["full_name"], &echo["input_schema"]), (&json!("mcp__fake__echo"), &json!({"type": "object"})));
    let status = get(api, &at("status")).await.expect_status(200);
    assert_eq!((&status["state"], &status["transport"]), (&json!("ready"), &json!("stdio")), "{status}");

    let called = post(api, &at("call"), &json!({"tool": "echo", "arguments": {"text": "hé"}})).await.expect_status(200);
    assert_eq!((&called["content"], &called["is_error"]), (&json!([{"type": "text", "text": "hé"}]), &json!(false)));
    let refused = post(api, &at("call"), &json!({"tool": "fail"})).await.expect_status(200);
    assert_eq!(refused["is_error"], true, "a tool error must be a result");
    let late =
        post(api, &at("call"), &json!({"tool": "hang", "deadline_ms": 100})).await.expect_problem(502, "mcp_failed");
    assert_eq!(late["failure"], "mcp_timeout");
    for bad in [
        json!({}),
        json!({"tool": "echo", "deadline_ms": 0}),
        json!({"tool": "echo", "deadline_ms": 600_000}),
        json!({"tool": "echo", "arguments": []}),
        json!({"tool": "echo", "more": 1}),
    ] {
        post(api, &at("call"), &bad).await.expect_problem(400, "invalid_request");
    }
    let logs = get(api, &at("logs")).await.expect_status(200);
    assert!(logs["stderr"].as_str().unwrap().contains("fake-mcp good is up"), "{logs}");
    assert_eq!(get(api, SERVERS).await.expect_status(200)["servers"][0]["status"]["calls"].as_u64().unwrap(), 3);
    delete(api, &format!("{SERVERS}/fake")).await.expect_status(204);
}

async fn failing_servers_are_reported(api: &TestClient) {
    post(api, SERVERS, &json!({"name": "gone", "command": "no-such-program"})).await.expect_status(201);
    post(api, SERVERS, &fake("exits", "exit")).await.expect_status(201);
    post(api, SERVERS, &json!({"name": "closed", "url": "http://127.0.0.1:1/mcp"})).await.expect_status(201);
    for name in ["gone", "exits", "closed"] {
        let tried = post(api, &format!("{SERVERS}/{name}/test"), &json!({})).await.expect_status(200);
        assert_eq!(tried["ok"], false, "{tried}");
        assert!(tried["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{tried}");
        let failed = get(api, &format!("{SERVERS}/{name}/tools")).await.expect_problem(502, "mcp_failed");
        assert!(failed["failure"].as_str().unwrap().starts_with("mcp_"), "{failed}");
    }
    let ada = agent(api, "Ada", json!({"mcp_servers": ["gone", "exits"]})).await;
    let view = get(api, &format!("/api/agents/{ada}/effective")).await.expect_status(200);
    for server in view["servers"].as_array().unwrap() {
        assert_eq!((&server["state"], &server["tools"]), (&json!("used"), &json!(null)));
        assert!(server["problem"]["code"].as_str().unwrap().starts_with("mcp_"), "{server}");
    }
}

fn agent_workspace(database: &TestDatabase, room: RoomId) -> PathBuf {
    let folder = database.folder().join("rooms").join(room.to_string());
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn write(folder: PathBuf, servers: &Value) {
    fs::write(folder.join(".mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
}

async fn effective_view_explains_conflicts_of_three_tiers(database: TestDatabase) {
    let skill = database.folder().join("skills/review");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: review\ndescription: Reviews.\n---\n# Review").unwrap();
    let command = testkit::programs::fake_mcp();
    write(skill, &json!({"tools": {"command": command, "args": ["good"]}}));
    let server = TestServer::start(database).await;
    let api = server.api();
    post(api, SERVERS, &json!({"name": "tools", "command": "of-the-agent"})).await.expect_status(201);
    let policy = json!({"allow": ["mcp__tools__*"], "ask": ["mcp__tools__add"], "deny": ["*crash"]});
    let settings = json!({"skills": ["review"], "mcp_servers": ["tools"], "tools": policy});
    let ada = agent(api, "Ada", settings).await;
    let room = room_of(api, &[ada]).await;
    let project = json!({"tools": {"command": "of-the-project"}, "mine": {"command": "of-the-project"}});
    write(agent_workspace(server.database(), room), &project);

    let view = get(api, &format!("/api/agents/{ada}/effective?room={room}")).await.expect_status(200);
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
    let quiet = get(api, &format!("/api/agents/{ada}/effective?tools=false")).await.expect_status(200);
    assert_eq!(
        (&quiet["servers"][0]["tools"], &quiet["project"], &quiet["room_id"]),
        (&json!(null), &json!(null), &json!(null))
    );
    get(api, &format!("/api/agents/{ada}/effective?room={}", RoomId::generate()))
        .await
        .expect_problem(404, "not_found");
    get(api, &format!("/api/agents/{ada}/effective?rooms=x")).await.expect_problem(400, "invalid_request");
    server.finish().await;
}

async fn project_servers_start_only_when_trusted(database: TestDatabase) {
    let server = TestServer::start(database).await;
    let api = server.api();
    let ada = agent(api, "Ada", json!({})).await;
    let room = room_of(api, &[ada]).await;
    let trust = format!("/api/rooms/{room}/mcp-trust");
    assert_eq!(get(api, &trust).await.expect_status(200)["state"], "none");
    post(api, &trust, &json!({"digest": "0".repeat(64)})).await.expect_problem(422, "unprocessable");

    let folder = agent_workspace(server.database(), room);
    let witness = folder.join("started");
    let started = format!("touch {}; exec {} good", witness.display(), testkit::programs::fake_mcp().display());
    write(folder.clone(), &json!({"own": {"command": "sh", "args": ["-c", started], "env": {"A": "s3cret-value"}}}));
    let effective = format!("/api/agents/{ada}/effective?room={room}");
    assert_eq!(get(api, &effective).await.expect_status(200)["servers"][0]["state"], "untrusted");
    assert!(!witness.exists(), "nothing may be started");
    let seen = get(api, &trust).await;
    assert!(!seen.text.contains("s3cret-value"));
    let seen = seen.expect_status(200);
    assert_eq!((&seen["servers"][0]["command"], &seen["servers"][0]["env"]), (&json!("sh"), &json!({"A": "***"})));
    post(api, &trust, &json!({"digest": "0".repeat(64)})).await.expect_problem(409, "conflict");
    post(api, &trust, &json!({"digest": "../x"})).await.expect_problem(409, "conflict");
    assert_eq!(post(api, &trust, &json!({"digest": seen["digest"]})).await.expect_status(200)["state"], "trusted");

    let view = get(api, &effective).await.expect_status(200);
    assert_eq!(view["servers"][0]["state"], "used");
    assert!(view["servers"][0]["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "{view}");
    assert!(witness.exists(), "the trusted server must be started");
    assert_eq!(delete(api, &trust).await.status, 204);
    assert_eq!(get(api, &trust).await.expect_status(200)["state"], "untrusted");
    for path in [trust, effective] {
        let foreign = path.replace(&room.to_string(), &RoomId::generate().to_string());
        get(api, &foreign).await.expect_problem(404, "not_found");
    }
    server.finish().await;
}
