//! The conversation with a model, independent of the API.

use serde_json::{Map, Value};
use std::sync::Arc;

/// A message of one role. Consecutive messages of one role are allowed; each API merges them if it has to.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelMessage {
    /// Messages of people and other agents, one text each, with the files of each before it.
    User(Vec<UserPart>),
    Assistant(Vec<AssistantBlock>),
    /// The results of the calls in the model's last message.
    ToolResults(Vec<ModelToolResult>),
}

/// A part of a user message. Data is base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserPart {
    Text(String),
    Image { media_type: &'static str, data: Arc<str> },
    Pdf { name: String, data: Arc<str> },
}

impl UserPart {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image { .. } => IMAGE_BYTES,
            // A page has about 50 KB and costs two or three thousand tokens, as text and as an image.
            Self::Pdf { data, .. } => (data.len() / 9).max(IMAGE_BYTES),
        }
    }

    /// The text, or a placeholder.
    pub fn as_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Image { media_type, .. } => format!("[an image, {media_type}]"),
            Self::Pdf { name, .. } => format!("[a PDF, {name}]"),
        }
    }
}

impl From<String> for UserPart {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for UserPart {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum AssistantBlock {
    Text(String),
    /// Sent back unchanged: the vendor's signature verifies it.
    Thinking {
        text: String,
        signature: String,
    },
    /// Thinking that the vendor has encrypted, in the form in which its API expects it back.
    RedactedThinking(String),
    ToolCall(ModelToolCall),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelToolCall {
    pub id: String,
    /// Greenroom's name of the tool.
    pub name: String,
    pub input: Map<String, Value>,
    /// The vendor's signature of the thinking that led to the call, sent back with it.
    pub signature: Option<String>,
    /// Set if the call could not be parsed.
    pub malformed: Option<MalformedCall>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedCall {
    /// For the model.
    pub reason: String,
    /// The beginning of the text that the model sent.
    pub raw: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelToolResult {
    pub call_id: String,
    pub name: String,
    pub content: Vec<ToolResultContent>,
    pub is_error: bool,
}

/// Content of a tool result, as the model gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolResultContent {
    Text(String),
    /// Base64, unchanged.
    Image {
        media_type: String,
        data: String,
    },
}

/// Vendors bill an image by its pixels; so many bytes of text cost about the same.
const IMAGE_BYTES: usize = 6_000;

impl ToolResultContent {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image { .. } => IMAGE_BYTES,
        }
    }
}

impl ModelToolResult {
    /// The text, with placeholders for images.
    pub fn text(&self) -> String {
        let text = |content: &ToolResultContent| match content {
            ToolResultContent::Text(text) => text.clone(),
            ToolResultContent::Image { media_type, .. } => format!("[an image, {media_type}]"),
        };
        self.content.iter().map(text).collect::<Vec<_>>().join("\n")
    }

    pub fn bytes(&self) -> usize {
        self.content.iter().map(ToolResultContent::bytes).sum()
    }
}

impl ModelMessage {
    /// The approximate size in the model's context.
    pub fn bytes(&self) -> usize {
        match self {
            Self::User(parts) => parts.iter().map(UserPart::bytes).sum(),
            Self::Assistant(blocks) => blocks.iter().map(AssistantBlock::bytes).sum(),
            Self::ToolResults(results) => results.iter().map(ModelToolResult::bytes).sum(),
        }
    }
}

impl AssistantBlock {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::RedactedThinking(text) => text.len(),
            Self::Thinking { text, .. } => text.len(),
            Self::ToolCall(call) => call.name.len() + Value::Object(call.input.clone()).to_string().len(),
        }
    }
}
