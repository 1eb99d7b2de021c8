//! Skills: made, changed, compared, used.

use super::{
    binary::Binary,
    scene::{Answer, agent, answer, answered, delete, ended, get, post, room_of, runs_of, say_with, within},
};
use domain::run::RunStatus;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::Api, database::TestDatabase};

doors! {
    server: a_skill_is_made_read_changed_and_deleted, each_change_is_a_version_that_can_be_compared_and_restored,
            files_are_written_read_and_removed, what_breaks_a_rule_is_refused_with_findings,
            a_check_keeps_nothing_and_shows_what_a_run_would_get, a_write_with_a_key_is_done_once,
            an_agent_uses_a_skill_and_a_message_calls_it;
    database: invariant_15_owner_skills_of_others_are_not_there;
}

fn spec(name: &str) -> Value {
    json!({"name": name, "description": "Greets. Use it to greet.", "body": "Say {{word}}.",
           "parameters": [{"name": "word", "type": "text", "required": true}]})
}

async fn patch(api: &Api, path: &str, body: &Value) -> Answer {
    answer(api.request(Method::PATCH, path).json(body)).await
}

async fn put(api: &Api, path: &str, bytes: &[u8]) -> Answer {
    answer(api.request(Method::PUT, path).body(bytes.to_vec())).await
}

async fn a_skill_is_made_read_changed_and_deleted(api: &Api) {
    assert_eq!(get(api, "/api/skills").await.is(200), json!({"skills": [], "folders": []}));
    let made = post(api, "/api/skills", &spec("greet")).await.is(201);
    assert_eq!((&made["name"], &made["version"], &made["experience"]), (&json!("greet"), &json!(1), &Value::Null));
    assert_eq!(made["usage"]["invoked"], 0);
    assert_eq!(get(api, "/api/skills/greet").await.is(200), made);
    post(api, "/api/skills", &spec("greet")).await.is_refused(409, "conflict");
    let changed = patch(api, "/api/skills/greet?note=kinder", &json!({"category": "manners"})).await.is(200);
    assert_eq!(
        (&changed["version"], &changed["category"], &changed["body"]),
        (&json!(2), &json!("manners"), &made["body"])
    );
    let same = patch(api, "/api/skills/greet", &json!({"category": "manners"})).await.is(200);
    assert_eq!(same["version"], 2, "where nothing is different, nothing happens");
    patch(api, "/api/skills/greet?base=1", &json!({"label": "x"})).await.is_refused(409, "conflict");
    let renamed = patch(api, "/api/skills/greet", &json!({"name": "other"})).await;
    assert_eq!(renamed.is_refused(422, "unprocessable")["pointer"], "/name");
    let list = get(api, "/api/skills").await.is(200);
    assert_eq!((&list["skills"][0]["name"], &list["skills"][0]["file_count"]), (&json!("greet"), &json!(0)));
    delete(api, "/api/skills/greet").await.is(204);
    for path in ["/api/skills/greet", "/api/skills/greet/versions", "/api/skills/Not%20a%20name"] {
        get(api, path).await.is_refused(404, "not_found");
    }
    delete(api, "/api/skills/greet").await.is_refused(404, "not_found");
}

async fn each_change_is_a_version_that_can_be_compared_and_restored(api: &Api) {
    post(api, "/api/skills", &spec("greet")).await.is(201);
    patch(api, "/api/skills/greet?note=louder", &json!({"body": "Shout {{word}}."})).await.is(200);
    put(api, "/api/skills/greet/files/a%2Fb.txt", b"text").await.is(200);
    let versions = get(api, "/api/skills/greet/versions").await.is(200);
    let notes: Vec<&Value> = versions["versions"].as_array().unwrap().iter().map(|version| &version["note"]).collect();
    assert_eq!(notes, [&json!("wrote a/b.txt"), &json!("louder"), &Value::Null]);
    let second = get(api, "/api/skills/greet/versions/2").await.is(200);
    let diff = second["diff"].as_str().unwrap();
    assert!(diff.contains("\n-Say {{word}}.\n") && diff.contains("\n+Shout {{word}}.\n"), "{diff}");
    assert_eq!((&second["against"], &second["skill"]["body"]), (&json!(1), &json!("Shout {{word}}.")));
    let third = get(api, "/api/skills/greet/versions/3?against=1").await.is(200);
    assert!(third["diff"].as_str().unwrap().ends_with("file a/b.txt added (4 bytes)\n"), "{third}");
    let first = get(api, "/api/skills/greet/versions/1").await.is(200);
    assert_eq!((&first["against"], &first["diff"]), (&Value::Null, &json!("")));
    get(api, "/api/skills/greet/versions/9").await.is_refused(404, "not_found");
    let restored = post(api, "/api/skills/greet/versions/1/restore", &json!({})).await.is(200);
    assert_eq!((&restored["version"], &restored["body"]), (&json!(4), &json!("Say {{word}}.")));
    assert_eq!(restored["files"], json!([]), "the files come back as they were, too");
}

async fn files_are_written_read_and_removed(api: &Api) {
    post(api, "/api/skills", &spec("greet")).await.is(201);
    let script = b"#!/bin/sh\nexit 0\n";
    let written = put(api, "/api/skills/greet/files/scripts%2Frun.sh?executable=true", script).await.is(200);
    assert_eq!(written["files"], json!([{"path": "scripts/run.sh", "bytes": 17, "executable": true}]));
    let read = get(api, "/api/skills/greet/files/scripts%2Frun.sh").await;
    assert_eq!((read.status, read.text.as_bytes()), (200, script.as_slice()));
    assert_eq!((read.header("content-disposition"), read.header("x-content-type-options")), ("attachment", "nosniff"));
    for path in ["..%2Fx", "%2Fetc%2Fpasswd", "SKILL.md", ".hidden", "a%5Cb"] {
        put(api, &format!("/api/skills/greet/files/{path}"), b"x").await.is_refused(422, "unprocessable");
        get(api, &format!("/api/skills/greet/files/{path}")).await.is_refused(404, "not_found");
    }
    put(api, "/api/skills/nobody/files/a", b"x").await.is_refused(404, "not_found");
    let removed = delete(api, "/api/skills/greet/files/scripts%2Frun.sh").await.is(200);
    assert_eq!((&removed["files"], &removed["version"]), (&json!([]), &json!(3)));
    delete(api, "/api/skills/greet/files/scripts%2Frun.sh").await.is_refused(404, "not_found");
    assert_eq!(get(api, "/api/skills/greet/files/scripts%2Frun.sh?version=2").await.status, 200);
    // No file may stand where others need a folder.
    put(api, "/api/skills/greet/files/tools", b"x").await.is(200);
    put(api, "/api/skills/greet/files/tools%2Fone", b"x").await.is_refused(422, "unprocessable");
}

async fn what_breaks_a_rule_is_refused_with_findings(api: &Api) {
    let mut wrong = spec("greet");
    wrong["description"] = json!("");
    wrong["parameters"][0]["type"] = json!("choice");
    let problem = post(api, "/api/skills", &wrong).await.is_refused(422, "unprocessable");
    let at: Vec<&Value> = problem["findings"].as_array().unwrap().iter().map(|finding| &finding["pointer"]).collect();
    assert_eq!(at, [&json!("/description"), &json!("/parameters/0/choices")]);
    assert_eq!(problem["pointer"], "/description");
    for name in ["Greet", "a--b", "-a", "", "../a", &"x".repeat(65)] {
        let mut wrong = spec("greet");
        wrong["name"] = json!(name);
        assert_eq!(post(api, "/api/skills", &wrong).await.is_refused(400, "invalid_request")["pointer"], "/name");
    }
    assert_eq!(get(api, "/api/skills").await.is(200)["skills"], json!([]));
}

async fn a_check_keeps_nothing_and_shows_what_a_run_would_get(api: &Api) {
    let text = "---\nname: greet\ndescription: Use when: asked\nallowed-tools: Bash\n---\nSay {{word}}.";
    let checked = post(api, "/api/skills/check", &json!({"text": text})).await.is(200);
    assert_eq!(checked["skill"]["tools"]["allow"], json!(["Bash"]));
    assert_eq!(checked["skill"]["description"], "Use when: asked");
    let preview = checked["preview"].as_str().unwrap();
    assert!(!preview.contains("allowed-tools") && preview.contains("{{word}}"), "{preview}");
    let request = json!({"skill": spec("greet"), "values": {"word": "hello"}});
    let checked = post(api, "/api/skills/check", &request).await.is(200);
    assert!(checked["preview"].as_str().unwrap().ends_with("\n\nSay hello."), "{checked}");
    assert_eq!(checked["findings"], json!([]));
    let wrong = json!({"skill": {"name": "A"}});
    let checked = post(api, "/api/skills/check", &wrong).await.is(200);
    assert_eq!((&checked["skill"], &checked["findings"][0]["level"]), (&Value::Null, &json!("error")));
    let nothing = post(api, "/api/skills/check", &json!({"text": "no frontmatter"})).await.is(200);
    assert_eq!((&nothing["skill"], &nothing["preview"]), (&Value::Null, &Value::Null));
    post(api, "/api/skills/check", &json!({})).await.is_refused(400, "invalid_request");
    assert_eq!(get(api, "/api/skills").await.is(200)["skills"], json!([]));
}

async fn a_write_with_a_key_is_done_once(api: &Api) {
    let keyed = |method: Method, path: &str, body: Value| {
        answer(api.request(method, path).header("idempotency-key", "k1").json(&body))
    };
    let first = keyed(Method::POST, "/api/skills", spec("greet")).await.is(201);
    assert_eq!(keyed(Method::POST, "/api/skills", spec("greet")).await.is(201), first);
    keyed(Method::POST, "/api/skills", spec("other")).await.is_refused(409, "idempotency_conflict");
    let change = || {
        let request = api.request(Method::PATCH, "/api/skills/greet").header("idempotency-key", "k2");
        answer(request.json(&json!({"body": "Sing {{word}}."})))
    };
    for _ in 0..2 {
        assert_eq!(change().await.is(200)["version"], 2);
    }
}

async fn an_agent_uses_a_skill_and_a_message_calls_it(api: &Api) {
    post(api, "/api/skills", &spec("greet")).await.is(201);
    let unknown = json!({"name": "a", "provider": "scripted", "skills": ["nope"]});
    let refused = post(api, "/api/agents", &unknown).await.is_refused(422, "unprocessable");
    assert!(refused["detail"].as_str().unwrap().contains("greet"), "it says what there is: {refused}");
    let wrong =
        json!({"name": "a", "provider": "scripted", "skills": ["greet"], "skill_parameters": {"greet": {"x": 1}}});
    let refused = post(api, "/api/agents", &wrong).await.is_refused(422, "unprocessable");
    assert_eq!(refused["pointer"], "/skill_parameters");
    let settings = json!({"skills": ["greet"], "skill_parameters": {"greet": {"word": "hello"}}});
    let id = agent(api, "greeter", settings.clone()).await;
    assert_eq!(get(api, &format!("/api/agents/{id}")).await.is(200)["skill_parameters"], settings["skill_parameters"]);
    let room = room_of(api, &[id]).await;
    assert_eq!(answered(api, room, "hello").await.status, RunStatus::Completed);

    let bad = say_with(api, room, json!({"text": "/greet loud=yes"})).await.is_refused(422, "unprocessable");
    assert_eq!(bad["pointer"], "/text");
    assert!(bad["detail"].as_str().unwrap().contains("it takes: word"), "{bad}");
    let history = api.messages(room, None, 100).await.unwrap();
    assert_eq!(history.messages.len(), 2, "nothing was stored");
    let posted = say_with(api, room, json!({"text": "/greet word=bye please"})).await.is(202);
    let run = ended(api, runs_of(&posted)[0]).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert!(run.usage.input_tokens > 10, "the scripted provider counts words, and was told the instructions: {run:?}");
    let usage = within("the figures", async {
        loop {
            let usage = get(api, "/api/skills/greet").await.is(200)["usage"].clone();
            if usage["offered"] == 2 {
                return usage;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!((&usage["offered"], &usage["invoked"], &usage["completed"]), (&json!(2), &json!(1), &json!(1)));
    delete(api, "/api/skills/greet").await.is(204);
    let run = answered(api, room, "hello").await;
    assert_eq!(run.error.unwrap().code, "skill_missing");
}

async fn invariant_15_owner_skills_of_others_are_not_there(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let mut tokens = Vec::new();
    for user in ["ada", "eve"] {
        let made = binary.beside(&["token", "create", "--user", user]).await;
        assert_eq!(made.code, Some(0), "{}", made.side);
        tokens.push(made.out.trim().to_owned());
    }
    let (server, api) = binary.serve().await;
    let (ada, eve) = (api.clone().with_token(&tokens[0]), api.with_token(&tokens[1]));
    post(&ada, "/api/skills", &spec("greet")).await.is(201);
    put(&ada, "/api/skills/greet/files/a", b"x").await.is(200);
    let proposal = post(&ada, "/api/skills/greet/training/proposals", &json!({"body": "new {{word}}"})).await.is(201);
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
        get(&eve, &format!("/api/skills/greet{path}")).await.is_refused(404, "not_found");
    }
    for path in [
        "/versions/1/restore".to_owned(),
        "/training/proposals".to_owned(),
        format!("/training/proposals/{proposal}/accept"),
        format!("/training/proposals/{proposal}/drop"),
    ] {
        let body = if path.ends_with("proposals") { json!({"body": "x"}) } else { json!({}) };
        post(&eve, &format!("/api/skills/greet{path}"), &body).await.is_refused(404, "not_found");
    }
    post(&eve, "/api/skills/greet/training/rounds", &json!({"score": 5})).await.is_refused(404, "not_found");
    patch(&eve, "/api/skills/greet", &json!({"body": "x"})).await.is_refused(404, "not_found");
    put(&eve, "/api/skills/greet/files/a", b"y").await.is_refused(404, "not_found");
    delete(&eve, "/api/skills/greet/files/a").await.is_refused(404, "not_found");
    delete(&eve, "/api/skills/greet").await.is_refused(404, "not_found");
    assert_eq!(get(&eve, "/api/skills").await.is(200)["skills"], json!([]));
    post(&eve, "/api/skills", &spec("greet")).await.is(201);
    server.terminate(Duration::from_secs(30)).await.unwrap();
}
