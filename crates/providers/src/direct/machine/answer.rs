//! One answer while it streams: what is shown of it at once, what it becomes in the conversation, and its calls.

use super::{Tool, Usage};
use crate::{
    TurnEvent,
    direct::{
        conversation::{Block, Call, Malformed, Message, floor},
        wire::{Piece, Stop},
        xml,
    },
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The arguments of one call; what is longer is no call.
const MAX_INPUT_BYTES: usize = 4 * 1024 * 1024;
const MAX_RAW_BYTES: usize = 4096;

/// What an answer needs of the turn it belongs to.
#[derive(Debug)]
pub struct Turn<'a> {
    pub tools: &'a BTreeMap<String, Tool>,
    /// Ids that calls of this turn have had.
    pub ids: &'a mut BTreeSet<String>,
    /// What is shown.
    pub events: Vec<TurnEvent>,
}

#[derive(Debug)]
pub struct Answer {
    /// Which question of the turn this answers.
    question: u32,
    xml: Option<xml::Reader>,
    blocks: Vec<Block>,
    /// Blocks that are being said, by the API's number; where they are in `blocks`.
    open: BTreeMap<u32, Open>,
    silent: String,
    items: Vec<String>,
    usage: Usage,
    is_metered: bool,
    model: Option<String>,
    stop: Option<Stop>,
}

#[derive(Debug)]
enum Open {
    Words(usize),
    Call { id: String, name: String, input: String, is_too_long: bool },
}

impl Answer {
    pub fn new(question: u32, is_xml: bool) -> Self {
        Self {
            question,
            xml: is_xml.then(xml::Reader::default),
            blocks: Vec::new(),
            open: BTreeMap::new(),
            silent: String::new(),
            items: Vec::new(),
            usage: Usage::default(),
            is_metered: false,
            model: None,
            stop: None,
        }
    }

    pub fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// The pieces of the answer that were shown.
    pub fn items(&mut self) -> Vec<String> {
        std::mem::take(&mut self.items)
    }

    /// Once for each answer.
    pub fn metered(&mut self) -> (Usage, Option<String>) {
        let usage = if std::mem::replace(&mut self.is_metered, true) { Usage::default() } else { self.usage };
        (usage, self.model.clone())
    }

    pub fn silent_text(&mut self) -> String {
        std::mem::take(&mut self.silent)
    }

    /// An answer that is not for the room.
    pub fn take_silently(&mut self, piece: Piece) {
        match piece {
            Piece::Text { delta, .. } => self.silent.push_str(&delta),
            other => self.note(other),
        }
    }

    fn note(&mut self, piece: Piece) {
        match piece {
            Piece::Model(model) => self.model = Some(model),
            Piece::Usage(usage) => self.usage = usage,
            Piece::Stops(stop) => self.stop = Some(stop),
            _ => {}
        }
    }

    /// Returns the calls that are whole now.
    pub fn take(&mut self, piece: Piece, turn: &mut Turn<'_>) -> Vec<Call> {
        match piece {
            Piece::Text { block, delta } => match &mut self.xml {
                None => self.text(block, delta, turn),
                Some(reader) => {
                    let mut bits = Vec::new();
                    reader.push(&delta, &mut bits);
                    return self.bits(bits, turn);
                }
            },
            Piece::Thinking { block, delta } => {
                let thinking = || Block::Thinking { text: String::new(), signature: String::new() };
                if let Block::Thinking { text, .. } = self.words(block, thinking) {
                    text.push_str(&delta);
                }
                let item = Some(self.item(format!("{}.{block}", self.question)));
                turn.events.push(TurnEvent::Thinking { delta, item });
            }
            Piece::Signature { block, delta } => {
                let thinking = || Block::Thinking { text: String::new(), signature: String::new() };
                if let Block::Thinking { signature, .. } = self.words(block, thinking) {
                    signature.push_str(&delta);
                }
            }
            Piece::Redacted { data } => self.blocks.push(Block::Redacted(data)),
            Piece::CallBegins { block, id, name } => {
                self.open.insert(block, Open::Call { id, name, input: String::new(), is_too_long: false });
            }
            Piece::CallInput { block, delta } => {
                if let Some(Open::Call { input, is_too_long, .. }) = self.open.get_mut(&block) {
                    *is_too_long |= input.len() + delta.len() > MAX_INPUT_BYTES;
                    if !*is_too_long {
                        input.push_str(&delta);
                    }
                }
            }
            Piece::BlockEnds { block } => {
                if let Some(Open::Call { .. }) = self.open.get(&block)
                    && let Some(Open::Call { id, name, input, is_too_long }) = self.open.remove(&block)
                {
                    return vec![self.made(call(id, name, &input, is_too_long), turn)];
                }
                self.open.remove(&block);
            }
            Piece::Done => {}
            other => self.note(other),
        }
        Vec::new()
    }

    /// Nothing follows. Calls that were being said count only if the answer came to its own end: the model may have been
    /// cut short by its own limit, and is told so.
    pub fn finish(&mut self, is_whole: bool, turn: &mut Turn<'_>) -> Vec<Call> {
        let mut calls = Vec::new();
        if let Some(mut reader) = self.xml.take()
            && is_whole
        {
            let mut bits = Vec::new();
            reader.end(&mut bits);
            calls = self.bits(bits, turn);
        }
        for (_, open) in std::mem::take(&mut self.open) {
            if let Open::Call { id, name, input, is_too_long } = open
                && is_whole
            {
                calls.push(self.made(call(id, name, &input, is_too_long), turn));
            }
        }
        calls
    }

    /// What it becomes in the conversation, if anything was said. Thinking without its signature is of no use to anyone.
    pub fn message(&mut self) -> Option<Message> {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.retain(|block| match block {
            Block::Text(text) => !text.is_empty(),
            Block::Thinking { signature, .. } => !signature.is_empty(),
            Block::Redacted(_) | Block::Call(_) => true,
        });
        (!blocks.is_empty()).then_some(Message::Model(blocks))
    }

    /// A call goes into the conversation where it was made.
    fn made(&mut self, mut call: Call, turn: &mut Turn<'_>) -> Call {
        // XML has no ids, and some local servers begin anew with every answer.
        while call.id.is_empty() || !turn.ids.insert(call.id.clone()) {
            call.id = format!("call_{}_{}", self.question, turn.ids.len());
        }
        let input = match &call.malformed {
            Some(malformed) => serde_json::json!({"malformed": malformed.raw}),
            None => Value::Object(call.input.clone()),
        };
        turn.events.push(TurnEvent::ToolUse { id: call.id.clone(), name: call.name.clone(), input });
        self.blocks.push(Block::Call(call.clone()));
        call
    }

    fn text(&mut self, block: u32, delta: String, turn: &mut Turn<'_>) {
        if delta.is_empty() {
            return;
        }
        if let Block::Text(text) = self.words(block, || Block::Text(String::new())) {
            text.push_str(&delta);
        }
        let item = Some(self.item(format!("{}.{block}", self.question)));
        turn.events.push(TurnEvent::Text { delta, item });
    }

    fn bits(&mut self, bits: Vec<xml::Bit>, turn: &mut Turn<'_>) -> Vec<Call> {
        let mut calls = Vec::new();
        for bit in bits {
            match bit {
                xml::Bit::Text(delta) => self.text(0, delta, turn),
                xml::Bit::Call { name, parameters } => {
                    let schema = turn.tools.get(&name).map(|tool| &tool.schema);
                    let value = |(key, text): (String, String)| (key.clone(), typed(text, schema, &key));
                    let input = parameters.into_iter().map(value).collect();
                    calls.push(self.made(Call { id: String::new(), name, input, malformed: None }, turn));
                }
                xml::Bit::Malformed { name, reason, raw } => {
                    let name = if name.is_empty() { "unknown".to_owned() } else { name };
                    let malformed = Some(Malformed { reason: reason.to_owned(), raw });
                    calls.push(self.made(Call { id: String::new(), name, input: Map::new(), malformed }, turn));
                }
            }
        }
        calls
    }

    /// The words of this block so far.
    fn words(&mut self, block: u32, new: impl FnOnce() -> Block) -> &mut Block {
        let at = match self.open.get(&block) {
            // Calls may have come in between: the API keeps the number, the conversation the order.
            Some(Open::Words(at)) if self.xml.is_none() || *at + 1 == self.blocks.len() => *at,
            _ => {
                self.blocks.push(new());
                let at = self.blocks.len() - 1;
                self.open.insert(block, Open::Words(at));
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

fn call(id: String, name: String, said: &str, is_too_long: bool) -> Call {
    let parsed = match said.trim() {
        "" => Ok(Map::new()),
        text => serde_json::from_str::<Map<String, Value>>(text).map_err(|error| error.to_string()),
    };
    let (input, reason) = match parsed {
        _ if is_too_long => (Map::new(), Some("its arguments are too long".to_owned())),
        Ok(map) if name.is_empty() => (map, Some("it names no tool".to_owned())),
        Ok(map) => (map, None),
        Err(error) => (Map::new(), Some(format!("its arguments are not a JSON object ({error})"))),
    };
    let malformed = reason.map(|reason| Malformed { reason, raw: said[..floor(said, MAX_RAW_BYTES)].to_owned() });
    let name = if name.is_empty() { "unknown".to_owned() } else { name };
    Call { id, name, input, malformed }
}

/// A value out of text: what the schema calls a string stays one, all else is JSON where it can be.
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
