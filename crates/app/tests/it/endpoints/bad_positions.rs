//! Invalid positions, and positions of another journal.

use super::requests::{get, head, post_and_wait, response_to, room};
use domain::run::RunStatus;
use reqwest::{Method, header};
use serde_json::json;
use testkit::client::TestClient;

on_both_databases! {
    server: garbage_is_rejected, invariant_08_epoch_foreign_position_gets_a_reset, page_limits;
}

const GARBAGE: [&str; 16] = [
    "",
    "-1",
    "-",
    "+1",
    "1.5",
    "1e3",
    "0x10",
    "NaN",
    "null",
    "%00",
    "%20",
    "99999999999999999999",
    "9223372036854775808",
    "deadbeef-",
    "deadbeef--1",
    "dead%0d%0abeef-1",
];

async fn garbage_is_rejected(api: &TestClient) {
    let room = room(api).await;
    let before = head(api, room).await;
    for after in GARBAGE {
        let path = format!("/api/rooms/{room}/events?after={after}");
        get(api, &path).await.expect_problem(400, "invalid_request");
        let stream = api.request(Method::GET, &path).header(header::ACCEPT, "text/event-stream");
        response_to(stream).await.expect_problem(400, "invalid_request");
    }
    for last in ["-1", "x", "é", "1 2", "deadbeef-"] {
        let stream = api.request(Method::GET, &format!("/api/rooms/{room}/events")).header("last-event-id", last);
        response_to(stream).await.expect_problem(400, "invalid_request");
    }
    get(api, &format!("/api/rooms/{room}/events?after=1&after=2")).await.expect_problem(400, "invalid_request");
    get(api, &format!("/api/rooms/{room}/events?aftre=1")).await.expect_problem(400, "invalid_request");
    assert_eq!(head(api, room).await, before);
    assert_eq!(post_and_wait(api, room, "!count 2").await.status, RunStatus::Completed);
}

async fn invariant_08_epoch_foreign_position_gets_a_reset(api: &TestClient) {
    let room = room(api).await;
    post_and_wait(api, room, "!count 3").await;
    let page = get(api, &format!("/api/rooms/{room}/events")).await.expect_status(200);
    let (epoch, head) = (page["epoch"].as_str().unwrap(), page["head"].as_u64().unwrap());
    let beyond = (head + 1).to_string();
    for after in ["deadbeef-1", "deadbeef-0", &beyond, &format!("{epoch}-{beyond}"), "9223372036854775807"] {
        let problem =
            get(api, &format!("/api/rooms/{room}/events?after={after}")).await.expect_problem(409, "position_reset");
        assert_eq!((&problem["epoch"], &problem["head"]), (&json!(epoch), &json!(head)));
    }
    // A position at the head is valid.
    for after in [head.to_string(), format!("{epoch}-{head}")] {
        let page = get(api, &format!("/api/rooms/{room}/events?after={after}")).await.expect_status(200);
        assert_eq!((&page["events"], &page["head"]), (&json!([]), &json!(head)));
    }
}

async fn page_limits(api: &TestClient) {
    let room = room(api).await;
    post_and_wait(api, room, "!script [{\"text\":\"a\"},{\"thinking\":\"b\"},{\"text\":\"c\"}]").await;
    for limit in ["0", "10001", "-1", "x", "", "1.5", "99999999999999999999"] {
        get(api, &format!("/api/rooms/{room}/events?limit={limit}")).await.expect_problem(400, "invalid_request");
    }
    let all = get(api, &format!("/api/rooms/{room}/events?limit=10000")).await.expect_status(200);
    let one = get(api, &format!("/api/rooms/{room}/events?limit=1&after=3")).await.expect_status(200);
    assert_eq!(one["events"], json!([all["events"][3]]));
    assert_eq!(one["head"], all["head"]);
}
