//! Where people put rooms in their lists: pinned, archived, in folders.

use super::requests::{get, response_to, room_with};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::TestClient;

on_both_databases! {
    server: a_room_is_pinned_archived_and_filed, archived_rooms_are_listed_on_request;
}

async fn patch(api: &TestClient, room: &str, change: &Value) -> super::requests::ApiResponse {
    response_to(api.request(Method::PATCH, &format!("/api/rooms/{room}")).json(change)).await
}

fn placement(room: &Value) -> Value {
    json!([room["pinned"], room["archived"], room["folder"]])
}

async fn a_room_is_pinned_archived_and_filed(api: &TestClient) {
    let room = room_with(api, json!({"name": "Plans"})).await.to_string();
    let made = get(api, &format!("/api/rooms/{room}")).await.expect_status(200);
    assert_eq!(placement(&made), json!([false, false, null]));
    for (change, expected) in [
        (json!({"pinned": true}), json!([true, false, null])),
        (json!({"folder": "Work"}), json!([true, false, "Work"])),
        (json!({"archived": true, "pinned": false}), json!([false, true, "Work"])),
        (json!({"folder": null}), json!([false, true, null])),
        (json!({"archived": false}), json!([false, false, null])),
    ] {
        let changed = patch(api, &room, &change).await.expect_status(200);
        assert_eq!(placement(&changed), expected, "{change}");
        assert_eq!(changed["updated_at"], made["updated_at"], "no activity: the order of rooms stays");
    }
    let renamed = patch(api, &room, &json!({"name": "Other", "pinned": true})).await.expect_status(200);
    assert_eq!((&renamed["name"], &renamed["pinned"]), (&json!("Other"), &json!(true)));
    patch(api, &room, &json!({"folder": ""})).await.expect_problem(400, "invalid_request");
    patch(api, &room, &json!({"pinned": "yes"})).await.expect_problem(400, "invalid_request");
}

async fn archived_rooms_are_listed_on_request(api: &TestClient) {
    let [kept, archived] =
        [room_with(api, json!({"name": "Kept"})).await, room_with(api, json!({"name": "Archived"})).await];
    patch(api, &archived.to_string(), &json!({"archived": true})).await.expect_status(200);
    let listed = async |query: &str| -> Vec<String> {
        let list = get(api, &format!("/api/rooms{query}")).await.expect_status(200);
        list["rooms"].as_array().unwrap().iter().map(|room| room["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed("?archived=true").await, [archived.to_string()]);
    assert_eq!(listed("?archived=false").await, [kept.to_string()]);
    assert_eq!(listed("").await.len(), 2);
    get(api, "/api/rooms?archived=maybe").await.expect_problem(400, "invalid_request");
}
