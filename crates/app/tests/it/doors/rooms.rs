//! Rooms with one agent or several: who answers, in which order, who joins and leaves.

use super::scene::{
    Audience, agent, answer, answered, data, delete, ended, get, head, journal, post, room, room_of, runs_of, say,
    say_with,
};
use domain::{event::EventType, run::RunStatus};
use reqwest::Method;
use serde_json::json;
use testkit::client::Api;

doors! {
    server: several_agents_answer_one_after_another_in_the_order_they_joined, only_those_who_are_mentioned_answer,
            who_joins_and_leaves_is_an_event, a_room_without_agents_keeps_what_is_said, rooms_change_and_are_listed,
            a_deleted_room_is_gone_by_every_door, rooms_do_not_wait_for_each_other;
}

async fn several_agents_answer_one_after_another_in_the_order_they_joined(api: &Api) {
    let mut agents = Vec::new();
    for name in ["third", "first", "second"] {
        agents.push(agent(api, name, json!({})).await);
    }
    // Not in the order they were made.
    let agents = [agents[1], agents[2], agents[0]];
    let room = room_of(api, &agents).await;
    let runs = runs_of(&say_with(api, room, json!({"text": "!count 5 5"})).await.is(202));
    for run in &runs {
        assert_eq!(ended(api, *run).await.status, RunStatus::Completed);
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
    assert_eq!(turns, expected, "one ends before the next begins");
}

async fn only_those_who_are_mentioned_answer(api: &Api) {
    let (a, b, c) =
        (agent(api, "a", json!({})).await, agent(api, "b", json!({})).await, agent(api, "c", json!({})).await);
    let room = room_of(api, &[a, b]).await;
    let accepted = say_with(api, room, json!({"text": "!count 1", "mentions": [b]})).await.is(202);
    assert_eq!(accepted["runs"].as_array().unwrap().len(), 1);
    assert_eq!(accepted["runs"][0]["agent_id"], json!(b));
    ended(api, runs_of(&accepted)[0]).await;
    let before = head(api, room).await;
    let refused = say_with(api, room, json!({"text": "hello", "mentions": [c]})).await;
    let problem = refused.is_refused(400, "invalid_request");
    assert!(problem["detail"].as_str().unwrap().contains("does not sit in this room"), "{problem}");
    assert_eq!(head(api, room).await, before);
}

async fn who_joins_and_leaves_is_an_event(api: &Api) {
    let (a, b) = (agent(api, "a", json!({})).await, agent(api, "b", json!({})).await);
    let room = room_of(api, &[a]).await;
    let path = format!("/api/rooms/{room}");
    let changed = answer(api.request(Method::PATCH, &path).json(&json!({"agents": [b]}))).await.is(200);
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
    for (body, why) in [(json!({"agents": [a, a]}), "twice"), (json!({"agents": [room]}), "no agent")] {
        let refused = answer(api.request(Method::PATCH, &path).json(&body)).await.is_refused(400, "invalid_request");
        assert!(refused["detail"].as_str().unwrap().contains(why), "{refused}");
    }
    assert_eq!(head(api, room).await, 3);
}

async fn a_room_without_agents_keeps_what_is_said(api: &Api) {
    let room = room_of(api, &[]).await;
    let accepted = say_with(api, room, json!({"text": "is anybody there?"})).await.is(202);
    assert_eq!(accepted["runs"], json!([]));
    let history = api.messages(room, None, 10).await.unwrap();
    assert_eq!((history.head, history.messages[0].text.as_str()), (1, "is anybody there?"));
}

async fn rooms_change_and_are_listed(api: &Api) {
    let (first, second) = (room(api).await, room(api).await);
    let path = format!("/api/rooms/{first}");
    let change = json!({"name": "Zoë's room", "policy": {"when_busy": "reject"}});
    let changed = answer(api.request(Method::PATCH, &path).json(&change)).await.is(200);
    assert_eq!((&changed["name"], &changed["policy"]["when_busy"]), (&json!("Zoë's room"), &json!("reject")));
    assert_eq!(get(api, &path).await.is(200), changed);
    answered(api, second, "!count 1").await;
    let listed = get(api, "/api/rooms").await.is(200);
    let ids: Vec<_> = listed["rooms"].as_array().unwrap().iter().map(|room| room["id"].clone()).collect();
    assert_eq!(ids, [json!(second), json!(first)], "newest activity first");
    assert_eq!(get(api, "/api/rooms?limit=1").await.is(200)["rooms"].as_array().unwrap().len(), 1);
}

async fn a_deleted_room_is_gone_by_every_door(api: &Api) {
    let room = room(api).await;
    let run = say(api, room, "!hang").await;
    let mut audience = Audience::of(api, room).await;
    audience.first_word(run).await;
    assert_eq!(delete(api, &format!("/api/rooms/{room}")).await.status, 204);
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::Cancelled, "what runs in it is stopped first");
    audience.end_of(run).await;
    for path in ["", "/events", "/messages"] {
        get(api, &format!("/api/rooms/{room}{path}")).await.is_refused(404, "not_found");
    }
    say_with(api, room, json!({"text": "hello"})).await.is_refused(404, "not_found");
    post(api, &format!("/api/rooms/{room}/cancel"), &json!({})).await.is_refused(404, "not_found");
    delete(api, &format!("/api/rooms/{room}")).await.is_refused(404, "not_found");
    let listed = get(api, "/api/rooms").await.is(200);
    assert_eq!(listed["rooms"], json!([]));
}

async fn rooms_do_not_wait_for_each_other(api: &Api) {
    let (busy, free) = (room(api).await, room(api).await);
    let hanging = say(api, busy, "!hang").await;
    Audience::of(api, busy).await.first_word(hanging).await;
    assert_eq!(answered(api, free, "!count 3").await.status, RunStatus::Completed);
    assert_eq!(api.run(hanging).await.unwrap().status, RunStatus::Running);
    api.cancel_run(hanging).await.unwrap();
}
