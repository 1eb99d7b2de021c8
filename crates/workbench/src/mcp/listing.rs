//! The tools of a server. Each tool is read on its own: an invalid one is quarantined with the reason, and the others
//! can be used.

use super::schema;
use rmcp::model::Implementation;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;

const MAX_NAME_CHARS: usize = 128;
/// A model reads the description in every turn; a longer one is an attack or a mistake.
const MAX_DESCRIPTION_CHARS: usize = 16 * 1024;
const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// A server may send any number of invalid tools.
const MAX_QUARANTINED: usize = 200;

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct McpToolListing {
    /// In the order of the server.
    pub tools: Vec<McpTool>,
    pub quarantined: Vec<QuarantinedTool>,
    pub protocol_version: String,
    pub server: Option<McpServerIdentity>,
    /// The server's instructions for a model. Untrusted text: show it as such.
    pub instructions: Option<String>,
    /// Problems with the list as a whole.
    pub remarks: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct McpTool {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Map<String, Value>,
    pub output_schema: Option<Map<String, Value>>,
    pub annotations: McpToolAnnotations,
}

/// Hints by the server about its own tool: not a basis for trust.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct McpToolAnnotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct QuarantinedTool {
    pub name: Option<String>,
    pub reason: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct McpServerIdentity {
    pub name: String,
    pub version: String,
    pub title: Option<String>,
}

impl From<&Implementation> for McpServerIdentity {
    fn from(server: &Implementation) -> Self {
        let short = |text: &str| text.chars().take(MAX_NAME_CHARS).collect::<String>();
        let title = server.title.as_deref().map(short);
        Self { name: short(&server.name), version: short(&server.version), title }
    }
}

impl McpTool {
    /// Changes when the server changes the tool's definition, so that an approval of the old definition does not apply
    /// to the new one.
    pub fn fingerprint(&self) -> String {
        let definition = serde_json::json!([self.name, self.description, self.input_schema]).to_string();
        domain::hex::encode(&Sha256::digest(definition))
    }
}

impl McpToolListing {
    /// Adds one page. `seen` holds the tool names of earlier pages.
    pub(super) fn add_page(&mut self, tools: Vec<Value>, seen: &mut HashSet<String>, max_tools: usize) {
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str).map(str::to_owned);
            let read = match read(tool) {
                Ok(tool) if !seen.insert(tool.name.clone()) => Err("another tool has the same name".to_owned()),
                Ok(_) if self.tools.len() >= max_tools => Err(format!("the server has more than {max_tools} tools")),
                other => other,
            };
            match read {
                Ok(tool) => self.tools.push(tool),
                Err(reason) if self.quarantined.len() < MAX_QUARANTINED => {
                    let name = name.map(|name| name.chars().take(MAX_NAME_CHARS).collect());
                    self.quarantined.push(QuarantinedTool { name, reason });
                }
                Err(_) => {}
            }
        }
    }
}

fn read(tool: Value) -> Result<McpTool, String> {
    let Value::Object(mut tool) = tool else { return Err("it is not an object".to_owned()) };
    let name = match tool.remove("name") {
        Some(Value::String(name)) => name,
        Some(other) => return Err(format!("its name is {other}, not a string")),
        None => return Err("it has no name".to_owned()),
    };
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(format!("its name is not one line of 1 to {MAX_NAME_CHARS} characters"));
    }
    let input_schema = match tool.remove("inputSchema") {
        Some(Value::Object(schema)) => schema,
        Some(_) => return Err("its inputSchema is not an object".to_owned()),
        None => return Err("it has no inputSchema".to_owned()),
    };
    if is_larger_than(&input_schema, MAX_SCHEMA_BYTES) {
        return Err(format!("its inputSchema is larger than {MAX_SCHEMA_BYTES} bytes"));
    }
    schema::check_input(&input_schema)?;
    let output_schema = match tool.remove("outputSchema") {
        Some(Value::Object(schema)) => Some(schema),
        _ => None,
    };
    let annotations = tool.remove("annotations").unwrap_or_default();
    let hint = |key: &str| annotations.get(key).and_then(Value::as_bool);
    let title = text(tool.remove("title")).or_else(|| text(annotations.get("title").cloned()));
    Ok(McpTool {
        name,
        title,
        description: text(tool.remove("description")),
        input_schema,
        output_schema,
        annotations: McpToolAnnotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
    })
}

fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) if text.len() <= MAX_DESCRIPTION_CHARS => Some(text),
        Some(Value::String(text)) => Some(text.chars().take(MAX_DESCRIPTION_CHARS).collect()),
        _ => None,
    }
}

/// Estimates the size without serializing the schema.
fn is_larger_than(schema: &Map<String, Value>, bytes: usize) -> bool {
    fn size(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.iter().map(|item| size(item) + 1).sum(),
            Value::Object(map) => map.iter().map(|(key, value)| key.len() + size(value) + 4).sum(),
            _ => 5,
        }
    }
    schema.iter().map(|(key, value)| key.len() + size(value) + 4).sum::<usize>() > bytes
}

#[cfg(test)]
mod tests {
    use super::McpToolListing;
    use serde_json::{Value, json};
    use std::collections::HashSet;

    fn listing(tools: Value, max: usize) -> McpToolListing {
        let mut listing = McpToolListing::default();
        listing.add_page(tools.as_array().unwrap().clone(), &mut HashSet::new(), max);
        listing
    }

    #[test]
    fn each_invalid_tool_is_quarantined_with_its_reason() {
        let schema = json!({"type": "object"});
        let listing = listing(
            json!([
                {"name": "good", "inputSchema": schema, "description": "d", "annotations": {"readOnlyHint": true}},
                {"name": "hint", "inputSchema": schema, "annotations": {"readOnlyHint": "yes"}, "description": 7},
                {"name": "none"},
                {"name": "null", "inputSchema": null},
                {"name": "bool", "inputSchema": true},
                {"name": 7, "inputSchema": schema},
                {"name": "good", "inputSchema": schema},
                {"name": "a\nb", "inputSchema": schema},
                {"inputSchema": schema},
                "tool",
                {"name": "odd", "inputSchema": {"type": "object", "properties": 1}},
            ]),
            100,
        );
        let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good", "hint"]);
        assert_eq!(listing.tools[0].annotations.read_only, Some(true));
        assert_eq!((listing.tools[1].annotations.read_only, &listing.tools[1].description), (None, &None));
        let reasons: Vec<(Option<&str>, &str)> =
            listing.quarantined.iter().map(|bad| (bad.name.as_deref(), bad.reason.as_str())).collect();
        assert_eq!(reasons[0], (Some("none"), "it has no inputSchema"));
        assert_eq!(reasons[3], (None, "its name is 7, not a string"));
        assert_eq!(reasons[4], (Some("good"), "another tool has the same name"));
        assert_eq!(reasons.len(), 9);
    }

    #[test]
    fn invariant_14_limits_tools_and_descriptions_are_bounded() {
        let tool = |n: usize| json!({"name": format!("t{n}"), "inputSchema": {}, "description": "x".repeat(100_000)});
        let listing = listing(Value::Array((0..5).map(tool).collect()), 3);
        assert_eq!((listing.tools.len(), listing.quarantined.len()), (3, 2));
        assert_eq!(listing.tools[0].description.as_ref().unwrap().len(), 16 * 1024);
    }

    #[test]
    fn a_changed_description_changes_the_fingerprint() {
        let one = |description: &str| {
            listing(json!([{"name": "t", "inputSchema": {}, "description": description}]), 9).tools.remove(0)
        };
        assert_eq!(one("a").fingerprint(), one("a").fingerprint());
        assert_ne!(one("a").fingerprint(), one("b").fingerprint());
    }
}
