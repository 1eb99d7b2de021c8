//! Examples of parameters and fields that mean the same wherever they appear. An example at the field wins; a parameter or
//! field of a request without either fails the test of the document. The linter of the stage `api` checks that each example
//! fits its schema.

use serde_json::{Value, json};

/// By the name of the field, sorted, as JSON. A name with fields of several types has an entry for each.
const FIELDS: &[(&str, &str)] = &[
    ("action", r#""create""#),
    ("after", "0"),
    ("after", r#""notes""#),
    ("against", "1"),
    ("allowedTools", r#"["Read"]"#),
    ("approval_seconds", "600"),
    ("args", r#"["-y", "@modelcontextprotocol/server-filesystem", "/srv/files"]"#),
    ("arguments", r#"{"path": "notes.md"}"#),
    ("at", "0"),
    ("attachments", "[]"),
    ("attended_minutes", "10"),
    ("base", "3"),
    ("base_url", r#""https://openrouter.ai/api/v1""#),
    ("before", "120"),
    ("body", r#""Greet people by their name.""#),
    ("category", r#""writing""#),
    ("cell", r#""p1""#),
    ("cells", r#"["p2", "p1"]"#),
    ("choices", r#"["short", "long"]"#),
    ("code", r#""k3v9-x2mq""#),
    ("command", r#""npx""#),
    ("comment", r#""Friendly, but too long.""#),
    ("compatibility", r#""Needs git.""#),
    ("confirm", r#""grm_…""#),
    ("content", r#""Hello!""#),
    ("context_window", "200000"),
    ("cwd", r#""/srv/files""#),
    ("deadline_ms", "10000"),
    ("debate_rounds", "2"),
    ("default_model", r#""claude-sonnet-4-5""#),
    ("description", r#""Greets people when they arrive.""#),
    ("digest", r#""9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08""#),
    ("disallowedTools", r#"["WebFetch"]"#),
    ("disk_bytes", "1000000000"),
    ("env", r#"{"LOG_LEVEL": "info"}"#),
    ("expires_in_days", "90"),
    ("files", "10000"),
    ("first_byte_seconds", "60"),
    ("folder", r#""site""#),
    ("from", r#""draft.md""#),
    ("headers", r#"{"Authorization": "Bearer ${FILES_TOKEN}"}"#),
    ("id", r#""openrouter""#),
    ("idle_seconds", "300"),
    ("input", r#"{"command": "git status"}"#),
    ("key", r#""sk-or-…""#),
    ("label", r#""1.2""#),
    ("license", r#""MIT""#),
    ("limit", "50"),
    ("limit_usd", "25"),
    ("max_messages", "30"),
    ("max_output_tokens", "8192"),
    ("max_rounds", "5"),
    ("mcpServers", r#"["files"]"#),
    ("mcpServers", r#"{"files": {"url": "https://tools.example.com/mcp"}}"#),
    ("mcp_servers", r#"["files"]"#),
    ("mcp_servers", r#"{"files": {"url": "https://tools.example.com/mcp"}}"#),
    ("media_type", r#""image/png""#),
    ("memory_bytes", "1073741824"),
    ("message", r#""Summarize the report.""#),
    ("metadata", r#"{"author": "Ann"}"#),
    ("model", r#""claude-sonnet-4-5""#),
    ("name", r#""notes""#),
    ("note", r#""Shorter""#),
    ("object", r#""room""#),
    ("output_bytes", "1000000"),
    ("page", "1"),
    ("pageSize", "25"),
    ("path", r#""docs/notes.md""#),
    ("port", "3000"),
    ("priority", "10"),
    ("processes", "64"),
    ("provider", r#""scripted""#),
    ("q", r#""release notes""#),
    ("search", r#""greet""#),
    ("seed", "7"),
    ("since", "0"),
    (
        "skill",
        r#"{"name": "greet", "description": "Greets people when they arrive.", "body": "Greet people by their name."}"#,
    ),
    ("skillIds", "[]"),
    ("skillmd", r#""Greet people by their name.""#),
    ("skills", r#"["greet"]"#),
    ("startupTimeout", "10000"),
    ("stop", r#"["END"]"#),
    ("systemPrompt", r#""Be brief.""#),
    ("system_prompt", r#""Be brief.""#),
    ("temperature", "0.7"),
    ("text", r#""Ann prefers short answers.""#),
    ("thinking_budget_tokens", "4096"),
    ("ticket", r#""grt_…""#),
    ("timeout", "60000"),
    ("timeout_seconds", "120"),
    ("to", r#""notes.md""#),
    ("token", r#""grm_…""#),
    ("tool", r#""Bash""#),
    ("tool_seconds", "600"),
    ("top_p", "0.9"),
    ("turns", "20"),
    ("unattended_rounds", "2"),
    ("url", r#""https://tools.example.com/mcp""#),
    ("values", r#"{"tone": "formal"}"#),
    ("version", "3"),
    ("version", r#""1.2""#),
    ("wall_seconds", "1800"),
];

pub(super) fn add(document: &mut Value) {
    if let Some(schemas) = document.pointer_mut("/components/schemas") {
        add_to_fields(schemas);
    }
    for (_, item) in document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten() {
        for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            parameters.into_iter().flatten().for_each(add_to_parameter);
        }
    }
}

fn add_to_fields(value: &mut Value) {
    if let Some(properties) = value.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            if let Some(example) = example(name, property) {
                property["examples"] = json!([example]);
            }
        }
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(add_to_fields),
        Value::Array(entries) => entries.iter_mut().for_each(add_to_fields),
        _ => {}
    }
}

fn add_to_parameter(parameter: &mut Value) {
    let (Some(name), Some(schema)) = (parameter.get("name").and_then(Value::as_str), parameter.get("schema")) else {
        return;
    };
    if parameter.get("example").is_none()
        && let Some(example) = example(name, schema)
    {
        parameter["example"] = example;
    }
}

/// What says more about the values of a schema than an example by its name. An empty default says nothing.
const TELLING: [&str; 8] = ["$ref", "allOf", "anyOf", "default", "enum", "example", "examples", "oneOf"];

fn example(name: &str, schema: &Value) -> Option<Value> {
    if tells(schema) {
        return None;
    }
    let first = FIELDS.partition_point(|(field, _)| *field < name);
    let named = FIELDS[first..].iter().take_while(|(field, _)| *field == name);
    named.filter_map(|(_, text)| serde_json::from_str(text).ok()).find(|value| has_type(value, schema))
}

fn tells(schema: &Value) -> bool {
    let is_empty = |value: &Value| *value == Value::Null || *value == json!([]) || *value == json!({});
    let has_format = schema.get("format").is_some() && has_type(&json!(""), schema);
    has_format || TELLING.iter().any(|key| schema.get(key).is_some_and(|value| !is_empty(value)))
}

fn has_type(value: &Value, schema: &Value) -> bool {
    let is_one = |kind: &Value| match kind.as_str() {
        // Of values that a schema describes, the example is there.
        Some("array") => value.is_array() && !schema["items"].is_null() && !tells(&schema["items"]),
        Some("integer") => value.is_i64(),
        Some("number") => value.is_number(),
        Some("object") => value.is_object() && schema.get("properties").is_none(),
        Some("string") => value.is_string(),
        _ => false,
    };
    match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(is_one),
        Some(kind) => is_one(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, add};
    use serde_json::{Value, json};

    #[test]
    fn the_table_is_sorted_and_is_json() {
        assert!(FIELDS.is_sorted_by(|a, b| a.0 <= b.0));
        for (name, text) in FIELDS {
            assert!(serde_json::from_str::<Value>(text).is_ok(), "{name}: {text}");
        }
    }

    #[test]
    fn an_example_fits_the_type_and_an_own_one_wins() {
        let mut document = json!({
            "components": {"schemas": {"Skill": {"properties": {
                "version": {"type": ["string", "null"]},
                "model": {"type": "string", "examples": ["own"]},
                "id": {"type": "string", "format": "uuid"},
                "skill": {},
                "limit": {"type": "string"}}}}},
            "paths": {"/x": {"get": {"parameters": [
                {"name": "version", "schema": {"type": "integer", "format": "int32"}},
                {"name": "limit", "schema": {"type": "integer", "default": 200}}]}}}});
        add(&mut document);
        let fields = &document["components"]["schemas"]["Skill"]["properties"];
        assert_eq!(fields["version"]["examples"], json!(["1.2"]));
        assert_eq!(fields["model"]["examples"], json!(["own"]));
        assert_eq!(fields["skill"]["examples"][0]["name"], "greet");
        assert!(fields["id"].get("examples").is_none() && fields["limit"].get("examples").is_none());
        let parameters = &document["paths"]["/x"]["get"]["parameters"];
        assert_eq!((&parameters[0]["example"], parameters[1].get("example")), (&json!(3), None));
    }
}
