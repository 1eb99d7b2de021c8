//! Skill training: training rooms, ratings, proposals.

use super::requests::{ApiResponse, agent, get, message_of, post, post_and_wait, room_of};
use serde_json::{Value, json};
use testkit::client::TestClient;

on_both_databases! {
    server: ratings_change_the_experience, proposals_are_accepted_or_dropped,
            only_answers_of_a_training_room_are_accepted;
}

async fn skill(api: &TestClient) {
    let spec = json!({"name": "greet", "display_name": "Greeting", "description": "Greets.", "body": "Say hello.\n"});
    post(api, "/api/skills", &spec).await.expect_status(201);
}

async fn training(api: &TestClient) -> String {
    let agent = agent(api, "trainee", json!({})).await;
    let opened = post(api, "/api/skills/greet/training", &json!({"agent_id": agent})).await.expect_status(201);
    assert_eq!(opened["agent_id"], agent.to_string());
    opened["room_id"].as_str().unwrap().to_owned()
}

/// Posts a message and returns the id of the agent's answer.
async fn answer_to(api: &TestClient, room: &str, text: &str) -> String {
    let run = post_and_wait(api, room.parse().unwrap(), text).await;
    message_of(api, &run).await.id.to_string()
}

async fn rate(api: &TestClient, body: Value) -> ApiResponse {
    post(api, "/api/skills/greet/training/rounds", &body).await
}

async fn propose(api: &TestClient, body: Value) -> ApiResponse {
    post(api, "/api/skills/greet/training/proposals", &body).await
}

/// A directive that makes the scripted agent answer with this text.
fn saying(text: &str) -> String {
    format!("!script {}", json!([{ "text": text }]))
}

async fn ratings_change_the_experience(api: &TestClient) {
    skill(api).await;
    let before = get(api, "/api/skills/greet/training").await.expect_status(200);
    assert_eq!(before, json!({"experience": null, "rooms": [], "rounds": [], "proposals": []}));
    let room = training(api).await;
    assert_eq!(get(api, &format!("/api/rooms/{room}")).await.expect_status(200)["name"], "Training: Greeting");
    let answer = answer_to(api, &room, "hello").await;
    let round = rate(
        api,
        json!({"message_id": answer, "score": 5, "comment": "good", "issues": ["slow"], "improvements": ["be brief"]}),
    )
    .await
    .expect_status(201);
    assert_eq!((&round["kind"], &round["score"], &round["experience"]), (&json!("rating"), &json!(5), &json!(17)));
    assert_eq!((&round["room_id"], &round["issues"], &round["version"]), (&json!(room), &json!(["slow"]), &json!(1)));
    assert_eq!(rate(api, json!({"score": 5})).await.expect_status(201)["experience"], 29);
    for wrong in [json!({"score": 0}), json!({"score": 6}), json!({"comment": "x"}), json!({"score": 3, "nope": 1})] {
        rate(api, wrong).await.expect_problem(400, "invalid_request");
    }
    let now = get(api, "/api/skills/greet/training").await.expect_status(200);
    assert_eq!((&now["experience"], &now["rooms"][0]["room_id"]), (&json!(29), &json!(room)));
    assert_eq!(now["rounds"][1], round, "newest first");
    assert_eq!(get(api, "/api/skills/greet").await.expect_status(200)["experience"], 29);
}

async fn proposals_are_accepted_or_dropped(api: &TestClient) {
    skill(api).await;
    let room = training(api).await;
    let new = "Shorter is better:\n\n````skill\nSay hi.\n\n```sh\necho hi\n```\n````\nThat is all.";
    let answer = answer_to(api, &room, &saying(new)).await;
    let proposal = propose(api, json!({"message_id": answer, "note": "shorter"})).await.expect_status(201);
    assert_eq!(proposal["body"], "Say hi.\n\n```sh\necho hi\n```\n");
    assert_eq!((&proposal["status"], &proposal["base_version"]), (&json!("open"), &json!(1)));
    let diff = proposal["diff"].as_str().unwrap();
    assert!(diff.contains("\n-Say hello.\n+Say hi.\n"), "{diff}");
    let other = propose(api, json!({"body": "Say nothing.\n"})).await.expect_status(201);
    let path = |proposal: &Value, action: &str| {
        format!("/api/skills/greet/training/proposals/{}{action}", proposal["id"].as_str().unwrap())
    };
    assert_eq!(get(api, &path(&proposal, "")).await.expect_status(200), proposal);
    let accepted = post(api, &path(&proposal, "/accept"), &json!({})).await.expect_status(200);
    assert_eq!((&accepted["status"], &accepted["accepted_version"]), (&json!("accepted"), &json!(2)));
    let skill = get(api, "/api/skills/greet").await.expect_status(200);
    assert_eq!((&skill["version"], &skill["body"]), (&json!(2), &proposal["body"]));
    assert_eq!(get(api, "/api/skills/greet/versions").await.expect_status(200)["versions"][0]["note"], "shorter");
    post(api, &path(&proposal, "/accept"), &json!({})).await.expect_problem(409, "conflict");
    post(api, &path(&other, "/accept"), &json!({})).await.expect_problem(409, "conflict");
    let dropped = post(api, &path(&other, "/drop"), &json!({"comment": "too short"})).await.expect_status(200);
    assert_eq!(dropped["status"], "dropped");
    post(api, &path(&other, "/drop"), &json!({})).await.expect_problem(409, "conflict");
    let training = get(api, "/api/skills/greet/training").await.expect_status(200);
    let rounds = training["rounds"].as_array().unwrap();
    assert_eq!((&rounds[0]["kind"], &rounds[0]["comment"]), (&json!("dropped"), &json!("too short")));
    assert_eq!((&rounds[1]["kind"], &rounds[1]["proposal_id"]), (&json!("accepted"), &proposal["id"]));
    assert!(training["proposals"][0].get("body").is_none() && training["proposals"].as_array().unwrap().len() == 2);
}

async fn only_answers_of_a_training_room_are_accepted(api: &TestClient) {
    skill(api).await;
    let room = training(api).await;
    let answer = answer_to(api, &room, "hello").await;
    let elsewhere = room_of(api, &[api.scripted_agent().await.unwrap()]).await.to_string();
    let stray = answer_to(api, &elsewhere, &saying("```skill\nx\n```")).await;
    let history = api.messages(room.parse().unwrap(), None, 10).await.unwrap();
    let question = history.messages[0].id.to_string();
    for (message, says) in [
        (stray.as_str(), "not from a training room"),
        (question.as_str(), "from a person"),
        ("0199aaaa-0000-7000-8000-000000000000", "does not exist"),
    ] {
        for refused in [
            rate(api, json!({"message_id": message, "score": 3})).await,
            propose(api, json!({"message_id": message})).await,
        ] {
            let problem = refused.expect_problem(422, "unprocessable");
            assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
            assert_eq!(problem["pointer"], "/message_id");
        }
    }
    let nothing = propose(api, json!({"message_id": answer})).await.expect_problem(422, "unprocessable");
    assert!(nothing["detail"].as_str().unwrap().contains("````skill"), "the error must say what to do: {nothing}");
    let long = "x".repeat(256 * 1024 + 1);
    let problem = propose(api, json!({"body": long})).await.expect_problem(422, "unprocessable");
    assert_eq!(problem["pointer"], "/body");
    for wrong in [json!({}), json!({"body": "x", "message_id": answer})] {
        propose(api, wrong).await.expect_problem(422, "unprocessable");
    }
    let nobody = json!({"agent_id": "0199aaaa-0000-7000-8000-000000000000"});
    let problem = post(api, "/api/skills/greet/training", &nobody).await.expect_problem(422, "unprocessable");
    assert_eq!(problem["pointer"], "/agent_id");
}
