//! The list of providers.

use super::requests::get;
use serde_json::json;
use testkit::client::TestClient;

on_both_databases! {
    server: providers_report_capabilities_and_availability;
}

async fn providers_report_capabilities_and_availability(api: &TestClient) {
    let list = get(api, "/api/providers").await.expect_status(200);
    let providers = list["providers"].as_array().unwrap();
    let scripted = providers.iter().find(|provider| provider["name"] == "scripted").unwrap();
    let can =
        json!({"resume": false, "steer": true, "approvals": true, "thinking": true, "mcp": false, "skills": false});
    let there = json!({"state": "ready", "version": null, "program": null});
    assert_eq!(*scripted, json!({"name": "scripted", "capabilities": can, "inspection": there}));
    for provider in providers {
        let program = provider["inspection"]["program"].as_str().unwrap_or_default();
        assert!(!program.contains('/'), "only a file name may be shown: {provider}");
    }
}
