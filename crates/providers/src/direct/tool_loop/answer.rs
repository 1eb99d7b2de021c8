//! One answer while it streams: its events, its message in the conversation, and its calls.

use super::{LoopTool, Usage};
use crate::{
    TurnEvent,
    direct::{
        conversation::{AssistantBlock, MalformedCall, ModelMessage, ModelToolCall},
        wire::{AnswerPiece, ModelStopReason},
        xml,
    },
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The arguments of one call; a longer call is malformed.
const MAX_INPUT_BYTES: usize = 4 * 1024 * 1024;
const MAX_RAW_BYTES: usize = 4096;

/// The parts of the turn that an answer needs.
#[derive(Debug)]
pub struct AnswerContext<'a> {
    pub tools: &'a BTreeMap<String, LoopTool>,
    /// Ids of all calls of this turn.
    pub ids: &'a mut BTreeSet<String>,
    /// Events to emit.
    pub events: Vec<TurnEvent>,
}

#[derive(Debug)]
pub struct AnswerBuilder {
    /// The number of the request in the turn.
    request: u32,
    xml: Option<xml::XmlReader>,
    blocks: Vec<AssistantBlock>,
    /// Open blocks by the API's index.
    open: BTreeMap<u32, OpenBlock>,
    summary: String,
    items: Vec<String>,
    usage: Usage,
    is_usage_taken: bool,
    has_begun: bool,
    /// The size of what the model has sent since the API last reported the usage.
    unreported_bytes: u64,
    model: Option<String>,
    stop: Option<ModelStopReason>,
}

#[derive(Debug)]
enum OpenBlock {
    /// The position in `blocks`.
    Text(usize),
    Call {
        id: String,
        name: String,
        input: String,
        signature: Option<String>,
        is_too_long: bool,
    },
}

impl AnswerBuilder {
    pub fn new(request: u32, is_xml: bool) -> Self {
        Self {
            request,
            xml: is_xml.then(xml::XmlReader::default),
            blocks: Vec::new(),
            open: BTreeMap::new(),
            summary: String::new(),
            items: Vec::new(),
            usage: Usage::default(),
            is_usage_taken: false,
            has_begun: false,
            unreported_bytes: 0,
            model: None,
            stop: None,
        }
    }

    pub fn stop_reason(&self) -> Option<ModelStopReason> {
        self.stop
    }

    /// The ids of the items that were emitted.
    pub fn take_items(&mut self) -> Vec<String> {
        std::mem::take(&mut self.items)
    }

    /// Returns the usage that the API reported so far, once per answer.
    pub fn take_usage(&mut self) -> Option<(Usage, Option<String>)> {
        let is_taken = std::mem::replace(&mut self.is_usage_taken, true);
        (!is_taken).then(|| (self.usage, self.model.clone()))
    }

    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub fn unreported_bytes(&self) -> u64 {
        self.unreported_bytes
    }

    pub fn take_summary(&mut self) -> String {
        std::mem::take(&mut self.summary)
    }

    /// Adds a piece of a summary, which is not shown in the room.
    pub fn add_to_summary(&mut self, piece: AnswerPiece) {
        self.count(&piece);
        match piece {
            AnswerPiece::Text { delta, .. } => self.summary.push_str(&delta),
            other => self.note(other),
        }
    }

    fn count(&mut self, piece: &AnswerPiece) {
        self.has_begun = true;
        self.unreported_bytes = match piece {
            AnswerPiece::Usage(_) => 0,
            piece => self.unreported_bytes + piece.bytes(),
        };
    }

    fn note(&mut self, piece: AnswerPiece) {
        match piece {
            AnswerPiece::Model(model) => self.model = Some(model),
            AnswerPiece::Usage(usage) => self.usage = usage,
            AnswerPiece::Stop(stop) => self.stop = Some(stop),
            _ => {}
        }
    }

    /// Returns the calls that are complete now.
    pub fn add(&mut self, piece: AnswerPiece, turn: &mut AnswerContext<'_>) -> Vec<ModelToolCall> {
        self.count(&piece);
        match piece {
            AnswerPiece::Text { block, delta } => match &mut self.xml {
                None => self.text(block, delta, turn),
                Some(reader) => {
                    let mut bits = Vec::new();
                    reader.push(&delta, &mut bits);
                    return self.bits(bits, turn);
                }
            },
            AnswerPiece::Thinking { block, delta } => {
                let thinking = || AssistantBlock::Thinking { text: String::new(), signature: String::new() };
                if let AssistantBlock::Thinking { text, .. } = self.open_block(block, thinking) {
                    text.push_str(&delta);
                }
                let item = Some(self.item(format!("{}.{block}", self.request)));
                turn.events.push(TurnEvent::Thinking { delta, item });
            }
            AnswerPiece::Signature { block, delta } => {
                if let Some(OpenBlock::Call { signature, .. }) = self.open.get_mut(&block) {
                    signature.get_or_insert_default().push_str(&delta);
                    return Vec::new();
                }
                let thinking = || AssistantBlock::Thinking { text: String::new(), signature: String::new() };
                if let AssistantBlock::Thinking { signature, .. } = self.open_block(block, thinking) {
                    signature.push_str(&delta);
                }
            }
            AnswerPiece::RedactedThinking { data } => self.blocks.push(AssistantBlock::RedactedThinking(data)),
            AnswerPiece::CallStart { block, id, name } => {
                self.open.insert(
                    block,
                    OpenBlock::Call { id, name, input: String::new(), signature: None, is_too_long: false },
                );
            }
            AnswerPiece::CallInput { block, delta } => {
                if let Some(OpenBlock::Call { input, is_too_long, .. }) = self.open.get_mut(&block) {
                    *is_too_long |= input.len() + delta.len() > MAX_INPUT_BYTES;
                    if !*is_too_long {
                        input.push_str(&delta);
                    }
                }
            }
            AnswerPiece::BlockEnd { block } => {
                if let Some(OpenBlock::Call { .. }) = self.open.get(&block)
                    && let Some(OpenBlock::Call { id, name, input, signature, is_too_long }) = self.open.remove(&block)
                {
                    let call = ModelToolCall { signature, ..parse_call(id, name, &input, is_too_long) };
                    return vec![self.add_call(call, turn)];
                }
                self.open.remove(&block);
            }
            AnswerPiece::Done | AnswerPiece::Raw(_) => {}
            other => self.note(other),
        }
        Vec::new()
    }

    /// Ends the answer. Open calls count only if the answer ended normally: the model may have reached its output
    /// limit, and then the malformed call is reported to it.
    pub fn finish(&mut self, is_whole: bool, turn: &mut AnswerContext<'_>) -> Vec<ModelToolCall> {
        let mut calls = Vec::new();
        if let Some(mut reader) = self.xml.take()
            && is_whole
        {
            let mut bits = Vec::new();
            reader.end(&mut bits);
            calls = self.bits(bits, turn);
        }
        for (_, open) in std::mem::take(&mut self.open) {
            if let OpenBlock::Call { id, name, input, signature, is_too_long } = open
                && is_whole
            {
                let call = ModelToolCall { signature, ..parse_call(id, name, &input, is_too_long) };
                calls.push(self.add_call(call, turn));
            }
        }
        calls
    }

    /// The message for the conversation, if it is not empty. Thinking without a signature is dropped: APIs reject it.
    pub fn take_message(&mut self) -> Option<ModelMessage> {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.retain(|block| match block {
            AssistantBlock::Text(text) => !text.is_empty(),
            AssistantBlock::Thinking { signature, .. } => !signature.is_empty(),
            AssistantBlock::RedactedThinking(_) | AssistantBlock::ToolCall(_) => true,
        });
        (!blocks.is_empty()).then_some(ModelMessage::Assistant(blocks))
    }

    /// Adds a call to the message, with a unique id.
    fn add_call(&mut self, mut call: ModelToolCall, turn: &mut AnswerContext<'_>) -> ModelToolCall {
        // XML calls have no ids, and some local servers reuse ids in every answer.
        while call.id.is_empty() || !turn.ids.insert(call.id.clone()) {
            call.id = format!("call_{}_{}", self.request, turn.ids.len());
        }
        let input = match &call.malformed {
            Some(malformed) => serde_json::json!({"malformed": malformed.raw}),
            None => Value::Object(call.input.clone()),
        };
        turn.events.push(TurnEvent::ToolUse { id: call.id.clone(), name: call.name.clone(), input });
        self.blocks.push(AssistantBlock::ToolCall(call.clone()));
        call
    }

    fn text(&mut self, block: u32, delta: String, turn: &mut AnswerContext<'_>) {
        if delta.is_empty() {
            return;
        }
        if let AssistantBlock::Text(text) = self.open_block(block, || AssistantBlock::Text(String::new())) {
            text.push_str(&delta);
        }
        let item = Some(self.item(format!("{}.{block}", self.request)));
        turn.events.push(TurnEvent::Text { delta, item });
    }

    fn bits(&mut self, bits: Vec<xml::XmlPiece>, turn: &mut AnswerContext<'_>) -> Vec<ModelToolCall> {
        let mut calls = Vec::new();
        for bit in bits {
            match bit {
                xml::XmlPiece::Text(delta) => self.text(0, delta, turn),
                xml::XmlPiece::Call { name, parameters } => {
                    let schema = turn.tools.get(&name).map(|tool| &tool.schema);
                    let value = |(key, text): (String, String)| (key.clone(), typed(text, schema, &key));
                    let input = parameters.into_iter().map(value).collect();
                    calls.push(self.add_call(
                        ModelToolCall { id: String::new(), name, input, signature: None, malformed: None },
                        turn,
                    ));
                }
                xml::XmlPiece::Malformed { name, reason, raw } => {
                    let name = if name.is_empty() { "unknown".to_owned() } else { name };
                    let malformed = Some(MalformedCall { reason: reason.to_owned(), raw });
                    let input = Map::new();
                    let call = ModelToolCall { id: String::new(), name, input, signature: None, malformed };
                    calls.push(self.add_call(call, turn));
                }
            }
        }
        calls
    }

    /// Returns the open text or thinking block with this index, or adds one.
    fn open_block(&mut self, block: u32, new: impl FnOnce() -> AssistantBlock) -> &mut AssistantBlock {
        let at = match self.open.get(&block) {
            // With XML, calls may come in between: the API's index is the same, but the conversation keeps the order.
            Some(OpenBlock::Text(at)) if self.xml.is_none() || *at + 1 == self.blocks.len() => *at,
            _ => {
                self.blocks.push(new());
                let at = self.blocks.len() - 1;
                self.open.insert(block, OpenBlock::Text(at));
                at
            }
        };
        &mut self.blocks[at]
    }

    fn item(&mut self, item: String) -> String {
        if !self.items.contains(&item) {
            self.items.push(item.clone());
        }
        item
    }
}

fn parse_call(id: String, name: String, arguments: &str, is_too_long: bool) -> ModelToolCall {
    let parsed = match arguments.trim() {
        "" => Ok(Map::new()),
        text => serde_json::from_str::<Map<String, Value>>(text).map_err(|error| error.to_string()),
    };
    let (input, reason) = match parsed {
        _ if is_too_long => (Map::new(), Some("its arguments are too long".to_owned())),
        Ok(map) if name.is_empty() => (map, Some("it names no tool".to_owned())),
        Ok(map) => (map, None),
        Err(error) => (Map::new(), Some(format!("its arguments are not a JSON object ({error})"))),
    };
    let raw = || arguments[..arguments.floor_char_boundary(MAX_RAW_BYTES)].to_owned();
    let malformed = reason.map(|reason| MalformedCall { reason, raw: raw() });
    let name = if name.is_empty() { "unknown".to_owned() } else { name };
    ModelToolCall { id, name, input, signature: None, malformed }
}

/// Converts the text of a parameter: a string if the schema says so, otherwise JSON if it parses.
fn typed(text: String, schema: Option<&Value>, key: &str) -> Value {
    let wanted = schema.and_then(|schema| schema.get("properties")?.get(key)?.get("type"));
    let is_string = match wanted {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => false,
    };
    if is_string {
        return Value::String(text);
    }
    serde_json::from_str(text.trim()).unwrap_or(Value::String(text))
}
