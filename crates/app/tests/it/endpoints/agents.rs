//! Agents: create, update, delete.

use super::requests::{
    agent, delete, get, post, post_and_wait, post_body, post_text, response_to, room_of, runs_of, wait_for_end,
};
use domain::run::RunStatus;
use reqwest::Method;
use serde_json::json;
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};
use uuid::Uuid;

on_both_databases! {
    server: create_get_update_delete, unknown_provider_is_rejected, names_are_unique,
            deleted_agent_leaves_its_rooms_and_its_queued_runs_fail, invalid_update_changes_nothing;
    database: skills_and_servers_must_exist;
}

async fn create_get_update_delete(api: &TestClient) {
    let spec = json!({"name": "Zoë", "provider": "scripted", "model": "claude-sonnet-4-5", "system_prompt": "Be kind.",
                      "tools": {"allow": ["read*"]}, "limits": {"turns": 3}});
    let made = post(api, "/api/agents", &spec).await.expect_status(201);
    let path = format!("/api/agents/{}", made["id"].as_str().unwrap());
    assert_eq!(get(api, &path).await.expect_status(200), made);
    assert_eq!((&made["name"], &made["limits"]), (&json!("Zoë"), &json!({"turns": 3})));
    let patch = json!({"name": "Zoe", "model": null, "limits": {"turns": 4}});
    let changed = response_to(api.request(Method::PATCH, &path).json(&patch)).await.expect_status(200);
    assert_eq!(
        (&changed["name"], &changed["model"], &changed["limits"]),
        (&json!("Zoe"), &json!(null), &json!({"turns": 4}))
    );
    assert_eq!(changed["system_prompt"], "Be kind.", "unnamed fields must stay");
    assert!(get(api, "/api/agents").await.expect_status(200)["agents"].as_array().unwrap().contains(&changed));
    assert_eq!(delete(api, &path).await.status, 204);
    get(api, &path).await.expect_problem(404, "not_found");
    delete(api, &path).await.expect_problem(404, "not_found");
}

async fn unknown_provider_is_rejected(api: &TestClient) {
    let refused = post(api, "/api/agents", &json!({"name": "x", "provider": "oracle"})).await;
    let problem = refused.expect_problem(422, "unprocessable");
    assert_eq!(problem["pointer"], "/provider");
    assert!(problem["detail"].as_str().unwrap().contains("scripted"), "the error must list the providers: {problem}");
    let id = agent(api, "y", json!({})).await;
    let patch = api.request(Method::PATCH, &format!("/api/agents/{id}")).json(&json!({"provider": "oracle"}));
    response_to(patch).await.expect_problem(422, "unprocessable");
}

async fn names_are_unique(api: &TestClient) {
    let first = agent(api, "Ada", json!({})).await;
    post(api, "/api/agents", &json!({"name": "Ada", "provider": "scripted"})).await.expect_problem(409, "conflict");
    delete(api, &format!("/api/agents/{first}")).await.expect_status(204);
    agent(api, "Ada", json!({})).await;
}

async fn deleted_agent_leaves_its_rooms_and_its_queued_runs_fail(api: &TestClient) {
    let (stays, goes) = (agent(api, "stays", json!({})).await, agent(api, "goes", json!({})).await);
    let room = room_of(api, &[stays, goes]).await;
    let runs = runs_of(&post_body(api, room, json!({"text": "!hang"})).await.expect_status(202));
    delete(api, &format!("/api/agents/{goes}")).await.expect_status(204);
    api.cancel_run(runs[0]).await.unwrap();
    let failed = wait_for_end(api, runs[1]).await;
    assert_eq!((failed.status, failed.error.unwrap().code.as_str()), (RunStatus::Failed, "agent_deleted"));
    assert_eq!(api.room(room).await.unwrap().agents, [stays]);
    assert_eq!(post_and_wait(api, room, "!count 2").await.agent_id, stays);

    let gone = json!({"name": "r", "agents": [goes]});
    post(api, "/api/rooms", &gone).await.expect_problem(422, "unprocessable");
    post(api, &format!("/api/execute/agent/{goes}"), &json!({"message": "hi"})).await.expect_problem(404, "not_found");

    // An agent deleted during an answer may finish it.
    let alone = agent(api, "alone", json!({})).await;
    let room = room_of(api, &[alone]).await;
    let run = post_text(api, room, "!count 20 10").await;
    delete(api, &format!("/api/agents/{alone}")).await.expect_status(204);
    let run = wait_for_end(api, run).await;
    assert!(matches!(run.status, RunStatus::Completed | RunStatus::Failed), "{run:?}");
}

async fn invalid_update_changes_nothing(api: &TestClient) {
    let id = agent(api, "Ada", json!({})).await;
    let path = format!("/api/agents/{id}");
    let before = get(api, &path).await.expect_status(200);
    for bad in [
        json!({"name": ""}),
        json!({"name": null}),
        json!({"name": "a\nb"}),
        json!({"tools": {"forbid": []}}),
        json!({"tools": {"allow": [""]}}),
        json!({"tools": {"allow": ["a\u{7}"]}}),
        json!({"model": "x".repeat(201)}),
        json!({"system_prompt": "x".repeat(300_000)}),
        json!({"id": Uuid::now_v7()}),
        json!({"colour": "red"}),
        json!([]),
        json!("x"),
    ] {
        response_to(api.request(Method::PATCH, &path).json(&bad)).await.expect_problem(400, "invalid_request");
    }
    assert_eq!(get(api, &path).await.expect_status(200), before);
}

async fn skills_and_servers_must_exist(database: TestDatabase) {
    let skill = database.folder().join("skills/review");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "# Review").unwrap();
    let server = TestServer::start(database).await;
    let api = server.api();
    let id = agent(api, "Ada", json!({"skills": ["review"]})).await;
    let path = format!("/api/agents/{id}");
    for (bad, pointer, says) in [
        (json!({"skills": ["review", "revue"]}), "/skills", "it has: review"),
        (json!({"skills": ["../skills/review"]}), "/skills", "it has: review"),
        (json!({"mcp_servers": ["mail"]}), "/mcp_servers", "no MCP server \"mail\""),
    ] {
        let mut spec = json!({"name": "new", "provider": "scripted"});
        spec.as_object_mut().unwrap().extend(bad.as_object().unwrap().clone());
        let refused = post(api, "/api/agents", &spec).await.expect_problem(422, "unprocessable");
        assert_eq!(refused["pointer"], pointer);
        assert!(refused["detail"].as_str().unwrap().contains(says), "{refused}");
        response_to(api.request(Method::PATCH, &path).json(&bad)).await.expect_problem(422, "unprocessable");
    }
    let room = room_of(api, &[id]).await;
    assert_eq!(post_and_wait(api, room, "!count 2").await.status, RunStatus::Completed);
    std::fs::remove_file(skill.join("SKILL.md")).unwrap();
    let failed = post_and_wait(api, room, "!count 2").await;
    assert_eq!((failed.status, failed.error.unwrap().code.as_str()), (RunStatus::Failed, "skill_missing"));
    server.finish().await;
}
