//! What is said to a model and by it, before an API puts it into its own words.

use serde_json::{Map, Value};

/// One side's words. Neighbours of the same side are allowed; each API joins them where it has to.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What people and other agents said, a text each.
    Person(Vec<String>),
    Model(Vec<Block>),
    /// What came of the calls of the model's last words.
    Results(Vec<Answered>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Text(String),
    /// Handed back as it came: the vendor's signature says that it is unchanged.
    Thinking {
        text: String,
        signature: String,
    },
    /// Thinking that the vendor shows to nobody.
    Redacted(String),
    Call(Call),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub id: String,
    /// As Greenroom names the tool.
    pub name: String,
    pub input: Map<String, Value>,
    /// Set when the model's words could not be understood as a call.
    pub malformed: Option<Malformed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// For the model.
    pub reason: String,
    /// What it said, as far as it is kept.
    pub raw: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub call: String,
    pub name: String,
    pub content: Vec<Content>,
    pub is_error: bool,
}

/// What a model is shown of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    /// Base64, as it came.
    Image {
        media_type: String,
        data: String,
    },
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            // Vendors count an image by its size on the screen; a few thousand bytes of text cost about the same.
            Self::Image { .. } => 6_000,
        }
    }
}

impl Answered {
    /// Without the images.
    pub fn text(&self) -> String {
        let text = |content: &Content| match content {
            Content::Text(text) => text.clone(),
            Content::Image { media_type, .. } => format!("[an image, {media_type}]"),
        };
        self.content.iter().map(text).collect::<Vec<_>>().join("\n")
    }

    pub fn bytes(&self) -> usize {
        self.content.iter().map(Content::bytes).sum()
    }
}

impl Message {
    /// About how much room it takes in the model's context.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Person(texts) => texts.iter().map(String::len).sum(),
            Self::Model(blocks) => blocks.iter().map(Block::bytes).sum(),
            Self::Results(results) => results.iter().map(Answered::bytes).sum(),
        }
    }
}

impl Block {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Redacted(text) => text.len(),
            Self::Thinking { text, .. } => text.len(),
            Self::Call(call) => call.name.len() + Value::Object(call.input.clone()).to_string().len(),
        }
    }
}

/// Keeps a text within a bound: its beginning and its end, with a note on what is left out in between.
pub fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let (head, tail) = (floor(text, half), ceil(text, text.len() - half));
    format!("{}\n[… {} bytes are left out here …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// The last boundary of characters at or before this byte.
pub fn floor(text: &str, mut at: usize) -> usize {
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
    use super::shortened;

    #[test]
    fn a_long_text_keeps_its_ends_and_whole_characters() {
        assert_eq!(shortened("short", 10), "short");
        let long = "ä".repeat(100);
        for most in 1..200 {
            let kept = shortened(&long, most);
            assert!(kept.contains("are left out here"), "{most}: {kept}");
        }
        assert!(
            shortened("begin middle end", 8).starts_with("begi\n")
                && shortened("begin middle end", 8).ends_with(" end")
        );
    }
}
