//! Checks that a tool's input schema can be sent to a model. Not a full JSON Schema validator: it finds the errors for
//! which model APIs reject a whole request.

use serde_json::{Map, Value};

const MAX_DEPTH: usize = 64;
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
/// Keys whose value is a map of names to schemas.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
const LISTED: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const SINGLE: [&str; 5] = ["items", "additionalProperties", "not", "contains", "propertyNames"];

/// Checks the schema of a tool's arguments, which must be an object.
pub fn check_input(schema: &Map<String, Value>) -> Result<(), String> {
    match schema.get("type") {
        None => {}
        Some(Value::String(kind)) if kind == "object" => {}
        Some(other) => return Err(format!("its inputSchema is of type {other}, not \"object\"")),
    }
    check(schema, 0)
}

fn check(schema: &Map<String, Value>, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("its schema is more than {MAX_DEPTH} levels deep"));
    }
    if let Some(kind) = schema.get("type") {
        let is_type = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
        let fits = is_type(kind) || kind.as_array().is_some_and(|kinds| !kinds.is_empty() && kinds.iter().all(is_type));
        if !fits {
            return Err(format!("its schema has the unknown type {kind}"));
        }
    }
    if let Some(required) = schema.get("required")
        && !required.as_array().is_some_and(|names| names.iter().all(Value::is_string))
    {
        return Err("\"required\" in its schema is not a list of names".to_owned());
    }
    for key in NAMED {
        match schema.get(key) {
            None => {}
            Some(Value::Object(named)) => {
                named.iter().try_for_each(|(name, inner)| check_inner(inner, &format!("{key}/{name}"), depth))?;
            }
            Some(_) => return Err(format!("{key:?} in its schema is not an object")),
        }
    }
    for key in LISTED {
        match schema.get(key) {
            None => {}
            Some(Value::Array(listed)) => listed.iter().try_for_each(|inner| check_inner(inner, key, depth))?,
            Some(_) => return Err(format!("{key:?} in its schema is not a list")),
        }
    }
    for key in SINGLE {
        match schema.get(key) {
            None => {}
            // Before draft 2020-12 a list of schemas was allowed here.
            Some(Value::Array(listed)) if key == "items" => {
                listed.iter().try_for_each(|inner| check_inner(inner, key, depth))?;
            }
            Some(inner) => check_inner(inner, key, depth)?,
        }
    }
    Ok(())
}

fn check_inner(schema: &Value, path: &str, depth: usize) -> Result<(), String> {
    match schema {
        Value::Bool(_) => Ok(()),
        Value::Object(schema) => check(schema, depth + 1),
        _ => Err(format!("its schema has no valid schema at {path:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::check_input;
    use serde_json::{Value, json};

    fn check(schema: Value) -> Result<(), String> {
        check_input(schema.as_object().unwrap())
    }

    #[test]
    fn valid_schemas_are_accepted() {
        for schema in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": true}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"items": [{"type": "string"}]}}, "additionalProperties": false}),
            json!({"type": "object", "$defs": {"x": {"anyOf": [{"type": "string"}, {"const": 1}]}}, "format": "odd"}),
        ] {
            assert_eq!(check(schema.clone()), Ok(()), "{schema}");
        }
    }

    #[test]
    fn errors_are_described() {
        for (schema, expected) in [
            (json!({"type": "string"}), "not \"object\""),
            (json!({"type": "object", "properties": []}), "not an object"),
            (json!({"type": "object", "properties": {"a": 7}}), "properties/a"),
            (json!({"type": "object", "properties": {"a": {"type": "text"}}}), "unknown type"),
            (json!({"type": "object", "required": "a"}), "required"),
            (json!({"type": "object", "anyOf": {}}), "not a list"),
        ] {
            let error = check(schema.clone()).unwrap_err();
            assert!(error.contains(expected), "{schema}: {error}");
        }
        let deep = (0..100).fold(json!({}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
        assert!(check(deep).unwrap_err().contains("deep"));
    }
}
