//! The OpenAPI document: a snapshot, so that changes are visible in review and the web client is generated from it, and
//! the rules that every operation keeps. Each failure says which operation or field, and what to add.

use super::requests::{get, response_to};
use reqwest::Method;
use serde_json::Value;
use std::collections::BTreeSet;
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};

const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

#[tokio::test]
async fn the_description_of_the_api() {
    let server = TestServer::start(TestDatabase::sqlite()).await;
    let description = get(server.api(), "/openapi.json").await.expect_status(200);
    insta::assert_json_snapshot!(description);
    server.finish().await;
}

#[tokio::test]
async fn every_operation_parameter_and_field_is_described() {
    let server = TestServer::start(TestDatabase::sqlite()).await;
    let document = get(server.api(), "/openapi.json").await.expect_status(200);
    let mut missing = Vec::new();
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for (path, method, operation) in operations(&document) {
        let place = format!("{method} {path}");
        if operation["description"].as_str().is_none_or(str::is_empty) {
            missing.push(format!("{place}: add a second paragraph to the doc comment of its handler"));
        }
        for tag in operation["tags"].as_array().unwrap() {
            if !tags.contains(&tag) {
                missing.push(format!("{place}: add its tag {tag} to TAGS in crates/server/src/openapi/mod.rs"));
            }
        }
        if operation["security"].is_null() {
            missing.push(format!("{place}: it has no security"));
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["$ref"].is_null() && parameter["description"].as_str().is_none_or(str::is_empty) {
                missing.push(format!("{place}: add a doc comment to the parameter {}", parameter["name"]));
            }
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        find_undescribed(name, schema, &mut missing);
    }
    assert!(missing.is_empty(), "{} without a description:\n{}", missing.len(), missing.join("\n"));
    server.finish().await;
}

fn find_undescribed(place: &str, schema: &Value, missing: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if property["description"].as_str().is_none_or(str::is_empty) {
                    missing.push(format!(
                        "{place}.{name}: add a doc comment to the field, or an entry to crates/server/src/openapi/glossary.rs"
                    ));
                }
            }
            fields.iter().for_each(|(name, field)| find_undescribed(&format!("{place}/{name}"), field, missing));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| find_undescribed(place, entry, missing)),
        _ => {}
    }
}

/// Whether an example fits its schema is checked by the linter of the stage `api`.
#[tokio::test]
async fn every_parameter_and_field_of_a_request_has_an_example() {
    let server = TestServer::start(TestDatabase::sqlite()).await;
    let document = get(server.api(), "/openapi.json").await.expect_status(200);
    let mut missing = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = resolved(parameter, &document);
            if parameter["example"].is_null() && !has_example(&parameter["schema"], &document) {
                missing.insert(format!("{method} {path}: the parameter {}", parameter["name"]));
            }
        }
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        find_without_example("", body, &document, &mut BTreeSet::new(), &mut missing);
    }
    let missing: Vec<String> = missing.into_iter().collect();
    let help = "add it at the field, or to crates/server/src/openapi/examples.rs";
    assert!(missing.is_empty(), "{} without an example; {help}:\n{}", missing.len(), missing.join("\n"));
    server.finish().await;
}

fn find_without_example<'a>(
    place: &str,
    schema: &'a Value,
    document: &'a Value,
    seen: &mut BTreeSet<&'a str>,
    missing: &mut BTreeSet<String>,
) {
    let name = schema["$ref"].as_str();
    if name.is_some_and(|name| !seen.insert(name)) {
        return;
    }
    let place = name.and_then(|name| name.rsplit('/').next()).unwrap_or(place);
    let schema = resolved(schema, document);
    for (field, property) in schema["properties"].as_object().into_iter().flatten() {
        if !has_example(property, document) {
            missing.insert(format!("{place}.{field}"));
        }
        find_without_example(place, property, document, seen, missing);
    }
    let members = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let inner = [&schema["items"], &schema["additionalProperties"]].into_iter().filter(|inner| inner.is_object());
    members.chain(inner).for_each(|inner| find_without_example(place, inner, document, seen, missing));
}

/// An object has the examples of its fields.
fn has_example(schema: &Value, document: &Value) -> bool {
    let schema = resolved(schema, document);
    let is_told = ["const", "default", "enum", "example", "examples"].iter().any(|key| !schema[key].is_null());
    let of_any = |key: &str| schema[key].as_array().is_some_and(|all| all.iter().any(|one| has_example(one, document)));
    let has_type = |kind: &str| {
        schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
    };
    is_told
        || has_type("boolean")
        || schema["properties"].is_object()
        || of_any("allOf")
        || of_any("anyOf")
        || of_any("oneOf")
        || ["items", "additionalProperties"]
            .iter()
            .any(|key| schema[key].is_object() && has_example(&schema[key], document))
}

fn resolved<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
    pointer.map_or(schema, |pointer| document.pointer(pointer).unwrap())
}

/// The path, the method and the description of every operation.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let operations = item.as_object().unwrap().iter().filter(|(method, _)| METHODS.contains(&method.as_str()));
        found.extend(operations.map(|(method, operation)| (path.as_str(), method.as_str(), operation)));
    }
    found
}

/// A key that is listed is read, and one that is not listed is not: a client relies on either.
#[tokio::test]
async fn the_idempotency_key_is_listed_where_it_is_used() {
    let server = TestServer::start(TestDatabase::sqlite()).await;
    let document = get(server.api(), "/openapi.json").await.expect_status(200);
    let mut wrong = Vec::new();
    for (path, method, operation) in operations(&document).into_iter().filter(|(_, method, _)| *method != "get") {
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        let is_listed = parameters.any(|one| one["$ref"] == "#/components/parameters/IdempotencyKey");
        if is_listed != refuses_a_bad_key(server.api(), path, method, operation).await {
            let listed = if is_listed { "lists" } else { "does not list" };
            wrong
                .push(format!("{method} {path} {listed} the key; see WITHOUT_KEY in crates/server/src/openapi/mod.rs"));
        }
        if is_listed && operation["responses"]["409"].is_null() {
            wrong.push(format!("{method} {path} lists a key and no 409"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.finish().await;
}

async fn refuses_a_bad_key(api: &TestClient, path: &str, method: &str, operation: &Value) -> bool {
    let id = "0199c1de-7d3f-7000-8000-000000000001";
    let mut filled = path.to_owned();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let value = if parameter["schema"]["type"] == "integer" || name == "version" { "1" } else { id };
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    let query: Vec<String> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|parameter| parameter["in"] == "query" && parameter["required"] == true)
        .map(|parameter| format!("{}=x", parameter["name"].as_str().unwrap()))
        .collect();
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let request =
        api.request(method, &format!("{filled}?{}", query.join("&"))).header("idempotency-key", "not one word");
    response_to(request.body("{}")).await.text.contains("An Idempotency-Key has")
}
