//! Brings the derived schemas into the shapes that validators and client generators understand. Works on the finished
//! document, so that a new type needs no care of its own. Pure.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const SCHEMA_REF: &str = "#/components/schemas/";
const STREAM_FRAME: &str = "StreamFrame";

/// String enums to which values may be added: a client must not refuse a value that it does not know.
const OPEN_ENUMS: [&str; 3] = ["Code", "AuditAction", "AuditedObject"];

/// Types that refuse unknown fields and have flattened ones: the derived schema does not say so.
const CLOSED: [&str; 1] = ["McpServerSpec"];

type Schemas = Map<String, Value>;

pub(super) fn finish(document: &mut Value) {
    if let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        close(schemas);
        let derived = schemas.clone();
        schemas.values_mut().for_each(|schema| merge_strict_parts(schema, &derived, false));
        name_union_members(schemas);
        open_enums(schemas);
        open_events(schemas);
    }
    if let Some(paths) = document.get_mut("paths") {
        describe_bytes(paths);
        describe_streams(paths);
    }
    document["components"]["schemas"][STREAM_FRAME] = stream_frame();
}

fn close(schemas: &mut Schemas) {
    for name in CLOSED {
        let parts = schemas.get_mut(name).and_then(|schema| schema.get_mut("allOf")).and_then(Value::as_array_mut);
        if let Some(own) = parts.and_then(|parts| parts.last_mut()) {
            own["additionalProperties"] = false.into();
        }
    }
}

/// `allOf` with a part that allows no other properties can never be valid: the parts become one object. So do the members
/// of a union, because generators drop members that are not objects.
fn merge_strict_parts(schema: &mut Value, schemas: &Schemas, in_union: bool) {
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let parts: Vec<Value> = parts.iter().map(|part| resolved(part, schemas)).collect();
        let are_objects = parts.iter().all(|part| part.get("properties").is_some() || part.get("allOf").is_some());
        if (parts.iter().any(is_strict) || in_union) && are_objects {
            let about = schema.get("description").cloned();
            *schema = merged(&parts, schemas);
            if let Some(about) = about {
                schema["description"] = about;
            }
        }
    }
    match schema {
        Value::Object(fields) => {
            for (name, field) in fields {
                let in_union = matches!(name.as_str(), "oneOf" | "anyOf");
                match field {
                    Value::Array(members) if in_union => {
                        members.iter_mut().for_each(|member| merge_strict_parts(member, schemas, true));
                    }
                    field => merge_strict_parts(field, schemas, false),
                }
            }
        }
        Value::Array(members) => members.iter_mut().for_each(|member| merge_strict_parts(member, schemas, false)),
        _ => {}
    }
}

fn is_strict(part: &Value) -> bool {
    part.get("additionalProperties") == Some(&Value::Bool(false))
}

fn resolved(schema: &Value, schemas: &Schemas) -> Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix(SCHEMA_REF));
    name.and_then(|name| schemas.get(name)).unwrap_or(schema).clone()
}

fn merged(parts: &[Value], schemas: &Schemas) -> Value {
    let (mut properties, mut required, mut about) = (Map::new(), Vec::new(), None);
    for part in parts {
        let part = match part.get("allOf").and_then(Value::as_array) {
            Some(inner) => merged(&inner.iter().map(|part| resolved(part, schemas)).collect::<Vec<_>>(), schemas),
            None => part.clone(),
        };
        properties.extend(part.get("properties").and_then(Value::as_object).cloned().unwrap_or_default());
        required.extend(part.get("required").and_then(Value::as_array).cloned().unwrap_or_default());
        about = about.or_else(|| part.get("description").cloned());
    }
    let mut object = json!({"type": "object", "properties": properties});
    // The last part has the fields of the type itself, which decides for the flattened ones.
    if parts.last().is_some_and(is_strict) {
        object["additionalProperties"] = false.into();
    }
    if !required.is_empty() {
        object["required"] = required.into();
    }
    if let Some(about) = about {
        object["description"] = about;
    }
    object
}

/// Unions of anonymous objects with a tag get a name for each member, and a discriminator.
fn name_union_members(schemas: &mut Schemas) {
    let mut added = BTreeMap::new();
    for (name, schema) in schemas.iter_mut() {
        let Some(members) = schema.get("oneOf").and_then(Value::as_array) else { continue };
        let Some(tag) = common_tag(members) else { continue };
        let (mut refs, mut mapping) = (Vec::new(), Map::new());
        for member in members {
            let Some(value) = tag_value(member, &tag) else { continue };
            let member_name = format!("{}{name}", pascal(&value));
            let location = format!("{SCHEMA_REF}{member_name}");
            refs.push(json!({"$ref": location}));
            mapping.insert(value, location.into());
            added.insert(member_name, member.clone());
        }
        schema["oneOf"] = refs.into();
        schema["discriminator"] = json!({"propertyName": tag, "mapping": mapping});
    }
    for (name, schema) in added {
        schemas.entry(name).or_insert(schema);
    }
}

/// The property that has one value of its own in every member.
fn common_tag(members: &[Value]) -> Option<String> {
    let names = members.first()?.get("properties")?.as_object()?.keys();
    let is_tag = |name: &&String| members.iter().all(|member| tag_value(member, name).is_some());
    names.clone().find(is_tag).cloned()
}

fn tag_value(member: &Value, tag: &str) -> Option<String> {
    match member.get("properties")?.get(tag)?.get("enum")?.as_array()?.as_slice() {
        [Value::String(value)] => Some(value.clone()),
        _ => None,
    }
}

fn pascal(value: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    value.split(['_', ':', '-']).map(word).collect()
}

fn open_enums(schemas: &mut Schemas) {
    for name in OPEN_ENUMS {
        if let Some(schema) = schemas.get_mut(name)
            && let Some(known) = schema.get("enum").cloned()
        {
            let about = schema.get("description").cloned().unwrap_or_default();
            let about =
                format!("{} Values may be added: accept one that you do not know.", about.as_str().unwrap_or_default());
            *schema = json!({"description": about.trim(),
                             "anyOf": [{"type": "string", "enum": known}, {"type": "string"}]});
        }
    }
}

/// Event types may be added, so the union has a member for the others. It excludes the known types: a client that narrows
/// by `type` still gets one member.
fn open_events(schemas: &mut Schemas) {
    let Some(mapping) = schemas.get("Event").and_then(|event| event.pointer("/discriminator/mapping")) else { return };
    let known: Vec<String> = mapping.as_object().into_iter().flat_map(|mapping| mapping.keys().cloned()).collect();
    let own = json!({
        "type": "object",
        "required": ["type", "data"],
        "properties": {
            "type": {"type": "string", "not": {"enum": known}, "description": "A type that this document does not know."},
            "data": {"type": "object", "additionalProperties": true, "description": "What the event contains."},
        },
    });
    let other = json!({"description": "An event of a type that was added later. Skip it, but count its `seq`.",
                       "allOf": [{"$ref": format!("{SCHEMA_REF}EventEnvelope")}, own]});
    schemas.insert("OtherEvent".to_owned(), other);
    if let Some(members) = schemas.get_mut("Event").and_then(|event| event.get_mut("oneOf")?.as_array_mut()) {
        members.push(json!({"$ref": format!("{SCHEMA_REF}OtherEvent")}));
    }
}

/// Bytes are derived as a list of numbers, which is right in JSON only.
fn describe_bytes(value: &mut Value) {
    if let Some(content) = value.get_mut("content").and_then(Value::as_object_mut) {
        for (kind, media) in content {
            if !kind.contains("json")
                && media.get("schema").is_some_and(|schema| schema.get("type") == Some(&json!("array")))
            {
                media["schema"] = json!({"type": "string", "format": "binary"});
            }
        }
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(describe_bytes),
        Value::Array(entries) => entries.iter_mut().for_each(describe_bytes),
        _ => {}
    }
}

/// A stream is described by one of its frames, as client libraries read them.
fn describe_streams(value: &mut Value) {
    if let Some(media) = value.pointer_mut("/content/text~1event-stream") {
        media["schema"] = json!({"$ref": format!("{SCHEMA_REF}{STREAM_FRAME}")});
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(describe_streams),
        Value::Array(entries) => entries.iter_mut().for_each(describe_streams),
        _ => {}
    }
}

fn stream_frame() -> Value {
    json!({
        "type": "object",
        "description": "One frame of a stream of server-sent events.",
        "properties": {
            "id": {"type": "string", "description": "Send it as `Last-Event-ID` to continue after this frame. A heartbeat has none."},
            "event": {"type": "string", "description": "The type of the event, but `error_reported` for `error`; or `heartbeat`, `reset`, `problem`. In another dialect, a name of that dialect."},
            "data": {"type": "string", "contentMediaType": "application/json",
                     "description": "An `Event`; a `StreamPlace` in `heartbeat` and `reset`, a `StreamProblem` in `problem`. In another dialect, what that describes."},
            "retry": {"type": "integer", "minimum": 0, "description": "Milliseconds to wait before the client reconnects."},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::finish;
    use serde_json::json;

    #[test]
    fn strict_parts_are_merged_and_unions_get_names() {
        let mut document = json!({
            "components": {"schemas": {
                "Spec": {"type": "object", "additionalProperties": false, "required": ["name"],
                         "properties": {"name": {"type": "string"}}},
                "Agent": {"allOf": [{"$ref": "#/components/schemas/Spec"},
                                    {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}]},
                "New": {"allOf": [{"$ref": "#/components/schemas/Spec"},
                                  {"type": "object", "additionalProperties": false, "required": ["key"],
                                   "properties": {"key": {"type": "string"}}}]},
                "Part": {"oneOf": [
                    {"type": "object", "properties": {"type": {"type": "string", "enum": ["text"]}}},
                    {"allOf": [{"$ref": "#/components/schemas/Spec"},
                               {"type": "object", "properties": {"type": {"type": "string", "enum": ["tool"]}}}]}]},
                "Code": {"type": "string", "enum": ["a"], "description": "A code."}}},
            "paths": {"/x": {"get": {"responses": {"200": {"content": {
                "application/zip": {"schema": {"type": "array", "items": {"type": "integer"}}}}}}}}}});
        finish(&mut document);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Agent"]["required"], json!(["name", "id"]));
        assert!(schemas["Agent"].get("additionalProperties").is_none());
        assert_eq!(schemas["Spec"]["additionalProperties"], false, "a request stays strict");
        assert_eq!(schemas["New"]["additionalProperties"], false, "also with flattened fields");
        assert_eq!(schemas["New"]["required"], json!(["name", "key"]));
        assert_eq!(schemas["Part"]["discriminator"]["mapping"]["tool"], "#/components/schemas/ToolPart");
        assert_eq!(schemas["ToolPart"]["properties"]["name"]["type"], "string");
        assert_eq!(schemas["Code"]["anyOf"][1], json!({"type": "string"}));
        let bytes = &document["paths"]["/x"]["get"]["responses"]["200"]["content"]["application/zip"]["schema"];
        assert_eq!(*bytes, json!({"type": "string", "format": "binary"}));
    }
}
