//! Positions that are not positions, or not of this journal.

use super::scene::{answer, answered, get, head, room};
use domain::run::RunStatus;
use reqwest::{Method, header};
use serde_json::json;
use testkit::client::Api;

doors! {
    server: garbage_is_refused, invariant_08_epoch_a_foreign_position_is_told_to_start_over, limits_of_a_page;
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

async fn garbage_is_refused(api: &Api) {
    let room = room(api).await;
    let before = head(api, room).await;
    for after in GARBAGE {
        let path = format!("/api/rooms/{room}/events?after={after}");
        get(api, &path).await.is_refused(400, "invalid_request");
        let stream = api.request(Method::GET, &path).header(header::ACCEPT, "text/event-stream");
        answer(stream).await.is_refused(400, "invalid_request");
    }
    for last in ["-1", "x", "é", "1 2", "deadbeef-"] {
        let stream = api.request(Method::GET, &format!("/api/rooms/{room}/events")).header("last-event-id", last);
        answer(stream).await.is_refused(400, "invalid_request");
    }
    get(api, &format!("/api/rooms/{room}/events?after=1&after=2")).await.is_refused(400, "invalid_request");
    get(api, &format!("/api/rooms/{room}/events?aftre=1")).await.is_refused(400, "invalid_request");
    assert_eq!(head(api, room).await, before);
    assert_eq!(answered(api, room, "!count 2").await.status, RunStatus::Completed);
}

async fn invariant_08_epoch_a_foreign_position_is_told_to_start_over(api: &Api) {
    let room = room(api).await;
    answered(api, room, "!count 3").await;
    let page = get(api, &format!("/api/rooms/{room}/events")).await.is(200);
    let (epoch, head) = (page["epoch"].as_str().unwrap(), page["head"].as_u64().unwrap());
    let beyond = (head + 1).to_string();
    for after in ["deadbeef-1", "deadbeef-0", &beyond, &format!("{epoch}-{beyond}"), "9223372036854775807"] {
        let problem =
            get(api, &format!("/api/rooms/{room}/events?after={after}")).await.is_refused(409, "position_reset");
        assert_eq!((&problem["epoch"], &problem["head"]), (&json!(epoch), &json!(head)));
    }
    // Exactly the head is not beyond it.
    for after in [head.to_string(), format!("{epoch}-{head}")] {
        let page = get(api, &format!("/api/rooms/{room}/events?after={after}")).await.is(200);
        assert_eq!((&page["events"], &page["head"]), (&json!([]), &json!(head)));
    }
}

async fn limits_of_a_page(api: &Api) {
    let room = room(api).await;
    answered(api, room, "!script [{\"text\":\"a\"},{\"thinking\":\"b\"},{\"text\":\"c\"}]").await;
    for limit in ["0", "10001", "-1", "x", "", "1.5", "99999999999999999999"] {
        get(api, &format!("/api/rooms/{room}/events?limit={limit}")).await.is_refused(400, "invalid_request");
    }
    let all = get(api, &format!("/api/rooms/{room}/events?limit=10000")).await.is(200);
    let one = get(api, &format!("/api/rooms/{room}/events?limit=1&after=3")).await.is(200);
    assert_eq!(one["events"], json!([all["events"][3]]));
    assert_eq!(one["head"], all["head"]);
}
