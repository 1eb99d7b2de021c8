//! The loop of an agent on a bare model, as a pure machine: an input in, effects out. No clock, no ids, no IO; `turn`
//! carries the effects out.
//!
//! Ask the model, hear its answer, have its calls carried out, tell it the results, ask again: until it is done. The
//! engine's own machine is above it and decides about limits and policies, as for every provider. `answer` gathers what
//! streams, `compaction` makes room, `repeats` notices a model that runs in circles.

mod answer;
mod compaction;
mod repeats;
#[cfg(test)]
mod tests;

use super::{
    conversation::{Answered, Call, Content, Message},
    wire::{
        Piece, Stop,
        failure::{Failure, Kind},
    },
};
use crate::{TurnEnd, TurnEvent};
use answer::{Answer, Turn};
use compaction::Room;
use domain::{event::Decision, ids::MessageId, run::RunError, usage::Usage};
use repeats::Repeats;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What is fixed for the whole turn.
#[derive(Clone, Debug)]
pub struct Setting {
    pub tools: BTreeMap<String, Tool>,
    /// Calls stand in the text.
    pub is_xml: bool,
    pub runs_while_streaming: bool,
    pub is_parallel: bool,
    /// In tokens: what the model's context holds, and what of it an answer may take.
    pub context_window: u64,
    pub answer_tokens: u64,
    /// Of the system prompt and the tools, which every question carries.
    pub fixed_bytes: usize,
    /// Of one question that fails in a way that may pass.
    pub retries: u32,
    /// What a person can do about a key that is refused.
    pub key_advice: String,
}

/// What the machine has to know of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub schema: Value,
    pub manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Harmless: nobody is asked.
    Free,
    /// The engine decides, or a person.
    Asks,
    /// Carried out by asking a person: the answer is the result.
    Question,
}

#[derive(Debug)]
pub enum Input {
    Begin,
    Piece(Piece),
    /// The connection is at its end: the answer was whole, or this is why it was not.
    Ended(Result<(), Failure>),
    /// The time to wait before asking again is over.
    Rested,
    Decided {
        call: String,
        decision: Decision,
        input: Option<Value>,
    },
    ToolEnded {
        call: String,
        outcome: Outcome,
    },
    Steer {
        message: MessageId,
        text: String,
    },
    Stop,
}

/// What came of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// For the room, as the tool gave it.
    pub shown: Value,
    /// For the model.
    pub content: Vec<Content>,
    pub is_error: bool,
}

impl Outcome {
    pub fn text(text: impl Into<String>, is_error: bool) -> Self {
        let text = text.into();
        Self { shown: Value::from(text.clone()), content: vec![Content::Text(text)], is_error }
    }
}

#[derive(Debug, PartialEq)]
pub enum Effect {
    Tell(TurnEvent),
    /// Ask the model, with [`Machine::messages`].
    Ask(Purpose),
    /// Close the connection: nothing more of this answer is wanted.
    HangUp,
    /// Wait before asking again. The first attempt has the number 1.
    Rest {
        attempt: u32,
        failure: Failure,
    },
    /// Ask for a decision.
    Decide {
        call: String,
        name: String,
        input: Value,
        is_question: bool,
    },
    Run {
        call: String,
        name: String,
        input: Map<String, Value>,
    },
    End(TurnEnd),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Answer,
    /// A summary of what is to be folded, which is in [`Machine::messages`] alone; no tools.
    Summary,
}

#[derive(Clone, Debug, PartialEq)]
enum Progress {
    Waiting,
    Deciding,
    Running,
    Ended(Outcome),
}

#[derive(Debug)]
struct Doing {
    call: Call,
    progress: Progress,
}

#[derive(Debug)]
pub struct Machine {
    setting: Setting,
    room: Room,
    messages: Vec<Message>,
    /// What is asked for just now; `None` while the model is not asked.
    asking: Option<Purpose>,
    answer: Answer,
    /// The calls of the answer under way or just ended.
    doing: Vec<Doing>,
    /// Ids that calls of this turn have had.
    ids: BTreeSet<String>,
    /// Said while the answer was under way.
    steered: Vec<String>,
    repeats: Repeats,
    /// Questions to the model, each attempt counted.
    questions: u32,
    attempt: u32,
    has_spoken: bool,
    ended: bool,
}

impl Machine {
    pub fn new(setting: Setting, messages: Vec<Message>) -> Self {
        let room = Room::new(setting.context_window, setting.answer_tokens, setting.fixed_bytes);
        Self {
            answer: Answer::new(1, setting.is_xml),
            setting,
            room,
            messages,
            asking: None,
            doing: Vec::new(),
            ids: BTreeSet::new(),
            steered: Vec::new(),
            repeats: Repeats::default(),
            questions: 0,
            attempt: 0,
            has_spoken: false,
            ended: false,
        }
    }

    /// What the model is to be told.
    pub fn messages(&self) -> &[Message] {
        self.room.to_summarise().unwrap_or(&self.messages)
    }

    pub fn on(&mut self, input: Input, effects: &mut Vec<Effect>) {
        if self.ended {
            return;
        }
        match input {
            Input::Begin => self.ask(effects),
            Input::Piece(piece) => self.hear(piece, effects),
            Input::Ended(how) => self.heard(how, effects),
            Input::Rested => self.ask_again(effects),
            Input::Decided { call, decision, input } => self.decided(&call, decision, input, effects),
            Input::ToolEnded { call, outcome } => self.done(&call, outcome, effects),
            Input::Steer { message, text } => {
                self.steered.push(text);
                effects.push(Effect::Tell(TurnEvent::Steered { message, taken: true }));
            }
            Input::Stop => {
                self.meter(effects);
                self.end(TurnEnd::Stopped, effects);
            }
        }
    }

    /// The next question, once there is room for it.
    fn ask(&mut self, effects: &mut Vec<Effect>) {
        self.attempt = 0;
        if let Some(folded) = self.room.fold_results(&mut self.messages) {
            effects.push(Effect::Tell(folded));
        }
        let purpose = if self.room.begin_summary(&self.messages) { Purpose::Summary } else { Purpose::Answer };
        effects.push(Effect::Tell(TurnEvent::ModelCall));
        self.put(purpose, effects);
    }

    fn put(&mut self, purpose: Purpose, effects: &mut Vec<Effect>) {
        self.questions += 1;
        self.answer = Answer::new(self.questions, self.setting.is_xml && purpose == Purpose::Answer);
        self.asking = Some(purpose);
        effects.push(Effect::Ask(purpose));
    }

    fn ask_again(&mut self, effects: &mut Vec<Effect>) {
        if self.asking.is_none() {
            let purpose = if self.room.to_summarise().is_some() { Purpose::Summary } else { Purpose::Answer };
            self.put(purpose, effects);
        }
    }

    fn hear(&mut self, piece: Piece, effects: &mut Vec<Effect>) {
        match self.asking {
            None => {}
            Some(Purpose::Summary) => self.answer.take_silently(piece),
            Some(Purpose::Answer) => {
                let mut turn = Turn { tools: &self.setting.tools, ids: &mut self.ids, events: Vec::new() };
                let calls = self.answer.take(piece, &mut turn);
                let events = turn.events;
                self.show(events, calls, effects);
                if self.setting.runs_while_streaming {
                    self.start(effects);
                }
            }
        }
    }

    fn show(&mut self, events: Vec<TurnEvent>, calls: Vec<Call>, effects: &mut Vec<Effect>) {
        self.has_spoken |= !events.is_empty();
        effects.extend(events.into_iter().map(Effect::Tell));
        self.doing.extend(calls.into_iter().map(|call| Doing { call, progress: Progress::Waiting }));
    }

    fn heard(&mut self, how: Result<(), Failure>, effects: &mut Vec<Effect>) {
        let Some(purpose) = self.asking.take() else { return };
        if purpose == Purpose::Answer {
            let mut turn = Turn { tools: &self.setting.tools, ids: &mut self.ids, events: Vec::new() };
            // A call that a broken connection has cut in two was never made.
            let calls = self.answer.finish(how.is_ok(), &mut turn);
            let events = turn.events;
            self.show(events, calls, effects);
        }
        self.meter(effects);
        match (how, purpose) {
            (Ok(()), Purpose::Summary) => self.summarised(effects),
            (Ok(()), Purpose::Answer) => self.answered(effects),
            (Err(failure), _) => self.failed(failure, purpose, effects),
        }
    }

    fn meter(&mut self, effects: &mut Vec<Effect>) {
        let (usage, model) = self.answer.metered();
        if usage != Usage::default() {
            self.room.measured(&self.messages, &usage);
            effects.push(Effect::Tell(TurnEvent::Usage { usage, model, cost: None }));
        }
    }

    fn summarised(&mut self, effects: &mut Vec<Effect>) {
        let summary = self.answer.silent_text();
        let told = self.room.end_summary(&mut self.messages, Some(summary));
        effects.push(Effect::Tell(told));
        self.ask(effects);
    }

    fn answered(&mut self, effects: &mut Vec<Effect>) {
        self.attempt = 0;
        match self.answer.stop() {
            Some(Stop::Length) => effects.push(status(
                "max_output_tokens",
                "The model has said as much as it may in one answer; model_options.max_output_tokens allows more.",
            )),
            Some(Stop::Refused) => {
                effects.push(status("model_refused", "The model's vendor does not let it answer this."))
            }
            _ => {}
        }
        self.messages.extend(self.answer.message());
        self.proceed(effects);
    }

    fn failed(&mut self, failure: Failure, purpose: Purpose, effects: &mut Vec<Effect>) {
        if purpose == Purpose::Answer && self.doing.iter().any(|doing| doing.progress != Progress::Waiting) {
            // What has run is not run again: the model is told what came of it and goes on from there.
            effects.push(status(
                "resumed",
                &format!("{}; the model goes on with what its tools returned.", failure.message),
            ));
            self.messages.extend(self.answer.message());
            return self.proceed(effects);
        }
        if failure.kind == Kind::TooLong && purpose == Purpose::Answer && self.room.shrink(&self.messages) {
            self.take_back(effects);
            return self.ask(effects);
        }
        let may_pass = failure.kind.is_passing() && failure.retry_after.is_none_or(|wait| wait <= LONGEST_WAIT);
        if may_pass && self.attempt < self.setting.retries {
            self.attempt += 1;
            self.take_back(effects);
            effects.push(Effect::Rest { attempt: self.attempt, failure });
            return;
        }
        if purpose == Purpose::Summary {
            let told = self.room.end_summary(&mut self.messages, None);
            effects.push(Effect::Tell(told));
            return self.ask(effects);
        }
        self.end(TurnEnd::Failed(failure.error(&self.setting.key_advice)), effects);
    }

    /// The answer will be said anew: what was said of it goes.
    fn take_back(&mut self, effects: &mut Vec<Effect>) {
        effects.extend(self.answer.items().into_iter().map(|item| Effect::Tell(TurnEvent::Retract { item })));
        for doing in std::mem::take(&mut self.doing) {
            let content = Value::from("not run: the model's answer broke off and is asked for again");
            effects.push(Effect::Tell(TurnEvent::ToolResult { id: doing.call.id, content, is_error: true }));
        }
    }

    /// Starts what can be started.
    fn start(&mut self, effects: &mut Vec<Effect>) {
        for at in 0..self.doing.len() {
            let is_busy = |doing: &Doing| matches!(doing.progress, Progress::Deciding | Progress::Running);
            if !self.setting.is_parallel && self.doing.iter().any(is_busy) {
                return;
            }
            if self.doing[at].progress != Progress::Waiting {
                continue;
            }
            let Call { id, name, input, malformed } = self.doing[at].call.clone();
            let manner = self.setting.tools.get(&name).map(|tool| tool.manner);
            match (malformed, manner) {
                (Some(malformed), _) => {
                    let text = format!("The call was not understood: {}. Nothing was run.", malformed.reason);
                    self.settle(at, Outcome::text(text, true), effects);
                }
                (None, None) => {
                    let names: Vec<&str> = self.setting.tools.keys().map(String::as_str).collect();
                    let text = format!("There is no tool {name:?}; there are: {}.", names.join(", "));
                    self.settle(at, Outcome::text(text, true), effects);
                }
                (None, Some(Manner::Free)) => {
                    self.doing[at].progress = Progress::Running;
                    effects.push(Effect::Run { call: id, name, input });
                }
                (None, Some(manner)) => {
                    self.doing[at].progress = Progress::Deciding;
                    let is_question = manner == Manner::Question;
                    effects.push(Effect::Decide { call: id, name, input: Value::Object(input), is_question });
                }
            }
        }
    }

    fn decided(&mut self, call: &str, decision: Decision, input: Option<Value>, effects: &mut Vec<Effect>) {
        let Some(at) = self.position(call, &Progress::Deciding) else { return };
        let name = self.doing[at].call.name.clone();
        let is_question = self.setting.tools.get(&name).is_some_and(|tool| tool.manner == Manner::Question);
        if is_question {
            let outcome = crate::host_tools::answered(decision, input.as_ref());
            self.settle(at, Outcome::text(outcome.text, outcome.is_error), effects);
            return self.proceed(effects);
        }
        match (decision, input) {
            (Decision::Allow, input) => {
                let input = match input {
                    Some(Value::Object(changed)) => changed,
                    _ => self.doing[at].call.input.clone(),
                };
                self.doing[at].progress = Progress::Running;
                effects.push(Effect::Run { call: call.to_owned(), name, input });
            }
            (Decision::Deny, _) => {
                let text =
                    "This call was not allowed. Do not try it again; do without it, or ask the people in the room.";
                self.settle(at, Outcome::text(text, true), effects);
                self.proceed(effects);
            }
            (Decision::Expired, _) => {
                self.settle(at, Outcome::text("Nobody allowed this call in time; it was not run.", true), effects);
                self.proceed(effects);
            }
        }
    }

    fn done(&mut self, call: &str, outcome: Outcome, effects: &mut Vec<Effect>) {
        let Some(at) = self.position(call, &Progress::Running) else { return };
        self.settle(at, outcome, effects);
        self.proceed(effects);
    }

    fn position(&self, call: &str, progress: &Progress) -> Option<usize> {
        self.doing.iter().position(|doing| doing.call.id == call && doing.progress == *progress)
    }

    fn settle(&mut self, at: usize, outcome: Outcome, effects: &mut Vec<Effect>) {
        let doing = &mut self.doing[at];
        effects.push(Effect::Tell(TurnEvent::ToolResult {
            id: doing.call.id.clone(),
            content: outcome.shown.clone(),
            is_error: outcome.is_error,
        }));
        doing.progress = Progress::Ended(outcome);
    }

    /// What comes next, when something has ended.
    fn proceed(&mut self, effects: &mut Vec<Effect>) {
        if self.asking.is_some() {
            if self.setting.runs_while_streaming {
                self.start(effects);
            }
            return;
        }
        self.start(effects);
        if self.doing.iter().any(|doing| !matches!(doing.progress, Progress::Ended(_))) {
            return;
        }
        let mut results = Vec::new();
        for Doing { call, progress } in std::mem::take(&mut self.doing) {
            let Progress::Ended(mut outcome) = progress else { continue };
            match self.repeats.note(&call, &outcome) {
                repeats::Verdict::Fine => {}
                repeats::Verdict::Warn(times) => outcome.content.push(Content::Text(format!(
                    "[You have made this same call {times} times now, and it returned the same each time. Do something else.]"
                ))),
                repeats::Verdict::Stop(times) => {
                    let message = format!(
                        "The agent called {} {times} times with the same input and got the same result each time; it was \
                         stopped because it made no progress.",
                        call.name
                    );
                    return self.end(TurnEnd::Failed(RunError::new("no_progress", message)), effects);
                }
            }
            let Outcome { content, is_error, .. } = outcome;
            results.push(Answered { call: call.id, name: call.name, content, is_error });
        }
        let wants_more = !results.is_empty() || self.answer.stop() == Some(Stop::Paused);
        if !results.is_empty() {
            self.messages.push(Message::Results(results));
        }
        let steered = std::mem::take(&mut self.steered);
        if !wants_more && steered.is_empty() {
            if !self.has_spoken {
                effects.push(status("empty_answer", "The model ended its turn without a word."));
            }
            return self.end(TurnEnd::Completed, effects);
        }
        if !steered.is_empty() {
            self.messages.push(Message::Person(steered));
        }
        self.ask(effects);
    }

    fn end(&mut self, end: TurnEnd, effects: &mut Vec<Effect>) {
        self.ended = true;
        self.asking = None;
        effects.push(Effect::HangUp);
        effects.push(Effect::End(end));
    }
}

/// A vendor that wants to be left alone for longer is not waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

fn status(status: &str, message: &str) -> Effect {
    Effect::Tell(TurnEvent::Status { status: status.into(), message: message.into() })
}
