//! The catalog of MCP servers: create, update, import, export, permissions and secrets.

use super::{
    binary::Binary,
    requests::{ApiResponse, agent, delete, get, post, post_and_wait, response_to, room_of, within},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};

on_both_databases! {
    server: create_get_update_delete, invalid_settings_are_rejected_and_change_nothing,
            import_reports_each_server, invariant_07_idempotent_servers_and_imports,
            agent_needs_existing_servers, m2_a_kept_secret_does_not_follow_to_another_host_or_program;
    database: operator_file_is_shared_and_takes_precedence, invariant_15_owner_servers_are_private,
              invariant_17_secrets_stay_out_of_responses_logs_and_events;
}

const SERVERS: &str = "/api/mcp-servers";

async fn patch(api: &TestClient, name: &str, body: &Value) -> ApiResponse {
    response_to(api.request(Method::PATCH, &format!("{SERVERS}/{name}")).json(body)).await
}

async fn names(api: &TestClient) -> Vec<String> {
    let list = get(api, SERVERS).await.expect_status(200);
    list["servers"].as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect()
}

async fn create_get_update_delete(api: &TestClient) {
    assert_eq!(
        get(api, SERVERS).await.expect_status(200),
        json!({"servers": [], "next": null, "may_define_stdio": true})
    );
    let spec = json!({"name": "files", "command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "s3cret-value"},
                      "timeout": 5000});
    let made = post(api, SERVERS, &spec).await.expect_status(201);
    assert_eq!(
        (&made["type"], &made["command"], &made["args"], &made["timeout"], &made["env"]),
        (&json!("stdio"), &json!("npx"), &json!(["-y", "x"]), &json!(5000), &json!({"TOKEN": "***"}))
    );
    assert_eq!(
        (&made["source"], &made["editable"], &made["problem"]),
        (&json!("database"), &json!(true), &json!(null))
    );
    assert_eq!(made["status"]["state"], "stopped");
    assert_eq!(get(api, &format!("{SERVERS}/files")).await.expect_status(200), made);
    post(api, SERVERS, &spec).await.expect_problem(409, "conflict");

    // Masked values can be sent back.
    let changed =
        patch(api, "files", &json!({"env": {"TOKEN": "***", "MORE": "2"}, "timeout": null})).await.expect_status(200);
    assert_eq!((&changed["env"], changed.get("timeout")), (&json!({"TOKEN": "***", "MORE": "***"}), None));
    assert_eq!(changed["command"], "npx", "unnamed fields must stay");
    patch(api, "files", &json!({"env": {"OTHER": "***"}})).await.expect_problem(422, "unprocessable");
    let off = patch(api, "files", &json!({"disabled": true})).await.expect_status(200);
    assert_eq!((&off["disabled"], &off["status"]), (&json!(true), &json!(null)));
    assert_eq!(get(api, &format!("{SERVERS}/files/status")).await.expect_status(200)["state"], "disabled");
    get(api, &format!("{SERVERS}/files/tools")).await.expect_problem(422, "unprocessable");

    // Change the kind of the server.
    let web = json!({"type": "http", "command": null, "args": null, "env": null, "url": "http://127.0.0.1:1/mcp",
                     "headers": {"authorization": "Bearer s3cret-value"}, "disabled": null});
    let web = patch(api, "files", &web).await.expect_status(200);
    assert_eq!(
        (&web["type"], &web["headers"], web.get("command")),
        (&json!("http"), &json!({"authorization": "***"}), None)
    );
    let moved =
        patch(api, "files", &json!({"url": "http://127.0.0.1:2/mcp", "headers": {"authorization": "***"}})).await;
    assert_eq!(
        moved.expect_problem(422, "unprocessable")["pointer"],
        "/headers",
        "a secret must not be sent to another host"
    );
    patch(api, "files", &json!({"url": "http://127.0.0.1:1/other", "headers": {"authorization": "***"}}))
        .await
        .expect_status(200);

    assert_eq!(delete(api, &format!("{SERVERS}/files")).await.status, 204);
    for path in ["files", "files/status", "files/tools", "files/logs", "..%2Ffiles", "%00", "a%20b", "%F0%9F%8E%AD"] {
        get(api, &format!("{SERVERS}/{path}")).await.expect_problem(404, "not_found");
    }
    delete(api, &format!("{SERVERS}/files")).await.expect_problem(404, "not_found");
    post(api, &format!("{SERVERS}/files/test"), &json!({})).await.expect_problem(404, "not_found");
    post(api, &format!("{SERVERS}/files/call"), &json!({"tool": "x"})).await.expect_problem(404, "not_found");
}

async fn invalid_settings_are_rejected_and_change_nothing(api: &TestClient) {
    post(api, SERVERS, &json!({"name": "web", "url": "http://127.0.0.1:1/"})).await.expect_status(201);
    let before = get(api, SERVERS).await.expect_status(200);
    for name in ["", "a b", "../x", "a/b", ".", "..", "é", "a\u{0}b", "import", "export", "greenroom"] {
        let refused =
            post(api, SERVERS, &json!({"name": name, "command": "x"})).await.expect_problem(422, "unprocessable");
        assert_eq!(refused["pointer"], "/name", "{name:?}");
    }
    post(api, SERVERS, &json!({"name": "x".repeat(65), "command": "x"})).await.expect_problem(422, "unprocessable");
    for (settings, pointer) in [
        (json!({}), "/command"),
        (json!({"command": "x", "url": "http://h"}), "/command"),
        (json!({"command": " "}), "/command"),
        (json!({"command": "x\u{0}"}), "/command"),
        (json!({"type": "pigeon", "url": "http://h"}), "/type"),
        (json!({"url": "file:///etc/passwd"}), "/url"),
        (json!({"url": "javascript:alert(1)"}), "/url"),
        (json!({"url": "http://h", "headers": {"a b": "c"}}), "/headers"),
        (json!({"url": "http://h", "headers": {"a": "b\r\nc: d"}}), "/headers"),
        (json!({"command": "x", "env": {"A=B": "c"}}), "/env"),
        (json!({"command": "x", "env": {"A": "***"}}), "/env"),
        (json!({"command": "x", "timeout": 0}), "/timeout"),
    ] {
        let mut body = settings.clone();
        body["name"] = json!("new");
        let refused = post(api, SERVERS, &body).await.expect_problem(422, "unprocessable");
        assert_eq!(refused["pointer"], pointer, "{settings}");
    }
    for settings in [
        json!({"command": "x"}),
        json!({"name": 7, "command": "x"}),
        json!({"name": "new", "command": ["x"]}),
        json!({"name": "new", "command": "x", "env": "s3cret-value"}),
        json!({"name": "new", "command": "x", "args": [["s3cret-value"]]}),
        json!({"name": "new", "command": "x", "colour": "s3cret-value"}),
        json!([]),
        json!("x"),
    ] {
        let refused = post(api, SERVERS, &settings).await;
        refused.expect_problem(400, "invalid_request");
        assert!(!refused.text.contains("s3cret-value"), "{refused:?}");
    }
    let large = json!({"name": "new", "command": "x", "args": ["x".repeat(70_000)]});
    post(api, SERVERS, &large).await.expect_problem(422, "unprocessable");
    for bad in [json!({"name": "other"}), json!({"url": 7}), json!({"url": null}), json!([])] {
        assert!(matches!(patch(api, "web", &bad).await.status, 400 | 422), "{bad}");
    }
    assert_eq!(get(api, SERVERS).await.expect_status(200), before);
}

async fn import_reports_each_server(api: &TestClient) {
    let import = format!("{SERVERS}/import");
    post(api, SERVERS, &json!({"name": "there", "command": "old", "env": {"A": "s3cret-value"}}))
        .await
        .expect_status(201);
    let file = json!({"other": 1, "mcpServers": {
        "files": {"command": "npx", "env": {"TOKEN": "s3cret-value"}, "alwaysAllow": ["x"]},
        "web": {"type": "streamable-http", "url": "https://host/mcp"},
        "there": {"command": "new"},
        "bad": {"args": []},
        "worse": "s3cret-value",
        "../up": {"command": "x"},
        "greenroom": {"command": "x"},
        "mask": {"command": "x", "env": {"A": "***"}},
    }});
    let outcomes = |report: &Value| -> Vec<(String, String, String)> {
        let one = |server: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&server["name"]), text(&server["outcome"]), text(&server["problem"]["code"]))
        };
        report["servers"].as_array().unwrap().iter().map(one).collect()
    };
    let answered = post(api, &import, &file).await;
    assert!(!answered.text.contains("s3cret-value"), "{answered:?}");
    let mut told = outcomes(&answered.expect_status(200));
    told.sort();
    let expect = [
        ("../up", "refused", "mcp_config"),
        ("bad", "refused", "mcp_config"),
        ("files", "created", ""),
        ("greenroom", "refused", "mcp_config"),
        ("mask", "refused", "mcp_config"),
        ("there", "refused", "conflict"),
        ("web", "created", ""),
        ("worse", "refused", "mcp_config"),
    ];
    let expect = expect.map(|(name, outcome, code)| (name.to_owned(), outcome.to_owned(), code.to_owned()));
    assert_eq!(told, expect);
    assert_eq!(names(api).await, ["files", "there", "web"]);

    // An export can be imported again and keeps the masked values.
    let exported = get(api, &format!("{SERVERS}/export")).await;
    assert!(!exported.text.contains("s3cret-value"), "{exported:?}");
    let mut exported = exported.expect_status(200);
    assert_eq!(exported["mcpServers"]["files"], json!({"type": "stdio", "command": "npx", "env": {"TOKEN": "***"}}));
    let again = post(api, &import, &exported).await.expect_status(200);
    assert!(outcomes(&again).iter().all(|(_, outcome, _)| outcome == "unchanged"), "{again}");
    exported["mcpServers"]["there"] = json!({"command": "newer", "env": {"A": "s3cret-value"}});
    let replaced = post(api, &format!("{import}?replace=true"), &exported).await.expect_status(200);
    let of = |name: &str| outcomes(&replaced).into_iter().find(|(one, ..)| one == name).unwrap().1;
    assert_eq!((of("there").as_str(), of("web").as_str()), ("replaced", "unchanged"));
    let there = get(api, &format!("{SERVERS}/there")).await.expect_status(200);
    assert_eq!((&there["command"], &there["env"]), (&json!("newer"), &json!({"A": "***"})));

    for bad in [json!({}), json!({"mcpServers": []}), json!([])] {
        post(api, &import, &bad).await.expect_problem(400, "invalid_request");
    }
    let many: serde_json::Map<String, Value> =
        (0..=200).map(|n| (format!("s{n}"), json!({"url": "http://h"}))).collect();
    post(api, &import, &json!({"mcpServers": many})).await.expect_problem(400, "invalid_request");
    let large = json!({"mcpServers": {"large": {"command": "x".repeat(10 << 20)}}});
    post(api, &import, &large).await.expect_problem(413, "payload_too_large");
    assert_eq!(names(api).await, ["files", "there", "web"]);
}

async fn invariant_07_idempotent_servers_and_imports(api: &TestClient) {
    let keyed = |method: Method, path: &str, key: &str, body: &Value| {
        response_to(api.request(method, path).header("idempotency-key", key).json(body))
    };
    let spec = json!({"name": "one", "url": "http://127.0.0.1:1/"});
    let first = keyed(Method::POST, SERVERS, "k1", &spec).await.expect_status(201);
    assert_eq!(keyed(Method::POST, SERVERS, "k1", &spec).await.expect_status(201), first);
    let other = json!({"name": "two", "url": "http://127.0.0.1:1/"});
    keyed(Method::POST, SERVERS, "k1", &other).await.expect_problem(409, "idempotency_conflict");
    let file = json!({"mcpServers": {"two": {"url": "http://h"}, "bad": {}}});
    let import = format!("{SERVERS}/import");
    let report = keyed(Method::POST, &import, "k2", &file).await.expect_status(200);
    assert_eq!(
        keyed(Method::POST, &import, "k2", &file).await.expect_status(200),
        report,
        "the repeated import must return the first report"
    );
    let change = json!({"disabled": true});
    for _ in 0..2 {
        assert_eq!(
            keyed(Method::PATCH, &format!("{SERVERS}/one"), "k3", &change).await.expect_status(200)["disabled"],
            true
        );
    }
    for _ in 0..2 {
        let gone = api.request(Method::DELETE, &format!("{SERVERS}/one")).header("idempotency-key", "k4");
        assert_eq!(response_to(gone).await.status, 204);
    }
    assert_eq!(names(api).await, ["two"]);
    let makes = (0..20).map(|_| keyed(Method::POST, SERVERS, "k5", &spec));
    for made in futures_util::future::join_all(makes).await {
        made.expect_status(201);
    }
    assert_eq!(names(api).await, ["one", "two"]);
}

async fn m2_a_kept_secret_does_not_follow_to_another_host_or_program(api: &TestClient) {
    let web = json!({"name": "web", "url": "http://127.0.0.1:1/mcp?key=s3cret", "headers": {"authorization": "Bearer s3cret-value"}});
    post(api, SERVERS, &web).await.expect_status(201);
    let program = json!({"name": "files", "command": "npx", "args": ["a"], "env": {"TOKEN": "s3cret-value"}});
    post(api, SERVERS, &program).await.expect_status(201);
    for (name, shape, pointer) in [
        ("web", json!({"url": "http://127.0.0.1:2/steal"}), "/headers"),
        ("web", json!({"url": "http://127.0.0.1:2/steal", "type": "sse"}), "/headers"),
        ("web", json!({"url": "http://127.0.0.1:1@127.0.0.1:2/steal"}), "/headers"),
        ("web", json!({"url": "https://127.0.0.1:1/mcp"}), "/headers"),
        ("web", json!({"url": "http://127.0.0.1:2/", "headers": {"authorization": "***"}}), "/headers"),
        ("web", json!({"url": "http://127.0.0.1:2/mcp?***", "headers": null}), "/url"),
        ("files", json!({"command": "env"}), "/env"),
        ("files", json!({"args": ["-c", "env"]}), "/env"),
        ("files", json!({"cwd": "/tmp"}), "/env"),
    ] {
        let refused = patch(api, name, &shape).await.expect_problem(422, "unprocessable");
        assert_eq!(refused["pointer"], pointer, "{shape}");
    }
    // What goes to the same place is kept, and what is sent or cleared may change.
    patch(api, "web", &json!({"disabled": true})).await.expect_status(200);
    patch(api, "web", &json!({"url": "http://127.0.0.1:1/other"})).await.expect_status(200);
    patch(api, "web", &json!({"url": "http://127.0.0.1:2/", "headers": {"authorization": "new"}}))
        .await
        .expect_status(200);
    patch(api, "web", &json!({"url": "http://127.0.0.1:3/", "headers": null})).await.expect_status(200);
    let kept = patch(api, "files", &json!({"timeout": 7})).await.expect_status(200);
    assert_eq!(kept["env"], json!({"TOKEN": "***"}));
    patch(api, "files", &json!({"command": "env", "env": null})).await.expect_status(200);
}

async fn agent_needs_existing_servers(api: &TestClient) {
    let spec = json!({"name": "Ada", "provider": "scripted", "mcp_servers": ["web"]});
    let refused = post(api, "/api/agents", &spec).await.expect_problem(422, "unprocessable");
    assert_eq!(refused["pointer"], "/mcp_servers");
    post(api, SERVERS, &json!({"name": "web", "url": "http://127.0.0.1:1/"})).await.expect_status(201);
    let ada = agent(api, "Ada", json!({"mcp_servers": ["web"]})).await;
    let room = room_of(api, &[ada]).await;
    assert!(post_and_wait(api, room, "!count 2").await.error.is_none());
    delete(api, &format!("{SERVERS}/web")).await.expect_status(204);
    let failed = post_and_wait(api, room, "!count 2").await;
    assert_eq!(failed.error.unwrap().code, "mcp_server_missing");
    let view = get(api, &format!("/api/agents/{ada}/effective")).await.expect_status(200);
    assert_eq!(view["servers"][0]["problem"]["code"], "mcp_server_missing");
    assert_eq!(view["provider"], json!({"name": "scripted", "mcp": false}));
}

async fn operator_file_is_shared_and_takes_precedence(database: TestDatabase) {
    let file = json!({"mcpServers": {
        "shared": {"command": "secret-program", "args": ["--at", "somewhere"], "env": {"A": "s3cret-value"}},
        "broken": {"type": "pigeon", "url": "http://h"},
    }});
    std::fs::write(database.folder().join("mcp.json"), file.to_string()).unwrap();
    let server = TestServer::start(database).await;
    let api = server.api();
    assert_eq!(names(api).await, ["broken", "shared"], "one invalid server must not affect the others");
    let shared = get(api, &format!("{SERVERS}/shared")).await.expect_status(200);
    assert_eq!(
        (&shared["source"], &shared["editable"], &shared["env"]),
        (&json!("file"), &json!(false), &json!({"A": "***"}))
    );
    let broken = get(api, &format!("{SERVERS}/broken")).await.expect_status(200);
    assert_eq!(broken["problem"]["code"], "mcp_config");
    assert_eq!(get(api, &format!("{SERVERS}/broken/status")).await.expect_status(200)["state"], "invalid");
    patch(api, "shared", &json!({"disabled": true})).await.expect_problem(409, "conflict");
    delete(api, &format!("{SERVERS}/shared")).await.expect_problem(409, "conflict");
    post(api, SERVERS, &json!({"name": "shared", "url": "http://h"})).await.expect_problem(409, "conflict");
    assert_eq!(get(api, &format!("{SERVERS}/export")).await.expect_status(200), json!({"mcpServers": {}}));
    server.finish().await;
}

async fn token(binary: &Binary, user: &str) -> String {
    let made = binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    made.stdout.trim().to_owned()
}

async fn invariant_15_owner_servers_are_private(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (operator, eve) = (token(&binary, "local").await, token(&binary, "eve").await);
    let (server, api) = binary.serve().await;
    let (operator, eve) = (api.clone().with_token(operator), api.with_token(eve));
    post(&operator, SERVERS, &json!({"name": "mine", "command": "npx"})).await.expect_status(201);
    let stdio = json!({"name": "hers", "command": "sh"});
    post(&eve, SERVERS, &stdio).await.expect_problem(403, "operator_only");
    let report = post(&eve, &format!("{SERVERS}/import"), &json!({"mcpServers": {"hers": {"command": "sh"}}}))
        .await
        .expect_status(200);
    assert_eq!(report["servers"][0]["problem"]["code"], "operator_only");
    assert_eq!(
        get(&eve, SERVERS).await.expect_status(200),
        json!({"servers": [], "next": null, "may_define_stdio": false})
    );

    let unknown = get(&eve, &format!("{SERVERS}/nothing")).await.expect_problem(404, "not_found");
    for path in ["mine", "mine/status", "mine/tools", "mine/logs"] {
        assert_eq!(get(&eve, &format!("{SERVERS}/{path}")).await.expect_problem(404, "not_found"), unknown);
    }
    patch(&eve, "mine", &json!({"disabled": true})).await.expect_problem(404, "not_found");
    delete(&eve, &format!("{SERVERS}/mine")).await.expect_problem(404, "not_found");
    post(&eve, &format!("{SERVERS}/mine/test"), &json!({})).await.expect_problem(404, "not_found");
    post(&eve, &format!("{SERVERS}/mine/call"), &json!({"tool": "x"})).await.expect_problem(404, "not_found");
    let named = json!({"name": "Eve's", "provider": "scripted", "mcp_servers": ["mine"]});
    let refused = post(&eve, "/api/agents", &named).await;
    assert!(!refused.expect_problem(422, "unprocessable")["detail"].as_str().unwrap().contains("it has: mine"));

    post(&eve, SERVERS, &json!({"name": "mine", "url": "http://127.0.0.1:1/"})).await.expect_status(201);
    assert_eq!(
        get(&operator, &format!("{SERVERS}/mine")).await.expect_status(200)["type"],
        "stdio",
        "names must be per owner"
    );
    let hers = agent(&eve, "Eve's", json!({"mcp_servers": ["mine"]})).await;
    let room = room_of(&eve, &[hers]).await;
    for path in [format!("/api/agents/{hers}/effective"), format!("/api/rooms/{room}/mcp-trust")] {
        get(&eve, &path).await.expect_status(200);
        get(&operator, &path).await.expect_problem(404, "not_found");
    }
    let trust = json!({"digest": "0".repeat(64)});
    post(&operator, &format!("/api/rooms/{room}/mcp-trust"), &trust).await.expect_problem(404, "not_found");
    delete(&operator, &format!("/api/rooms/{room}/mcp-trust")).await.expect_problem(404, "not_found");
    within("its end", server.terminate(Duration::from_secs(30))).await.unwrap();
}

async fn invariant_17_secrets_stay_out_of_responses_logs_and_events(database: TestDatabase) {
    const SECRET: &str = "s3cret-value-of-a-kind";
    const IN_URL: &str = "another-of-the-address";
    let mut binary = Binary::on(&database)
        .with("GREENROOM_LOG__LEVEL", "debug")
        .with("GREENROOM_MCP__VARIABLES", "ALLOWED_KEY")
        .with("ALLOWED_KEY", SECRET)
        .with("OTHER_KEY", SECRET);
    let (server, api) = binary.serve().await;
    let program = testkit::programs::fake_mcp();
    let fake =
        json!({"name": "fake", "command": program, "args": ["good"], "env": {"A": SECRET, "B": "${ALLOWED_KEY}"}});
    let web = json!({"name": "web", "url": format!("http://me:{IN_URL}@127.0.0.1:1/mcp?key={IN_URL}"),
                     "headers": {"authorization": format!("Bearer {SECRET}")}});
    let other = json!({"name": "other", "url": "http://${OTHER_KEY}/", "headers": {"a": "${GREENROOM_LOG__LEVEL}"}});
    let gone = json!({"name": "gone", "command": "no-such-program", "args": ["good"], "env": {"A": SECRET}});
    let mut responses = Vec::new();
    for spec in [fake, web, other, gone] {
        responses.push(post(&api, SERVERS, &spec).await);
    }
    let ada = agent(&api, "Ada", json!({"mcp_servers": ["fake", "web", "other", "gone"]})).await;
    let room = room_of(&api, &[ada]).await;
    for path in [
        SERVERS.to_owned(),
        format!("{SERVERS}/export"),
        format!("/api/agents/{ada}/effective?room={room}"),
        format!("/api/agents/{ada}"),
    ] {
        responses.push(get(&api, &path).await);
    }
    for name in ["fake", "web", "other", "gone"] {
        for path in ["", "/status", "/tools", "/logs"] {
            responses.push(get(&api, &format!("{SERVERS}/{name}{path}")).await);
        }
        responses.push(post(&api, &format!("{SERVERS}/{name}/test"), &json!({})).await);
        let call = json!({"tool": "environment", "deadline_ms": 10_000});
        responses.push(post(&api, &format!("{SERVERS}/{name}/call"), &call).await);
        responses.push(get(&api, &format!("{SERVERS}/{name}/logs")).await);
    }
    post_and_wait(&api, room, "!count 2").await;
    responses.push(get(&api, &format!("/api/rooms/{room}/events?raw=true")).await);
    let called =
        responses.iter().find(|answer| answer.text.contains("\"is_error\":false")).expect("a call that worked");
    assert!(called.text.contains("***"), "the program must get its variables: {called:?}");
    for answer in &responses {
        assert!(answer.status < 500 || answer.status == 502, "{answer:?}");
        assert!(!answer.text.contains(SECRET) && !answer.text.contains(IN_URL), "{answer:?}");
    }
    within("its end", server.terminate(Duration::from_secs(30))).await.unwrap();
    let log = binary.log();
    assert!(log.contains("request"), "the log must not be empty: {log}");
    let leak = log.lines().find(|line| line.contains(SECRET) || line.contains(IN_URL));
    assert_eq!(leak, None);
}
