//! Keeps the conversation within the model's context window. The oldest content is compacted first: tool results into a
//! note each, then whole messages into a summary that the model writes. The journal keeps everything; the room gets a
//! notice.

use crate::{
    TurnEvent,
    direct::{
        conversation::{ModelMessage, ToolResultContent, UserPart},
        xml,
    },
    truncate::truncate_middle,
};
use domain::usage::Usage;

/// A token of English is about four bytes; estimates are a bit more careful.
const BYTES_PER_TOKEN: u64 = 3;
/// The latest results are not compacted: the model is working with them.
const FRESH_RESULTS: usize = 2;
/// Shorter results are not worth compacting.
const SHORT_BYTES: usize = 400;
/// How often the request is shrunk after the API called it too long, before the turn fails.
const MAX_SHRINKS: u32 = 3;

const SUMMARY_PROMPT: &str = "Above is the older part of a conversation that you (\"YOU\") are in the middle of. It no longer fits \
    into your context. Write a summary that lets you go on without it: what people want and have decided, what was done \
    and found out, names, paths, numbers and errors that still matter, and what is left to do. Write only the summary.";

#[derive(Debug)]
pub struct ContextBudget {
    window: u64,
    answer: u64,
    /// (bytes of the messages, tokens that the API counted for the whole request)
    measured: Option<(u64, u64)>,
    /// Tokens of the system prompt and the tools.
    fixed: u64,
    summary: Option<PendingSummary>,
    shrinks: u32,
}

#[derive(Debug)]
struct PendingSummary {
    question: Vec<ModelMessage>,
    /// Messages before this index are summarized.
    cut: usize,
}

impl ContextBudget {
    pub fn new(window: u64, answer: u64, fixed_bytes: usize) -> Self {
        let fixed = tokens(fixed_bytes as u64);
        Self { window, answer: answer.min(window / 2), measured: None, fixed, summary: None, shrinks: 0 }
    }

    /// The maximum size of the request, in tokens.
    fn limit(&self) -> u64 {
        self.window.saturating_sub(self.answer + self.window / 20)
    }

    fn needed(&self, messages: &[ModelMessage]) -> u64 {
        let bytes = bytes(messages);
        match self.measured {
            Some((then, counted)) if bytes >= then => counted + tokens(bytes - then),
            Some((then, counted)) => counted.saturating_sub(tokens(then - bytes)),
            None => self.fixed + tokens(bytes),
        }
    }

    /// An estimate of the tokens of the request that is being answered, rather too high than too low.
    pub fn request_tokens(&self, messages: &[ModelMessage]) -> u64 {
        match &self.summary {
            Some(summary) => tokens(bytes(&summary.question)),
            None => self.needed(messages),
        }
    }

    /// Records the tokens that the API counted for these messages.
    pub fn record_usage(&mut self, messages: &[ModelMessage], usage: &Usage) {
        let read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
        if self.summary.is_none() && read > 0 {
            self.measured = Some((bytes(messages), read));
        }
    }

    /// Shrinks the budget after the API rejected these messages as too long. Returns whether to try again.
    pub fn shrink(&mut self, messages: &[ModelMessage]) -> bool {
        self.shrinks += 1;
        let needed = self.needed(messages).min(self.window);
        self.window = needed * 3 / 4;
        self.answer = self.answer.min(self.window / 4);
        self.shrinks <= MAX_SHRINKS
    }

    pub fn fold_results(&mut self, messages: &mut [ModelMessage]) -> Option<TurnEvent> {
        if self.needed(messages) <= self.limit() {
            return None;
        }
        let results = messages.iter_mut().rev().filter_map(|message| match message {
            ModelMessage::ToolResults(results) => Some(results),
            _ => None,
        });
        let (mut count, mut folded) = (0, 0);
        for answered in results.skip(FRESH_RESULTS).flatten() {
            let size = answered.bytes();
            if size > SHORT_BYTES {
                let note = format!("[{size} bytes, dropped to save space. Call the tool again if you need them.]");
                answered.content = vec![ToolResultContent::Text(note)];
                (count, folded) = (count + 1, folded + size);
            }
        }
        let what = format!("the results of {count} earlier tool calls ({folded} bytes) were dropped");
        (count > 0).then(|| self.notice(&what))
    }

    /// Returns whether a summary is needed first; [`ContextBudget::summary_request`] is the request for it.
    pub fn begin_summary(&mut self, messages: &[ModelMessage]) -> bool {
        let limit = self.limit();
        if self.needed(messages) <= limit {
            return false;
        }
        let may_begin = |at: &usize| !matches!(messages[*at], ModelMessage::ToolResults(_));
        let fits = |at: &usize| tokens(bytes(&messages[*at..])) <= limit * 3 / 10;
        let cuts = || (2..messages.len()).filter(may_begin);
        let Some(cut) = cuts().find(fits).or_else(|| cuts().next_back()) else { return false };
        let most = usize::try_from(limit.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
        let transcript = truncate_middle(&xml::transcript(&messages[..cut]), most * 8 / 10);
        let question = format!("<conversation>\n{transcript}\n</conversation>\n\n{SUMMARY_PROMPT}");
        self.summary = Some(PendingSummary { question: vec![ModelMessage::User(vec![question.into()])], cut });
        true
    }

    pub fn summary_request(&self) -> Option<&[ModelMessage]> {
        self.summary.as_ref().map(|summary| summary.question.as_slice())
    }

    /// Replaces the summarized messages by the summary, or by a note if there is none.
    pub fn apply_summary(&mut self, messages: &mut Vec<ModelMessage>, summary: Option<String>) -> TurnEvent {
        let Some(PendingSummary { cut, .. }) = self.summary.take() else {
            return self.notice("nothing had to be compacted");
        };
        let summary = summary.filter(|summary| !summary.trim().is_empty());
        let (text, what) = match summary {
            Some(summary) => (
                format!("<summary of=\"{cut} earlier messages\">\n{}\n</summary>", summary.trim()),
                format!("{cut} earlier messages were replaced by a summary of {} bytes", summary.len()),
            ),
            None => (
                format!("[{cut} earlier messages are left out; there was no room for them.]"),
                format!("{cut} earlier messages were left out, because the summary failed"),
            ),
        };
        let is_person = |message: &ModelMessage| matches!(message, ModelMessage::User(_));
        let mut parts = vec![UserPart::Text(text)];
        // The task itself is kept verbatim, however long ago it was given.
        if !messages[cut..].iter().any(is_person)
            && let Some(ModelMessage::User(asked)) = messages[..cut].iter().rev().find(|message| is_person(message))
        {
            let most = usize::try_from(self.limit()).unwrap_or(usize::MAX);
            parts.extend(asked.iter().map(|part| match part {
                UserPart::Text(text) => UserPart::Text(truncate_middle(text, most / 2)),
                file => file.clone(),
            }));
        }
        messages.splice(..cut, [ModelMessage::User(parts)]);
        self.notice(&what)
    }

    fn notice(&self, what: &str) -> TurnEvent {
        let message = format!(
            "To fit the model's context of {} tokens, {what}. Nothing is deleted: the room keeps everything.",
            self.window
        );
        TurnEvent::Status { status: "compacted".into(), message }
    }
}

fn bytes(messages: &[ModelMessage]) -> u64 {
    messages.iter().map(|message| message.bytes() as u64).sum()
}

/// The number of tokens in a text of this length, rather too high than too low.
pub fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}
