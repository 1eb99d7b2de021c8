//! The blocks of a streamed message: their text so far, and which are finished.

use super::parse::{ClaudeOutput, text};
use crate::TurnEvent;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClaudeBlockKind {
    Text,
    Thinking,
    Other,
}

impl ClaudeBlockKind {
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

    pub fn event(self, delta: String, item: String) -> ClaudeOutput {
        let item = Some(item);
        ClaudeOutput::Event(match self {
            Self::Thinking => TurnEvent::Thinking { delta, item }.into(),
            Self::Text | Self::Other => TurnEvent::Text { delta, item }.into(),
        })
    }
}

/// The item id of a block; a later event can retract the block by this id.
pub(super) fn item_id(message: &str, index: u64) -> String {
    format!("{message}#{index}")
}

#[derive(Debug)]
pub(super) struct StreamedMessage {
    pub id: String,
    blocks: BTreeMap<u64, StreamedBlock>,
}

#[derive(Debug)]
struct StreamedBlock {
    kind: ClaudeBlockKind,
    text: String,
    finished: bool,
}

impl StreamedMessage {
    pub fn new(id: String) -> Self {
        Self { id, blocks: BTreeMap::new() }
    }

    pub fn begin(&mut self, index: u64, kind: ClaudeBlockKind) {
        self.blocks.insert(index, StreamedBlock { kind, text: String::new(), finished: false });
    }

    pub fn push(&mut self, index: u64, kind: ClaudeBlockKind, delta: &str) {
        let block =
            self.blocks.entry(index).or_insert_with(|| StreamedBlock { kind, text: String::new(), finished: false });
        block.text.push_str(delta);
    }

    /// Marks the next block of this kind as finished. Returns its index and its streamed text.
    pub fn finish(&mut self, kind: ClaudeBlockKind) -> Option<(u64, String)> {
        let (index, block) = self.blocks.iter_mut().find(|(_, block)| block.kind == kind && !block.finished)?;
        block.finished = true;
        Some((*index, block.text.clone()))
    }

    /// Removes the blocks from index `from` on. Returns the items of those that had text.
    pub fn abandon(&mut self, from: u64) -> Vec<String> {
        let abandoned = self.blocks.split_off(&from);
        abandoned
            .iter()
            .filter(|(_, block)| !block.text.is_empty())
            .map(|(index, _)| item_id(&self.id, *index))
            .collect()
    }

    /// Removes the unfinished blocks. Returns the items of those that had text.
    pub fn abandon_unfinished(&mut self) -> Vec<String> {
        let mut items = Vec::new();
        self.blocks.retain(|index, block| {
            if !block.finished && !block.text.is_empty() {
                items.push(item_id(&self.id, *index));
            }
            block.finished
        });
        items
    }
}
