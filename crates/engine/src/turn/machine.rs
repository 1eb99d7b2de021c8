//! The machine itself.

use super::{coalesce::Entry, limit};
use domain::{
    agent::{ToolPolicy, Verdict},
    event::{
        ApprovalRequested, ApprovalResolved, ContentDelta, Decision, ErrorReported, EventBody, Interruption, Retract,
        RunCancelled, RunCompleted, RunFailed, RunInterrupted, Status, StreamEnd, ThinkingDelta, ToolOutputDelta,
        ToolResult, ToolUse, UsageReported,
    },
    fold::Answer,
    ids::{ApprovalId, MessageId},
    limits::{Limit, Limits},
    message::MessageStatus,
    prices,
    run::{RunError, RunStatus},
    time::Timestamp,
};
use providers::{Reported, TurnCommand, TurnEnd, TurnEvent, TurnOutcome};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What is fixed for the whole turn.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub stream_id: MessageId,
    pub limits: Limits,
    pub tools: ToolPolicy,
    /// Tools that a person has allowed for this agent in this room, whatever the policy would ask.
    pub remembered: BTreeSet<String>,
    /// The agent's model, for prices when the provider does not name one.
    pub model: Option<String>,
    pub started_at: Timestamp,
}

#[derive(Debug)]
pub(crate) enum Input {
    Provider(Reported),
    Stop(Why),
    Answer {
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
        /// The tool is allowed from now on.
        remember: bool,
    },
    /// A new message for the answer under way.
    Steer {
        message: MessageId,
        text: String,
    },
    /// The tool is asked about again.
    Forget {
        tool: String,
    },
    /// The provider has returned: everything it started has stopped.
    Ended(TurnOutcome),
}

/// Why a turn is stopped before its own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Cancelled,
    Interrupted(Interruption),
    Limit(Limit),
}

#[derive(Debug)]
pub(crate) enum Effect {
    Append(Entry),
    Become(RunStatus),
    Tell(TurnCommand),
    KeepSession(String),
    RememberTool(String),
    /// What became of a message that was handed to the answer under way.
    Steered {
        message: MessageId,
        taken: bool,
    },
    End(Finish),
}

/// The last effect: how the run is to be closed.
#[derive(Debug)]
pub(crate) struct Finish {
    pub status: RunStatus,
    pub message: MessageStatus,
    pub terminal: EventBody,
    pub error: Option<RunError>,
    pub outcome: TurnOutcome,
    pub duration_ms: u64,
}

/// A tool call that waits for a person.
#[derive(Debug, Clone)]
struct Waiting {
    id: ApprovalId,
    until: Timestamp,
    tool: String,
    is_question: bool,
}

#[derive(Debug)]
pub(crate) struct Machine {
    setting: Setting,
    answer: Answer,
    turns: u32,
    bytes: u64,
    waiting: Vec<Waiting>,
    /// Tool calls that work now.
    open_calls: BTreeSet<String>,
    /// Messages that the provider has been handed and has not answered for.
    steering: Vec<MessageId>,
    session_id: Option<String>,
    stopping: Option<Why>,
    ended: bool,
}

impl Machine {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            setting,
            answer: Answer::default(),
            turns: 0,
            bytes: 0,
            waiting: Vec::new(),
            open_calls: BTreeSet::new(),
            steering: Vec::new(),
            session_id: None,
            stopping: None,
            ended: false,
        }
    }

    /// A machine that has already seen these events: for a turn whose server died.
    pub(crate) fn resumed<'a>(setting: Setting, events: impl IntoIterator<Item = &'a EventBody>) -> Self {
        let mut machine = Self::new(setting);
        for body in events {
            match body {
                EventBody::ApprovalRequested(e) => machine.waiting.push(Waiting {
                    id: e.approval_id,
                    until: e.expires_at,
                    tool: e.name.clone(),
                    is_question: e.is_question,
                }),
                EventBody::ApprovalResolved(e) => machine.waiting.retain(|waiting| waiting.id != e.approval_id),
                other => machine.answer.apply(other),
            }
        }
        machine
    }

    pub(crate) fn answer(&self) -> &Answer {
        &self.answer
    }

    pub(crate) fn stream_id(&self) -> MessageId {
        self.setting.stream_id
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// When the first of the open approvals runs out.
    pub(crate) fn approval_deadline(&self) -> Option<(ApprovalId, Timestamp)> {
        self.waiting.iter().map(|waiting| (waiting.id, waiting.until)).min_by_key(|(_, until)| *until)
    }

    pub(crate) fn is_waiting_for(&self, approval: ApprovalId) -> bool {
        self.waiting.iter().any(|waiting| waiting.id == approval)
    }

    /// Whether the approval is a question, which is answered anew every time.
    pub(crate) fn is_question(&self, approval: ApprovalId) -> bool {
        self.waiting.iter().any(|waiting| waiting.id == approval && waiting.is_question)
    }

    /// Whether a tool works now.
    pub(crate) fn has_open_call(&self) -> bool {
        !self.open_calls.is_empty()
    }

    pub(crate) fn on(&mut self, input: Input, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.ended {
            return;
        }
        match input {
            Input::Provider(reported) => self.provider(reported, now, effects),
            Input::Stop(why) => self.stop(why, effects),
            Input::Answer { approval, decision, input, remember } => {
                self.resolve(approval, decision, input, remember, effects);
            }
            Input::Steer { message, text } => self.steer(message, text, effects),
            Input::Forget { tool } => {
                self.setting.remembered.remove(&tool);
            }
            Input::Ended(outcome) => self.end(outcome, now, effects),
        }
    }

    fn provider(&mut self, reported: Reported, now: Timestamp, effects: &mut Vec<Effect>) {
        let stream_id = self.setting.stream_id;
        let Reported { event, raw } = reported;
        // What is said after the stop was asked for is not part of the answer; that a tool did end still counts, and
        // so do the tokens.
        let counts =
            matches!(event, TurnEvent::ToolResult { .. } | TurnEvent::Usage { .. } | TurnEvent::Session { .. });
        if self.is_stopping() && !counts {
            return;
        }
        let body: EventBody = match event {
            TurnEvent::ModelCall => {
                self.turns += 1;
                if self.turns > self.setting.limits.turns {
                    self.stop(Why::Limit(Limit::Turns), effects);
                }
                return;
            }
            TurnEvent::Text { delta, item } => {
                self.count(&delta, effects);
                ContentDelta { stream_id, delta, item }.into()
            }
            TurnEvent::Thinking { delta, item } => {
                self.count(&delta, effects);
                ThinkingDelta { stream_id, delta, item }.into()
            }
            TurnEvent::Retract { item } => Retract { stream_id, item }.into(),
            TurnEvent::ToolUse { id, name, input } => {
                self.open_calls.insert(id.clone());
                ToolUse { stream_id, tool_use_id: id, name, input }.into()
            }
            TurnEvent::ToolOutput { id, delta } => {
                self.count(&delta, effects);
                ToolOutputDelta { stream_id, tool_use_id: id, delta }.into()
            }
            TurnEvent::ToolResult { id, content, is_error } => {
                self.open_calls.remove(&id);
                ToolResult { stream_id, tool_use_id: id, content, is_error }.into()
            }
            TurnEvent::Approval { id, tool_use_id, name, input, is_question } => {
                let decision = match self.verdict(&name, is_question) {
                    Verdict::Ask => None,
                    Verdict::Allow => Some(Decision::Allow),
                    Verdict::Deny => Some(Decision::Deny),
                };
                if let Some(decision) = decision {
                    effects.push(Effect::Tell(TurnCommand::Answer { approval: id, decision, input: None }));
                    return;
                }
                let expires_at = now + self.setting.limits.approval;
                self.waiting.push(Waiting { id, until: expires_at, tool: name.clone(), is_question });
                effects.push(Effect::Become(RunStatus::WaitingForApproval));
                ApprovalRequested { approval_id: id, tool_use_id, name, input, expires_at, is_question }.into()
            }
            TurnEvent::Withdrawn { id } => {
                // The policy may have answered it, or a person just now.
                let Some(at) = self.waiting.iter().position(|waiting| waiting.id == id) else { return };
                self.waiting.remove(at);
                if self.waiting.is_empty() {
                    effects.push(Effect::Become(RunStatus::Running));
                }
                ApprovalResolved { approval_id: id, decision: Decision::Expired, input: None, remember: false }.into()
            }
            TurnEvent::Usage { usage, model, cost } => {
                let model = model.or_else(|| self.setting.model.clone());
                let priced = || model.as_deref().and_then(prices::find).map(|price| price.cost(&usage));
                UsageReported { usage, cost: cost.or_else(priced), model }.into()
            }
            TurnEvent::Status { status, message } | TurnEvent::Waiting { status, message } => {
                Status { status, message, message_id: None }.into()
            }
            TurnEvent::Steered { message, taken } => {
                let before = self.steering.len();
                self.steering.retain(|handed| *handed != message);
                if self.steering.len() < before {
                    self.steered(message, taken, effects);
                }
                return;
            }
            TurnEvent::Session { id } => {
                self.session_id = Some(id.clone());
                effects.push(Effect::KeepSession(id));
                return;
            }
        };
        self.append(body, raw, effects);
    }

    /// A question is for a person: neither the policy nor what was allowed before may wave it through.
    fn verdict(&self, tool: &str, is_question: bool) -> Verdict {
        match self.setting.tools.verdict(tool) {
            Verdict::Deny => Verdict::Deny,
            _ if is_question => Verdict::Ask,
            Verdict::Ask if self.setting.remembered.contains(tool) => Verdict::Allow,
            verdict => verdict,
        }
    }

    fn count(&mut self, text: &str, effects: &mut Vec<Effect>) {
        self.bytes += text.len() as u64;
        if self.bytes > self.setting.limits.output_bytes {
            self.stop(Why::Limit(Limit::OutputBytes), effects);
        }
    }

    fn append(&mut self, body: EventBody, raw: Option<String>, effects: &mut Vec<Effect>) {
        self.answer.apply(&body);
        effects.push(Effect::Append(Entry { body, raws: raw.into_iter().collect() }));
    }

    /// The first reason stands: a run is not cancelled again because it was interrupted meanwhile.
    fn stop(&mut self, why: Why, effects: &mut Vec<Effect>) {
        if self.stopping.is_none() {
            self.stopping = Some(why);
            effects.push(Effect::Tell(TurnCommand::Interrupt));
        }
    }

    fn resolve(
        &mut self,
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
        remember: bool,
        effects: &mut Vec<Effect>,
    ) {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.id == approval) else { return };
        if self.is_stopping() {
            return;
        }
        let Waiting { tool, is_question, .. } = self.waiting.remove(at);
        let remember = remember && decision == Decision::Allow && !is_question;
        if remember {
            self.setting.remembered.insert(tool.clone());
            effects.push(Effect::RememberTool(tool));
        }
        let body = ApprovalResolved { approval_id: approval, decision, input: input.clone(), remember };
        self.append(body.into(), None, effects);
        if self.waiting.is_empty() {
            effects.push(Effect::Become(RunStatus::Running));
        }
        effects.push(Effect::Tell(TurnCommand::Answer { approval, decision, input }));
    }

    fn steer(&mut self, message: MessageId, text: String, effects: &mut Vec<Effect>) {
        if self.is_stopping() {
            return self.steered(message, false, effects);
        }
        self.steering.push(message);
        effects.push(Effect::Tell(TurnCommand::Steer { message, text }));
    }

    fn steered(&mut self, message: MessageId, taken: bool, effects: &mut Vec<Effect>) {
        if taken {
            let told = "The message was taken into the answer under way.".to_owned();
            let status = Status { status: "steered".to_owned(), message: told, message_id: Some(message) };
            self.append(status.into(), None, effects);
        }
        effects.push(Effect::Steered { message, taken });
    }

    fn end(&mut self, outcome: TurnOutcome, now: Timestamp, effects: &mut Vec<Effect>) {
        self.ended = true;
        for message in std::mem::take(&mut self.steering) {
            self.steered(message, false, effects);
        }
        self.close_what_is_open(effects);
        let duration_ms = u64::try_from(now.since(self.setting.started_at).as_millis()).unwrap_or(u64::MAX);
        let (usage, cost, receipt) = (self.answer.usage, self.answer.cost, outcome.receipt.clone());
        let fail = |error: RunError, limit| (RunStatus::Failed, Some(error), limit);
        let (status, error, limit) = match (self.stopping, &outcome.end) {
            (Some(Why::Cancelled), _) => (RunStatus::Cancelled, None, None),
            (Some(Why::Interrupted(_)), _) => (RunStatus::Interrupted, None, None),
            (Some(Why::Limit(limit)), _) => fail(limit::error(limit, &self.setting.limits), Some(limit)),
            (None, TurnEnd::Completed | TurnEnd::Skipped) => (RunStatus::Completed, None, None),
            (None, TurnEnd::Failed(error)) => fail(error.clone(), None),
            (None, TurnEnd::Stopped) => {
                fail(RunError::new("provider_stopped", "the provider stopped before it had finished"), None)
            }
        };
        let skipped = self.stopping.is_none() && outcome.end == TurnEnd::Skipped;
        let (response_text, thinking_text) = self.answer.texts();
        let end = StreamEnd {
            stream_id: self.setting.stream_id,
            response_text,
            thinking_text,
            session_id: self.session_id.clone(),
            memory_entries: Vec::new(),
            skipped,
        };
        self.append(end.into(), None, effects);
        let terminal: EventBody = match (status, &error) {
            (RunStatus::Cancelled, _) => RunCancelled { receipt, usage, cost, duration_ms }.into(),
            (_, Some(error)) => RunFailed { error: error.clone(), limit, usage, cost, duration_ms }.into(),
            (RunStatus::Interrupted, None) => {
                let reason = match self.stopping {
                    Some(Why::Interrupted(reason)) => reason,
                    _ => Interruption::Crash,
                };
                RunInterrupted { reason, receipt, usage, cost, duration_ms }.into()
            }
            _ => RunCompleted { usage, cost, duration_ms }.into(),
        };
        if let Some(RunError { code, message }) = &error {
            let report = ErrorReported { code: code.clone(), message: message.clone() };
            effects.push(Effect::Append(Entry::new(report)));
        }
        let message = if status == RunStatus::Completed { MessageStatus::Complete } else { MessageStatus::Partial };
        effects.push(Effect::End(Finish { status, message, terminal, error, outcome, duration_ms }));
    }

    /// A tool call without a result may have done anything: that is recorded, never repeated (invariant 12).
    fn close_what_is_open(&mut self, effects: &mut Vec<Effect>) {
        for Waiting { id: approval_id, .. } in std::mem::take(&mut self.waiting) {
            let body = ApprovalResolved { approval_id, decision: Decision::Expired, input: None, remember: false };
            self.append(body.into(), None, effects);
        }
        let stream_id = self.setting.stream_id;
        let open: Vec<String> = self.answer.open_calls().map(|call| call.tool_use_id.clone()).collect();
        for tool_use_id in open {
            let content = json!("outcome unknown: the run ended before the tool did");
            let body = ToolResult { stream_id, tool_use_id, content, is_error: true };
            self.append(body.into(), None, effects);
        }
    }
}
