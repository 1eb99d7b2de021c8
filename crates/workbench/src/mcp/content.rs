//! The result of a tool call: text, images, resources. Unknown content is kept unchanged.

use serde::Serialize;
use serde_json::Value;
use std::fmt;

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct McpCallResult {
    pub content: Vec<McpContent>,
    pub structured: Option<Value>,
    pub is_error: bool,
    /// The JSON-RPC error code, if the call returned an error.
    pub code: Option<i64>,
    /// Other things that happened during the call, to show in the room.
    pub notices: Vec<McpNotice>,
}

#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum McpContent {
    Text {
        text: String,
    },
    /// Base64.
    Image {
        data: String,
        media_type: String,
    },
    Audio {
        data: String,
        media_type: String,
    },
    Resource {
        uri: String,
        media_type: Option<String>,
        text: Option<String>,
        /// Base64.
        blob: Option<String>,
    },
    ResourceLink {
        uri: String,
        name: Option<String>,
        description: Option<String>,
        media_type: Option<String>,
    },
    Other {
        value: Value,
    },
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum McpNotice {
    /// The server had ended and was restarted for this call.
    Restarted { server: String, reason: String },
}

impl fmt::Display for McpNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restarted { server, reason } => {
                write!(f, "the MCP server {server:?} had ended ({reason}) and was restarted")
            }
        }
    }
}

impl McpCallResult {
    /// Converts a JSON-RPC error into a result that a model can read.
    pub(super) fn from_rpc_error(code: i64, message: &str, data: Option<&Value>) -> Self {
        let mut text = format!("MCP error {code}: {message}");
        if let Some(data) = data.filter(|data| !data.is_null()) {
            text.push_str(&format!(" ({data})"));
        }
        let content = vec![McpContent::Text { text }];
        Self { content, is_error: true, code: Some(code), ..Self::default() }
    }

    /// Returns all content as text, for a model that reads only text. Other content is replaced by a description.
    pub fn text(&self) -> String {
        let mut pieces: Vec<String> = self.content.iter().map(McpContent::as_text).collect();
        if pieces.is_empty()
            && let Some(structured) = &self.structured
        {
            pieces.push(structured.to_string());
        }
        pieces.join("\n")
    }

    /// Reads the `result` of a response. Accepts any JSON; `Err` only if the server requires an unsupported feature.
    pub(super) fn from_result(result: Value) -> Result<Self, String> {
        let Value::Object(mut result) = result else {
            return Ok(Self { content: vec![McpContent::Other { value: result }], ..Self::default() });
        };
        match result.get("resultType").and_then(Value::as_str) {
            Some("input_required") => {
                return Err("it asks for user input, which is not supported".to_owned());
            }
            Some("task") => return Err("it answers with a task, which is not supported".to_owned()),
            _ => {}
        }
        let content = match result.remove("content") {
            Some(Value::Array(blocks)) => blocks.into_iter().map(McpContent::read).collect(),
            Some(other) => vec![McpContent::Other { value: other }],
            None => Vec::new(),
        };
        let structured = result.remove("structuredContent").filter(|structured| !structured.is_null());
        let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
        Ok(Self { content, structured, is_error, code: None, notices: Vec::new() })
    }
}

impl McpContent {
    fn read(block: Value) -> Self {
        Self::known(&block).unwrap_or(Self::Other { value: block })
    }

    fn known(block: &Value) -> Option<Self> {
        let text = |key: &str| block.get(key)?.as_str().map(str::to_owned);
        Some(match block.get("type")?.as_str()? {
            "text" => Self::Text { text: text("text")? },
            "image" => Self::Image { data: text("data")?, media_type: text("mimeType")? },
            "audio" => Self::Audio { data: text("data")?, media_type: text("mimeType")? },
            "resource_link" => Self::ResourceLink {
                uri: text("uri")?,
                name: text("name"),
                description: text("description"),
                media_type: text("mimeType"),
            },
            "resource" => {
                let resource = block.get("resource")?;
                let text = |key: &str| resource.get(key)?.as_str().map(str::to_owned);
                Self::Resource {
                    uri: text("uri")?,
                    media_type: text("mimeType"),
                    text: text("text"),
                    blob: text("blob"),
                }
            }
            _ => return None,
        })
    }

    fn as_text(&self) -> String {
        let kind = |media_type: &Option<String>| media_type.clone().unwrap_or_else(|| "unknown type".to_owned());
        match self {
            Self::Text { text } | Self::Resource { text: Some(text), .. } => text.clone(),
            Self::Image { media_type, data } => format!("[image, {media_type}, {} bytes]", decoded_length(data)),
            Self::Audio { media_type, data } => format!("[audio, {media_type}, {} bytes]", decoded_length(data)),
            Self::Resource { uri, media_type, blob, .. } => {
                let bytes = decoded_length(blob.as_deref().unwrap_or_default());
                format!("[resource {uri}, {}, {bytes} bytes]", kind(media_type))
            }
            Self::ResourceLink { uri, name, description, media_type } => {
                let named = [name, description].into_iter().flatten().cloned().collect::<Vec<_>>().join(": ");
                format!("[link to {uri}, {}] {named}", kind(media_type)).trim_end().to_owned()
            }
            Self::Other { value } => value.to_string(),
        }
    }
}

fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::{McpCallResult, McpContent};
    use serde_json::json;

    #[test]
    fn all_content_is_kept() {
        let result = McpCallResult::from_result(json!({"content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside", "mimeType": "text/plain"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
            {"type": "hologram", "beam": 1},
            {"type": "image"},
        ], "structuredContent": {"a": 1}, "isError": true}))
        .unwrap();
        assert!(result.is_error && result.structured == Some(json!({"a": 1})));
        assert!(matches!(&result.content[1], McpContent::Image { media_type, .. } if media_type == "image/png"));
        assert!(matches!(&result.content[5], McpContent::Other { value } if value["beam"] == 1));
        assert_eq!(
            result.text(),
            "hello\n[image, image/png, 3 bytes]\ninside\n[resource file:///b, unknown type, 3 bytes]\n\
             [link to file:///c, unknown type] c\n{\"beam\":1,\"type\":\"hologram\"}\n{\"type\":\"image\"}"
        );
    }

    #[test]
    fn unusual_results_are_accepted() {
        assert_eq!(McpCallResult::from_result(json!({})).unwrap(), McpCallResult::default());
        assert_eq!(McpCallResult::from_result(json!({"structuredContent": {"a": 1}})).unwrap().text(), "{\"a\":1}");
        assert_eq!(McpCallResult::from_result(json!("plain")).unwrap().text(), "\"plain\"");
        assert!(McpCallResult::from_result(json!({"resultType": "input_required"})).is_err());
    }

    #[test]
    fn an_rpc_error_keeps_its_code_and_message() {
        let error = McpCallResult::from_rpc_error(-32602, "no such tool", Some(&json!({"tool": "x"})));
        assert_eq!((error.is_error, error.code), (true, Some(-32602)));
        assert_eq!(error.text(), "MCP error -32602: no such tool ({\"tool\":\"x\"})");
    }
}
