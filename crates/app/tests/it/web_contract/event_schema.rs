//! The published schema of events describes exactly what is sent.

use super::{
    sample_journal::json_of,
    sample_runs::sample,
    schema_check::{SchemaCheck, component_name, fields_of},
};
use domain::event::EventType;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::{database::TestDatabase, server::TestServer};

async fn document() -> Value {
    let server = TestServer::start(TestDatabase::sqlite()).await;
    let response = server.api().request(reqwest::Method::GET, "/openapi.json").send().await.unwrap();
    let document = response.json().await.unwrap();
    server.finish().await;
    document
}

fn sample_values() -> Vec<Value> {
    sample().events.iter().map(|event| serde_json::from_str(&json_of(event)).unwrap()).collect()
}

#[tokio::test]
async fn every_event_type_has_a_schema_that_describes_exactly_its_fields() {
    let document = document().await;
    let mut check = SchemaCheck::new(&document);
    let mapping = check.component("Event")["discriminator"]["mapping"].as_object().unwrap();
    let described: BTreeSet<&str> = mapping.keys().map(String::as_str).collect();
    assert_eq!(described, EventType::ALL.iter().map(|kind| kind.as_str()).collect());
    for event in sample_values() {
        check.check("Event", &event).unwrap_or_else(|error| panic!("{error} in {event}"));
    }
    for reference in mapping.values() {
        let data = format!("{}Data", component_name(reference.as_str().unwrap()).strip_suffix("Event").unwrap());
        let fields = fields_of(&data, check.component(&data));
        assert!(!fields.is_empty(), "{data} describes nothing");
        let unseen: Vec<_> = fields.difference(&check.seen).collect();
        assert!(unseen.is_empty(), "no event of the sample has {unseen:?}");
    }
}

#[tokio::test]
async fn the_check_finds_what_the_schema_does_not_describe() {
    let document = document().await;
    let mut check = SchemaCheck::new(&document);
    let delta = sample_values().into_iter().find(|event| event["type"] == "content_delta").unwrap();
    for (pointer, value) in [
        ("/seq", json!("1")),
        ("/type", json!("no_such_type")),
        ("/type", json!("tool_use")),
        ("/data", json!({"delta": "x"})),
        ("/data/stream_id", json!(7)),
        ("/created_at", json!(null)),
    ] {
        let mut wrong = delta.clone();
        *wrong.pointer_mut(pointer).unwrap() = value;
        assert!(check.check("Event", &wrong).is_err(), "{pointer} of {wrong}");
    }
    let mut undescribed = delta.clone();
    undescribed["data"]["new_field"] = json!(1);
    assert!(check.check("Event", &undescribed).is_err());
    assert_eq!(check.check("Event", &delta), Ok(()));
}
