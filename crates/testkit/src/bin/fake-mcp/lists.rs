//! Tool lists: valid, long, and invalid ones that could break a client.

use crate::{FakeMcpServer, respond, send_line, tools};
use serde_json::{Value, json};

const PAGE: usize = 500;

impl FakeMcpServer {
    pub fn list(&self, id: &Value, params: &Value) {
        let cursor = params["cursor"].as_str();
        let result = match self.mode.as_str() {
            "bad-tools" => json!({"tools": bad()}),
            "no-list" => json!({"tools": "none"}),
            // An endless loop for a client that follows the cursor.
            "repeated-cursor" => {
                let number = if cursor.is_some() { 1 } else { 0 };
                json!({"tools": [tool(number)], "nextCursor": "again"})
            }
            "empty-cursor" => json!({"tools": [tool(0)], "nextCursor": ""}),
            "endless" => {
                let number: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
                json!({"tools": [tool(number)], "nextCursor": (number + 1).to_string()})
            }
            "many" => {
                let page: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
                let page = self.pages.get(page).map_or("{}", String::as_str);
                send_line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{page}}}"));
                return;
            }
            _ => {
                let tools = [tools::all(), self.extra.clone()].concat();
                json!({"tools": tools, "resultType": "complete"})
            }
        };
        respond(id, result);
    }
}

/// Builds the pages in advance, so that only the client is measured.
pub fn pages(tools: usize) -> Vec<String> {
    let pages = tools.div_ceil(PAGE);
    let page = |page: usize| {
        let tools: Vec<Value> = (page * PAGE..tools.min((page + 1) * PAGE)).map(tool).collect();
        let mut result = json!({"tools": tools});
        if page + 1 < pages {
            result["nextCursor"] = json!((page + 1).to_string());
        }
        result.to_string()
    };
    (0..pages).map(page).collect()
}

fn tool(number: usize) -> Value {
    json!({
        "name": format!("tool_{number}"),
        "description": format!("The tool number {number}. It does what tools do and says what it did, in many words."),
        "inputSchema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where to look for it, as a path from the root of the project."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "How many at most."},
                "mode": {"type": "string", "enum": ["fast", "careful"], "default": "fast"},
            },
            "required": ["path"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true},
    })
}

fn bad() -> Vec<Value> {
    let schema = json!({"type": "object"});
    vec![
        json!({"name": "good", "inputSchema": schema, "description": "works"}),
        json!({"name": "no_schema"}),
        json!({"name": "null_schema", "inputSchema": null}),
        json!({"name": "bool_schema", "inputSchema": true}),
        json!({"name": 7, "inputSchema": schema}),
        json!({"name": "odd_hint", "inputSchema": schema, "annotations": {"readOnlyHint": "yes"}}),
    ]
}
