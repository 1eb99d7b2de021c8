//! Reads the JSON files in this folder, and converts their entries to listings and answers.

use super::inputs::Inputs;
use rmcp::{
    ErrorData,
    model::{
        CallToolResult, ClientCapabilities, JsonObject, Prompt, PromptMessage, Resource, ResourceContents,
        ResourceTemplate, ResultType, Tool,
    },
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

const TOOLS: [&str; 2] = [include_str!("tools.json"), include_str!("asking_tools.json")];
const PROMPTS: [&str; 1] = [include_str!("prompts.json")];
const RESOURCES: [&str; 1] = [include_str!("resources.json")];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolEntry {
    pub name: String,
    description: String,
    input_schema: Option<JsonObject>,
    pub does: ToolAct,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolAct {
    Answer(Value),
    Log,
    Progress,
    Disconnect,
    Announce(ListChange),
    Require(ClientCapabilities),
    /// Sends a request to a legacy client during the call. Arguments are filled in.
    Ask(Value),
    /// Requests input from a modern client between two calls.
    Inputs(Inputs),
}

/// The list that changed.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "camelCase")]
pub enum ListChange {
    Tools,
    Prompts,
}

#[derive(Deserialize)]
pub struct PromptEntry {
    #[serde(flatten)]
    pub listed: Prompt,
    pub does: PromptAct,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PromptAct {
    /// Arguments are filled in.
    Messages(Value),
    Inputs(Inputs),
}

/// A template if its URI contains `{id}`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceEntry {
    pub uri: String,
    name: String,
    description: String,
    mime_type: String,
    content: FixtureContent,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum FixtureContent {
    Text(String),
    Blob(String),
}

pub fn tools() -> Result<Vec<ToolEntry>, ErrorData> {
    read(&TOOLS)
}

pub fn prompts() -> Result<Vec<PromptEntry>, ErrorData> {
    read(&PROMPTS)
}

pub fn resources() -> Result<Vec<ResourceEntry>, ErrorData> {
    read(&RESOURCES)
}

impl ToolEntry {
    /// Returns whether headers repeat its arguments, which rmcp compares.
    pub fn has_headers(&self) -> bool {
        self.input_schema.as_ref().is_some_and(|schema| json!(schema).to_string().contains("x-mcp-header"))
    }

    pub fn listed(self) -> Tool {
        let schema = self.input_schema.unwrap_or_else(|| JsonObject::from_iter([("type".into(), json!("object"))]));
        Tool::new(self.name, self.description, schema)
    }
}

impl ResourceEntry {
    const VARIABLE: &str = "{id}";

    pub fn is_template(&self) -> bool {
        self.uri.contains(Self::VARIABLE)
    }

    pub fn listed(self) -> Resource {
        Resource::new(self.uri, self.name).with_description(self.description).with_mime_type(self.mime_type)
    }

    pub fn listed_template(self) -> ResourceTemplate {
        ResourceTemplate::new(self.uri, self.name).with_description(self.description).with_mime_type(self.mime_type)
    }

    /// Returns the content for this URI, if it belongs to this resource.
    pub fn at(&self, uri: &str) -> Option<ResourceContents> {
        let id = match self.uri.split_once(Self::VARIABLE) {
            Some((before, after)) => uri.strip_prefix(before)?.strip_suffix(after)?,
            None if self.uri == uri => "",
            None => return None,
        };
        let contents = match &self.content {
            FixtureContent::Text(text) => ResourceContents::text(text.replace(Self::VARIABLE, id), uri),
            FixtureContent::Blob(blob) => ResourceContents::blob(blob.as_str(), uri),
        };
        Some(contents.with_mime_type(self.mime_type.as_str()))
    }
}

pub fn answer(value: Value) -> Result<CallToolResult, ErrorData> {
    let mut result: CallToolResult = parse(value)?;
    result.result_type = Some(ResultType::COMPLETE);
    Ok(result)
}

pub fn messages(value: Value, arguments: &JsonObject) -> Result<Vec<PromptMessage>, ErrorData> {
    parse(filled(value, arguments))
}

/// Replaces each `{name}` by the argument of that name.
pub fn filled(value: Value, arguments: &JsonObject) -> Value {
    match value {
        Value::String(mut text) => {
            for (name, argument) in arguments {
                text = text.replace(&format!("{{{name}}}"), argument.as_str().unwrap_or_default());
            }
            Value::String(text)
        }
        Value::Array(values) => values.into_iter().map(|value| filled(value, arguments)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, filled(value, arguments))).collect(),
        other => other,
    }
}

pub fn parse<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| broken(&error))
}

fn read<T: DeserializeOwned>(texts: &[&str]) -> Result<Vec<T>, ErrorData> {
    let mut entries = Vec::new();
    for text in texts {
        entries.extend(serde_json::from_str::<Vec<T>>(text).map_err(|error| broken(&error))?);
    }
    Ok(entries)
}

fn broken(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(format!("could not read the fixture's tables: {error}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::InputRequest;

    #[test]
    fn every_entry_can_be_served() {
        for entry in tools().unwrap() {
            match entry.does {
                ToolAct::Answer(value) => drop(answer(value).unwrap()),
                ToolAct::Ask(value) => drop(parse::<InputRequest>(value).unwrap()),
                _ => {}
            }
        }
        for entry in prompts().unwrap() {
            if let PromptAct::Messages(value) = entry.does {
                messages(value, &JsonObject::new()).unwrap();
            }
        }
        assert!(resources().unwrap().iter().all(|entry| entry.at(&entry.uri).is_some()));
    }

    #[test]
    fn a_template_takes_its_id_from_the_uri() {
        let entries = resources().unwrap();
        let read = |uri| entries.iter().find_map(|entry| entry.at(uri));
        let Some(ResourceContents::TextResourceContents { text, .. }) = read("test://template/7/data") else {
            panic!("a template is text")
        };
        assert!(text.contains(r#""id":"7""#), "{text}");
        assert!(read("test://template/7").is_none());
    }
}
