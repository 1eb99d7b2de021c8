//! Training a skill: a room on it, ratings, proposals.

use super::scene::{Answer, agent, answered, get, message_of, post, room_of};
use serde_json::{Value, json};
use testkit::client::Api;

doors! {
    server: answers_are_rated_and_the_experience_follows, an_agent_proposes_and_a_person_decides,
            what_is_no_answer_of_a_training_room_is_refused;
}

async fn skill(api: &Api) {
    let spec = json!({"name": "greet", "display_name": "Greeting", "description": "Greets.", "body": "Say hello.\n"});
    post(api, "/api/skills", &spec).await.is(201);
}

async fn training(api: &Api) -> String {
    let agent = agent(api, "trainee", json!({})).await;
    let opened = post(api, "/api/skills/greet/training", &json!({"agent_id": agent})).await.is(201);
    assert_eq!(opened["agent_id"], agent.to_string());
    opened["room_id"].as_str().unwrap().to_owned()
}

/// The id of the agent's answer to this.
async fn answer_to(api: &Api, room: &str, text: &str) -> String {
    let run = answered(api, room.parse().unwrap(), text).await;
    message_of(api, &run).await.id.to_string()
}

async fn rate(api: &Api, body: Value) -> Answer {
    post(api, "/api/skills/greet/training/rounds", &body).await
}

async fn propose(api: &Api, body: Value) -> Answer {
    post(api, "/api/skills/greet/training/proposals", &body).await
}

/// What makes the scripted agent say this.
fn saying(text: &str) -> String {
    format!("!script {}", json!([{ "text": text }]))
}

async fn answers_are_rated_and_the_experience_follows(api: &Api) {
    skill(api).await;
    let before = get(api, "/api/skills/greet/training").await.is(200);
    assert_eq!(before, json!({"experience": null, "rooms": [], "rounds": [], "proposals": []}));
    let room = training(api).await;
    assert_eq!(get(api, &format!("/api/rooms/{room}")).await.is(200)["name"], "Training: Greeting");
    let answer = answer_to(api, &room, "hello").await;
    let round = rate(
        api,
        json!({"message_id": answer, "score": 5, "comment": "good", "issues": ["slow"], "improvements": ["be brief"]}),
    )
    .await
    .is(201);
    assert_eq!((&round["kind"], &round["score"], &round["experience"]), (&json!("rating"), &json!(5), &json!(17)));
    assert_eq!((&round["room_id"], &round["issues"], &round["version"]), (&json!(room), &json!(["slow"]), &json!(1)));
    assert_eq!(rate(api, json!({"score": 5})).await.is(201)["experience"], 29);
    for wrong in [json!({"score": 0}), json!({"score": 6}), json!({"comment": "x"}), json!({"score": 3, "nope": 1})] {
        rate(api, wrong).await.is_refused(400, "invalid_request");
    }
    let now = get(api, "/api/skills/greet/training").await.is(200);
    assert_eq!((&now["experience"], &now["rooms"][0]["room_id"]), (&json!(29), &json!(room)));
    assert_eq!(now["rounds"][1], round, "newest first");
    assert_eq!(get(api, "/api/skills/greet").await.is(200)["experience"], 29);
}

async fn an_agent_proposes_and_a_person_decides(api: &Api) {
    skill(api).await;
    let room = training(api).await;
    let new = "Shorter is better:\n\n````skill\nSay hi.\n\n```sh\necho hi\n```\n````\nThat is all.";
    let answer = answer_to(api, &room, &saying(new)).await;
    let proposal = propose(api, json!({"message_id": answer, "note": "shorter"})).await.is(201);
    assert_eq!(proposal["body"], "Say hi.\n\n```sh\necho hi\n```\n");
    assert_eq!((&proposal["status"], &proposal["base_version"]), (&json!("open"), &json!(1)));
    let diff = proposal["diff"].as_str().unwrap();
    assert!(diff.contains("\n-Say hello.\n+Say hi.\n"), "{diff}");
    let other = propose(api, json!({"body": "Say nothing.\n"})).await.is(201);
    let path = |proposal: &Value, action: &str| {
        format!("/api/skills/greet/training/proposals/{}{action}", proposal["id"].as_str().unwrap())
    };
    assert_eq!(get(api, &path(&proposal, "")).await.is(200), proposal);
    let accepted = post(api, &path(&proposal, "/accept"), &json!({})).await.is(200);
    assert_eq!((&accepted["status"], &accepted["accepted_version"]), (&json!("accepted"), &json!(2)));
    let skill = get(api, "/api/skills/greet").await.is(200);
    assert_eq!((&skill["version"], &skill["body"]), (&json!(2), &proposal["body"]));
    assert_eq!(get(api, "/api/skills/greet/versions").await.is(200)["versions"][0]["note"], "shorter");
    post(api, &path(&proposal, "/accept"), &json!({})).await.is_refused(409, "conflict");
    post(api, &path(&other, "/accept"), &json!({})).await.is_refused(409, "conflict");
    let dropped = post(api, &path(&other, "/drop"), &json!({"comment": "too short"})).await.is(200);
    assert_eq!(dropped["status"], "dropped");
    post(api, &path(&other, "/drop"), &json!({})).await.is_refused(409, "conflict");
    let training = get(api, "/api/skills/greet/training").await.is(200);
    let rounds = training["rounds"].as_array().unwrap();
    assert_eq!((&rounds[0]["kind"], &rounds[0]["comment"]), (&json!("dropped"), &json!("too short")));
    assert_eq!((&rounds[1]["kind"], &rounds[1]["proposal_id"]), (&json!("accepted"), &proposal["id"]));
    assert!(training["proposals"][0].get("body").is_none() && training["proposals"].as_array().unwrap().len() == 2);
}

async fn what_is_no_answer_of_a_training_room_is_refused(api: &Api) {
    skill(api).await;
    let room = training(api).await;
    let answer = answer_to(api, &room, "hello").await;
    let elsewhere = room_of(api, &[api.scripted_agent().await.unwrap()]).await.to_string();
    let stray = answer_to(api, &elsewhere, &saying("```skill\nx\n```")).await;
    let history = api.messages(room.parse().unwrap(), None, 10).await.unwrap();
    let question = history.messages[0].id.to_string();
    for (message, says) in [
        (stray.as_str(), "not from a training room"),
        (question.as_str(), "a person's"),
        ("0199aaaa-0000-7000-8000-000000000000", "no such message"),
    ] {
        for refused in [
            rate(api, json!({"message_id": message, "score": 3})).await,
            propose(api, json!({"message_id": message})).await,
        ] {
            let problem = refused.is_refused(422, "unprocessable");
            assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
            assert_eq!(problem["pointer"], "/message_id");
        }
    }
    let nothing = propose(api, json!({"message_id": answer})).await.is_refused(422, "unprocessable");
    assert!(nothing["detail"].as_str().unwrap().contains("````skill"), "it says what to do: {nothing}");
    let long = "x".repeat(256 * 1024 + 1);
    let problem = propose(api, json!({"body": long})).await.is_refused(422, "unprocessable");
    assert_eq!(problem["pointer"], "/body");
    for wrong in [json!({}), json!({"body": "x", "message_id": answer})] {
        propose(api, wrong).await.is_refused(400, "invalid_request");
    }
    let nobody = json!({"agent_id": "0199aaaa-0000-7000-8000-000000000000"});
    post(api, "/api/skills/greet/training", &nobody).await.is_refused(400, "invalid_request");
}
