//! The conversation with a model, independent of the API.

use serde_json::{Map, Value};

/// A message of one role. Consecutive messages of one role are allowed; each API merges them if it has to.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelMessage {
    /// Messages of people and other agents, one text each.
    User(Vec<String>),
    Assistant(Vec<AssistantBlock>),
    /// The results of the calls in the model's last message.
    ToolResults(Vec<ModelToolResult>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum AssistantBlock {
    Text(String),
    /// Sent back unchanged: the vendor's signature verifies it.
    Thinking {
        text: String,
        signature: String,
    },
    /// Thinking that the vendor has encrypted.
    RedactedThinking(String),
    ToolCall(ModelToolCall),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelToolCall {
    pub id: String,
    /// Greenroom's name of the tool.
    pub name: String,
    pub input: Map<String, Value>,
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

impl ToolResultContent {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            // Vendors bill an image by its pixels; a few thousand bytes of text cost about the same.
            Self::Image { .. } => 6_000,
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
            Self::User(texts) => texts.iter().map(String::len).sum(),
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

/// Shortens a text to its beginning and its end, with a note on the omitted bytes in between.
pub fn truncate_middle(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let (head, tail) = (floor_char_boundary(text, half), ceil(text, text.len() - half));
    format!("{}\n[… {} bytes are left out here …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// Returns the last character boundary at or before this byte.
pub fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::truncate_middle;

    #[test]
    fn long_text_is_cut_in_the_middle_at_character_boundaries() {
        assert_eq!(truncate_middle("short", 10), "short");
        let long = "ä".repeat(100);
        for most in 1..200 {
            let kept = truncate_middle(&long, most);
            assert!(kept.contains("are left out here"), "{most}: {kept}");
        }
        assert!(
            truncate_middle("begin middle end", 8).starts_with("begi\n")
                && truncate_middle("begin middle end", 8).ends_with(" end")
        );
    }
}
