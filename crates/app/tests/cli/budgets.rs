//! What the programs use is counted at the model gateway: a spent budget ends a run at its next model call.

use crate::{
    cli_fixture::CliFixture,
    requests::{get, journal, message_of, post, post_and_wait},
};
use domain::{message::Part, run::RunStatus};
use serde_json::json;

with_each_cli! {
    a_spent_budget_ends_the_run_at_the_next_model_call,
    the_usage_of_a_run_is_what_the_api_counted,
}

async fn a_spent_budget_ends_the_run_at_the_next_model_call(fixture: &CliFixture) {
    let api = fixture.api();
    let agent = fixture.agent_with("spender", json!({"tools": {"allow": ["*"]}})).await;
    let budget = json!({"scope": "agent", "id": agent, "period": "day", "limit_usd": 0.000_000_001});
    post(&api, "/api/budgets", &budget).await.expect_status(201);
    let room = api.create_room("budget", &[agent]).await.unwrap().id;
    // The first call asks for the tool; its result would go into the second.
    let run = post_and_wait(&api, room, "!tool echo vermilion-$((1+1))").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Failed, "{details}");
    assert_eq!(run.error.as_ref().unwrap().code, "limit_budget", "{details}");
    let requests = fixture.models().requests();
    assert!(requests.iter().any(|request| request.api.is_some()), "the first call is made\n{details}");
    let is_second = requests.iter().any(|request| request.body.to_string().contains("vermilion-2"));
    assert!(!is_second, "the second call must not reach the API\n{details}");
    // What the run has so far stays.
    let message = message_of(&api, &run).await;
    assert!(message.parts.iter().any(|part| matches!(part, Part::Tool(_))), "{details}");
    let spent = get(&api, "/api/budgets").await.expect_status(200)["budgets"][0]["spent_usd"].as_f64().unwrap();
    assert!(spent > 0.0, "{spent}\n{details}");
}

async fn the_usage_of_a_run_is_what_the_api_counted(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let run = post_and_wait(&api, room, "hello").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    // Counted once, although the program and the gateway both report it.
    let calls = fixture.models().requests().iter().filter(|request| request.api.is_some()).count();
    assert!(calls > 0, "{details}");
    let usage = get(&api, &format!("/api/runs/{}", run.id)).await.expect_status(200)["usage"].clone();
    let (input, output) = (usage["input_tokens"].as_u64().unwrap(), usage["output_tokens"].as_u64().unwrap());
    assert!(input > 0 && output > 0, "{usage}\n{details}");
    let events = journal(&api, room).await;
    let reported = events.iter().filter(|event| event.kind == domain::event::EventType::UsageReported).count();
    assert!(reported <= calls, "{reported} reports of {calls} calls\n{details}");
}
