//! The blocks of a message that is being streamed: what of each was said, and which are finished.

use super::parse::{Parsed, text};
use crate::TurnEvent;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Text,
    Thinking,
    Other,
}

impl Kind {
    pub fn of(block: &Value) -> Self {
        match text(block, "type").unwrap_or_default() {
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            _ => Self::Other,
        }
    }

    pub fn text_in(self, block: &Value) -> Option<&str> {
        match self {
            Self::Text => text(block, "text"),
            Self::Thinking => text(block, "thinking"),
            Self::Other => None,
        }
    }

    pub fn event(self, delta: String, item: String) -> Parsed {
        let item = Some(item);
        Parsed::Event(match self {
            Self::Thinking => TurnEvent::Thinking { delta, item }.into(),
            Self::Text | Self::Other => TurnEvent::Text { delta, item }.into(),
        })
    }
}

/// The name under which a block can be taken back.
pub(super) fn item(message: &str, index: u64) -> String {
    format!("{message}#{index}")
}

#[derive(Debug)]
pub(super) struct Streamed {
    pub id: String,
    blocks: BTreeMap<u64, Block>,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    said: String,
    finished: bool,
}

impl Streamed {
    pub fn new(id: String) -> Self {
        Self { id, blocks: BTreeMap::new() }
    }

    pub fn begin(&mut self, index: u64, kind: Kind) {
        self.blocks.insert(index, Block { kind, said: String::new(), finished: false });
    }

    pub fn push(&mut self, index: u64, kind: Kind, delta: &str) {
        let block = self.blocks.entry(index).or_insert_with(|| Block { kind, said: String::new(), finished: false });
        block.said.push_str(delta);
    }

    /// The next block of this kind is finished: its index, and what was streamed of it.
    pub fn finish(&mut self, kind: Kind) -> Option<(u64, String)> {
        let (index, block) = self.blocks.iter_mut().find(|(_, block)| block.kind == kind && !block.finished)?;
        block.finished = true;
        Some((*index, block.said.clone()))
    }

    /// Forgets the blocks from `from` on; returns those of them that had said something.
    pub fn abandon(&mut self, from: u64) -> Vec<String> {
        let abandoned = self.blocks.split_off(&from);
        abandoned.iter().filter(|(_, block)| !block.said.is_empty()).map(|(index, _)| item(&self.id, *index)).collect()
    }

    /// Forgets the blocks that never came to an end; returns those of them that had said something.
    pub fn unfinished(&mut self) -> Vec<String> {
        let mut items = Vec::new();
        self.blocks.retain(|index, block| {
            if !block.finished && !block.said.is_empty() {
                items.push(item(&self.id, *index));
            }
            block.finished
        });
        items
    }
}
