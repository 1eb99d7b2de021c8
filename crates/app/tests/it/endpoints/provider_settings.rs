//! What a workspace sets for providers: keys, addresses, models, and model APIs of its own.

use super::{
    binary::Binary,
    requests::{agent, delete, get, message_of, post, post_and_wait, response_to, room_of},
    shares::two_users,
};
use domain::run::RunStatus;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::TestClient, database::TestDatabase, database_dump::DatabaseDump, models::ModelDouble, server::TestServer,
};

on_both_databases! {
    database: a_key_holds_from_the_next_run_on, a_workspace_adds_an_endpoint, a_local_model_server_is_found,
              invariant_17_secrets_stay_a_key_stays_at_its_address,
              m1_an_address_of_the_servers_network_is_refused;
}

const KEY: &str = "own-secret-key-qx";

async fn put(api: &TestClient, provider: &str, settings: &Value) -> super::requests::ApiResponse {
    response_to(api.request(Method::PUT, &format!("/api/providers/{provider}/settings")).json(settings)).await
}

async fn provider(api: &TestClient, id: &str) -> Value {
    let list = get(api, "/api/providers").await.expect_status(200);
    let all = list["providers"].as_array().unwrap();
    all.iter().find(|provider| provider["id"] == id).unwrap_or_else(|| panic!("no {id} in {list}")).clone()
}

async fn test(api: &TestClient, id: &str) -> Value {
    post(api, &format!("/api/providers/{id}/test"), &json!({})).await.expect_status(200)
}

/// A server whose vendors are a double, without any key.
async fn start(database: TestDatabase, models: &ModelDouble, more: &[(&str, &str)]) -> TestServer {
    let (plain, openai) = (models.url(), format!("{}/v1", models.url()));
    let settings = [
        ("anthropic.base_url", plain.as_str()),
        ("openai.base_url", openai.as_str()),
        ("google.base_url", plain.as_str()),
        ("direct.retries", "0"),
    ];
    TestServer::start_with(database, &[&settings[..], more].concat()).await
}

async fn a_key_holds_from_the_next_run_on(database: TestDatabase) {
    let models = ModelDouble::start().await.unwrap();
    let server = start(database, &models, &[]).await;
    let api = server.api();
    for (id, settings) in
        [("anthropic", "anthropic"), ("openai", "openai"), ("openai_responses", "openai"), ("google", "google")]
    {
        let before = provider(api, id).await;
        assert_eq!((&before["kind"], &before["settings_provider"]), (&json!("api"), &json!(settings)), "{before}");
        assert_eq!(before["has_key"], id != settings, "one key for both APIs of a vendor");
        let set = put(api, settings, &json!({"key": KEY})).await;
        assert!(!set.text.contains(KEY), "{}", set.text);
        assert_eq!(set.expect_status(200)["has_key"], true);
        put(api, id, &json!({"default_model": "double-by-default", "limits": {"max_output_tokens": 77}}))
            .await
            .expect_status(200);
        let after = provider(api, id).await;
        let expected = json!([true, "settings", "ready", null, "double-by-default", {"context_window": null, "max_output_tokens": 77}]);
        let shown = ["has_key", "source", "state", "hint", "default_model", "limits"].map(|field| after[field].clone());
        assert_eq!(json!(shown), expected, "{after}");
        // The agent names no model: that of the settings is used.
        let id = agent(api, &format!("on {id}"), json!({"provider": id})).await;
        let run = post_and_wait(api, room_of(api, &[id]).await, "!count 3").await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        assert_eq!(message_of(api, &run).await.text, "1 2 3");
        let asked = models.requests().into_iter().next_back().unwrap();
        assert_eq!(asked.key.as_deref(), Some(KEY));
        assert_eq!(asked.model.as_deref(), Some("double-by-default"));
        assert!(asked.body.to_string().contains("77"), "{}", asked.body);
    }
    let tested = test(api, "anthropic").await;
    assert_eq!((&tested["ok"], &tested["models"]), (&json!(true), &json!(1)), "{tested}");
    let listed = get(api, "/api/providers/anthropic/models").await.expect_status(200);
    assert_eq!(listed["models"], json!([{"id": "double", "label": "Double"}]));
    // A rejected key is said in plain words, and never quoted.
    put(api, "anthropic", &json!({"key": "bad-key"})).await.expect_status(200);
    let tested = test(api, "anthropic").await;
    assert_eq!((&tested["ok"], &tested["state"]), (&json!(false), &json!("needs_key")));
    let message = tested["message"].as_str().unwrap();
    assert!(message.contains("rejected the key") && message.contains("provider settings"), "{message}");
    get(api, "/api/providers/anthropic/models").await.expect_problem(502, "provider_failed");
    // The audit log and the database have no key.
    let audit = get(api, "/api/audit").await;
    assert!(audit.text.contains("\"provider\"") && !audit.text.contains(KEY), "{}", audit.text);
    delete(api, "/api/providers/anthropic/settings").await.expect_status(204);
    assert_eq!(provider(api, "anthropic").await["has_key"], false);
    delete(api, "/api/providers/anthropic/settings").await.expect_problem(404, "not_found");
    assert!(DatabaseDump::read(server.database()).await.tables_with(KEY, &[]).is_empty());
    server.finish().await;
    models.stop().await;
}

async fn a_workspace_adds_an_endpoint(database: TestDatabase) {
    let models = ModelDouble::start().await.unwrap();
    let server = start(database, &models, &[]).await;
    let api = server.api();
    let new = json!({"id": "router", "label": "My router", "base_url": format!("{}/v1/", models.url()), "key": KEY});
    let made = post(api, "/api/providers", &new).await.expect_status(201);
    assert_eq!(
        ["kind", "label", "source", "state", "has_key"].map(|field| made[field].clone()),
        [json!("endpoint"), json!("My router"), json!("settings"), json!("ready"), json!(true)]
    );
    post(api, "/api/providers", &new).await.expect_problem(409, "conflict");
    let taken = json!({"id": "openai", "base_url": "https://x.example"});
    post(api, "/api/providers", &taken).await.expect_problem(409, "conflict");
    for (wrong, pointer) in [
        (json!({"id": "No", "base_url": "https://x.example"}), "/id"),
        (json!({"id": "no", "base_url": "ftp://x.example"}), "/base_url"),
        (json!({"id": "no", "base_url": "https://x.example", "key": "two words"}), "/key"),
    ] {
        let refused = post(api, "/api/providers", &wrong).await.expect_problem(422, "unprocessable");
        assert_eq!(refused["pointer"], pointer, "{refused}");
    }
    let refused = put(api, "claude_code", &json!({"key": KEY})).await.expect_problem(422, "unprocessable");
    assert!(refused["detail"].as_str().unwrap().contains("anthropic; set them there"), "{refused}");
    put(api, "nobody", &json!({"key": KEY})).await.expect_problem(404, "not_found");
    let id = agent(api, "routed", json!({"provider": "router", "model": "some/model"})).await;
    let room = room_of(api, &[id]).await;
    let run = post_and_wait(api, room, "!count 3").await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
    let asked = models.requests().into_iter().next_back().unwrap();
    assert_eq!((asked.key.as_deref(), asked.model.as_deref()), (Some(KEY), Some("some/model")));
    // Renamed: the key stays. Moved: it does not.
    let base_url = format!("{}/v1", models.url());
    put(api, "router", &json!({"label": "Renamed", "base_url": base_url})).await.expect_status(200);
    assert_eq!(provider(api, "router").await["has_key"], true);
    let moved = format!("{}/other/v1", models.url());
    let moved = put(api, "router", &json!({"base_url": moved})).await.expect_status(200);
    assert_eq!(moved["has_key"], false, "{moved}");
    delete(api, "/api/providers/router/settings").await.expect_status(204);
    let run = post_and_wait(api, room, "!count 3").await;
    assert_eq!(run.error.unwrap().code, "no_provider");
    server.finish().await;
    models.stop().await;
}

async fn a_local_model_server_is_found(database: TestDatabase) {
    let models = ModelDouble::start().await.unwrap();
    let servers = format!("ollama = {}/v1,silent = http://127.0.0.1:9/v1", models.url());
    let server = start(database, &models, &[("direct.local_servers", &servers)]).await;
    let api = server.api();
    let found = provider(api, "ollama").await;
    assert_eq!(
        ["kind", "label", "source", "state", "base_url"].map(|field| found[field].clone()),
        [json!("endpoint"), json!("Ollama"), json!("found"), json!("ready"), json!(format!("{}/v1", models.url()))]
    );
    let list = get(api, "/api/providers").await.expect_status(200);
    assert!(list["providers"].as_array().unwrap().iter().all(|provider| provider["id"] != "silent"), "{list}");
    let id = agent(api, "local", json!({"provider": "ollama", "model": "double"})).await;
    let run = post_and_wait(api, room_of(api, &[id]).await, "!count 3").await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
    server.finish().await;
    models.stop().await;
}

async fn invariant_17_secrets_stay_a_key_stays_at_its_address(database: TestDatabase) {
    let (vendor, other) = (ModelDouble::start().await.unwrap(), ModelDouble::start().await.unwrap());
    let url = vendor.url();
    let settings = [("anthropic.base_url", url.as_str()), ("direct.retries", "0")];
    let environment = [("ANTHROPIC_API_KEY", "key-of-the-server")];
    let server = TestServer::start_with_environment(database, &settings, &environment).await;
    let api = server.api();
    let id = agent(api, "Ann", json!({"provider": "anthropic", "model": "double"})).await;
    let room = room_of(api, &[id]).await;
    post_and_wait(api, room, "!count 1").await;
    assert_eq!(vendor.requests().last().unwrap().key.as_deref(), Some("key-of-the-server"));
    assert_eq!(provider(api, "anthropic").await["source"], "environment");
    // The server's key does not go to another address, nor does a stored key follow a changed one.
    put(api, "anthropic", &json!({"base_url": other.url()})).await.expect_status(200);
    post_and_wait(api, room, "!count 2").await;
    assert_eq!(other.requests().last().unwrap().key, None);
    put(api, "anthropic", &json!({"key": KEY, "base_url": vendor.url()})).await.expect_status(200);
    put(api, "anthropic", &json!({"base_url": other.url()})).await.expect_status(200);
    post_and_wait(api, room, "!count 3").await;
    assert_eq!(other.requests().last().unwrap().key, None);
    delete(api, "/api/providers/anthropic/settings").await.expect_status(204);
    post_and_wait(api, room, "!count 4").await;
    assert_eq!(vendor.requests().last().unwrap().key.as_deref(), Some("key-of-the-server"));
    server.finish().await;
    vendor.stop().await;
    other.stop().await;
}

async fn m1_an_address_of_the_servers_network_is_refused(database: TestDatabase) {
    let models = ModelDouble::start().await.unwrap();
    let found = format!("ollama = {}/v1", models.url());
    let mut binary =
        Binary::on(&database).with("GREENROOM_DIRECT__LOCAL_SERVERS", &found).with("GREENROOM_DIRECT__RETRIES", "0");
    let [ada, _] = two_users(&mut binary).await;
    let (server, operator) = binary.serve().await;
    let ada = operator.clone().with_token(ada);
    for address in ["http://127.0.0.1:1/v1", "http://169.254.169.254/v1", "http://[::1]:1/v1", "http://10.0.0.1"] {
        let new = json!({"id": "inside", "base_url": address});
        let refused = post(&ada, "/api/providers", &new).await.expect_problem(422, "unprocessable");
        assert_eq!(refused["pointer"], "/base_url", "{refused}");
        put(&ada, "anthropic", &json!({"base_url": address})).await.expect_problem(422, "unprocessable");
    }
    // A name is checked when it is connected to.
    let named = json!({"id": "named", "base_url": format!("http://localhost:{}/v1", models.address().port())});
    post(&ada, "/api/providers", &named).await.expect_status(201);
    let tested = test(&ada, "named").await;
    assert_eq!(tested["ok"], false, "{tested}");
    let agent = agent(&ada, "inside", json!({"provider": "named", "model": "double"})).await;
    let run = post_and_wait(&ada, room_of(&ada, &[agent]).await, "!count 3").await;
    assert_eq!(run.status, RunStatus::Failed);
    // Nor are the operator's own model servers hers.
    assert_eq!(provider(&operator, "ollama").await["state"], "ready");
    let list = get(&ada, "/api/providers").await.expect_status(200);
    assert!(list["providers"].as_array().unwrap().iter().all(|provider| provider["id"] != "ollama"), "{list}");
    assert!(models.requests().iter().all(|request| request.api.is_none()), "no model was asked");
    server.terminate(Duration::from_secs(30)).await.unwrap();

    let mut binary = binary.with("GREENROOM_MCP__EGRESS_ALLOW", "127.0.0.1,localhost");
    let (server, again) = binary.serve().await;
    let ada = TestClient::new(again.base_url()).unwrap().with_token(ada.token().unwrap());
    assert_eq!(test(&ada, "named").await["ok"], true);
    server.terminate(Duration::from_secs(30)).await.unwrap();
    models.stop().await;
}
