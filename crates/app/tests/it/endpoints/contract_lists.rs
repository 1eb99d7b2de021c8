//! Lists are read in pages that are stable while others add to them, and long queues are cancelled with a short answer.

use super::requests::{agent, counted, get, post, post_and_wait, post_body, room, room_of, runs_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::client::TestClient;

on_both_databases! {
    server: rooms_are_listed_in_stable_pages, short_lists_have_pages, since_pages_forward,
            a_position_that_is_not_in_the_journal_is_reset, a_long_queue_is_cancelled_with_a_short_answer;
}

async fn rooms_are_listed_in_stable_pages(api: &TestClient) {
    let mut expected = BTreeSet::new();
    for n in 0..7 {
        let room = post(api, "/api/rooms", &json!({"name": format!("r{n}")})).await.expect_status(201);
        expected.insert(room["id"].as_str().unwrap().to_owned());
    }
    let (mut seen, mut path) = (Vec::new(), "/api/rooms?limit=3".to_owned());
    loop {
        let page = get(api, &path).await.expect_status(200);
        seen.extend(page["rooms"].as_array().unwrap().iter().map(|room| room["id"].as_str().unwrap().to_owned()));
        // A new room comes before the pages that are left.
        post(api, "/api/rooms", &json!({"name": "new"})).await.expect_status(201);
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/rooms?limit=3&before={next}");
    }
    assert_eq!(seen.len(), 7, "none twice");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);
    let problem = get(api, "/api/rooms?before=x").await.expect_problem(400, "invalid_request");
    assert_eq!(problem["parameter"], "before");
    get(api, "/api/rooms?limit=1001").await.expect_problem(400, "invalid_request");
}

async fn short_lists_have_pages(api: &TestClient) {
    for n in 0..4 {
        agent(api, &format!("a{n}"), json!({})).await;
        let server = json!({"name": format!("s{n}"), "url": "https://hub.example.org/mcp"});
        post(api, "/api/mcp-servers", &server).await.expect_status(201);
        let skill =
            json!({"name": format!("k{n}"), "description": "Greets people when they arrive.", "body": "Say hi."});
        post(api, "/api/skills", &skill).await.expect_status(201);
        post(api, "/api/tokens", &json!({"name": format!("t{n}")})).await.expect_status(201);
        post(api, "/api/projects", &json!({"name": format!("p{n}"), "sandbox": "none"})).await.expect_status(201);
        let budget = json!({"scope": "workspace", "period": "day", "limit_usd": n + 1});
        post(api, "/api/budgets", &budget).await.expect_status(201);
    }
    for (path, list) in [
        ("/api/agents", "agents"),
        ("/api/mcp-servers", "servers"),
        ("/api/skills", "skills"),
        ("/api/tokens", "tokens"),
        ("/api/projects", "projects"),
        ("/api/budgets", "budgets"),
    ] {
        let all = get(api, path).await.expect_status(200);
        assert_eq!(all["next"], Value::Null, "{path}");
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = get(api, &format!("{path}?limit=3{after}")).await.expect_status(200);
            seen.extend(page[list].as_array().unwrap().clone());
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(&seen, all[list].as_array().unwrap(), "{path}");
        get(api, &format!("{path}?page=2")).await.expect_problem(400, "invalid_request");
    }
}

/// Who syncs forward must not lose the middle.
async fn since_pages_forward(api: &TestClient) {
    let room = room(api).await;
    for _ in 0..4 {
        post_and_wait(api, room, "!count 2").await;
    }
    let path = format!("/api/rooms/{room}/messages");
    let all = get(api, &path).await.expect_status(200);
    let epoch = all["epoch"].as_str().unwrap();
    let (mut seen, mut since) = (Vec::new(), "0".to_owned());
    loop {
        let page = get(api, &format!("{path}?since={since}&limit=3")).await.expect_status(200);
        let messages = page["messages"].as_array().unwrap();
        assert!(messages.len() <= 3);
        seen.extend(messages.clone());
        since = format!("{epoch}-{}", messages.last().unwrap()["seq"]);
        if page["has_more"] == false {
            break;
        }
    }
    assert_eq!(&seen, all["messages"].as_array().unwrap());
    assert_eq!((seen.len(), &seen[1]["text"]), (8, &json!(counted(2))));
    let newest = get(api, &format!("{path}?limit=3")).await.expect_status(200);
    assert_eq!(newest["messages"][2], seen[7], "without since, the newest");
}

async fn a_position_that_is_not_in_the_journal_is_reset(api: &TestClient) {
    let room = room(api).await;
    let path = format!("/api/rooms/{room}/messages");
    let head = get(api, &path).await.expect_status(200)["head"].as_u64().unwrap();
    get(api, &format!("{path}?since={head}")).await.expect_status(200);
    for since in [format!("{}", head + 1), "0000-1".to_owned()] {
        let problem = get(api, &format!("{path}?since={since}")).await.expect_problem(409, "position_reset");
        assert_eq!(problem["head"], head, "{since}");
    }
    get(api, &format!("{path}?since=-1")).await.expect_problem(400, "invalid_request");
}

async fn a_long_queue_is_cancelled_with_a_short_answer(api: &TestClient) {
    let agent = agent(api, "a", json!({})).await;
    let room = room_of(api, &[agent]).await;
    let mut runs = Vec::new();
    for _ in 0..150 {
        runs.extend(runs_of(&post_body(api, room, json!({"text": "!count 1000 60000"})).await.expect_status(202)));
    }
    let stopped = post(api, &format!("/api/rooms/{room}/cancel"), &json!({})).await.expect_status(200);
    assert_eq!((&stopped["count"], stopped["runs"].as_array().unwrap().len()), (&json!(150), 100));
    for run in runs {
        let status = &get(api, &format!("/api/runs/{run}")).await.expect_status(200)["status"];
        assert_eq!(status, "cancelled", "all have ended when the request returns");
    }
}
