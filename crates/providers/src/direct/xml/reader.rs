//! The streaming reader: text deltas in, text and calls out.

use super::{CLOSE, INVOKE, INVOKE_CLOSE, OPEN, PARAMETER, PARAMETER_CLOSE};

/// The maximum length of a value; a longer call is malformed.
const MAX_VALUE_BYTES: usize = 4 * 1024 * 1024;
const MAX_TAG_BYTES: usize = 1024;
const MAX_PARAMETERS: usize = 256;
/// How much of a malformed call is kept.
const MAX_RAW_BYTES: usize = 4096;
/// A text that ends with this or more was meant to be a tag.
const PARTIAL_TAG: &str = "<function_";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XmlPiece {
    Text(String),
    Call { name: String, parameters: Vec<(String, String)> },
    Malformed { name: String, reason: &'static str, raw: String },
}

#[derive(Debug, Default)]
pub struct XmlReader {
    /// Not parsed yet.
    buffer: String,
    /// Up to here `buffer` was searched without a match.
    searched: usize,
    state: XmlReaderState,
    /// The source text of the current call.
    raw: String,
}

#[derive(Debug, Default)]
enum XmlReaderState {
    #[default]
    Text,
    /// Inside of `<function_calls>`. Junk between calls is reported once.
    Calls {
        has_junk: bool,
    },
    Invoke {
        name: String,
        parameters: Vec<(String, String)>,
    },
    Parameter {
        name: String,
        parameters: Vec<(String, String)>,
        parameter: String,
    },
    /// Skips to the end of a malformed call.
    Skip {
        name: String,
        reason: &'static str,
    },
}

/// Whether a text starts with a tag.
enum TagMatch {
    No,
    Maybe,
    /// The length of the match in bytes.
    Yes(usize),
}

impl XmlReader {
    pub fn push(&mut self, delta: &str, bits: &mut Vec<XmlPiece>) {
        self.buffer.push_str(delta);
        while self.step(bits) {}
    }

    /// Ends the input.
    pub fn end(&mut self, bits: &mut Vec<XmlPiece>) {
        let buffer = std::mem::take(&mut self.buffer);
        self.searched = 0;
        let raw = |raw: &str| kept(&format!("{raw}{buffer}"));
        match std::mem::take(&mut self.state) {
            XmlReaderState::Text if buffer.len() >= PARTIAL_TAG.len() && buffer.starts_with(PARTIAL_TAG) => {
                bits.push(XmlPiece::Malformed { name: String::new(), reason: UNFINISHED, raw: raw("") });
            }
            XmlReaderState::Text => push_text(buffer, bits),
            // The end of the block is the stop sequence, so it may be missing.
            XmlReaderState::Calls { .. } if buffer.trim().is_empty() || CLOSE.starts_with(buffer.trim()) => {}
            XmlReaderState::Calls { has_junk: true } => {}
            XmlReaderState::Calls { .. } => {
                bits.push(XmlPiece::Malformed { name: String::new(), reason: UNFINISHED, raw: raw("") })
            }
            XmlReaderState::Invoke { name, .. } | XmlReaderState::Parameter { name, .. } => {
                bits.push(XmlPiece::Malformed { name, reason: UNFINISHED, raw: raw(&self.raw) });
            }
            XmlReaderState::Skip { name, reason } => {
                bits.push(XmlPiece::Malformed { name, reason, raw: raw(&self.raw) })
            }
        }
        self.raw.clear();
    }

    /// Returns whether the buffer may contain more to parse.
    fn step(&mut self, bits: &mut Vec<XmlPiece>) -> bool {
        match std::mem::take(&mut self.state) {
            XmlReaderState::Text => self.text(bits),
            XmlReaderState::Calls { has_junk } => self.calls(has_junk, bits),
            XmlReaderState::Invoke { name, parameters } => self.invoke(name, parameters, bits),
            XmlReaderState::Parameter { name, parameters, parameter } => self.parameter(name, parameters, parameter),
            XmlReaderState::Skip { name, reason } => self.skip(name, reason, bits),
        }
    }

    fn text(&mut self, bits: &mut Vec<XmlPiece>) -> bool {
        let mut from = 0;
        while let Some(at) = self.buffer[from..].find('<').map(|at| at + from) {
            match opening(&self.buffer[at..]) {
                TagMatch::No => from = at + 1,
                TagMatch::Maybe => {
                    let rest = self.buffer.split_off(at);
                    push_text(std::mem::replace(&mut self.buffer, rest), bits);
                    return false;
                }
                TagMatch::Yes(length) => {
                    let rest = self.buffer.split_off(at + length);
                    self.buffer.truncate(at);
                    push_text(std::mem::replace(&mut self.buffer, rest), bits);
                    self.state = XmlReaderState::Calls { has_junk: false };
                    return true;
                }
            }
        }
        push_text(std::mem::take(&mut self.buffer), bits);
        false
    }

    fn calls(&mut self, has_junk: bool, bits: &mut Vec<XmlPiece>) -> bool {
        self.buffer.drain(..self.buffer.len() - self.buffer.trim_start().len());
        match (begins(&self.buffer, INVOKE), begins(&self.buffer, CLOSE)) {
            (TagMatch::Yes(_), _) => match self.buffer.find('>') {
                Some(end) if end <= MAX_TAG_BYTES => {
                    let tag: String = self.buffer.drain(..=end).collect();
                    self.state = match attribute(&tag) {
                        Some(name) => XmlReaderState::Invoke { name, parameters: Vec::new() },
                        None => XmlReaderState::Skip { name: String::new(), reason: "<invoke> needs a name=\"…\"" },
                    };
                    self.raw = tag;
                    true
                }
                None if self.buffer.len() <= MAX_TAG_BYTES => {
                    self.state = XmlReaderState::Calls { has_junk };
                    false
                }
                _ => {
                    self.state = XmlReaderState::Skip { name: String::new(), reason: "the <invoke> tag has no end" };
                    true
                }
            },
            (_, TagMatch::Yes(length)) => {
                self.buffer.drain(..length);
                true
            }
            (TagMatch::Maybe, _) | (_, TagMatch::Maybe) => {
                self.state = XmlReaderState::Calls { has_junk };
                false
            }
            (TagMatch::No, TagMatch::No) => {
                if !has_junk {
                    let reason = "only <invoke> may stand inside of <function_calls>";
                    bits.push(XmlPiece::Malformed { name: String::new(), reason, raw: kept(&self.buffer) });
                }
                // The junk was not meant for users: the rest of it is dropped.
                self.state = XmlReaderState::Calls { has_junk: true };
                let next = [INVOKE, CLOSE].iter().filter_map(|tag| self.buffer.find(tag)).min();
                match next {
                    Some(at) => drop(self.buffer.drain(..at)),
                    None => {
                        // Keeps the part that may be the start of either tag.
                        let tail = self.buffer.floor_char_boundary(self.buffer.len().saturating_sub(CLOSE.len()));
                        let at = self.buffer[tail..].find('<').map_or(self.buffer.len(), |at| tail + at);
                        self.buffer.drain(..at.max(1));
                    }
                }
                true
            }
        }
    }

    fn invoke(&mut self, name: String, mut parameters: Vec<(String, String)>, bits: &mut Vec<XmlPiece>) -> bool {
        self.consume(self.buffer.len() - self.buffer.trim_start().len());
        match (begins(&self.buffer, PARAMETER), begins(&self.buffer, INVOKE_CLOSE)) {
            (TagMatch::Yes(_), _) => match self.buffer.find('>') {
                Some(end) if end <= MAX_TAG_BYTES && parameters.len() < MAX_PARAMETERS => {
                    let tag = self.consume(end + 1);
                    self.state = match attribute(&tag) {
                        Some(parameter) => XmlReaderState::Parameter { name, parameters, parameter },
                        None => XmlReaderState::Skip { name, reason: "<parameter> needs a name=\"…\"" },
                    };
                    true
                }
                None if self.buffer.len() <= MAX_TAG_BYTES => {
                    self.state = XmlReaderState::Invoke { name, parameters };
                    false
                }
                _ => {
                    self.state =
                        XmlReaderState::Skip { name, reason: "it has too many parameters, or a tag without an end" };
                    true
                }
            },
            (_, TagMatch::Yes(length)) => {
                self.buffer.drain(..length);
                self.raw.clear();
                parameters.reverse();
                // The last parameter of a name wins.
                let mut seen = Vec::new();
                parameters.retain(|(key, _)| {
                    !seen.contains(key) && {
                        seen.push(key.clone());
                        true
                    }
                });
                parameters.reverse();
                bits.push(XmlPiece::Call { name, parameters });
                self.state = XmlReaderState::Calls { has_junk: false };
                true
            }
            (TagMatch::Maybe, _) | (_, TagMatch::Maybe) => {
                self.state = XmlReaderState::Invoke { name, parameters };
                false
            }
            (TagMatch::No, TagMatch::No) => {
                self.state = XmlReaderState::Skip { name, reason: "only <parameter> may stand inside of <invoke>" };
                true
            }
        }
    }

    fn parameter(&mut self, name: String, mut parameters: Vec<(String, String)>, parameter: String) -> bool {
        match self.search(PARAMETER_CLOSE) {
            Some(at) => {
                let value = self.consume(at);
                self.consume(PARAMETER_CLOSE.len());
                parameters.push((parameter, value));
                self.state = XmlReaderState::Invoke { name, parameters };
                true
            }
            None if self.buffer.len() <= MAX_VALUE_BYTES => {
                self.state = XmlReaderState::Parameter { name, parameters, parameter };
                false
            }
            None => {
                self.state = XmlReaderState::Skip { name, reason: "a parameter is too long" };
                true
            }
        }
    }

    fn skip(&mut self, name: String, reason: &'static str, bits: &mut Vec<XmlPiece>) -> bool {
        match self.search(INVOKE_CLOSE) {
            Some(at) => {
                self.consume(at + INVOKE_CLOSE.len());
                let raw = kept(&std::mem::take(&mut self.raw));
                bits.push(XmlPiece::Malformed { name, reason, raw });
                self.state = XmlReaderState::Calls { has_junk: false };
                true
            }
            None => {
                // Keeps only the part that may be the start of the closing tag.
                let tail = self.buffer.floor_char_boundary(self.buffer.len().saturating_sub(INVOKE_CLOSE.len()));
                self.consume(tail);
                self.state = XmlReaderState::Skip { name, reason };
                false
            }
        }
    }

    /// Moves bytes from the buffer to the source text of the current call.
    fn consume(&mut self, bytes: usize) -> String {
        let consumed: String = self.buffer.drain(..bytes).collect();
        self.searched = 0;
        if self.raw.len() < MAX_RAW_BYTES {
            self.raw.push_str(&consumed[..consumed.floor_char_boundary(MAX_RAW_BYTES)]);
        }
        consumed
    }

    /// Searches each byte once, however small the deltas are.
    fn search(&mut self, tag: &str) -> Option<usize> {
        let from = self.buffer.floor_char_boundary(self.searched.saturating_sub(tag.len()));
        let found = self.buffer[from..].find(tag).map(|at| from + at);
        self.searched = if found.is_some() { 0 } else { self.buffer.len() };
        found
    }
}

const UNFINISHED: &str = "it breaks off before its end";

fn push_text(text: String, bits: &mut Vec<XmlPiece>) {
    match bits.last_mut() {
        _ if text.is_empty() => {}
        Some(XmlPiece::Text(last)) => last.push_str(&text),
        _ => bits.push(XmlPiece::Text(text)),
    }
}

fn kept(raw: &str) -> String {
    raw[..raw.floor_char_boundary(MAX_RAW_BYTES)].to_owned()
}

fn begins(text: &str, tag: &str) -> TagMatch {
    let Some(rest) = text.strip_prefix(tag) else {
        return if tag.starts_with(text) { TagMatch::Maybe } else { TagMatch::No };
    };
    // `<invoked>` is not `<invoke>`.
    match rest.chars().next() {
        _ if tag.ends_with('>') => TagMatch::Yes(tag.len()),
        Some(next) if next.is_whitespace() || next == '>' => TagMatch::Yes(tag.len()),
        Some(_) => TagMatch::No,
        None => TagMatch::Maybe,
    }
}

/// Matches `<function_calls>` followed by `<invoke`.
fn opening(text: &str) -> TagMatch {
    match begins(text, OPEN) {
        TagMatch::Yes(length) => {
            let rest = &text[length..];
            let blank = rest.len() - rest.trim_start().len();
            match begins(rest.trim_start(), INVOKE) {
                _ if blank > MAX_TAG_BYTES => TagMatch::No,
                TagMatch::Yes(_) => TagMatch::Yes(length + blank),
                other => other,
            }
        }
        other => other,
    }
}

/// Returns the value of `name="…"` in a tag.
fn attribute(tag: &str) -> Option<String> {
    let after = tag.split_once(|c: char| c.is_whitespace())?.1.trim_start().strip_prefix("name")?;
    let after = after.trim_start().strip_prefix('=')?.trim_start();
    let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let value = after[1..].split_once(quote)?.0.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
