//! Rooms with one or several agents: order of answers, mentions, joining and leaving.

use super::requests::{
    RoomFollower, agent, data, delete, get, head, journal, post, post_and_wait, post_body, post_text, response_to,
    room, room_of, runs_of, wait_for_end,
};
use domain::{event::EventType, run::RunStatus};
use reqwest::Method;
use serde_json::json;
use testkit::client::TestClient;

on_both_databases! {
    server: agents_answer_sequentially_in_join_order, only_mentioned_agents_answer,
            joining_and_leaving_are_events, room_without_agents_stores_messages, update_and_list_rooms,
            deleted_room_is_not_found_on_any_endpoint, rooms_are_independent;
}

async fn agents_answer_sequentially_in_join_order(api: &TestClient) {
    let mut agents = Vec::new();
    for name in ["third", "first", "second"] {
        agents.push(agent(api, name, json!({})).await);
    }
    // Not in the order of creation.
    let agents = [agents[1], agents[2], agents[0]];
    let room = room_of(api, &agents).await;
    let runs = runs_of(&post_body(api, room, json!({"text": "!count 5 5"})).await.expect_status(202));
    for run in &runs {
        assert_eq!(wait_for_end(api, *run).await.status, RunStatus::Completed);
    }
    let journal = journal(api, room).await;
    let plan = journal.iter().find(|event| event.kind == EventType::TapePlanned).unwrap();
    assert_eq!(data(plan)["cells"], json!(agents));
    let turns: Vec<_> = journal
        .iter()
        .filter(|event| event.kind == EventType::RunStarted || event.kind.ends_a_run())
        .map(|event| (event.kind, event.run_id.unwrap(), event.agent_id.unwrap()))
        .collect();
    let expected: Vec<_> = runs
        .iter()
        .zip(agents)
        .flat_map(|(run, agent)| [(EventType::RunStarted, *run, agent), (EventType::RunCompleted, *run, agent)])
        .collect();
    assert_eq!(turns, expected, "each run must end before the next starts");
}

async fn only_mentioned_agents_answer(api: &TestClient) {
    let (a, b, c) =
        (agent(api, "a", json!({})).await, agent(api, "b", json!({})).await, agent(api, "c", json!({})).await);
    let room = room_of(api, &[a, b]).await;
    let accepted = post_body(api, room, json!({"text": "!count 1", "mentions": [b]})).await.expect_status(202);
    assert_eq!(accepted["runs"].as_array().unwrap().len(), 1);
    assert_eq!(accepted["runs"][0]["agent_id"], json!(b));
    wait_for_end(api, runs_of(&accepted)[0]).await;
    let before = head(api, room).await;
    let refused = post_body(api, room, json!({"text": "hello", "mentions": [c]})).await;
    let problem = refused.expect_problem(422, "unprocessable");
    assert_eq!(problem["pointer"], "/mentions/0");
    assert!(problem["detail"].as_str().unwrap().contains("is not in this room"), "{problem}");
    assert_eq!(head(api, room).await, before);
}

async fn joining_and_leaving_are_events(api: &TestClient) {
    let (a, b) = (agent(api, "a", json!({})).await, agent(api, "b", json!({})).await);
    let room = room_of(api, &[a]).await;
    let path = format!("/api/rooms/{room}");
    let changed = response_to(api.request(Method::PATCH, &path).json(&json!({"agents": [b]}))).await.expect_status(200);
    assert_eq!(changed["agents"], json!([b]));
    let kinds: Vec<_> =
        journal(api, room).await.iter().map(|event| (event.kind, data(event)["agent_id"].clone())).collect();
    assert_eq!(
        kinds,
        [
            (EventType::ParticipantJoined, json!(a)),
            (EventType::ParticipantLeft, json!(a)),
            (EventType::ParticipantJoined, json!(b))
        ]
    );
    for (body, status, code, why) in [
        (json!({"agents": [a, a]}), 422, "unprocessable", "twice"),
        (json!({"agents": [room]}), 422, "unprocessable", "does not exist"),
    ] {
        let refused = response_to(api.request(Method::PATCH, &path).json(&body)).await.expect_problem(status, code);
        assert!(refused["detail"].as_str().unwrap().contains(why), "{refused}");
    }
    assert_eq!(head(api, room).await, 3);
}

async fn room_without_agents_stores_messages(api: &TestClient) {
    let room = room_of(api, &[]).await;
    let accepted = post_body(api, room, json!({"text": "is anybody there?"})).await.expect_status(202);
    assert_eq!(accepted["runs"], json!([]));
    let history = api.messages(room, None, 10).await.unwrap();
    assert_eq!((history.head, history.messages[0].text.as_str()), (1, "is anybody there?"));
}

async fn update_and_list_rooms(api: &TestClient) {
    let (first, second) = (room(api).await, room(api).await);
    let path = format!("/api/rooms/{first}");
    let change = json!({"name": "Zoë's room", "policy": {"when_busy": "reject"}});
    let changed = response_to(api.request(Method::PATCH, &path).json(&change)).await.expect_status(200);
    assert_eq!((&changed["name"], &changed["policy"]["when_busy"]), (&json!("Zoë's room"), &json!("reject")));
    assert_eq!(get(api, &path).await.expect_status(200), changed);
    post_and_wait(api, second, "!count 1").await;
    let listed = get(api, "/api/rooms").await.expect_status(200);
    let ids: Vec<_> = listed["rooms"].as_array().unwrap().iter().map(|room| room["id"].clone()).collect();
    assert_eq!(ids, [json!(second), json!(first)], "newest activity first");
    assert_eq!(get(api, "/api/rooms?limit=1").await.expect_status(200)["rooms"].as_array().unwrap().len(), 1);
}

async fn deleted_room_is_not_found_on_any_endpoint(api: &TestClient) {
    let room = room(api).await;
    let run = post_text(api, room, "!hang").await;
    let mut follower = RoomFollower::start(api, room).await;
    follower.first_delta(run).await;
    assert_eq!(delete(api, &format!("/api/rooms/{room}")).await.status, 204);
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::Cancelled, "active runs must be stopped first");
    follower.end_of(run).await;
    for path in ["", "/events", "/messages"] {
        get(api, &format!("/api/rooms/{room}{path}")).await.expect_problem(404, "not_found");
    }
    post_body(api, room, json!({"text": "hello"})).await.expect_problem(404, "not_found");
    post(api, &format!("/api/rooms/{room}/cancel"), &json!({})).await.expect_problem(404, "not_found");
    delete(api, &format!("/api/rooms/{room}")).await.expect_problem(404, "not_found");
    let listed = get(api, "/api/rooms").await.expect_status(200);
    assert_eq!(listed["rooms"], json!([]));
}

async fn rooms_are_independent(api: &TestClient) {
    let (busy, free) = (room(api).await, room(api).await);
    let hanging = post_text(api, busy, "!hang").await;
    RoomFollower::start(api, busy).await.first_delta(hanging).await;
    assert_eq!(post_and_wait(api, free, "!count 3").await.status, RunStatus::Completed);
    assert_eq!(api.run(hanging).await.unwrap().status, RunStatus::Running);
    api.cancel_run(hanging).await.unwrap();
}
