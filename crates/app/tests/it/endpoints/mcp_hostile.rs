//! Hostile and broken MCP clients.

use super::{
    binary::Binary,
    mcp_requests::{ACCEPT, Session, Stream, initialize, message, modern, reply},
    requests::{get, response_to, within},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};
use tokio::{task::JoinSet, time::sleep};

on_both_databases! {
    server: reader_that_stops_reading_is_bounded, concurrent_requests_per_session_are_limited, hosts_and_origins, bodies, invalid_requests, unknown_sessions;
    database: invariant_15_sessions_belong_to_their_owner, idle_sessions_expire, revoked_token_ends_its_streams, server_stop_ends_streams_with_a_notice,
              sessions_are_limited, m7_sessions_of_one_user_do_not_lock_out_another, memory_of_2000_abandoned_sessions_is_returned;
}

const PATHS: [(Method, &str); 6] = [
    (Method::POST, "/mcp"),
    (Method::GET, "/mcp"),
    (Method::DELETE, "/mcp"),
    (Method::GET, "/sse"),
    (Method::DELETE, "/sse"),
    (Method::POST, "/message?sessionId=x"),
];
const STOP: Duration = Duration::from_secs(30);

async fn hosts_and_origins(api: &TestClient) {
    for (method, path) in PATHS {
        let request = || api.request(method.clone(), path).header("accept", ACCEPT).json(&initialize());
        response_to(request().header("host", "evil.example")).await.expect_problem(403, "forbidden_host");
        for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
            response_to(request().header("origin", origin)).await.expect_problem(403, "forbidden_origin");
        }
    }
}

async fn bodies(api: &TestClient) {
    let session = Session::begin(api).await;
    let mut stream = Stream::open(api.request(Method::GET, "/sse").header("accept", "text/event-stream")).await;
    stream.until("\n\n").await;
    let message = format!("/message?sessionId={}", stream.header("mcp-session-id"));
    let post = |body: String| {
        let streamable = session.request(Method::POST).header("content-type", "application/json").body(body.clone());
        [streamable, api.request(Method::POST, &message).header("content-type", "application/json").body(body)]
    };
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"a":{deep}}}}}"#);
    for (body, code) in [
        ("{".to_owned(), -32700),
        ("not json".to_owned(), -32700),
        (String::new(), -32700),
        (deep, -32700),
        ("[]".to_owned(), -32600),
        (json!([super::mcp_requests::message(1, "ping", &json!({}))]).to_string(), -32600),
        ("7".to_owned(), -32600),
        (r#"{"method":7}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#.to_owned(), -32600),
    ] {
        for request in post(body.clone()) {
            let refused = response_to(request).await;
            let shown = body.chars().take(60).collect::<String>();
            assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(code)), "{shown}: {refused:?}");
        }
    }
    let unsaid = session.request(Method::POST).header("content-type", "text/plain").body("{}");
    assert_eq!(response_to(unsaid).await.status, 415);
    for request in post(" ".repeat(10 * 1024 * 1024)) {
        response_to(request).await.expect_problem(413, "payload_too_large");
    }
    // The session still works.
    assert!(session.call("list_agents", json!({})).await["agents"].is_array());
}

async fn invalid_requests(api: &TestClient) {
    let session = Session::begin(api).await;
    assert_eq!(session.ask("no/such/method", json!({})).await["error"]["code"], -32601);
    assert_eq!(session.ask("tools/call", json!({"name": "no_such_tool"})).await["error"]["code"], -32602);
    assert_eq!(session.ask("tools/call", json!({"name": 7})).await["error"]["code"], -32602);
    assert_eq!(session.ask("resources/read", json!({"uri": "file:///etc/passwd"})).await["error"]["code"], -32002);
    assert_eq!(session.ask("prompts/get", json!({"name": "../x"})).await["error"]["code"], -32602);
    assert_eq!(
        session.ask("resources/subscribe", json!({"uri": "greenroom://skills/x"})).await["error"]["code"],
        -32602
    );
    for (tool, arguments, says) in [
        ("list_agents", json!({"x": 1}), "unknown field"),
        ("run_agent", json!({"agent": "scripted"}), "missing field `message`"),
        ("run_agent", json!({"agent": "nobody", "message": "Hi"}), "Agents: scripted"),
        ("run_agent", json!({"agent": "scripted", "message": " "}), "needs a text"),
        ("run_agent", json!({"agent": "scripted", "message": "Hi", "wait_seconds": 0}), "from 1 to 3600"),
        ("run_agent", json!({"agent": "scripted", "message": "Hi", "on_disconnect": "explode"}), "on_disconnect"),
        ("run_agent", json!({"agent": "scripted", "message": "Hi", "room": "x"}), "not an id"),
        ("read_room", json!({"room": uuid::Uuid::now_v7()}), "list_rooms"),
        ("post_message", json!({"room": uuid::Uuid::now_v7(), "text": "Hi"}), "list_rooms"),
        ("wait_for_run", json!({"run_id": uuid::Uuid::now_v7()}), "no run"),
        ("cancel_run", json!({"run_id": "; DROP TABLE runs"}), "not an id"),
        ("get_skill", json!({"name": "../../etc"}), "list_skills"),
    ] {
        let said = session.refused(tool, arguments.clone()).await;
        assert!(said.contains(says), "{tool} {arguments}: {said}");
    }
    // The newest revision also uses the HTTP status.
    let unknown = response_to(modern(api, 3, "no/such/method", json!({}))).await;
    assert_eq!((unknown.status, &reply(&unknown, 3)["error"]["code"]), (404, &json!(-32601)));
    let (future, mut asked) = ("2099-01-01", message(3, "tools/list", &json!({})));
    asked["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": future});
    let unsupported = api.request(Method::POST, "/mcp").header("accept", ACCEPT).header("mcp-method", "tools/list");
    let unsupported = response_to(unsupported.header("mcp-protocol-version", future).json(&asked)).await;
    assert_eq!((unsupported.status, &unsupported.json()["error"]["code"]), (400, &json!(-32022)), "{unsupported:?}");
}

async fn unknown_sessions(api: &TestClient) {
    let unknown = uuid::Uuid::new_v4().to_string();
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let request = api.request(method, "/mcp").header("accept", ACCEPT).header("mcp-session-id", &unknown);
        assert_eq!(response_to(request.json(&message(2, "tools/list", &json!({})))).await.status, 404);
    }
    let post = api.request(Method::POST, &format!("/message?sessionId={unknown}"));
    assert_eq!(response_to(post.json(&message(2, "tools/list", &json!({})))).await.status, 404);
    let stream = api.request(Method::GET, "/sse").header("accept", "text/event-stream");
    assert_eq!(response_to(stream.header("mcp-session-id", &unknown)).await.status, 404);
    // An ended session is like an unknown one.
    let session = Session::begin(api).await;
    assert_eq!(response_to(session.request(Method::DELETE)).await.status, 204);
    assert_eq!(response_to(session.request(Method::DELETE)).await.status, 404);
    let again = session.request(Method::POST).json(&message(2, "tools/list", &json!({})));
    assert_eq!(response_to(again).await.status, 404);
    // A request without the required session id.
    let none = api.request(Method::POST, "/mcp").header("accept", ACCEPT).json(&message(2, "tools/list", &json!({})));
    assert_eq!(response_to(none).await.status, 400);
    // A session is valid on one transport only.
    let session = Session::begin(api).await;
    let post = api.request(Method::POST, &format!("/message?sessionId={}", session.id));
    assert_eq!(response_to(post.json(&message(2, "tools/list", &json!({})))).await.status, 404);
}

async fn invariant_15_sessions_belong_to_their_owner(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let secret = async |user| {
        binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await.stdout.trim().to_owned()
    };
    let (ada, bob) = (secret("ada").await, secret("bob").await);
    let (server, operator) = binary.serve().await;
    let api = operator.anonymous();
    let (ada, bob) = (api.clone().with_token(ada), api.clone().with_token(bob));
    for (method, path) in PATHS {
        let nobody = response_to(api.request(method, path).header("accept", ACCEPT).json(&initialize())).await;
        assert!(nobody.header("www-authenticate").starts_with("Bearer"));
        nobody.expect_problem(401, "unauthorized");
    }
    let hers = Session::begin(&ada).await;
    let mut stream = Stream::open(ada.request(Method::GET, "/sse").header("accept", "text/event-stream")).await;
    stream.until("\n\n").await;
    let line = stream.header("mcp-session-id");
    for (stranger, status) in [(&bob, 404), (&api, 401)] {
        let stolen = Session { api: stranger.clone(), id: hers.id.clone() };
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let request = stolen.request(method).json(&message(2, "tools/list", &json!({})));
            assert_eq!(response_to(request).await.status, status);
        }
        let post = stranger.request(Method::POST, &format!("/message?sessionId={line}"));
        assert_eq!(response_to(post.json(&message(2, "tools/list", &json!({})))).await.status, status);
        let end = stranger.request(Method::DELETE, "/sse").header("mcp-session-id", &line);
        assert_eq!(response_to(end).await.status, status);
    }
    // Her data is hidden from others and unchanged.
    let room = ada.create_room("Hers", &[]).await.unwrap().id;
    let his = Session::begin(&bob).await;
    his.refused("read_room", json!({"room": room})).await;
    let uri = format!("greenroom://rooms/{room}");
    assert_eq!(his.ask("resources/read", json!({"uri": uri})).await["error"]["code"], -32002);
    assert_eq!(his.ask("resources/subscribe", json!({"uri": uri})).await["error"]["code"], -32002);
    assert_eq!(hers.call("read_room", json!({"room": room})).await["name"], "Hers");
    server.terminate(STOP).await.unwrap();
}

async fn idle_sessions_expire(database: TestDatabase) {
    let server = TestServer::start_with(database, &[("mcp_server.session_idle_seconds", "1")]).await;
    let api = server.api();
    let (idle, open) = (Session::begin(api).await, Session::begin(api).await);
    let mut kept = open.listen().await;
    kept.until("retry").await;
    within("the idle one to expire", async {
        while response_to(idle.request(Method::POST).json(&message(2, "tools/list", &json!({})))).await.status != 404 {
            // Longer than the idle time, because each request renews the session.
            sleep(Duration::from_secs(7)).await;
        }
    })
    .await;
    assert!(open.call("list_agents", json!({})).await["agents"].is_array(), "an open stream must keep the session");
    drop(kept);
    server.finish().await;
}

async fn revoked_token_ends_its_streams(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    binary.run_command(&["token", "create", "--user", "ada", "--scopes", "all", "--name", "kept"]).await;
    let secret =
        binary.run_command(&["token", "create", "--user", "ada", "--scopes", "all"]).await.stdout.trim().to_owned();
    let (server, api) = binary.serve().await;
    let api = api.with_token(secret);
    let session = Session::begin(&api).await;
    let streams = [
        session.listen().await,
        Stream::open(api.request(Method::GET, "/sse").header("accept", "text/event-stream")).await,
        Stream::open(modern(&api, 9, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})))
            .await,
    ];
    let tokens = get(&api, "/api/tokens").await.expect_status(200);
    let mine = tokens["tokens"].as_array().unwrap().iter().find(|token| token["current"] == true).unwrap();
    let path = format!("/api/tokens/{}", mine["id"].as_str().unwrap());
    assert_eq!(response_to(api.request(Method::DELETE, &path)).await.status, 204);
    for stream in streams {
        stream.end().await;
    }
    server.terminate(STOP).await.unwrap();
}

async fn server_stop_ends_streams_with_a_notice(database: TestDatabase) {
    let server = TestServer::start(database).await;
    let api = server.api().clone();
    let session = Session::begin(&api).await;
    let streamable = session.listen().await;
    let mut sse = Stream::open(api.request(Method::GET, "/sse").header("accept", "text/event-stream")).await;
    sse.until("\n\n").await;
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut modern = Stream::open(modern(&api, 9, "subscriptions/listen", listen)).await;
    modern.until("acknowledged").await;
    let room = super::requests::room(&api).await;
    let wait = json!({"name": "run_agent", "arguments": {"agent": "scripted", "message": "!hang", "room": room}});
    let asked = session.request(Method::POST).json(&message(5, "tools/call", &wait));
    let mut asked = Stream::open(asked).await;
    asked.until("retry").await;
    within("the run to begin", async {
        while api.runs(room, domain::run::RunStatus::Running, 1).await.unwrap().is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let mut stopping = JoinSet::new();
    stopping.spawn(server.stop());
    assert!(streamable.end().await.contains("server_stopping"));
    assert!(sse.end().await.contains("the server is stopping"));
    assert!(modern.end().await.contains(r#""id":9"#), "the request must get a result");
    // The request gets an answer in any case.
    let told = asked.end().await;
    assert!(told.contains(r#""id":5"#), "{told}");
    within("the stop", stopping.join_all()).await;
}

async fn sessions_are_limited(database: TestDatabase) {
    let server = TestServer::start_with(database, &[("mcp_server.max_sessions", "2")]).await;
    let api = server.api();
    let sessions = [Session::begin(api).await, Session::begin(api).await];
    let mut streams = [sessions[0].listen().await, sessions[1].listen().await];
    for stream in &mut streams {
        stream.until("retry").await;
    }
    let third = response_to(api.request(Method::POST, "/mcp").header("accept", ACCEPT).json(&initialize())).await;
    assert_eq!((third.status, third.header("retry-after")), (503, "60"));
    let stream = response_to(api.request(Method::GET, "/sse").header("accept", "text/event-stream")).await;
    assert_eq!(stream.status, 503);
    assert!(sessions[0].call("list_agents", json!({})).await["agents"].is_array());
    assert_eq!(response_to(sessions[0].request(Method::DELETE)).await.status, 204);
    Session::begin(api).await;
    drop(streams);
    server.finish().await;
}

/// One user once took all sessions of the server, and everybody else got 503 for half an hour.
async fn m7_sessions_of_one_user_do_not_lock_out_another(database: TestDatabase) {
    let mut binary = Binary::on(&database)
        .with("GREENROOM_MCP_SERVER__MAX_SESSIONS", "20")
        .with("GREENROOM_MCP_SERVER__MAX_SESSIONS_PER_USER", "10");
    let mut tokens = Vec::new();
    for user in ["ada", "ada", "bob"] {
        tokens.push(
            binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await.stdout.trim().to_owned(),
        );
    }
    let (server, api) = binary.serve().await;
    let [ada, ada_again, bob] = [0, 1, 2].map(|at| api.clone().with_token(tokens[at].clone()));
    let first = Session::begin(&ada).await;
    let mut newest = None;
    for number in 0..60 {
        newest = Some(Session::begin(if number % 2 == 0 { &ada } else { &ada_again }).await);
    }
    let gone = response_to(first.request(Method::POST).json(&message(2, "tools/list", &Value::Null))).await;
    assert_eq!(gone.status, 404, "the idlest session makes room");
    assert!(newest.unwrap().call("list_agents", json!({})).await["agents"].is_array());
    assert!(Session::begin(&bob).await.call("list_agents", json!({})).await["agents"].is_array());
    server.terminate(STOP).await.unwrap();
}

async fn memory_of_2000_abandoned_sessions_is_returned(database: TestDatabase) {
    let mut binary = Binary::on(&database)
        .with("GREENROOM_MCP_SERVER__SESSION_IDLE_SECONDS", "2")
        .with("GREENROOM_MCP_SERVER__MAX_SESSIONS_PER_USER", "10000");
    binary.launch = binary.launch.with("GREENROOM_LIMITS__REQUESTS_PER_SECOND", "100000");
    let (server, api) = binary.serve().await;
    let resident = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let crowd = async || {
        let mut last = None;
        for _ in 0..2000 {
            last = Some(Session::begin(&api).await);
        }
        let crowded = resident();
        let last: Session = last.unwrap();
        within("all sessions to expire", async {
            let metrics = async || get(&api, "/metrics").await.text;
            while !metrics().await.lines().any(|line| line == "greenroom_mcp_sessions 0") {
                sleep(Duration::from_millis(200)).await;
            }
        })
        .await;
        let gone = response_to(last.request(Method::POST).json(&message(2, "tools/list", &Value::Null))).await;
        assert_eq!(gone.status, 404);
        crowded
    };
    // The first round excludes one-time allocations.
    crowd().await;
    let before = resident();
    let crowded = crowd().await;
    within(&format!("memory to return to {before} kB, from {crowded} kB"), async {
        while resident() * 10 > before * 11 {
            sleep(Duration::from_millis(500)).await;
        }
    })
    .await;
    server.terminate(STOP).await.unwrap();
}

/// The stream is open but not read: buffered answers are bounded, and further requests are rejected.
async fn reader_that_stops_reading_is_bounded(api: &TestClient) {
    let room = super::requests::room(api).await;
    let mut stream = Stream::open(api.request(Method::GET, "/sse").header("accept", "text/event-stream")).await;
    stream.until("\n\n").await;
    let path = format!("/message?sessionId={}", stream.header("mcp-session-id"));
    let send = async |body: Value| response_to(api.request(Method::POST, &path).json(&body)).await.status;
    assert_eq!(send(initialize()).await, 202);
    stream.until("serverInfo").await;
    assert_eq!(send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await, 204);
    let large = "x".repeat(400_000);
    super::requests::post_and_wait(api, room, &large).await;
    within("the server to reject more", async {
        let mut id = 100;
        loop {
            id += 1;
            let read = json!({"name": "read_room", "arguments": {"room": room}});
            match send(message(id, "tools/call", &read)).await {
                202 => assert!(id < 1000, "the server accepts unlimited requests"),
                503 => break,
                other => panic!("{other}"),
            }
        }
    })
    .await;
    // Other clients are not affected.
    assert!(Session::begin(api).await.call("list_agents", json!({})).await["agents"].is_array());
}

async fn concurrent_requests_per_session_are_limited(api: &TestClient) {
    let session = Session::begin(api).await;
    let room = super::requests::room(api).await;
    let run = super::requests::post_text(api, room, "!hang").await;
    let wait = json!({"name": "wait_for_run", "arguments": {"run_id": run}});
    let mut waiting = Vec::new();
    for id in 100..164 {
        let mut asked = Stream::open(session.request(Method::POST).json(&message(id, "tools/call", &wait))).await;
        asked.until("retry").await;
        waiting.push(asked);
    }
    within("the next request to be rejected", async {
        loop {
            let quick = json!({"name": "list_agents", "arguments": {}});
            let asked = session.request(Method::POST).json(&message(7, "tools/call", &quick));
            let told = reply(&response_to(asked).await, 7);
            if told["error"]["message"].as_str().is_some_and(|why| why.contains("in progress")) {
                return;
            }
        }
    })
    .await;
    super::requests::get(api, "/healthz").await.expect_status(200);
    api.cancel_run(run).await.unwrap();
    for mut asked in waiting {
        asked.until("cancelled").await;
    }
    assert!(session.call("list_agents", json!({})).await["agents"].is_array());
}
