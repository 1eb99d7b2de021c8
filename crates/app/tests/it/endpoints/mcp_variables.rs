//! Environment variables of MCP servers: which one is missing, and how the operator allows it.

use super::{
    binary::Binary,
    requests::{delete, get, post, response_to},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase};

on_both_databases! {
    database: invariant_17_secrets_stay_a_missing_variable_is_named_and_allowed;
}

async fn variable(api: &TestClient, server: &str) -> (Value, String) {
    let shown = get(api, &format!("/api/mcp-servers/{server}")).await.expect_status(200);
    (shown["variables"][0].clone(), shown["problem"]["message"].as_str().unwrap_or_default().to_owned())
}

async fn allow(api: &TestClient, name: &str) -> super::requests::ApiResponse {
    response_to(api.request(Method::PUT, &format!("/api/mcp-variables/{name}"))).await
}

async fn invariant_17_secrets_stay_a_missing_variable_is_named_and_allowed(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("WEB_TOKEN", "s3cret-token").with("GREENROOM_MCP__VARIABLES", "LISTED");
    let ada =
        binary.run_command(&["token", "create", "--user", "ada", "--scopes", "all"]).await.stdout.trim().to_owned();
    let (server, api) = binary.serve().await;
    let ada = api.anonymous().with_token(ada);
    let web = |name: &str| {
        json!({"name": name, "type": "http", "url": "https://example.org/mcp",
               "headers": {"Authorization": "Bearer ${WEB_TOKEN}"}})
    };
    post(&api, "/api/mcp-servers", &web("web")).await.expect_status(201);
    let (missing, problem) = variable(&api, "web").await;
    assert_eq!(missing, json!({"name": "WEB_TOKEN", "allowed": false, "set": true}));
    assert!(problem.contains("WEB_TOKEN") && problem.contains("PUT /api/mcp-variables/WEB_TOKEN"), "{problem}");

    assert_eq!(allow(&api, "WEB_TOKEN").await.status, 204);
    assert_eq!(allow(&api, "WEB_TOKEN").await.status, 204, "again");
    assert_eq!(
        variable(&api, "web").await,
        (json!({"name": "WEB_TOKEN", "allowed": true, "set": true}), String::new())
    );
    let listed = get(&api, "/api/mcp-variables").await.expect_status(200);
    let names: Vec<_> =
        listed["variables"].as_array().unwrap().iter().map(|one| (&one["name"], &one["source"])).collect();
    let (configuration, through_api) = (json!("configuration"), json!("api"));
    let expected =
        [(json!("HOME"), &configuration), (json!("LISTED"), &configuration), (json!("WEB_TOKEN"), &through_api)];
    assert_eq!(names, expected.iter().map(|(name, source)| (name, *source)).collect::<Vec<_>>());
    let everything = format!("{listed}{}", get(&api, "/api/mcp-servers").await.text);
    assert!(!everything.contains("s3cret-token"), "no value is ever shown");

    // Others than the operator neither allow variables, nor use them, nor hear whether they are set.
    allow(&ada, "PATH").await.expect_problem(403, "forbidden");
    post(&ada, "/api/mcp-servers", &web("hers")).await.expect_status(201);
    let (hers, problem) = variable(&ada, "hers").await;
    assert_eq!(hers, json!({"name": "WEB_TOKEN", "allowed": false, "set": false}));
    assert!(!problem.is_empty());
    for bad in ["GREENROOM_STORE__DATABASE", "greenroom_x", "A-B"] {
        allow(&api, bad).await.expect_problem(422, "unprocessable");
    }
    server.terminate(Duration::from_secs(30)).await.unwrap();

    // It stays allowed, until it is taken back.
    let (server, api) = binary.serve().await;
    assert_eq!(variable(&api, "web").await.0["allowed"], true);
    delete(&api, "/api/mcp-variables/LISTED").await.expect_problem(409, "conflict");
    assert_eq!(delete(&api, "/api/mcp-variables/WEB_TOKEN").await.status, 204);
    delete(&api, "/api/mcp-variables/WEB_TOKEN").await.expect_problem(404, "not_found");
    assert_eq!(variable(&api, "web").await.0["allowed"], false);
    server.terminate(Duration::from_secs(30)).await.unwrap();
}
