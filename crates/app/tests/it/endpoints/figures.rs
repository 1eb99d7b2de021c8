//! Usage by agent, model or room.

use super::requests::{agent, get, post_and_wait, room_of};
use serde_json::{Value, json};
use testkit::client::TestClient;

on_both_databases! {
    server: figures_are_sums_over_runs, ranges_are_bounded;
}

async fn figures_are_sums_over_runs(api: &TestClient) {
    let (one, two) = (agent(api, "one", json!({})).await, agent(api, "two", json!({})).await);
    let (first, second) = (room_of(api, &[one]).await, room_of(api, &[two]).await);
    let usage = |usage: &str| format!(r#"!script [{{"text":"hi"}},{{"usage":{usage}}}]"#);
    post_and_wait(api, first, &usage(r#"{"input_tokens":100,"output_tokens":7,"cost":0.5}"#)).await;
    post_and_wait(api, first, &usage(r#"{"input_tokens":5,"model":"someone-elses-model-9"}"#)).await;
    post_and_wait(api, second, "!fail").await;
    let by = async |by: &str| get(api, &format!("/api/usage?by={by}&bucket=hour")).await.expect_status(200);
    let series = |report: &Value, key: &str| -> Value {
        let all = report["series"].as_array().unwrap();
        all.iter().find(|series| series["key"] == key).unwrap_or_else(|| panic!("no {key} in {report}")).clone()
    };
    let report = by("agent").await;
    assert_eq!((&report["total"]["runs"], &report["total"]["failed"]), (&json!(3), &json!(1)), "{report}");
    let of_one = series(&report, &one.to_string());
    assert_eq!(of_one["name"], "one");
    for (field, value) in [
        ("runs", json!(2)),
        ("completed", json!(2)),
        ("failed", json!(0)),
        ("stopped", json!(0)),
        ("input_tokens", json!(105)),
        ("output_tokens", json!(7)),
        ("cost", json!(0.5)),
        ("unpriced", json!(1)),
    ] {
        assert_eq!(of_one["total"][field], value, "{field} of {of_one}");
    }
    let points = of_one["points"].as_array().unwrap();
    assert_eq!(points.iter().map(|point| point["runs"].as_u64().unwrap()).sum::<u64>(), 2);
    assert!(points[0]["at"].as_str().unwrap().ends_with(":00:00.000Z"), "{points:?}");
    let of_room = series(&by("room").await, &second.to_string());
    assert_eq!(
        (&of_room["total"]["failed"], &of_room["total"]["cost"]),
        (&json!(1), &json!(null)),
        "unknown prices must not be guessed"
    );
    assert_eq!(series(&by("model").await, "someone-elses-model-9")["total"]["cost"], json!(null));
}

async fn ranges_are_bounded(api: &TestClient) {
    for bad in [
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z",
        "from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z",
        "from=2026-01-01T00:00:00Z&to=2026-03-01T00:00:00Z&bucket=hour",
        "from=1950-01-01T00:00:00Z&to=1950-01-02T00:00:00Z",
    ] {
        get(api, &format!("/api/usage?{bad}")).await.expect_problem(422, "unprocessable");
    }
    for bad in ["from=yesterday", "by=owner", "bucket=second", "limit=1"] {
        get(api, &format!("/api/usage?{bad}")).await.expect_problem(400, "invalid_request");
    }
    let empty =
        get(api, "/api/usage?from=2020-01-01T00:00:00Z&to=2021-01-01T00:00:00Z&bucket=day").await.expect_status(200);
    assert_eq!((&empty["total"]["runs"], &empty["series"]), (&json!(0), &json!([])));
}
