//! Skills: create, update, versions, files and use.

use super::{
    binary::Binary,
    requests::{
        ApiResponse, agent, delete, get, post, post_and_wait, post_body, response_to, room_of, runs_of, wait_for_end,
        within,
    },
};
use domain::run::RunStatus;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase};

on_both_databases! {
    server: create_get_update_delete, versions_can_be_compared_and_restored,
            files_are_written_read_and_removed, invalid_skills_are_rejected_with_findings,
            check_stores_nothing_and_returns_a_preview, writes_are_idempotent,
            agent_uses_a_skill_and_a_message_invokes_it;
    database: invariant_15_owner_skills_are_private;
}

fn spec(name: &str) -> Value {
    json!({"name": name, "description": "Greets. Use it to greet.", "body": "Say {{word}}.",
           "parameters": [{"name": "word", "type": "text", "required": true}]})
}

async fn patch(api: &TestClient, path: &str, body: &Value) -> ApiResponse {
    response_to(api.request(Method::PATCH, path).json(body)).await
}

async fn put(api: &TestClient, path: &str, bytes: &[u8]) -> ApiResponse {
    response_to(api.request(Method::PUT, path).body(bytes.to_vec())).await
}

async fn create_get_update_delete(api: &TestClient) {
    assert_eq!(get(api, "/api/skills").await.expect_status(200), json!({"skills": [], "folders": [], "next": null}));
    let made = post(api, "/api/skills", &spec("greet")).await.expect_status(201);
    assert_eq!((&made["name"], &made["version"], &made["experience"]), (&json!("greet"), &json!(1), &Value::Null));
    assert_eq!(made["usage"]["invoked"], 0);
    assert_eq!(get(api, "/api/skills/greet").await.expect_status(200), made);
    post(api, "/api/skills", &spec("greet")).await.expect_problem(409, "conflict");
    let changed = patch(api, "/api/skills/greet?note=kinder", &json!({"category": "manners"})).await.expect_status(200);
    assert_eq!(
        (&changed["version"], &changed["category"], &changed["body"]),
        (&json!(2), &json!("manners"), &made["body"])
    );
    let same = patch(api, "/api/skills/greet", &json!({"category": "manners"})).await.expect_status(200);
    assert_eq!(same["version"], 2, "an unchanged update must not create a version");
    patch(api, "/api/skills/greet?base=1", &json!({"label": "x"})).await.expect_problem(409, "conflict");
    let renamed = patch(api, "/api/skills/greet", &json!({"name": "other"})).await;
    assert_eq!(renamed.expect_problem(422, "unprocessable")["pointer"], "/name");
    let list = get(api, "/api/skills").await.expect_status(200);
    assert_eq!((&list["skills"][0]["name"], &list["skills"][0]["file_count"]), (&json!("greet"), &json!(0)));
    delete(api, "/api/skills/greet").await.expect_status(204);
    for path in ["/api/skills/greet", "/api/skills/greet/versions", "/api/skills/Not%20a%20name"] {
        get(api, path).await.expect_problem(404, "not_found");
    }
    delete(api, "/api/skills/greet").await.expect_problem(404, "not_found");
}

async fn versions_can_be_compared_and_restored(api: &TestClient) {
    post(api, "/api/skills", &spec("greet")).await.expect_status(201);
    patch(api, "/api/skills/greet?note=louder", &json!({"body": "Shout {{word}}."})).await.expect_status(200);
    put(api, "/api/skills/greet/files/a%2Fb.txt", b"text").await.expect_status(200);
    let versions = get(api, "/api/skills/greet/versions").await.expect_status(200);
    let notes: Vec<&Value> = versions["versions"].as_array().unwrap().iter().map(|version| &version["note"]).collect();
    assert_eq!(notes, [&json!("wrote a/b.txt"), &json!("louder"), &Value::Null]);
    let second = get(api, "/api/skills/greet/versions/2").await.expect_status(200);
    let diff = second["diff"].as_str().unwrap();
    assert!(diff.contains("\n-Say {{word}}.\n") && diff.contains("\n+Shout {{word}}.\n"), "{diff}");
    assert_eq!((&second["against"], &second["skill"]["body"]), (&json!(1), &json!("Shout {{word}}.")));
    let third = get(api, "/api/skills/greet/versions/3?against=1").await.expect_status(200);
    assert!(third["diff"].as_str().unwrap().ends_with("file a/b.txt added (4 bytes)\n"), "{third}");
    let first = get(api, "/api/skills/greet/versions/1").await.expect_status(200);
    assert_eq!((&first["against"], &first["diff"]), (&Value::Null, &json!("")));
    get(api, "/api/skills/greet/versions/9").await.expect_problem(404, "not_found");
    let restored = post(api, "/api/skills/greet/versions/1/restore", &json!({})).await.expect_status(200);
    assert_eq!((&restored["version"], &restored["body"]), (&json!(4), &json!("Say {{word}}.")));
    assert_eq!(restored["files"], json!([]), "the files must be restored too");
}

async fn files_are_written_read_and_removed(api: &TestClient) {
    post(api, "/api/skills", &spec("greet")).await.expect_status(201);
    let script = b"#!/bin/sh\nexit 0\n";
    let written = put(api, "/api/skills/greet/files/scripts%2Frun.sh?executable=true", script).await.expect_status(200);
    assert_eq!(written["files"], json!([{"path": "scripts/run.sh", "bytes": 17, "executable": true}]));
    let read = get(api, "/api/skills/greet/files/scripts%2Frun.sh").await;
    assert_eq!((read.status, read.text.as_bytes()), (200, script.as_slice()));
    assert_eq!((read.header("content-disposition"), read.header("x-content-type-options")), ("attachment", "nosniff"));
    for path in ["..%2Fx", "%2Fetc%2Fpasswd", "SKILL.md", ".hidden", "a%5Cb"] {
        put(api, &format!("/api/skills/greet/files/{path}"), b"x").await.expect_problem(422, "unprocessable");
        get(api, &format!("/api/skills/greet/files/{path}")).await.expect_problem(404, "not_found");
    }
    put(api, "/api/skills/nobody/files/a", b"x").await.expect_problem(404, "not_found");
    let removed = delete(api, "/api/skills/greet/files/scripts%2Frun.sh").await.expect_status(200);
    assert_eq!((&removed["files"], &removed["version"]), (&json!([]), &json!(3)));
    delete(api, "/api/skills/greet/files/scripts%2Frun.sh").await.expect_problem(404, "not_found");
    assert_eq!(get(api, "/api/skills/greet/files/scripts%2Frun.sh?version=2").await.status, 200);
    // A file cannot have the path of a folder.
    put(api, "/api/skills/greet/files/tools", b"x").await.expect_status(200);
    put(api, "/api/skills/greet/files/tools%2Fone", b"x").await.expect_problem(422, "unprocessable");
}

async fn invalid_skills_are_rejected_with_findings(api: &TestClient) {
    let mut wrong = spec("greet");
    wrong["description"] = json!("");
    wrong["parameters"][0]["type"] = json!("choice");
    let problem = post(api, "/api/skills", &wrong).await.expect_problem(422, "unprocessable");
    let at: Vec<&Value> = problem["findings"].as_array().unwrap().iter().map(|finding| &finding["pointer"]).collect();
    assert_eq!(at, [&json!("/description"), &json!("/parameters/0/choices")]);
    assert_eq!(problem["pointer"], "/description");
    for name in ["Greet", "a--b", "-a", "", "../a", &"x".repeat(65)] {
        let mut wrong = spec("greet");
        wrong["name"] = json!(name);
        assert_eq!(post(api, "/api/skills", &wrong).await.expect_problem(400, "invalid_request")["pointer"], "/name");
    }
    assert_eq!(get(api, "/api/skills").await.expect_status(200)["skills"], json!([]));
}

async fn check_stores_nothing_and_returns_a_preview(api: &TestClient) {
    let text = "---\nname: greet\ndescription: Use when: asked\nallowed-tools: Bash\n---\nSay {{word}}.";
    let checked = post(api, "/api/skills/check", &json!({"text": text})).await.expect_status(200);
    assert_eq!(checked["skill"]["tools"]["allow"], json!(["Bash"]));
    assert_eq!(checked["skill"]["description"], "Use when: asked");
    let preview = checked["preview"].as_str().unwrap();
    assert!(!preview.contains("allowed-tools") && preview.contains("{{word}}"), "{preview}");
    let request = json!({"skill": spec("greet"), "values": {"word": "hello"}});
    let checked = post(api, "/api/skills/check", &request).await.expect_status(200);
    assert!(checked["preview"].as_str().unwrap().ends_with("\n\nSay hello."), "{checked}");
    assert_eq!(checked["findings"], json!([]));
    let wrong = json!({"skill": {"name": "A"}});
    let checked = post(api, "/api/skills/check", &wrong).await.expect_status(200);
    assert_eq!((&checked["skill"], &checked["findings"][0]["level"]), (&Value::Null, &json!("error")));
    let nothing = post(api, "/api/skills/check", &json!({"text": "no frontmatter"})).await.expect_status(200);
    assert_eq!((&nothing["skill"], &nothing["preview"]), (&Value::Null, &Value::Null));
    post(api, "/api/skills/check", &json!({})).await.expect_problem(422, "unprocessable");
    assert_eq!(get(api, "/api/skills").await.expect_status(200)["skills"], json!([]));
}

async fn writes_are_idempotent(api: &TestClient) {
    let keyed = |method: Method, path: &str, body: Value| {
        response_to(api.request(method, path).header("idempotency-key", "k1").json(&body))
    };
    let first = keyed(Method::POST, "/api/skills", spec("greet")).await.expect_status(201);
    assert_eq!(keyed(Method::POST, "/api/skills", spec("greet")).await.expect_status(201), first);
    keyed(Method::POST, "/api/skills", spec("other")).await.expect_problem(409, "idempotency_conflict");
    let change = || {
        let request = api.request(Method::PATCH, "/api/skills/greet").header("idempotency-key", "k2");
        response_to(request.json(&json!({"body": "Sing {{word}}."})))
    };
    for _ in 0..2 {
        assert_eq!(change().await.expect_status(200)["version"], 2);
    }
}

async fn agent_uses_a_skill_and_a_message_invokes_it(api: &TestClient) {
    post(api, "/api/skills", &spec("greet")).await.expect_status(201);
    let unknown = json!({"name": "a", "provider": "scripted", "skills": ["nope"]});
    let refused = post(api, "/api/agents", &unknown).await.expect_problem(422, "unprocessable");
    assert!(refused["detail"].as_str().unwrap().contains("greet"), "the error must list the skills: {refused}");
    let wrong =
        json!({"name": "a", "provider": "scripted", "skills": ["greet"], "skill_parameters": {"greet": {"x": 1}}});
    let refused = post(api, "/api/agents", &wrong).await.expect_problem(422, "unprocessable");
    assert_eq!(refused["pointer"], "/skill_parameters");
    let settings = json!({"skills": ["greet"], "skill_parameters": {"greet": {"word": "hello"}}});
    let id = agent(api, "greeter", settings.clone()).await;
    assert_eq!(
        get(api, &format!("/api/agents/{id}")).await.expect_status(200)["skill_parameters"],
        settings["skill_parameters"]
    );
    let room = room_of(api, &[id]).await;
    assert_eq!(post_and_wait(api, room, "hello").await.status, RunStatus::Completed);

    let bad = post_body(api, room, json!({"text": "/greet loud=yes"})).await.expect_problem(422, "unprocessable");
    assert_eq!(bad["pointer"], "/text");
    assert!(bad["detail"].as_str().unwrap().contains("the skill has: word"), "{bad}");
    let history = api.messages(room, None, 100).await.unwrap();
    assert_eq!(history.messages.len(), 2, "nothing may be stored");
    let posted = post_body(api, room, json!({"text": "/greet word=bye please"})).await.expect_status(202);
    let run = wait_for_end(api, runs_of(&posted)[0]).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert!(run.usage.input_tokens > 10, "the prompt must contain the instructions: {run:?}");
    let usage = within("the figures", async {
        loop {
            let usage = get(api, "/api/skills/greet").await.expect_status(200)["usage"].clone();
            if usage["offered"] == 2 {
                return usage;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!((&usage["offered"], &usage["invoked"], &usage["completed"]), (&json!(2), &json!(1), &json!(1)));
    delete(api, "/api/skills/greet").await.expect_status(204);
    let run = post_and_wait(api, room, "hello").await;
    assert_eq!(run.error.unwrap().code, "skill_missing");
}

async fn invariant_15_owner_skills_are_private(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let mut tokens = Vec::new();
    for user in ["ada", "eve"] {
        let made = binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await;
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        tokens.push(made.stdout.trim().to_owned());
    }
    let (server, api) = binary.serve().await;
    let (ada, eve) = (api.clone().with_token(&tokens[0]), api.with_token(&tokens[1]));
    post(&ada, "/api/skills", &spec("greet")).await.expect_status(201);
    put(&ada, "/api/skills/greet/files/a", b"x").await.expect_status(200);
    let proposal =
        post(&ada, "/api/skills/greet/training/proposals", &json!({"body": "new {{word}}"})).await.expect_status(201);
    let proposal = proposal["id"].as_str().unwrap();
    for path in [
        "",
        "/versions",
        "/versions/1",
        "/files/a",
        "/export",
        "/export?version=1",
        "/training",
        &format!("/training/proposals/{proposal}"),
    ] {
        get(&eve, &format!("/api/skills/greet{path}")).await.expect_problem(404, "not_found");
    }
    for path in [
        "/versions/1/restore".to_owned(),
        "/training/proposals".to_owned(),
        format!("/training/proposals/{proposal}/accept"),
        format!("/training/proposals/{proposal}/drop"),
    ] {
        let body = if path.ends_with("proposals") { json!({"body": "x"}) } else { json!({}) };
        post(&eve, &format!("/api/skills/greet{path}"), &body).await.expect_problem(404, "not_found");
    }
    post(&eve, "/api/skills/greet/training/rounds", &json!({"score": 5})).await.expect_problem(404, "not_found");
    patch(&eve, "/api/skills/greet", &json!({"body": "x"})).await.expect_problem(404, "not_found");
    put(&eve, "/api/skills/greet/files/a", b"y").await.expect_problem(404, "not_found");
    delete(&eve, "/api/skills/greet/files/a").await.expect_problem(404, "not_found");
    delete(&eve, "/api/skills/greet").await.expect_problem(404, "not_found");
    assert_eq!(get(&eve, "/api/skills").await.expect_status(200)["skills"], json!([]));
    post(&eve, "/api/skills", &spec("greet")).await.expect_status(201);
    server.terminate(Duration::from_secs(30)).await.unwrap();
}
