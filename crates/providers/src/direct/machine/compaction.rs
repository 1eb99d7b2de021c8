//! Room in the model's context. What outgrows it is folded, the oldest first: results of tools into a note each, then whole
//! messages into a summary that the model itself writes. The room's journal keeps everything; the folding is told.

use crate::{
    TurnEvent,
    direct::{
        conversation::{Content, Message, shortened},
        xml,
    },
};
use domain::usage::Usage;

/// A token of English is about four bytes; what was not measured is counted as if it were a bit less.
const BYTES_PER_TOKEN: u64 = 3;
/// Results that stay whole: the model is working with them.
const FRESH_RESULTS: usize = 2;
/// Results shorter than this are not worth folding.
const SHORT_BYTES: usize = 400;
/// How often an API may say that it was too much before it is believed that nothing helps.
const MAX_SHRINKS: u32 = 3;

const SUMMARISE: &str = "Above is the older part of a conversation that you (\"YOU\") are in the middle of. It no longer fits \
    into your context. Write a summary that lets you go on without it: what people want and have decided, what was done \
    and found out, names, paths, numbers and errors that still matter, and what is left to do. Write only the summary.";

#[derive(Debug)]
pub struct Room {
    window: u64,
    answer: u64,
    /// (bytes of the messages, tokens that the API counted for them and all else in the request)
    measured: Option<(u64, u64)>,
    /// Of what every request carries besides the messages.
    fixed: u64,
    summary: Option<Summary>,
    shrinks: u32,
}

#[derive(Debug)]
struct Summary {
    question: Vec<Message>,
    /// Messages before this are folded.
    cut: usize,
}

impl Room {
    pub fn new(window: u64, answer: u64, fixed_bytes: usize) -> Self {
        let fixed = tokens(fixed_bytes as u64);
        Self { window, answer: answer.min(window / 2), measured: None, fixed, summary: None, shrinks: 0 }
    }

    /// What the request may hold, in tokens.
    fn limit(&self) -> u64 {
        self.window.saturating_sub(self.answer + self.window / 20)
    }

    fn needed(&self, messages: &[Message]) -> u64 {
        let bytes = bytes(messages);
        match self.measured {
            Some((then, counted)) if bytes >= then => counted + tokens(bytes - then),
            Some((then, counted)) => counted.saturating_sub(tokens(then - bytes)),
            None => self.fixed + tokens(bytes),
        }
    }

    /// What the API counted for these messages.
    pub fn measured(&mut self, messages: &[Message], usage: &Usage) {
        let read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
        if self.summary.is_none() && read > 0 {
            self.measured = Some((bytes(messages), read));
        }
    }

    /// The API says that these are too much, whatever we counted. Returns whether to try with less.
    pub fn shrink(&mut self, messages: &[Message]) -> bool {
        self.shrinks += 1;
        let needed = self.needed(messages).min(self.window);
        self.window = needed * 3 / 4;
        self.answer = self.answer.min(self.window / 4);
        self.shrinks <= MAX_SHRINKS
    }

    pub fn fold_results(&mut self, messages: &mut [Message]) -> Option<TurnEvent> {
        if self.needed(messages) <= self.limit() {
            return None;
        }
        let results = messages.iter_mut().rev().filter_map(|message| match message {
            Message::Results(results) => Some(results),
            _ => None,
        });
        let (mut count, mut folded) = (0, 0);
        for answered in results.skip(FRESH_RESULTS).flatten() {
            let size = answered.bytes();
            if size > SHORT_BYTES {
                let note = format!("[{size} bytes, folded away to save room. Call the tool again if you need them.]");
                answered.content = vec![Content::Text(note)];
                (count, folded) = (count + 1, folded + size);
            }
        }
        let what = format!("the results of {count} earlier tool calls ({folded} bytes) were folded away");
        (count > 0).then(|| self.told(&what))
    }

    /// Whether a summary has to be made first: [`Room::to_summarise`] is what the model is asked then.
    pub fn begin_summary(&mut self, messages: &[Message]) -> bool {
        let limit = self.limit();
        if self.needed(messages) <= limit {
            return false;
        }
        let may_begin = |at: &usize| !matches!(messages[*at], Message::Results(_));
        let fits = |at: &usize| tokens(bytes(&messages[*at..])) <= limit * 3 / 10;
        let cuts = || (2..messages.len()).filter(may_begin);
        let Some(cut) = cuts().find(fits).or_else(|| cuts().next_back()) else { return false };
        let most = usize::try_from(limit.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
        let transcript = shortened(&xml::transcript(&messages[..cut]), most * 8 / 10);
        let question = format!("<conversation>\n{transcript}\n</conversation>\n\n{SUMMARISE}");
        self.summary = Some(Summary { question: vec![Message::Person(vec![question])], cut });
        true
    }

    pub fn to_summarise(&self) -> Option<&[Message]> {
        self.summary.as_ref().map(|summary| summary.question.as_slice())
    }

    /// Puts the summary in the place of what it is of. Without one, a note is there in its place.
    pub fn end_summary(&mut self, messages: &mut Vec<Message>, summary: Option<String>) -> TurnEvent {
        let Some(Summary { cut, .. }) = self.summary.take() else { return self.told("nothing had to be folded") };
        let summary = summary.filter(|summary| !summary.trim().is_empty());
        let (text, what) = match summary {
            Some(summary) => (
                format!("<summary of=\"{cut} earlier messages\">\n{}\n</summary>", summary.trim()),
                format!("{cut} earlier messages were folded into a summary of {} bytes", summary.len()),
            ),
            None => (
                format!("[{cut} earlier messages are left out; there was no room for them.]"),
                format!("{cut} earlier messages were left out, because no summary of them could be made"),
            ),
        };
        let is_person = |message: &Message| matches!(message, Message::Person(_));
        let mut texts = vec![text];
        // What the model was asked to do stays in its own words, however long it has been at it.
        if !messages[cut..].iter().any(is_person)
            && let Some(Message::Person(asked)) = messages[..cut].iter().rev().find(|message| is_person(message))
        {
            let most = usize::try_from(self.limit()).unwrap_or(usize::MAX);
            texts.extend(asked.iter().map(|text| shortened(text, most / 2)));
        }
        messages.splice(..cut, [Message::Person(texts)]);
        self.told(&what)
    }

    fn told(&self, what: &str) -> TurnEvent {
        let message = format!(
            "To fit the model's context of {} tokens {what}. Nothing is deleted: the room keeps all of it.",
            self.window
        );
        TurnEvent::Status { status: "compacted".into(), message }
    }
}

fn bytes(messages: &[Message]) -> u64 {
    messages.iter().map(|message| message.bytes() as u64).sum()
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}
