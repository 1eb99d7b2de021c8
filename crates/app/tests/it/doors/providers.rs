//! Who can answer here.

use super::scene::get;
use serde_json::json;
use testkit::client::Api;

doors! {
    server: they_say_what_they_can_and_whether_they_are_there;
}

async fn they_say_what_they_can_and_whether_they_are_there(api: &Api) {
    let list = get(api, "/api/providers").await.is(200);
    let providers = list["providers"].as_array().unwrap();
    let scripted = providers.iter().find(|provider| provider["name"] == "scripted").unwrap();
    let can =
        json!({"resume": false, "steer": true, "approvals": true, "thinking": true, "mcp": false, "skills": false});
    let there = json!({"state": "ready", "version": null, "program": null});
    assert_eq!(*scripted, json!({"name": "scripted", "capabilities": can, "inspection": there}));
    for provider in providers {
        let program = provider["inspection"]["program"].as_str().unwrap_or_default();
        assert!(!program.contains('/'), "a file name at most: {provider}");
    }
}
