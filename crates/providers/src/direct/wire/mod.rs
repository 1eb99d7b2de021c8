//! Encodes requests and decodes streams of the four APIs. Pure: a conversation in, a request body out; bytes of a stream
//! in, [`AnswerPiece`]s out.
//!
//! `workbench::event_stream` splits the bytes into events; `anthropic`, `openai`, `responses` and `gemini` know one API
//! each, `names` maps tool names to valid ones, `failure` classifies errors. Unknown events are skipped and counted, never an error.

pub mod anthropic;
pub mod failure;
pub mod gemini;
pub mod names;
pub mod openai;
pub mod responses;
#[cfg(test)]
mod tests;

use super::conversation::ModelMessage;
use domain::{agent::Thinking, usage::Usage};
use failure::{ModelFailure, ModelFailureKind};
use names::ToolNames;
use serde::de::IgnoredAny;
use serde_json::Value;
use workbench::{
    event_stream::{EventStreamParser, ServerSentEvent},
    outside::OutsideSource,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelApiKind {
    /// Anthropic's Messages.
    Messages,
    /// Chat completions of OpenAI and compatible servers.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Google's Gemini API.
    Gemini,
}

/// One request to a model.
#[derive(Clone, Debug)]
pub struct ModelRequest<'a> {
    pub model: &'a str,
    pub system: &'a str,
    pub messages: &'a [ModelMessage],
    pub tools: &'a [OfferedTool],
    pub names: &'a ToolNames,
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub thinking: Option<Thinking>,
    pub thinking_budget_tokens: Option<u32>,
    /// Stop sequences.
    pub stop: &'a [&'a str],
    /// OpenAI's own service uses other names for some settings than compatible servers.
    pub is_openai_service: bool,
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    pub name: String,
    pub description: String,
    pub schema: Value,
}

/// A piece of a streamed answer. `block` is the index of its content block.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerPiece {
    /// The API's event that the pieces up to the next one are from; only if the room keeps it.
    Raw(String),
    Model(String),
    Text {
        block: u32,
        delta: String,
    },
    Thinking {
        block: u32,
        delta: String,
    },
    /// The vendor's signature of a block of thinking, or of the thinking before a call.
    Signature {
        block: u32,
        delta: String,
    },
    RedactedThinking {
        data: String,
    },
    CallStart {
        block: u32,
        id: String,
        name: String,
    },
    CallInput {
        block: u32,
        delta: String,
    },
    BlockEnd {
        block: u32,
    },
    /// The usage of the whole answer so far.
    Usage(Usage),
    Stop(ModelStopReason),
    /// The API's end-of-stream marker.
    Done,
}

impl AnswerPiece {
    /// The size of the model's own output in it.
    pub fn bytes(&self) -> u64 {
        let text = match self {
            Self::Text { delta, .. } | Self::Thinking { delta, .. } | Self::CallInput { delta, .. } => delta,
            Self::CallStart { name, .. } => name,
            _ => return 0,
        };
        text.len() as u64
    }
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelStopReason {
    Finished,
    Tools,
    /// It reached the maximum output length.
    Length,
    /// The vendor blocked the answer.
    Refused,
    /// It must be called again to continue.
    Paused,
}

pub fn body(api: ModelApiKind, question: &ModelRequest<'_>) -> Value {
    match api {
        ModelApiKind::Messages => anthropic::body(question),
        ModelApiKind::Chat => openai::body(question),
        ModelApiKind::Responses => responses::body(question),
        ModelApiKind::Gemini => gemini::body(question),
    }
}

/// Reads one answer.
#[derive(Debug)]
pub struct AnswerParser {
    events: EventStreamParser,
    reader: VendorReader,
    keeps_raw: bool,
    /// The number of unknown events.
    pub skipped: u32,
}

#[derive(Debug)]
enum VendorReader {
    Messages(anthropic::AnthropicReader),
    Chat(openai::OpenAiReader),
    Responses(responses::ResponsesReader),
    Gemini(gemini::GeminiReader),
}

impl AnswerParser {
    pub fn new(api: ModelApiKind, keeps_raw: bool) -> Self {
        let reader = match api {
            ModelApiKind::Messages => VendorReader::Messages(anthropic::AnthropicReader::default()),
            ModelApiKind::Chat => VendorReader::Chat(openai::OpenAiReader::default()),
            ModelApiKind::Responses => VendorReader::Responses(responses::ResponsesReader::default()),
            ModelApiKind::Gemini => VendorReader::Gemini(gemini::GeminiReader::default()),
        };
        Self { events: EventStreamParser::new(OutsideSource::ModelEvent.max_bytes()), reader, keeps_raw, skipped: 0 }
    }

    /// Parses bytes. On a failure, `pieces` still contains the pieces before it.
    pub fn push(&mut self, bytes: &[u8], pieces: &mut Vec<AnswerPiece>) -> Result<(), ModelFailure> {
        let events = self
            .events
            .push(bytes)
            .map_err(|error| ModelFailure::new(ModelFailureKind::InvalidResponse, error.to_string()))?;
        for event in events {
            // Stored as JSON; the end of a stream is none.
            if self.keeps_raw && serde_json::from_str::<IgnoredAny>(&event.data).is_ok() {
                pieces.push(AnswerPiece::Raw(event.data.clone()));
            }
            self.read(&event, pieces)?;
        }
        Ok(())
    }

    /// Parses an answer that arrived whole instead of as a stream: each API has an event with the same fields.
    pub fn push_whole(&mut self, answer: &str, pieces: &mut Vec<AnswerPiece>) -> Result<(), ModelFailure> {
        let data = match &self.reader {
            VendorReader::Messages(_) => format!(r#"{{"type":"message_start","message":{answer}}}"#),
            VendorReader::Responses(_) => format!(r#"{{"type":"response.completed","response":{answer}}}"#),
            VendorReader::Chat(_) | VendorReader::Gemini(_) => answer.to_owned(),
        };
        self.read(&ServerSentEvent { name: "message".to_owned(), data, id: None }, pieces)
    }

    fn read(&mut self, event: &ServerSentEvent, pieces: &mut Vec<AnswerPiece>) -> Result<(), ModelFailure> {
        let is_known = match &mut self.reader {
            VendorReader::Messages(reader) => reader.read(event, pieces)?,
            VendorReader::Chat(reader) => reader.read(event, pieces)?,
            VendorReader::Responses(reader) => reader.read(event, pieces)?,
            VendorReader::Gemini(reader) => reader.read(event, pieces)?,
        };
        self.skipped += u32::from(!is_known);
        Ok(())
    }

    /// Ends the stream after a normal close. An error if the answer is incomplete.
    pub fn end(&mut self, pieces: &mut Vec<AnswerPiece>) -> Result<(), ModelFailure> {
        let is_complete = match &mut self.reader {
            VendorReader::Messages(reader) => reader.is_done,
            VendorReader::Chat(reader) => reader.end(pieces),
            VendorReader::Responses(reader) => reader.is_done,
            VendorReader::Gemini(reader) => reader.end(pieces),
        };
        if is_complete {
            Ok(())
        } else {
            Err(ModelFailure::new(ModelFailureKind::Disconnected, "the model's answer broke off in the middle"))
        }
    }
}

/// Sets the keys whose values are given.
fn set_options(body: &mut Value, options: [(&str, Option<f64>); 2]) {
    for (key, value) in options {
        if let Some(value) = value {
            body[key] = Value::from(value);
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

fn invalid_json(error: &serde_json::Error) -> ModelFailure {
    ModelFailure::new(ModelFailureKind::InvalidResponse, format!("the model's API sent invalid JSON: {error}"))
}
