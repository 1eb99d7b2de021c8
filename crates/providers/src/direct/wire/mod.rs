//! The two APIs, purely: a conversation in, a request's body out; bytes of a stream in, [`Piece`]s out.
//!
//! `workbench::events` cuts the bytes into events, `anthropic` and `openai` know one vendor's words each, `names` makes tool names fit,
//! `failure` tells what can be tried again. What a vendor adds some day is skipped and counted, never an error.

pub mod anthropic;
pub mod failure;
pub mod names;
pub mod openai;
#[cfg(test)]
mod tests;

use super::conversation::Message;
use domain::{agent::Thinking, usage::Usage};
use failure::{Failure, Kind};
use names::Names;
use serde_json::Value;
use workbench::events::Events;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's chat completions, and those of many others.
    Chat,
}

/// One question to a model.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub model: &'a str,
    pub system: &'a str,
    pub messages: &'a [Message],
    pub tools: &'a [Offer],
    pub names: &'a Names,
    pub max_output_tokens: Option<u32>,
    pub thinking: Option<Thinking>,
    pub thinking_budget_tokens: Option<u32>,
    /// Words at which the model stops.
    pub stop: &'a [&'a str],
    /// OpenAI's own service has other names for some settings than those that imitate it.
    pub is_vendors_own: bool,
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub name: String,
    pub description: String,
    pub schema: Value,
}

/// A piece of a model's answer as it streams. `block` tells stretches of it apart.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Model(String),
    Text {
        block: u32,
        delta: String,
    },
    Thinking {
        block: u32,
        delta: String,
    },
    Signature {
        block: u32,
        delta: String,
    },
    Redacted {
        data: String,
    },
    CallBegins {
        block: u32,
        id: String,
        name: String,
    },
    CallInput {
        block: u32,
        delta: String,
    },
    BlockEnds {
        block: u32,
    },
    /// Of the whole answer so far.
    Usage(Usage),
    Stops(Stop),
    /// The API's own mark that nothing follows.
    Done,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Finished,
    Tools,
    /// It has said as much as it may at once.
    Length,
    /// The vendor does not let it answer.
    Refused,
    /// It wants to be asked to go on.
    Paused,
}

pub fn body(api: Api, question: &Question<'_>) -> Value {
    match api {
        Api::Messages => anthropic::body(question),
        Api::Chat => openai::body(question),
    }
}

/// No vendor's event is near this long.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// Reads one answer.
#[derive(Debug)]
pub struct Parser {
    frames: Events,
    words: Words,
    /// Frames that nothing was made of.
    pub skipped: u32,
}

#[derive(Debug)]
enum Words {
    Messages(anthropic::Reader),
    Chat(openai::Reader),
}

impl Parser {
    pub fn new(api: Api) -> Self {
        let words = match api {
            Api::Messages => Words::Messages(anthropic::Reader::default()),
            Api::Chat => Words::Chat(openai::Reader::default()),
        };
        Self { frames: Events::new(MAX_EVENT_BYTES), words, skipped: 0 }
    }

    /// What was understood before a failure is in `pieces` all the same.
    pub fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let frames = self.frames.push(bytes).map_err(|error| Failure::new(Kind::Garbled, error.to_string()))?;
        for frame in frames {
            let is_known = match &mut self.words {
                Words::Messages(reader) => reader.read(&frame, pieces)?,
                Words::Chat(reader) => reader.read(&frame, pieces)?,
            };
            self.skipped += u32::from(!is_known);
        }
        Ok(())
    }

    /// The connection was closed in an orderly way: whether the answer was whole.
    pub fn end(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let is_whole = match &mut self.words {
            Words::Messages(reader) => reader.is_done,
            Words::Chat(reader) => reader.end(pieces),
        };
        if is_whole { Ok(()) } else { Err(Failure::new(Kind::Cut, "the model's answer broke off in the middle")) }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

fn garbled(error: &serde_json::Error) -> Failure {
    Failure::new(Kind::Garbled, format!("the model's API sent something that is no JSON: {error}"))
}
