//! Budgets through the API: a spent one answers 402 on every way to start a run.

use super::requests::{agent, delete, get, post, post_and_wait, room_of};
use domain::run::RunStatus;
use serde_json::json;
use testkit::client::TestClient;

on_both_databases! {
    server: a_spent_budget_answers_402_on_every_way_to_start_a_run, budgets_are_checked_when_they_are_made,
            a_reported_cost_is_neither_negative_nor_endless;
}

async fn a_spent_budget_answers_402_on_every_way_to_start_a_run(api: &TestClient) {
    let agent = agent(api, "spender", json!({})).await;
    let room = room_of(api, &[agent]).await;
    let new = json!({"scope": "workspace", "period": "month", "limit_usd": 0.5});
    let budget = post(api, "/api/budgets", &new).await.expect_status(201)["id"].as_str().unwrap().to_owned();
    let status = get(api, "/api/billing/status").await.expect_status(200);
    assert_eq!((&status["allowed"], &status["reason"]), (&json!(true), &json!(null)));
    let run = post_and_wait(api, room, r#"!script [{"text":"dear"},{"usage":{"cost":0.75}}]"#).await;
    assert_eq!(run.status, RunStatus::Completed, "the call that passes the limit is not cut off");

    let message = json!({"text": "one more"});
    let refused = post(api, &format!("/api/rooms/{room}/messages"), &message).await;
    let refused = refused.expect_problem(402, "budget_exceeded");
    assert_eq!((&refused["budget"], &refused["limit"], &refused["spent"]), (&json!(budget), &json!(0.5), &json!(0.75)));
    assert!(refused["resets_at"].as_str().unwrap().ends_with("-01T00:00:00.000Z"), "{refused}");
    let execute = format!("/api/execute/agent/{agent}");
    post(api, &execute, &json!({"message": "hi"})).await.expect_problem(402, "budget_exceeded");
    get(api, &format!("{execute}?message=hi")).await.expect_problem(402, "budget_exceeded");

    let status = get(api, "/api/billing/status").await.expect_status(200);
    assert_eq!((&status["allowed"], &status["budgets"][0]["spent_usd"]), (&json!(false), &json!(0.75)));
    delete(api, &format!("/api/budgets/{budget}")).await.expect_status(204);
    delete(api, &format!("/api/budgets/{budget}")).await.expect_problem(404, "not_found");
    assert_eq!(post_and_wait(api, room, "!count 2").await.status, RunStatus::Completed);
}

async fn budgets_are_checked_when_they_are_made(api: &TestClient) {
    let agent = agent(api, "a", json!({})).await;
    for wrong in [
        json!({"scope": "workspace", "period": "month", "limit_usd": 0}),
        json!({"scope": "workspace", "period": "month", "limit_usd": -1}),
        json!({"scope": "workspace", "period": "year", "limit_usd": 1}),
    ] {
        post(api, "/api/budgets", &wrong).await.expect_problem(400, "invalid_request");
    }
    for wrong in [
        json!({"scope": "workspace", "id": agent, "period": "day", "limit_usd": 1}),
        json!({"scope": "agent", "period": "day", "limit_usd": 1}),
        json!({"scope": "room", "id": agent, "period": "day", "limit_usd": 1}),
        json!({"scope": "user", "id": agent, "period": "day", "limit_usd": 1}),
    ] {
        post(api, "/api/budgets", &wrong).await.expect_problem(422, "unprocessable");
    }
    let right = json!({"scope": "agent", "id": agent, "period": "week", "limit_usd": 1.25});
    post(api, "/api/budgets", &right).await.expect_status(201);
    let listed = get(api, "/api/budgets").await.expect_status(200);
    let budget = &listed["budgets"][0];
    assert_eq!((&budget["scope"], &budget["subject_id"]), (&json!("agent"), &json!(agent)));
    assert_eq!(
        (&budget["limit_usd"], &budget["spent_usd"], &budget["period"]),
        (&json!(1.25), &json!(0.0), &json!("week"))
    );
}

/// What a provider reports must not give money back, nor break the sums.
async fn a_reported_cost_is_neither_negative_nor_endless(api: &TestClient) {
    let agent = agent(api, "liar", json!({})).await;
    let room = room_of(api, &[agent]).await;
    let new = json!({"scope": "workspace", "period": "total", "limit_usd": 100_000});
    post(api, "/api/budgets", &new).await.expect_status(201);
    for (cost, spent) in [("0.5", 0.5), ("-1000.0", 0.5), ("9e9", 10_000.5), ("9e9", 20_000.5)] {
        let script = format!(r#"!script [{{"text":"x"}},{{"usage":{{"cost":{cost}}}}}]"#);
        assert_eq!(post_and_wait(api, room, &script).await.status, RunStatus::Completed);
        let status = get(api, "/api/billing/status").await.expect_status(200);
        assert_eq!((&status["allowed"], &status["budgets"][0]["spent_usd"]), (&json!(true), &json!(spent)), "{cost}");
    }
    let endless = json!({"scope": "workspace", "period": "total", "limit_usd": 1e30});
    post(api, "/api/budgets", &endless).await.expect_problem(400, "invalid_request");
}
