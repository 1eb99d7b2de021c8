//! The audit log (M10): who did what, by which credential and from where.

use super::{
    binary::Binary,
    requests::{delete, get, post, within},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use testkit::{client::TestClient, database::TestDatabase};
use tokio::time::sleep;

on_both_databases! {
    server: m10_changes_and_sign_ins_say_who_and_from_where, m10_refused_requests_are_counted,
            m10_the_log_is_read_in_pages_and_filtered, m10_started_programs_are_recorded;
    database: m10_workspaces_see_their_own_log, m10_the_command_line_prints_the_log;
}

const STOP: Duration = Duration::from_secs(30);

async fn entries(api: &TestClient, query: &str) -> Vec<Value> {
    let page = get(api, &format!("/api/audit{query}")).await.expect_status(200);
    page["entries"].as_array().unwrap().clone()
}

/// The newest entry of a query, once there is one that fits: counted entries are stored in the background.
async fn newest(api: &TestClient, query: &str, fits: impl Fn(&Value) -> bool) -> Value {
    within("the entry", async {
        loop {
            if let Some(entry) = entries(api, query).await.into_iter().find(&fits) {
                return entry;
            }
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

async fn m10_changes_and_sign_ins_say_who_and_from_where(operator: &TestClient) {
    let token = json!({"name": "laptop", "scopes": ["read", "run", "approve", "admin"]});
    let token = post(operator, "/api/tokens", &token).await.expect_status(201);
    let mine = operator.clone().with_token(token["token"].as_str().unwrap());
    let room = post(&mine, "/api/rooms", &json!({"name": "r"})).await.expect_status(201);
    let signed_in = post(&operator.anonymous(), "/api/session", &json!({"token": token["token"]})).await;
    assert_eq!(signed_in.status, 204);

    let created = &entries(operator, "?action=create&object=room").await[0];
    assert_eq!(created["object_id"], room["id"]);
    assert_eq!((&created["room_id"], &created["user_name"]), (&room["id"], &json!("local")));
    assert_eq!((&created["credential"], &created["credential_id"]), (&json!("token"), &token["id"]));
    assert_eq!((&created["address"], &created["role"]), (&json!("127.0.0.1"), &json!("owner")));
    assert_eq!((&created["count"], &created["detail"]), (&json!(1), &Value::Null));
    let sign_in = &entries(operator, "?action=sign_in").await[0];
    assert_eq!((&sign_in["object"], &sign_in["address"]), (&json!("browser_session"), &json!("127.0.0.1")));
    let by_key = &entries(operator, "?object=token").await[0];
    assert_eq!((&by_key["credential"], &by_key["address"]), (&json!("local_key"), &json!("127.0.0.1")));
    let text = get(operator, "/api/audit").await.text;
    assert!(!text.contains(token["token"].as_str().unwrap()), "invariant 17: {text}");
}

async fn m10_refused_requests_are_counted(operator: &TestClient) {
    let wrong = operator.anonymous().with_token("grm_wrong");
    for n in 0..20 {
        get(&wrong, &format!("/api/rooms?limit={}", n + 1)).await.expect_problem(401, "unauthorized");
    }
    post(&operator.anonymous(), "/api/session", &json!({"token": "grm_wrong"}))
        .await
        .expect_problem(401, "unauthorized");
    let refused = newest(operator, "?action=refuse", |entry| entry["count"] == 21).await;
    assert_eq!((&refused["object"], &refused["object_id"]), (&json!("request"), &json!("GET /api/rooms")));
    assert_eq!((&refused["role"], &refused["credential"]), (&json!("none"), &json!("none")));
    assert_eq!((&refused["address"], &refused["user_id"]), (&json!("127.0.0.1"), &Value::Null));
    assert_eq!(refused["detail"], json!({"status": 401}));
    assert_eq!(entries(operator, "?action=refuse").await.len(), 1, "one row");

    // A token that may not do it: the refusal names its user.
    let token = post(operator, "/api/tokens", &json!({"name": "reader", "scopes": ["read"]})).await.expect_status(201);
    let reader = operator.clone().with_token(token["token"].as_str().unwrap());
    get(&reader, "/api/audit").await.expect_problem(403, "forbidden");
    let refused = newest(operator, "?action=refuse", |entry| entry["credential"] == "token").await;
    assert_eq!((&refused["credential_id"], &refused["user_name"]), (&token["id"], &json!("local")));
    assert_eq!((&refused["object_id"], &refused["detail"]), (&json!("GET /api/audit"), &json!({"status": 403})));
}

async fn m10_the_log_is_read_in_pages_and_filtered(operator: &TestClient) {
    for n in 0..5 {
        post(operator, "/api/rooms", &json!({"name": format!("r{n}")})).await.expect_status(201);
    }
    let (mut next, mut seen) = (Value::Null, Vec::new());
    loop {
        let before = next.as_str().map(|before| format!("&before={before}")).unwrap_or_default();
        let page = get(operator, &format!("/api/audit?object=room&limit=2{before}")).await.expect_status(200);
        seen.extend(page["entries"].as_array().unwrap().iter().map(|entry| entry["id"].as_i64().unwrap()));
        next = page["next"].clone();
        if next.is_null() {
            break;
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted_by(|one, other| one > other), "{seen:?}");
    let user = entries(operator, "?limit=1").await[0]["user_id"].as_str().unwrap().to_owned();
    assert_eq!(entries(operator, &format!("?user_id={user}&object=room")).await.len(), 5);
    assert!(entries(operator, &format!("?user_id={}", uuid::Uuid::now_v7())).await.is_empty());
    for wrong in ["limit=0", "limit=201", "before=x", "user_id=x", "unknown=1"] {
        get(operator, &format!("/api/audit?{wrong}")).await.expect_problem(400, "invalid_request");
    }
}

async fn m10_started_programs_are_recorded(operator: &TestClient) {
    let program = testkit::programs::fake_mcp();
    let server = json!({"name": "fake", "command": program, "args": ["good"], "env": {"TOKEN": "supersecretqx"}});
    post(operator, "/api/mcp-servers", &server).await.expect_status(201);
    for _ in 0..2 {
        post(operator, "/api/mcp-servers/fake/test", &json!({})).await.expect_status(200);
    }
    let started = newest(operator, "?action=start", |entry| entry["count"] == 2).await;
    assert_eq!((&started["object"], &started["object_id"]), (&json!("program"), &json!(program)));
    assert_eq!((&started["credential"], &started["address"]), (&json!("system"), &Value::Null));
    assert!(started["detail"]["folder"].is_string(), "{started}");
    assert!(!get(operator, "/api/audit").await.text.contains("supersecretqx"));
}

async fn m10_workspaces_see_their_own_log(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let secret = async |role| {
        let user = format!("ada-{role}");
        let arguments = ["token", "create", "--user", &user, "--workspace", "ada", "--role", role, "--scopes", "all"];
        binary.run_command(&arguments).await.stdout.trim().to_owned()
    };
    let (admin, member) = (secret("admin").await, secret("member").await);
    let (server, api) = binary.serve().await;
    let (admin, member) = (api.clone().with_token(admin), api.clone().with_token(member));
    let room = post(&member, "/api/rooms", &json!({"name": "ours"})).await.expect_status(201);
    let path = format!("/api/rooms/{}", room["id"].as_str().unwrap());
    assert_eq!(delete(&member, &path).await.status, 204);
    get(&member, "/api/audit").await.expect_problem(403, "forbidden");
    get(&admin, "/api/audit?all=true").await.expect_problem(403, "forbidden");
    let theirs = entries(&admin, "").await;
    assert!(theirs.iter().all(|entry| entry["workspace"] == "ada"), "{theirs:?}");
    assert!(theirs.iter().any(|entry| entry["action"] == "delete" && entry["user_name"] == "ada-member"), "{theirs:?}");
    assert!(entries(&api, "").await.iter().all(|entry| entry["workspace"] == "local"));
    assert!(entries(&api, "?all=true").await.iter().any(|entry| entry["workspace"] == "ada"));
    server.terminate(STOP).await.unwrap();
}

async fn m10_the_command_line_prints_the_log(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let room = post(&api, "/api/rooms", &json!({"name": "r"})).await.expect_status(201);
    let token =
        post(&api, "/api/tokens", &json!({"name": "cli", "scopes": ["read", "admin"]})).await.expect_status(201);
    let folder = tempfile::tempdir().unwrap();
    let (server_url, token) = (api.base_url(), token["token"].as_str().unwrap());
    let arguments = ["audit", "--action", "create", "--limit", "5", "--server", server_url, "--token", token];
    let printed = crate::run(folder.path(), &arguments).await.stdout;
    assert!(printed.starts_with("TIME") && printed.contains(room["id"].as_str().unwrap()), "{printed}");
    let printed = crate::run(folder.path(), &[&arguments[..], &["--json"]].concat()).await.stdout;
    let lines: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|entry| entry["action"] == "create" && entry["object_id"] == room["id"]), "{printed}");

    // More than a page, and the status of what was refused.
    for _ in 0..205 {
        post(&api, "/api/rooms", &json!({"name": "r"})).await.expect_status(201);
    }
    let connection = ["--server", server_url, "--token", token];
    let all = [&["audit", "--action", "create", "--limit", "1000", "--json"], &connection[..]].concat();
    let printed = crate::run(folder.path(), &all).await.stdout;
    let ids: BTreeSet<i64> =
        printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_i64().unwrap()).collect();
    assert!(ids.len() > 205 && ids.len() == printed.lines().count(), "{} different entries", ids.len());
    get(&api.clone().with_token("grm_wrong"), "/api/rooms").await.expect_problem(401, "unauthorized");
    within("the refusal", async {
        let refused = [&["audit", "--action", "refuse"], &connection[..]].concat();
        while !crate::run(folder.path(), &refused).await.stdout.contains("401") {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
    server.terminate(STOP).await.unwrap();
}
