//! Search over messages, rooms, agents and files.

use super::requests::{agent, delete, get, post, post_and_wait, within};
use domain::ids::RoomId;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::client::TestClient;

on_both_databases! {
    server: everything_is_found_by_its_words, any_query_is_answered, a_search_has_pages;
}

async fn search(api: &TestClient, query: &[(&str, &str)]) -> Value {
    let mut url = reqwest::Url::parse(&format!("{}/api/search", api.base_url())).unwrap();
    url.query_pairs_mut().extend_pairs(query);
    get(api, &format!("/api/search?{}", url.query().unwrap_or_default())).await.expect_status(200)
}

/// Searches until there are as many hits: messages are indexed a moment after they are stored.
pub async fn search_until(api: &TestClient, query: &[(&str, &str)], count: usize) -> Vec<Value> {
    within("the hits of a search", async {
        loop {
            let found = search(api, query).await;
            let hits = found["hits"].as_array().unwrap();
            if hits.len() >= count {
                return hits.clone();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

async fn new_room(api: &TestClient, spec: Value) -> RoomId {
    post(api, "/api/rooms", &spec).await.expect_status(201)["id"].as_str().unwrap().parse().unwrap()
}

async fn everything_is_found_by_its_words(api: &TestClient) {
    let echo = agent(api, "Zürich echo", json!({})).await;
    let room = new_room(api, json!({"name": "Plans for Zurich", "agents": [echo]})).await;
    let run = post_and_wait(api, room, "When is the Größe of ZÜRICH decided? 😀").await;
    let hits = search_until(api, &[("q", "zurich")], 3).await;
    let kinds: Vec<&str> = hits.iter().map(|hit| hit["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["room", "agent"], "names come first: {hits:?}");
    assert_eq!(hits[0]["room_id"], json!(room));
    assert_eq!(hits[1]["id"], json!(echo));
    let asked = hits.iter().find(|hit| hit["kind"] == "message" && hit["author"]["kind"] == "person").unwrap();
    assert_eq!((&asked["room_id"], &asked["title"]), (&json!(room), &json!("Plans for Zurich")), "{asked}");
    assert!(asked["seq"].as_u64().unwrap() > 0 && asked["score"] == 1.0);
    let text: Vec<u16> = asked["snippet"]["text"].as_str().unwrap().encode_utf16().collect();
    let range = &asked["snippet"]["highlights"][0];
    let (start, end) = (range["start"].as_u64().unwrap() as usize, range["end"].as_u64().unwrap() as usize);
    assert_eq!(String::from_utf16(&text[start..end]).unwrap(), "ZÜRICH");
    // The answer too, and only what is asked for.
    let only = search_until(api, &[("q", "zurich"), ("in", "messages")], 1).await;
    assert!(only.iter().all(|hit| hit["kind"] == "message"), "{only:?}");
    assert!(search(api, &[("q", "zurich nowhere")]).await["hits"].as_array().unwrap().is_empty());
    drop(run);
    // A deleted room is not found any more, at once.
    delete(api, &format!("/api/rooms/{room}")).await.expect_status(204);
    let left = search(api, &[("q", "zurich")]).await;
    let kinds: Vec<&Value> = left["hits"].as_array().unwrap().iter().map(|hit| &hit["kind"]).collect();
    assert_eq!(kinds, ["agent"]);
}

async fn any_query_is_answered(api: &TestClient) {
    let long = "x".repeat(200);
    for query in ["", " ", "\"", "'", "* AND OR NOT", "a:b NEAR(c)", "%_\\", "\u{0}", "😀", "日本", "-- ; DROP", &long]
    {
        assert_eq!(search(api, &[("q", query)]).await["hits"], json!([]), "{query:?}");
    }
    let long = "x".repeat(201);
    for bad in
        [format!("q={long}"), "q=a&in=passwords".into(), "q=a&cursor=x".into(), "q=a&limit=0".into(), String::new()]
    {
        get(api, &format!("/api/search?{bad}")).await.expect_problem(400, "invalid_request");
    }
}

async fn a_search_has_pages(api: &TestClient) {
    let room = new_room(api, json!({"name": "Lobby"})).await;
    for n in 0..5 {
        post(api, &format!("/api/rooms/{room}/messages"), &json!({"text": format!("paged word {n}")}))
            .await
            .expect_status(202);
    }
    search_until(api, &[("q", "paged")], 5).await;
    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("q", "paged"), ("limit", "2")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = search(api, &query).await;
        seen.extend(page["hits"].as_array().unwrap().iter().map(|hit| hit["seq"].as_u64().unwrap()));
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.is_sorted_by(|one, other| one > other), "newest first: {seen:?}");
}
