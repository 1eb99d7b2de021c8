//! The list of providers.

use super::{
    binary::Binary,
    requests::{get, post, response_to, room_of, wait_for_end},
    shares::two_users,
};
use domain::run::RunStatus;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::{TestClient, TestPost},
    database::TestDatabase,
};

on_both_databases! {
    server: providers_report_capabilities_and_availability, l5_a_model_is_not_an_option_of_a_program;
    database: l7_figures_and_programs_of_the_server_are_for_the_operator,
              m9_logins_and_keys_of_the_server_are_lent_only_by_the_operator;
}

const STOP: Duration = Duration::from_secs(30);

fn inspection<'a>(list: &'a Value, name: &str) -> &'a Value {
    let all = list["providers"].as_array().unwrap();
    &all.iter().find(|provider| provider["name"] == name).unwrap_or_else(|| panic!("no {name} in {list}"))["inspection"]
}

async fn l5_a_model_is_not_an_option_of_a_program(api: &TestClient) {
    let list = get(api, "/api/providers").await.expect_status(200);
    let made = post(api, "/api/agents", &json!({"name": "fine", "provider": "scripted"})).await.expect_status(201);
    let path = format!("/api/agents/{}", made["id"].as_str().unwrap());
    for provider in list["providers"].as_array().unwrap().iter().map(|provider| &provider["name"]) {
        for model in ["--yolo", "-m", "-"] {
            let spec = json!({"name": "sly", "provider": provider, "model": model});
            let refused = post(api, "/api/agents", &spec).await.expect_problem(400, "invalid_request");
            assert!(refused["detail"].as_str().unwrap().starts_with("model: "), "{provider}: {refused}");
            let change = json!({"provider": provider, "model": model});
            response_to(api.request(Method::PATCH, &path).json(&change)).await.expect_problem(400, "invalid_request");
        }
    }
    assert_eq!(get(api, &path).await.expect_status(200), made, "nothing has changed");
}

async fn l7_figures_and_programs_of_the_server_are_for_the_operator(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_ACP__AGENTS", "mine = sh -c true");
    let [ada, _] = two_users(&mut binary).await;
    let (server, operator) = binary.serve().await;
    let ada = operator.clone().with_token(ada);
    for path in ["/metrics", "/api/doctor"] {
        assert_eq!(get(&operator, path).await.status, 200, "{path}");
        get(&ada, path).await.expect_problem(403, "forbidden");
    }
    let (all, seen) = (get(&operator, "/api/providers").await, get(&ada, "/api/providers").await);
    assert_eq!(inspection(&all.expect_status(200), "mine")["program"], "sh");
    let nothing = json!({"state": "ready", "version": null, "program": null});
    assert_eq!(*inspection(&seen.expect_status(200), "mine"), nothing);
    server.terminate(STOP).await.unwrap();
}

async fn m9_logins_and_keys_of_the_server_are_lent_only_by_the_operator(database: TestDatabase) {
    let mut binary = Binary::on(&database)
        .with("GREENROOM_ACP__AGENTS", "mine = sh -c true")
        .with("GREENROOM_ACP__PASS_ENV", "VENDOR_KEY")
        .with("VENDOR_KEY", "not for everybody");
    let [ada, bob] = two_users(&mut binary).await;
    let mut binary = binary.with("GREENROOM_AGENTS__LEND_LOGIN_TO", "bob");
    let (server, operator) = binary.serve().await;
    let (ada, bob) = (operator.clone().with_token(ada), operator.clone().with_token(bob));
    let spec = json!({"name": "has the key", "provider": "mine"});
    for granted in [&operator, &bob] {
        post(granted, "/api/agents", &spec).await.expect_status(201);
    }
    let refused = post(&ada, "/api/agents", &spec).await.expect_problem(422, "unprocessable");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("agents.lend_login_to") && detail.contains("ada"), "{detail}");
    let advice = &get(&ada, "/api/providers").await.expect_status(200);
    assert_eq!(inspection(advice, "mine"), &json!({"state": "missing", "advice": detail}));
    let agents = get(&bob, "/api/agents").await.expect_status(200);
    let his = agents["agents"].as_array().unwrap().iter().find(|agent| agent["provider"] == "mine").unwrap();
    let his = his["id"].as_str().unwrap().parse().unwrap();
    let room = room_of(&bob, &[his]).await;
    server.terminate(STOP).await.unwrap();

    // The operator withdraws the grant: an agent that exists already gets nothing either.
    let mut binary = binary.with("GREENROOM_AGENTS__LEND_LOGIN_TO", "");
    let (server, again) = binary.serve().await;
    let bob = TestClient::new(again.base_url()).unwrap().with_token(bob.token().unwrap());
    let run = bob.post_message(room, &TestPost::new("hello")).await.unwrap().runs[0].id;
    wait_for_end(&bob, run).await;
    let ended = bob.run(run).await.unwrap();
    assert_eq!(ended.status, RunStatus::Failed);
    let shown = get(&bob, &format!("/api/runs/{run}")).await.expect_status(200);
    assert_eq!(shown["error"]["code"], "login_not_lent", "{shown}");
    server.terminate(STOP).await.unwrap();
}

async fn providers_report_capabilities_and_availability(api: &TestClient) {
    let list = get(api, "/api/providers").await.expect_status(200);
    let providers = list["providers"].as_array().unwrap();
    let scripted = providers.iter().find(|provider| provider["name"] == "scripted").unwrap();
    let can =
        json!({"resume": false, "steer": true, "approvals": true, "thinking": true, "mcp": false, "skills": false});
    let there = json!({"state": "ready", "version": null, "program": null});
    assert_eq!((&scripted["capabilities"], &scripted["inspection"]), (&can, &there));
    assert_eq!(
        (&scripted["id"], &scripted["kind"], &scripted["state"]),
        (&json!("scripted"), &json!("demo"), &json!("ready"))
    );
    for provider in providers {
        let program = provider["inspection"]["program"].as_str().unwrap_or_default();
        assert!(!program.contains('/'), "only a file name may be shown: {provider}");
    }
}
