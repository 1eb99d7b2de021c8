//! The reader: deltas of text in, text and calls out.

use super::{CLOSE, INVOKE, INVOKE_CLOSE, OPEN, PARAMETER, PARAMETER_CLOSE};
use crate::direct::conversation::floor;

/// One value; what is longer is no call.
const MAX_VALUE_BYTES: usize = 4 * 1024 * 1024;
const MAX_TAG_BYTES: usize = 1024;
const MAX_PARAMETERS: usize = 256;
/// How much of a call that was not understood is kept.
const MAX_RAW_BYTES: usize = 4096;
/// A text that ends like this or longer was to be a tag.
const HALF_A_TAG: &str = "<function_";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bit {
    Text(String),
    Call { name: String, parameters: Vec<(String, String)> },
    Malformed { name: String, reason: &'static str, raw: String },
}

#[derive(Debug, Default)]
pub struct Reader {
    /// Not yet understood.
    held: String,
    /// Up to here `held` was searched in vain.
    searched: usize,
    state: State,
    /// The call that is being read, as it was written.
    raw: String,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Text,
    /// Inside of `<function_calls>`. Junk between calls is complained of once.
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
    /// Until the end of a call that cannot be understood.
    Skip {
        name: String,
        reason: &'static str,
    },
}

/// What a beginning may turn out to be.
enum Is {
    No,
    Maybe,
    /// With this many bytes.
    Yes(usize),
}

impl Reader {
    pub fn push(&mut self, delta: &str, bits: &mut Vec<Bit>) {
        self.held.push_str(delta);
        while self.step(bits) {}
    }

    /// Nothing follows.
    pub fn end(&mut self, bits: &mut Vec<Bit>) {
        let held = std::mem::take(&mut self.held);
        self.searched = 0;
        let raw = |raw: &str| kept(&format!("{raw}{held}"));
        match std::mem::take(&mut self.state) {
            State::Text if held.len() >= HALF_A_TAG.len() && held.starts_with(HALF_A_TAG) => {
                bits.push(Bit::Malformed { name: String::new(), reason: UNFINISHED, raw: raw("") });
            }
            State::Text => say(held, bits),
            // The end of the block is where models are made to stop.
            State::Calls { .. } if held.trim().is_empty() || CLOSE.starts_with(held.trim()) => {}
            State::Calls { has_junk: true } => {}
            State::Calls { .. } => bits.push(Bit::Malformed { name: String::new(), reason: UNFINISHED, raw: raw("") }),
            State::Invoke { name, .. } | State::Parameter { name, .. } => {
                bits.push(Bit::Malformed { name, reason: UNFINISHED, raw: raw(&self.raw) });
            }
            State::Skip { name, reason } => bits.push(Bit::Malformed { name, reason, raw: raw(&self.raw) }),
        }
        self.raw.clear();
    }

    /// Whether there may be more to understand in what is held.
    fn step(&mut self, bits: &mut Vec<Bit>) -> bool {
        match std::mem::take(&mut self.state) {
            State::Text => self.text(bits),
            State::Calls { has_junk } => self.calls(has_junk, bits),
            State::Invoke { name, parameters } => self.invoke(name, parameters, bits),
            State::Parameter { name, parameters, parameter } => self.parameter(name, parameters, parameter),
            State::Skip { name, reason } => self.skip(name, reason, bits),
        }
    }

    fn text(&mut self, bits: &mut Vec<Bit>) -> bool {
        let mut from = 0;
        while let Some(at) = self.held[from..].find('<').map(|at| at + from) {
            match opening(&self.held[at..]) {
                Is::No => from = at + 1,
                Is::Maybe => {
                    let rest = self.held.split_off(at);
                    say(std::mem::replace(&mut self.held, rest), bits);
                    return false;
                }
                Is::Yes(length) => {
                    let rest = self.held.split_off(at + length);
                    self.held.truncate(at);
                    say(std::mem::replace(&mut self.held, rest), bits);
                    self.state = State::Calls { has_junk: false };
                    return true;
                }
            }
        }
        say(std::mem::take(&mut self.held), bits);
        false
    }

    fn calls(&mut self, has_junk: bool, bits: &mut Vec<Bit>) -> bool {
        self.held.drain(..self.held.len() - self.held.trim_start().len());
        match (begins(&self.held, INVOKE), begins(&self.held, CLOSE)) {
            (Is::Yes(_), _) => match self.held.find('>') {
                Some(end) if end <= MAX_TAG_BYTES => {
                    let tag: String = self.held.drain(..=end).collect();
                    self.state = match attribute(&tag) {
                        Some(name) => State::Invoke { name, parameters: Vec::new() },
                        None => State::Skip { name: String::new(), reason: "<invoke> needs a name=\"…\"" },
                    };
                    self.raw = tag;
                    true
                }
                None if self.held.len() <= MAX_TAG_BYTES => {
                    self.state = State::Calls { has_junk };
                    false
                }
                _ => {
                    self.state = State::Skip { name: String::new(), reason: "the <invoke> tag has no end" };
                    true
                }
            },
            (_, Is::Yes(length)) => {
                self.held.drain(..length);
                true
            }
            (Is::Maybe, _) | (_, Is::Maybe) => {
                self.state = State::Calls { has_junk };
                false
            }
            (Is::No, Is::No) => {
                if !has_junk {
                    let reason = "only <invoke> may stand inside of <function_calls>";
                    bits.push(Bit::Malformed { name: String::new(), reason, raw: kept(&self.held) });
                }
                // Whatever it was, it was not said to anybody: the rest of it is left out.
                self.state = State::Calls { has_junk: true };
                let next = [INVOKE, CLOSE].iter().filter_map(|tag| self.held.find(tag)).min();
                match next {
                    Some(at) => drop(self.held.drain(..at)),
                    None => {
                        // As much as may be the beginning of either stays.
                        let tail = floor(&self.held, self.held.len().saturating_sub(CLOSE.len()));
                        let at = self.held[tail..].find('<').map_or(self.held.len(), |at| tail + at);
                        self.held.drain(..at.max(1));
                    }
                }
                true
            }
        }
    }

    fn invoke(&mut self, name: String, mut parameters: Vec<(String, String)>, bits: &mut Vec<Bit>) -> bool {
        self.eat(self.held.len() - self.held.trim_start().len());
        match (begins(&self.held, PARAMETER), begins(&self.held, INVOKE_CLOSE)) {
            (Is::Yes(_), _) => match self.held.find('>') {
                Some(end) if end <= MAX_TAG_BYTES && parameters.len() < MAX_PARAMETERS => {
                    let tag = self.eat(end + 1);
                    self.state = match attribute(&tag) {
                        Some(parameter) => State::Parameter { name, parameters, parameter },
                        None => State::Skip { name, reason: "<parameter> needs a name=\"…\"" },
                    };
                    true
                }
                None if self.held.len() <= MAX_TAG_BYTES => {
                    self.state = State::Invoke { name, parameters };
                    false
                }
                _ => {
                    self.state = State::Skip { name, reason: "it has too many parameters, or a tag without an end" };
                    true
                }
            },
            (_, Is::Yes(length)) => {
                self.held.drain(..length);
                self.raw.clear();
                parameters.reverse();
                // The last one of a name counts.
                let mut seen = Vec::new();
                parameters.retain(|(key, _)| {
                    !seen.contains(key) && {
                        seen.push(key.clone());
                        true
                    }
                });
                parameters.reverse();
                bits.push(Bit::Call { name, parameters });
                self.state = State::Calls { has_junk: false };
                true
            }
            (Is::Maybe, _) | (_, Is::Maybe) => {
                self.state = State::Invoke { name, parameters };
                false
            }
            (Is::No, Is::No) => {
                self.state = State::Skip { name, reason: "only <parameter> may stand inside of <invoke>" };
                true
            }
        }
    }

    fn parameter(&mut self, name: String, mut parameters: Vec<(String, String)>, parameter: String) -> bool {
        match self.search(PARAMETER_CLOSE) {
            Some(at) => {
                let value = self.eat(at);
                self.eat(PARAMETER_CLOSE.len());
                parameters.push((parameter, value));
                self.state = State::Invoke { name, parameters };
                true
            }
            None if self.held.len() <= MAX_VALUE_BYTES => {
                self.state = State::Parameter { name, parameters, parameter };
                false
            }
            None => {
                self.state = State::Skip { name, reason: "a parameter is too long" };
                true
            }
        }
    }

    fn skip(&mut self, name: String, reason: &'static str, bits: &mut Vec<Bit>) -> bool {
        match self.search(INVOKE_CLOSE) {
            Some(at) => {
                self.eat(at + INVOKE_CLOSE.len());
                let raw = kept(&std::mem::take(&mut self.raw));
                bits.push(Bit::Malformed { name, reason, raw });
                self.state = State::Calls { has_junk: false };
                true
            }
            None => {
                // Nothing of it is needed any more but what may be the beginning of the end.
                let tail = floor(&self.held, self.held.len().saturating_sub(INVOKE_CLOSE.len()));
                self.eat(tail);
                self.state = State::Skip { name, reason };
                false
            }
        }
    }

    /// Takes bytes off what is held, into the record of this call.
    fn eat(&mut self, bytes: usize) -> String {
        let eaten: String = self.held.drain(..bytes).collect();
        self.searched = 0;
        if self.raw.len() < MAX_RAW_BYTES {
            self.raw.push_str(&eaten[..floor(&eaten, MAX_RAW_BYTES)]);
        }
        eaten
    }

    /// Looks at each byte once, however small the deltas are.
    fn search(&mut self, tag: &str) -> Option<usize> {
        let from = floor(&self.held, self.searched.saturating_sub(tag.len()));
        let found = self.held[from..].find(tag).map(|at| from + at);
        self.searched = if found.is_some() { 0 } else { self.held.len() };
        found
    }
}

const UNFINISHED: &str = "it breaks off before its end";

fn say(text: String, bits: &mut Vec<Bit>) {
    match bits.last_mut() {
        _ if text.is_empty() => {}
        Some(Bit::Text(last)) => last.push_str(&text),
        _ => bits.push(Bit::Text(text)),
    }
}

fn kept(raw: &str) -> String {
    raw[..floor(raw, MAX_RAW_BYTES)].to_owned()
}

fn begins(text: &str, tag: &str) -> Is {
    let Some(rest) = text.strip_prefix(tag) else {
        return if tag.starts_with(text) { Is::Maybe } else { Is::No };
    };
    // `<invoked>` is no `<invoke>`.
    match rest.chars().next() {
        _ if tag.ends_with('>') => Is::Yes(tag.len()),
        Some(next) if next.is_whitespace() || next == '>' => Is::Yes(tag.len()),
        Some(_) => Is::No,
        None => Is::Maybe,
    }
}

/// `<function_calls>` with an `<invoke` behind it.
fn opening(text: &str) -> Is {
    match begins(text, OPEN) {
        Is::Yes(length) => {
            let rest = &text[length..];
            let blank = rest.len() - rest.trim_start().len();
            match begins(rest.trim_start(), INVOKE) {
                _ if blank > MAX_TAG_BYTES => Is::No,
                Is::Yes(_) => Is::Yes(length + blank),
                other => other,
            }
        }
        other => other,
    }
}

/// The value of `name="…"` in a tag.
fn attribute(tag: &str) -> Option<String> {
    let after = tag.split_once(|c: char| c.is_whitespace())?.1.trim_start().strip_prefix("name")?;
    let after = after.trim_start().strip_prefix('=')?.trim_start();
    let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let value = after[1..].split_once(quote)?.0.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
