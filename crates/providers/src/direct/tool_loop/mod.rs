//! The tool loop of an agent on a model API, as a pure state machine: an input in, effects out. No clock, no random
//! ids, no IO; `turn` runs the effects.
//!
//! Call the model, read its answer, run its tool calls, send the results, call the model again, until it is done.
//! Limits and policies are up to the engine's own state machine, as for every provider. `answer` collects a streamed
//! answer, `compaction` keeps the conversation within the context window, `repeats` detects a model that repeats
//! itself.

mod answer;
mod compaction;
mod repeats;
#[cfg(test)]
mod tests;

use super::{
    conversation::{ModelMessage, ModelToolCall, ModelToolResult, ToolResultContent, UserPart},
    wire::{
        AnswerPiece, ModelStopReason,
        failure::{ModelFailure, ModelFailureKind},
    },
};
use crate::{TurnEnd, TurnEvent};
use answer::{AnswerBuilder, AnswerContext};
use compaction::{ContextBudget, tokens};
use domain::{event::Decision, ids::MessageId, run::RunError, usage::Usage};
use repeats::RepeatDetector;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Fixed for the whole turn.
#[derive(Clone, Debug)]
pub struct ToolLoopSettings {
    pub tools: BTreeMap<String, LoopTool>,
    /// Tool calls are XML in the text.
    pub is_xml: bool,
    pub runs_while_streaming: bool,
    pub is_parallel: bool,
    /// In tokens: the model's context window, and the part of it that is reserved for the answer.
    pub context_window: u64,
    pub answer_tokens: u64,
    /// Size of the system prompt and the tools, which every request contains.
    pub fixed_bytes: usize,
    /// Retries of one request after transient failures.
    pub retries: u32,
    /// What to do about a rejected API key.
    pub key_advice: String,
}

/// What the tool loop needs to know about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopTool {
    pub schema: Value,
    pub approval: ApprovalMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalMode {
    /// Harmless: runs without approval.
    NotNeeded,
    /// The engine's policy or a person decides.
    Required,
}

#[derive(Debug)]
pub enum LoopInput {
    Begin,
    Piece(AnswerPiece),
    /// The answer is complete, or it failed.
    AnswerEnded(Result<(), ModelFailure>),
    /// The delay before a retry is over.
    RetryDue,
    Decided {
        call: String,
        decision: Decision,
        input: Option<Value>,
    },
    ToolEnded {
        call: String,
        outcome: ToolCallOutcome,
    },
    Steer {
        message: MessageId,
        parts: Vec<UserPart>,
    },
    Stop,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCallOutcome {
    /// The tool's unchanged result, for the room.
    pub for_room: Value,
    /// The result as the model gets it.
    pub for_model: Vec<ToolResultContent>,
    pub is_error: bool,
}

impl ToolCallOutcome {
    pub fn text(text: impl Into<String>, is_error: bool) -> Self {
        let text = text.into();
        Self { for_room: Value::from(text.clone()), for_model: vec![ToolResultContent::Text(text)], is_error }
    }
}

#[derive(Debug, PartialEq)]
pub enum LoopEffect {
    Emit(TurnEvent),
    /// Call the model with [`ToolLoop::messages`].
    CallModel(ModelCallPurpose),
    /// Close the connection: the rest of this answer is not needed.
    CloseConnection,
    /// Wait before a retry. The first retry is attempt 1.
    WaitToRetry {
        attempt: u32,
        failure: ModelFailure,
    },
    /// Request an approval.
    RequestApproval {
        call: String,
        name: String,
        input: Value,
    },
    RunTool {
        call: String,
        name: String,
        input: Map<String, Value>,
    },
    End(TurnEnd),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelCallPurpose {
    Answer,
    /// A summary of older messages, without tools; [`ToolLoop::messages`] contains only those.
    Summary,
}

#[derive(Clone, Debug, PartialEq)]
enum CallProgress {
    Waiting,
    Deciding,
    Running,
    Ended(ToolCallOutcome),
}

#[derive(Debug)]
struct PendingToolCall {
    call: ModelToolCall,
    progress: CallProgress,
}

#[derive(Debug)]
pub struct ToolLoop {
    settings: ToolLoopSettings,
    budget: ContextBudget,
    messages: Vec<ModelMessage>,
    /// The purpose of the current model call, if any.
    calling: Option<ModelCallPurpose>,
    answer: AnswerBuilder,
    /// The tool calls of the current or latest answer.
    pending: Vec<PendingToolCall>,
    /// Ids of all calls of this turn.
    ids: BTreeSet<String>,
    /// Messages that arrived during the answer.
    steered: Vec<UserPart>,
    repeats: RepeatDetector,
    /// Requests to the model, retries included.
    requests: u32,
    attempt: u32,
    has_output: bool,
    ended: bool,
}

impl ToolLoop {
    pub fn new(settings: ToolLoopSettings, messages: Vec<ModelMessage>) -> Self {
        let budget = ContextBudget::new(settings.context_window, settings.answer_tokens, settings.fixed_bytes);
        Self {
            answer: AnswerBuilder::new(1, settings.is_xml),
            settings,
            budget,
            messages,
            calling: None,
            pending: Vec::new(),
            ids: BTreeSet::new(),
            steered: Vec::new(),
            repeats: RepeatDetector::default(),
            requests: 0,
            attempt: 0,
            has_output: false,
            ended: false,
        }
    }

    /// The messages of the next model call.
    pub fn messages(&self) -> &[ModelMessage] {
        self.budget.summary_request().unwrap_or(&self.messages)
    }

    pub fn on(&mut self, input: LoopInput, effects: &mut Vec<LoopEffect>) {
        if self.ended {
            return;
        }
        match input {
            LoopInput::Begin => self.call_model(effects),
            LoopInput::Piece(piece) => self.on_piece(piece, effects),
            LoopInput::AnswerEnded(how) => self.on_answer_end(how, effects),
            LoopInput::RetryDue => self.retry(effects),
            LoopInput::Decided { call, decision, input } => self.decided(&call, decision, input, effects),
            LoopInput::ToolEnded { call, outcome } => self.tool_ended(&call, outcome, effects),
            LoopInput::Steer { message, parts } => {
                self.steered.extend(parts);
                effects.push(LoopEffect::Emit(TurnEvent::Steered { message, taken: true }));
            }
            LoopInput::Stop => {
                let is_answering = self.calling.is_some();
                self.report_usage(is_answering, effects);
                self.end(TurnEnd::Stopped, effects);
            }
        }
    }

    /// Starts the next model call, or a summary if the conversation is too long for it.
    fn call_model(&mut self, effects: &mut Vec<LoopEffect>) {
        self.attempt = 0;
        if let Some(notice) = self.budget.fold_results(&mut self.messages) {
            effects.push(LoopEffect::Emit(notice));
        }
        let purpose = if self.budget.begin_summary(&self.messages) {
            ModelCallPurpose::Summary
        } else {
            ModelCallPurpose::Answer
        };
        effects.push(LoopEffect::Emit(TurnEvent::ModelCall));
        self.send_request(purpose, effects);
    }

    fn send_request(&mut self, purpose: ModelCallPurpose, effects: &mut Vec<LoopEffect>) {
        self.requests += 1;
        self.answer = AnswerBuilder::new(self.requests, self.settings.is_xml && purpose == ModelCallPurpose::Answer);
        self.calling = Some(purpose);
        effects.push(LoopEffect::CallModel(purpose));
    }

    fn retry(&mut self, effects: &mut Vec<LoopEffect>) {
        if self.calling.is_none() {
            let purpose = if self.budget.summary_request().is_some() {
                ModelCallPurpose::Summary
            } else {
                ModelCallPurpose::Answer
            };
            self.send_request(purpose, effects);
        }
    }

    fn on_piece(&mut self, piece: AnswerPiece, effects: &mut Vec<LoopEffect>) {
        match self.calling {
            None => {}
            Some(ModelCallPurpose::Summary) => self.answer.add_to_summary(piece),
            Some(ModelCallPurpose::Answer) => {
                let mut turn = AnswerContext { tools: &self.settings.tools, ids: &mut self.ids, events: Vec::new() };
                let calls = self.answer.add(piece, &mut turn);
                let events = turn.events;
                self.emit(events, calls, effects);
                if self.settings.runs_while_streaming {
                    self.start(effects);
                }
            }
        }
    }

    fn emit(&mut self, events: Vec<TurnEvent>, calls: Vec<ModelToolCall>, effects: &mut Vec<LoopEffect>) {
        self.has_output |= !events.is_empty();
        effects.extend(events.into_iter().map(LoopEffect::Emit));
        self.pending.extend(calls.into_iter().map(|call| PendingToolCall { call, progress: CallProgress::Waiting }));
    }

    fn on_answer_end(&mut self, how: Result<(), ModelFailure>, effects: &mut Vec<LoopEffect>) {
        let Some(purpose) = self.calling.take() else { return };
        if purpose == ModelCallPurpose::Answer {
            let mut turn = AnswerContext { tools: &self.settings.tools, ids: &mut self.ids, events: Vec::new() };
            // An incomplete call of a broken connection does not count.
            let calls = self.answer.finish(how.is_ok(), &mut turn);
            let events = turn.events;
            self.emit(events, calls, effects);
        }
        // A vendor bills a prompt that it has begun to answer, and may have begun before it fell silent.
        let is_cut = |failure: &ModelFailure| self.answer.has_begun() || failure.kind == ModelFailureKind::Timeout;
        let is_cut = how.as_ref().err().is_some_and(is_cut);
        self.report_usage(is_cut, effects);
        match (how, purpose) {
            (Ok(()), ModelCallPurpose::Summary) => self.on_summary(effects),
            (Ok(()), ModelCallPurpose::Answer) => self.on_answer(effects),
            (Err(failure), _) => self.failed(failure, purpose, effects),
        }
    }

    /// `is_cut`: the answer ended before the API could report its usage. Some APIs report only at the end, and some only the
    /// prompt before it. What is missing is estimated, so that a budget cannot be passed by stopping every answer.
    fn report_usage(&mut self, is_cut: bool, effects: &mut Vec<LoopEffect>) {
        let Some((usage, model)) = self.answer.take_usage() else { return };
        if usage != Usage::default() {
            self.budget.record_usage(&self.messages, &usage);
        }
        let mut full = usage;
        if is_cut {
            if full.input_tokens + full.cache_read_tokens + full.cache_write_tokens == 0 {
                full.input_tokens = self.budget.request_tokens(&self.messages);
            }
            full.output_tokens += tokens(self.answer.unreported_bytes());
        }
        if full != usage {
            effects.push(LoopEffect::Emit(TurnEvent::EstimatedUsage { usage: full, model }));
        } else if usage != Usage::default() {
            effects.push(LoopEffect::Emit(TurnEvent::Usage { usage, model, cost: None }));
        }
    }

    fn on_summary(&mut self, effects: &mut Vec<LoopEffect>) {
        let summary = self.answer.take_summary();
        let notice = self.budget.apply_summary(&mut self.messages, Some(summary));
        effects.push(LoopEffect::Emit(notice));
        self.call_model(effects);
    }

    fn on_answer(&mut self, effects: &mut Vec<LoopEffect>) {
        self.attempt = 0;
        match self.answer.stop_reason() {
            Some(ModelStopReason::Length) => effects.push(status(
                "max_output_tokens",
                "The answer reached its maximum length; raise model_options.max_output_tokens to allow more.",
            )),
            Some(ModelStopReason::Refused) => {
                effects.push(status("model_refused", "The model's vendor blocked this answer."))
            }
            _ => {}
        }
        self.messages.extend(self.answer.take_message());
        self.proceed(effects);
    }

    fn failed(&mut self, failure: ModelFailure, purpose: ModelCallPurpose, effects: &mut Vec<LoopEffect>) {
        if purpose == ModelCallPurpose::Answer
            && self.pending.iter().any(|pending| pending.progress != CallProgress::Waiting)
        {
            // A tool that ran is not run again: the model gets the results and continues from there.
            effects.push(status(
                "resumed",
                &format!("{}; the model continues with the results of its tools.", failure.message),
            ));
            self.messages.extend(self.answer.take_message());
            return self.proceed(effects);
        }
        if failure.kind == ModelFailureKind::ContextTooLong
            && purpose == ModelCallPurpose::Answer
            && self.budget.shrink(&self.messages)
        {
            self.retract_answer(effects);
            return self.call_model(effects);
        }
        let is_retryable = failure.kind.is_retryable() && failure.retry_after.is_none_or(|wait| wait <= LONGEST_WAIT);
        if is_retryable && self.attempt < self.settings.retries {
            self.attempt += 1;
            self.retract_answer(effects);
            effects.push(LoopEffect::WaitToRetry { attempt: self.attempt, failure });
            return;
        }
        if purpose == ModelCallPurpose::Summary {
            let notice = self.budget.apply_summary(&mut self.messages, None);
            effects.push(LoopEffect::Emit(notice));
            return self.call_model(effects);
        }
        self.end(TurnEnd::Failed(failure.to_run_error(&self.settings.key_advice)), effects);
    }

    /// Retracts the partial answer, because the request is sent again.
    fn retract_answer(&mut self, effects: &mut Vec<LoopEffect>) {
        effects.extend(self.answer.take_items().into_iter().map(|item| LoopEffect::Emit(TurnEvent::Retract { item })));
        for pending in std::mem::take(&mut self.pending) {
            let content = Value::from("not run: the model's answer broke off and is requested again");
            effects.push(LoopEffect::Emit(TurnEvent::ToolResult { id: pending.call.id, content, is_error: true }));
        }
    }

    /// Starts the calls that can run now.
    fn start(&mut self, effects: &mut Vec<LoopEffect>) {
        for at in 0..self.pending.len() {
            let is_busy =
                |pending: &PendingToolCall| matches!(pending.progress, CallProgress::Deciding | CallProgress::Running);
            if !self.settings.is_parallel && self.pending.iter().any(is_busy) {
                return;
            }
            if self.pending[at].progress != CallProgress::Waiting {
                continue;
            }
            let ModelToolCall { id, name, input, malformed, .. } = self.pending[at].call.clone();
            let manner = self.settings.tools.get(&name).map(|tool| tool.approval);
            match (malformed, manner) {
                (Some(malformed), _) => {
                    let text = format!("The call was not understood: {}. Nothing was run.", malformed.reason);
                    self.finish_call(at, ToolCallOutcome::text(text, true), effects);
                }
                (None, None) => {
                    let names: Vec<&str> = self.settings.tools.keys().map(String::as_str).collect();
                    let text = format!("There is no tool {name:?}; there are: {}.", names.join(", "));
                    self.finish_call(at, ToolCallOutcome::text(text, true), effects);
                }
                (None, Some(ApprovalMode::NotNeeded)) => {
                    self.pending[at].progress = CallProgress::Running;
                    effects.push(LoopEffect::RunTool { call: id, name, input });
                }
                (None, Some(ApprovalMode::Required)) => {
                    self.pending[at].progress = CallProgress::Deciding;
                    effects.push(LoopEffect::RequestApproval { call: id, name, input: Value::Object(input) });
                }
            }
        }
    }

    fn decided(&mut self, call: &str, decision: Decision, input: Option<Value>, effects: &mut Vec<LoopEffect>) {
        let Some(at) = self.position(call, &CallProgress::Deciding) else { return };
        let name = self.pending[at].call.name.clone();
        match (decision, input) {
            (Decision::Allow, input) => {
                let input = match input {
                    Some(Value::Object(changed)) => changed,
                    _ => self.pending[at].call.input.clone(),
                };
                self.pending[at].progress = CallProgress::Running;
                effects.push(LoopEffect::RunTool { call: call.to_owned(), name, input });
            }
            (Decision::Deny, _) => {
                let text =
                    "This call was not allowed. Do not try it again; do without it, or ask the people in the room.";
                self.finish_call(at, ToolCallOutcome::text(text, true), effects);
                self.proceed(effects);
            }
            (Decision::Expired, _) => {
                self.finish_call(
                    at,
                    ToolCallOutcome::text("Nobody allowed this call in time; it was not run.", true),
                    effects,
                );
                self.proceed(effects);
            }
        }
    }

    fn tool_ended(&mut self, call: &str, outcome: ToolCallOutcome, effects: &mut Vec<LoopEffect>) {
        let Some(at) = self.position(call, &CallProgress::Running) else { return };
        self.finish_call(at, outcome, effects);
        self.proceed(effects);
    }

    fn position(&self, call: &str, progress: &CallProgress) -> Option<usize> {
        self.pending.iter().position(|pending| pending.call.id == call && pending.progress == *progress)
    }

    fn finish_call(&mut self, at: usize, outcome: ToolCallOutcome, effects: &mut Vec<LoopEffect>) {
        let pending = &mut self.pending[at];
        effects.push(LoopEffect::Emit(TurnEvent::ToolResult {
            id: pending.call.id.clone(),
            content: outcome.for_room.clone(),
            is_error: outcome.is_error,
        }));
        pending.progress = CallProgress::Ended(outcome);
    }

    /// Continues after a call or an answer has ended.
    fn proceed(&mut self, effects: &mut Vec<LoopEffect>) {
        if self.calling.is_some() {
            if self.settings.runs_while_streaming {
                self.start(effects);
            }
            return;
        }
        self.start(effects);
        if self.pending.iter().any(|pending| !matches!(pending.progress, CallProgress::Ended(_))) {
            return;
        }
        let mut results = Vec::new();
        for PendingToolCall { call, progress } in std::mem::take(&mut self.pending) {
            let CallProgress::Ended(mut outcome) = progress else { continue };
            match self.repeats.record(&call, &outcome) {
                repeats::RepeatVerdict::Fine => {}
                repeats::RepeatVerdict::Warn(times) => outcome.for_model.push(ToolResultContent::Text(format!(
                    "[You have made this same call {times} times now, and it returned the same each time. Do something else.]"
                ))),
                repeats::RepeatVerdict::Stop(times) => {
                    let message = format!(
                        "The agent called {} {times} times with the same input and got the same result each time; it was \
                         stopped because it made no progress.",
                        call.name
                    );
                    return self.end(TurnEnd::Failed(RunError::new("no_progress", message)), effects);
                }
            }
            let ToolCallOutcome { for_model: content, is_error, .. } = outcome;
            results.push(ModelToolResult { call_id: call.id, name: call.name, content, is_error });
        }
        let needs_model = !results.is_empty() || self.answer.stop_reason() == Some(ModelStopReason::Paused);
        if !results.is_empty() {
            self.messages.push(ModelMessage::ToolResults(results));
        }
        let steered = std::mem::take(&mut self.steered);
        if !needs_model && steered.is_empty() {
            if !self.has_output {
                effects.push(status("empty_answer", "The model ended its turn without output."));
            }
            return self.end(TurnEnd::Completed, effects);
        }
        if !steered.is_empty() {
            self.messages.push(ModelMessage::User(steered));
        }
        self.call_model(effects);
    }

    fn end(&mut self, end: TurnEnd, effects: &mut Vec<LoopEffect>) {
        self.ended = true;
        self.calling = None;
        effects.push(LoopEffect::CloseConnection);
        effects.push(LoopEffect::End(end));
    }
}

/// A longer `Retry-After` fails the turn instead.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

fn status(status: &str, message: &str) -> LoopEffect {
    LoopEffect::Emit(TurnEvent::Status { status: status.into(), message: message.into() })
}
