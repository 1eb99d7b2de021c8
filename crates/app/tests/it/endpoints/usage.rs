//! Tokens, cost and duration in the run, its end event and the completion.

use super::requests::{data, get, journal, post, post_and_wait, post_text, room, room_with, wait_for_end, within};
use domain::{event::EventType, run::RunStatus, usage::Usage};
use serde_json::json;
use std::time::Duration;
use testkit::client::{ReceivedFrameParser, TestClient};

on_both_databases! {
    server: invariant_19_budget_each_usage_is_counted_once, unknown_model_has_no_cost, known_model_has_a_price,
            model_of_the_agent_is_the_fallback, run_and_end_event_agree, metrics_have_tokens_cost_queue_and_processes;
}

fn script(usage: &str) -> String {
    format!(r#"!script [{{"text":"hi"}},{{"usage":{usage}}}]"#)
}

async fn invariant_19_budget_each_usage_is_counted_once(api: &TestClient) {
    let room = room(api).await;
    let line = |input: u32, cost: f64| {
        format!(r#"{{"usage":{{"input_tokens":{input},"output_tokens":7,"cache_read_tokens":3,"cost":{cost}}}}}"#)
    };
    let run =
        post_and_wait(api, room, &format!("!script [{},{},{}]", line(10, 0.25), line(20, 0.5), line(30, 1.0))).await;
    let total = Usage { input_tokens: 60, output_tokens: 21, cache_read_tokens: 9, cache_write_tokens: 0 };
    assert_eq!((run.usage, run.cost.unwrap().as_dollars()), (total, 1.75));
    let reported = journal(api, room).await.iter().filter(|event| event.kind == EventType::UsageReported).count();
    assert_eq!(reported, 3);
    let counted = post_and_wait(api, room, "!count 5").await;
    assert_eq!((counted.usage.input_tokens, counted.usage.output_tokens), (2, 5));
    assert_eq!((counted.cost.unwrap().as_nanos(), counted.model.as_deref()), (0, Some("scripted")));
}

async fn unknown_model_has_no_cost(api: &TestClient) {
    let room = room(api).await;
    let run = post_and_wait(api, room, &script(r#"{"input_tokens":5,"model":"someone-elses-model-9"}"#)).await;
    assert_eq!((run.status, run.cost, run.usage.input_tokens), (RunStatus::Completed, None, 5));
    let end = journal(api, room).await.pop().unwrap();
    assert_eq!(data(&end)["cost"], json!(null));
    // One unknown cost makes the sum unknown.
    let mixed =
        r#"!script [{"usage":{"input_tokens":5,"cost":1.0}},{"usage":{"input_tokens":5,"model":"who-knows-9"}}]"#;
    assert_eq!(post_and_wait(api, room, mixed).await.cost, None);
}

async fn known_model_has_a_price(api: &TestClient) {
    let room = room(api).await;
    let usage = r#"{"input_tokens":10000,"output_tokens":10000,"cache_read_tokens":10000,"model":"claude-sonnet-4-5"}"#;
    let run = post_and_wait(api, room, &script(usage)).await;
    // Three dollars a million in, fifteen out, thirty cents from the cache.
    assert_eq!((run.cost.unwrap().as_dollars(), run.model.as_deref()), (0.183, Some("claude-sonnet-4-5")));
}

async fn model_of_the_agent_is_the_fallback(api: &TestClient) {
    let room = room_with(api, json!({"model": "claude-sonnet-4-5"})).await;
    let run = post_and_wait(api, room, "!count 3").await;
    assert_eq!(run.model.as_deref(), Some("scripted"), "the model reported by the provider must win");
    let failed = post_and_wait(api, room, "!fail").await;
    assert_eq!((failed.usage, failed.model.as_deref()), (Usage::default(), Some("claude-sonnet-4-5")));
}

async fn run_and_end_event_agree(api: &TestClient) {
    let agent = api.scripted_agent().await.unwrap();
    let body = json!({"message": script(r#"{"input_tokens":12,"output_tokens":30,"cost":0.123456789}"#)});
    let answer = post(api, &format!("/api/execute/agent/{agent}"), &body).await;
    let mut frames = Vec::new();
    ReceivedFrameParser::default().push(answer.text.as_bytes(), &mut frames).unwrap();
    let completion = frames.iter().find(|frame| frame.event.as_deref() == Some("completion")).unwrap();
    let completion: serde_json::Value = serde_json::from_str(&completion.data).unwrap();
    let run = api.run(completion["run_id"].as_str().unwrap().parse().unwrap()).await.unwrap();
    let end = journal(api, run.room_id).await.pop().unwrap();
    for said in [&completion, &data(&end)] {
        assert_eq!(said["usage"], json!(run.usage));
        assert_eq!((&said["cost"], &said["duration_ms"]), (&json!(0.123456789), &json!(run.duration_ms.unwrap())));
    }
    assert_eq!(completion["tokens"], 42);
    assert!(run.started_at.unwrap() <= run.ended_at.unwrap() && run.created_at <= run.started_at.unwrap());
}

/// The metrics of the process, so other tests may add to them.
async fn metrics_have_tokens_cost_queue_and_processes(api: &TestClient) {
    let value = async |metric: &str| {
        let metrics = get(api, "/metrics").await.text;
        let found = metrics.lines().find_map(|line| line.strip_prefix(metric)?.trim().parse::<f64>().ok());
        found.unwrap_or(0.0)
    };
    let tokens = r#"greenroom_tokens_total{provider="scripted",kind="output"}"#;
    let cost = r#"greenroom_cost_nanodollars_total{provider="scripted"}"#;
    let before = (value(tokens).await, value(cost).await);
    let room = room(api).await;
    post_and_wait(api, room, &script(r#"{"output_tokens":30,"cost":0.25}"#)).await;
    let after = (value(tokens).await, value(cost).await);
    assert!(after.0 >= before.0 + 30.0 && after.1 >= before.1 + 250_000_000.0, "{before:?} {after:?}");
    let (running, queued) = (post_text(api, room, "!hang").await, post_text(api, room, "!count 1").await);
    within("the gauges of the queue", async {
        while value("greenroom_running_runs").await < 1.0 || value("greenroom_queued_runs").await < 1.0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert!(get(api, "/metrics").await.text.contains("\ngreenroom_processes "), "scripted agents have no program");
    api.cancel_run(running).await.unwrap();
    wait_for_end(api, queued).await;
}
