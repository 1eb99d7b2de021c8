//! The state machine of a turn: what its provider reports becomes events; it requests and resolves approvals, and applies limits.

use super::{coalesce::PendingEvent, limit, metered::MeteredUsage, output_size::output_size};
use domain::{
    agent::{PolicyDecision, ToolPolicy},
    approval::{DecisionAuthor, RememberScope, RememberedRule},
    event::{
        ApprovalRequested, ApprovalResolved, ContentDelta, Decision, ErrorReported, EventBody, FileChanged,
        Interruption, Retract, RunCancelled, RunCompleted, RunDelegated, RunFailed, RunInterrupted, Status, StreamEnd,
        ThinkingDelta, ToolOutputDelta, ToolResult, ToolUse, UsageReported,
    },
    fold::{Answer, MEMORIZED},
    ids::{ApprovalId, MessageId},
    limits::{Limit, Limits},
    message::MessageStatus,
    prices::PriceSource,
    run::{RunError, RunStatus},
    time::Timestamp,
    usage::{Cost, Usage},
};
use providers::{AttachedFile, ProviderEvent, RoomRequest, TurnCommand, TurnEnd, TurnEvent, TurnOutcome};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What the provider's own message may have around a reported text before it counts as output.
const RAW_ALLOWANCE: usize = 4096;
const RESULT_LEFT_OUT: &str = "left out: the run has reached its limit of output";

/// Settings that do not change during a turn, except `remembered`.
#[derive(Debug, Clone)]
pub(crate) struct TurnSettings {
    pub stream_id: MessageId,
    pub limits: Limits,
    pub tools: ToolPolicy,
    /// Calls that a person has allowed for good for this agent in this room; the policy's `ask` does not apply to them.
    pub remembered: Vec<RememberedRule>,
    /// The agent's model, for prices when the provider does not name one.
    pub model: Option<String>,
    /// For calls that the provider reports without a cost.
    pub prices: PriceSource,
    pub started_at: Timestamp,
}

#[derive(Debug)]
pub(crate) enum TurnInput {
    ProviderReport(ProviderEvent),
    Stop(TurnStopReason),
    ApprovalDecided {
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
        /// Allow such calls without asking from now on.
        remember: Option<RememberScope>,
        /// Who answered.
        author: Option<DecisionAuthor>,
    },
    /// A new message for the answer in progress.
    Steer {
        message: MessageId,
        text: String,
        attachments: Vec<AttachedFile>,
    },
    /// The provider cannot be asked to take the message, or does not reply.
    SteerRefused {
        message: MessageId,
    },
    /// The tool needs approval again.
    ForgetTool {
        tool: String,
    },
    /// A budget is used up: the model call in progress is stopped, or the next one; an answer that needs none is kept whole.
    BudgetUsedUp,
    /// What the model gateway has counted of the program's calls so far, by model; the program may report the same calls
    /// later. `is_refused`: it wanted one more after a budget was used up.
    Metered {
        usage: BTreeMap<Option<String>, Usage>,
        is_refused: bool,
    },
    /// The provider has returned; all its work has stopped.
    Ended(TurnOutcome),
}

/// Why a turn is stopped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnStopReason {
    Cancelled,
    Interrupted(Interruption),
    Limit(Limit),
}

#[derive(Debug)]
pub(crate) enum TurnEffect {
    Append(PendingEvent),
    SetRunStatus(RunStatus),
    SendCommand(TurnCommand),
    SaveSession(String),
    Remember(RememberedRule),
    /// Whether the provider took a message into the answer in progress.
    SteerSettled {
        message: MessageId,
        taken: bool,
    },
    Finish(RunFinish),
}

impl TurnEffect {
    /// Whether it reports what a model call has used.
    pub(crate) fn reports_usage(&self) -> bool {
        matches!(self, Self::Append(event) if event.reports_usage())
    }
}

/// The last effect: how the run ends.
#[derive(Debug)]
pub(crate) struct RunFinish {
    pub status: RunStatus,
    pub message: MessageStatus,
    pub terminal: EventBody,
    pub error: Option<RunError>,
    pub outcome: TurnOutcome,
    pub duration_ms: u64,
}

/// A tool call that waits for a person's approval.
#[derive(Debug, Clone)]
struct PendingApproval {
    id: ApprovalId,
    expires_at: Timestamp,
    tool: String,
    input: Value,
    is_question: bool,
}

#[derive(Debug)]
pub(crate) struct TurnMachine {
    settings: TurnSettings,
    answer: Answer,
    model_calls: u32,
    /// A model call has begun whose usage is not reported yet.
    is_calling: bool,
    /// A budget of the run is used up: the next model call is not made.
    is_over_budget: bool,
    /// What the model gateway has counted.
    metered: MeteredUsage,
    output_bytes: u64,
    /// The turn waits for its share of something limited, such as a process of its provider.
    is_waiting: bool,
    pending_approvals: Vec<PendingApproval>,
    /// Tool calls without a result yet.
    open_calls: BTreeSet<String>,
    /// Messages sent to the provider that it has neither taken nor refused.
    steering: Vec<MessageId>,
    session_id: Option<String>,
    /// The agent has nothing to say in this turn.
    skips: bool,
    ends_round: bool,
    stopping: Option<TurnStopReason>,
    ended: bool,
}

impl TurnMachine {
    pub(crate) fn new(settings: TurnSettings) -> Self {
        Self {
            settings,
            answer: Answer::default(),
            model_calls: 0,
            is_calling: false,
            is_over_budget: false,
            metered: MeteredUsage::default(),
            output_bytes: 0,
            is_waiting: false,
            pending_approvals: Vec::new(),
            open_calls: BTreeSet::new(),
            steering: Vec::new(),
            session_id: None,
            skips: false,
            ends_round: false,
            stopping: None,
            ended: false,
        }
    }

    /// Restores the machine of a turn whose server died from the stored events.
    pub(crate) fn from_events<'a>(settings: TurnSettings, events: impl IntoIterator<Item = &'a EventBody>) -> Self {
        let mut machine = Self::new(settings);
        for body in events {
            match body {
                EventBody::ApprovalRequested(e) => machine.pending_approvals.push(PendingApproval {
                    id: e.approval_id,
                    expires_at: e.expires_at,
                    tool: e.name.clone(),
                    input: e.input.clone(),
                    is_question: e.is_question,
                }),
                EventBody::ApprovalResolved(e) => {
                    machine.pending_approvals.retain(|waiting| waiting.id != e.approval_id)
                }
                other => machine.answer.apply(other),
            }
        }
        machine
    }

    pub(crate) fn answer(&self) -> &Answer {
        &self.answer
    }

    /// The agent's model.
    pub(crate) fn model(&self) -> Option<&str> {
        self.settings.model.as_deref()
    }

    /// Whether the agent asked that nobody else speaks after it.
    pub(crate) fn ends_round(&self) -> bool {
        self.ends_round
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// The pending approval that expires first.
    pub(crate) fn approval_deadline(&self) -> Option<(ApprovalId, Timestamp)> {
        self.pending_approvals.iter().map(|waiting| (waiting.id, waiting.expires_at)).min_by_key(|(_, until)| *until)
    }

    pub(crate) fn is_waiting_for(&self, approval: ApprovalId) -> bool {
        self.pending_approvals.iter().any(|waiting| waiting.id == approval)
    }

    /// Returns whether the answer to an approval can be remembered in this way. The answer to a question never can.
    pub(crate) fn can_remember(&self, approval: ApprovalId, scope: RememberScope) -> bool {
        self.pending_approvals.iter().any(|waiting| {
            let rule = || RememberedRule::new(&waiting.tool, &waiting.input, scope);
            waiting.id == approval && !waiting.is_question && rule().is_some()
        })
    }

    /// Returns whether a tool call is running.
    pub(crate) fn has_open_call(&self) -> bool {
        !self.open_calls.is_empty()
    }

    pub(crate) fn handle(&mut self, input: TurnInput, now: Timestamp, effects: &mut Vec<TurnEffect>) {
        if self.ended {
            return;
        }
        match input {
            TurnInput::ProviderReport(reported) => self.handle_report(reported, now, effects),
            TurnInput::Stop(why) => self.stop(why, effects),
            TurnInput::ApprovalDecided { approval, decision, input, remember, author } => {
                self.resolve_approval(approval, decision, input, remember, author, effects);
            }
            TurnInput::Steer { message, text, attachments } => self.steer(message, text, attachments, effects),
            TurnInput::SteerRefused { message } => self.on_steered(message, false, effects),
            TurnInput::ForgetTool { tool } => {
                self.settings.remembered.retain(|rule| rule.tool != tool);
            }
            TurnInput::BudgetUsedUp => {
                self.is_over_budget = true;
                if self.is_calling && !self.is_stopping() {
                    self.stop(TurnStopReason::Limit(Limit::Budget), effects);
                }
            }
            TurnInput::Metered { usage, is_refused } => {
                // A call has ended, or was not made.
                self.is_calling = false;
                self.metered = MeteredUsage(usage);
                if is_refused {
                    self.stop(TurnStopReason::Limit(Limit::Budget), effects);
                }
            }
            TurnInput::Ended(outcome) => self.finish(outcome, now, effects),
        }
    }

    fn handle_report(&mut self, reported: ProviderEvent, now: Timestamp, effects: &mut Vec<TurnEffect>) {
        let stream_id = self.settings.stream_id;
        let ProviderEvent { event, mut raw } = reported;
        // Output after the stop request is not part of the answer; tool results, token usage and the session still
        // count.
        let still_counts = matches!(
            event,
            TurnEvent::ToolResult { .. }
                | TurnEvent::Usage { .. }
                | TurnEvent::EstimatedUsage { .. }
                | TurnEvent::Session { .. }
        );
        if self.is_stopping() && !still_counts {
            return;
        }
        let was_waiting = std::mem::replace(&mut self.is_waiting, matches!(event, TurnEvent::Waiting { .. }));
        match (was_waiting, self.is_waiting) {
            (false, true) => effects.push(TurnEffect::SetRunStatus(RunStatus::WaitingForQuota)),
            (true, false) if !self.is_stopping() => effects.push(TurnEffect::SetRunStatus(RunStatus::Running)),
            _ => {}
        }
        let body: EventBody = match event {
            TurnEvent::ModelCall => {
                self.model_calls += 1;
                self.is_calling = true;
                if self.model_calls > self.settings.limits.turns {
                    self.stop(TurnStopReason::Limit(Limit::Turns), effects);
                // A program reports a call later than the gateway counts it, so the gateway refuses the next one itself.
                } else if self.is_over_budget && self.metered.0.is_empty() {
                    self.stop(TurnStopReason::Limit(Limit::Budget), effects);
                }
                return;
            }
            // What a model writes after it has skipped its turn is not shown.
            TurnEvent::Text { .. } if self.skips => return,
            TurnEvent::Room(RoomRequest::Skip) => {
                self.skips = true;
                return;
            }
            TurnEvent::Room(RoomRequest::EndRound) => {
                self.ends_round = true;
                return;
            }
            TurnEvent::Room(RoomRequest::Whisper(text)) => Status::new("whisper", text).into(),
            TurnEvent::Room(RoomRequest::Memorized(text)) => Status::new(MEMORIZED, text).into(),
            TurnEvent::Delegated { tool_use_id, child } => RunDelegated { stream_id, tool_use_id, child }.into(),
            TurnEvent::Text { delta, item } => ContentDelta { stream_id, delta, item }.into(),
            TurnEvent::Thinking { delta, item } => ThinkingDelta { stream_id, delta, item }.into(),
            TurnEvent::Retract { item } => Retract { stream_id, item }.into(),
            TurnEvent::ToolUse { id, name, input } => {
                self.open_calls.insert(id.clone());
                ToolUse { stream_id, tool_use_id: id, name, input }.into()
            }
            TurnEvent::FileChanged { path, change } => FileChanged { path, change }.into(),
            TurnEvent::ToolOutput { id, delta } => ToolOutputDelta { stream_id, tool_use_id: id, delta }.into(),
            TurnEvent::ToolResult { id, content, is_error } => {
                let is_open = self.open_calls.remove(&id);
                if self.is_stopping() && !is_open {
                    return;
                }
                // The call has ended, which must be known; what it returned no longer fits.
                let (content, kept_raw) = match self.is_over_output_limit() {
                    true => (json!(RESULT_LEFT_OUT), None),
                    false => (content, raw),
                };
                raw = kept_raw;
                ToolResult { stream_id, tool_use_id: id, content, is_error }.into()
            }
            TurnEvent::Approval { id, tool_use_id, name, input, is_question } => {
                let decision = match self.verdict(&name, &input, is_question) {
                    PolicyDecision::Ask => None,
                    PolicyDecision::Allow => Some(Decision::Allow),
                    PolicyDecision::Deny => Some(Decision::Deny),
                };
                if let Some(decision) = decision {
                    effects.push(TurnEffect::SendCommand(TurnCommand::ResolveApproval {
                        approval: id,
                        decision,
                        input: None,
                    }));
                    return;
                }
                let request = ApprovalRequested {
                    approval_id: id,
                    tool_use_id,
                    name,
                    input,
                    expires_at: now + self.settings.limits.approval,
                    is_question,
                    pattern: None,
                };
                self.request_approval(request, effects).into()
            }
            TurnEvent::ApprovalWithdrawn { id } => {
                // Already answered by the policy or by a person.
                let Some(at) = self.pending_approvals.iter().position(|waiting| waiting.id == id) else { return };
                self.pending_approvals.remove(at);
                if self.pending_approvals.is_empty() {
                    effects.push(TurnEffect::SetRunStatus(RunStatus::Running));
                }
                ApprovalResolved::expired(id).into()
            }
            TurnEvent::Usage { usage, model, cost } => self.usage(usage, model, cost).into(),
            TurnEvent::EstimatedUsage { usage, model } => {
                UsageReported { is_estimated: true, ..self.usage(usage, model, None) }.into()
            }
            TurnEvent::Status { status, message } | TurnEvent::Waiting { status, message } => {
                Status::new(status, message).into()
            }
            TurnEvent::Steered { message, taken } => {
                self.on_steered(message, taken, effects);
                return;
            }
            TurnEvent::Session { id } => {
                self.session_id = Some(id.clone());
                effects.push(TurnEffect::SaveSession(id));
                return;
            }
        };
        self.count_output(&body, raw.as_deref(), effects);
        self.append(body, raw, effects);
    }

    fn usage(&mut self, usage: Usage, model: Option<String>, cost: Option<Cost>) -> UsageReported {
        self.is_calling = false;
        let model = model.or_else(|| self.settings.model.clone());
        let cost = cost.or_else(|| self.settings.prices.cost(model.as_deref(), &usage));
        UsageReported::new(usage, cost.map(Cost::of_a_call), model)
    }

    /// What calls at the gateway cost that the provider has not reported yet.
    pub(crate) fn unreported_cost(&self) -> Cost {
        self.metered.unreported_cost(&self.answer, self.settings.prices, self.model())
    }

    /// Questions always go to a person: neither the policy's `allow` nor a remembered tool answers them.
    fn verdict(&self, tool: &str, input: &Value, is_question: bool) -> PolicyDecision {
        let is_remembered = || self.settings.remembered.iter().any(|rule| rule.matches(tool, input));
        match self.settings.tools.decide(tool) {
            PolicyDecision::Deny => PolicyDecision::Deny,
            _ if is_question => PolicyDecision::Ask,
            PolicyDecision::Ask if is_remembered() => PolicyDecision::Allow,
            verdict => verdict,
        }
    }

    /// Everything that a provider reports is stored, so everything counts.
    fn count_output(&mut self, body: &EventBody, raw: Option<&str>, effects: &mut Vec<TurnEffect>) {
        let raw = raw.map_or(0, |raw| raw.len().saturating_sub(RAW_ALLOWANCE) as u64);
        self.output_bytes += output_size(body).max(raw);
        if self.is_over_output_limit() {
            self.stop(TurnStopReason::Limit(Limit::OutputBytes), effects);
        }
    }

    fn is_over_output_limit(&self) -> bool {
        self.output_bytes > self.settings.limits.output_bytes
    }

    fn append(&mut self, body: EventBody, raw: Option<String>, effects: &mut Vec<TurnEffect>) {
        self.answer.apply(&body);
        effects.push(TurnEffect::Append(PendingEvent { body, raw_items: raw.into_iter().collect() }));
    }

    /// The first reason wins: later stop requests are ignored.
    fn stop(&mut self, why: TurnStopReason, effects: &mut Vec<TurnEffect>) {
        if self.stopping.is_none() {
            self.stopping = Some(why);
            effects.push(TurnEffect::SendCommand(TurnCommand::Interrupt));
        }
    }

    /// The run waits until a person decides, or until the request expires.
    fn request_approval(&mut self, request: ApprovalRequested, effects: &mut Vec<TurnEffect>) -> ApprovalRequested {
        let ApprovalRequested { approval_id: id, expires_at, is_question, .. } = request;
        let (tool, input) = (request.name.clone(), request.input.clone());
        let pattern = RememberedRule::new(&tool, &input, RememberScope::Pattern).filter(|_| !is_question);
        self.pending_approvals.push(PendingApproval { id, expires_at, tool, input, is_question });
        effects.push(TurnEffect::SetRunStatus(RunStatus::WaitingForApproval));
        ApprovalRequested { pattern: pattern.map(|rule| rule.label()), ..request }
    }

    /// The decision takes effect: it is stored, and the provider gets it as `TurnCommand::ResolveApproval`, so that the tool runs or is
    /// refused.
    fn resolve_approval(
        &mut self,
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
        remember: Option<RememberScope>,
        author: Option<DecisionAuthor>,
        effects: &mut Vec<TurnEffect>,
    ) {
        let Some(at) = self.pending_approvals.iter().position(|waiting| waiting.id == approval) else { return };
        if self.is_stopping() {
            return;
        }
        let PendingApproval { tool, input: requested, is_question, .. } = self.pending_approvals.remove(at);
        let scope = remember.filter(|_| decision == Decision::Allow && !is_question);
        // An exact input is the one that was allowed; a pattern is the one that the request showed.
        let seen = if scope == Some(RememberScope::Exact) { input.as_ref().unwrap_or(&requested) } else { &requested };
        let rule = scope.and_then(|scope| RememberedRule::new(&tool, seen, scope));
        let scope = rule.as_ref().map(RememberedRule::scope);
        if let Some(rule) = rule {
            self.settings.remembered.push(rule.clone());
            effects.push(TurnEffect::Remember(rule));
        }
        let body = ApprovalResolved {
            approval_id: approval,
            decision,
            input: input.clone(),
            remember: scope.is_some(),
            scope,
            user_id: author.as_ref().and_then(|author| author.user_id),
            author,
        };
        self.append(body.into(), None, effects);
        if self.pending_approvals.is_empty() {
            effects.push(TurnEffect::SetRunStatus(RunStatus::Running));
        }
        effects.push(TurnEffect::SendCommand(TurnCommand::ResolveApproval { approval, decision, input }));
    }

    fn steer(
        &mut self,
        message: MessageId,
        text: String,
        attachments: Vec<AttachedFile>,
        effects: &mut Vec<TurnEffect>,
    ) {
        if self.is_stopping() {
            return self.settle_steering(message, false, effects);
        }
        self.steering.push(message);
        effects.push(TurnEffect::SendCommand(TurnCommand::Steer { message, text, attachments }));
    }

    fn on_steered(&mut self, message: MessageId, taken: bool, effects: &mut Vec<TurnEffect>) {
        // A reply that comes too late: the message was settled before.
        let Some(at) = self.steering.iter().position(|handed| *handed == message) else { return };
        self.steering.remove(at);
        self.settle_steering(message, taken, effects);
    }

    fn settle_steering(&mut self, message: MessageId, taken: bool, effects: &mut Vec<TurnEffect>) {
        if taken {
            let text = "The message was added to the answer in progress.".to_owned();
            let status = Status { message_id: Some(message), ..Status::new("steered", text) };
            self.append(status.into(), None, effects);
        }
        effects.push(TurnEffect::SteerSettled { message, taken });
    }

    fn finish(&mut self, outcome: TurnOutcome, now: Timestamp, effects: &mut Vec<TurnEffect>) {
        self.ended = true;
        for message in std::mem::take(&mut self.steering) {
            self.settle_steering(message, false, effects);
        }
        self.close_open_items(effects);
        if let Some(report) = self.metered.unreported(&self.answer, self.settings.prices, self.model()) {
            self.append(report.into(), None, effects);
        }
        let duration_ms = u64::try_from(now.since(self.settings.started_at).as_millis()).unwrap_or(u64::MAX);
        let (usage, cost, receipt) = (self.answer.usage, self.answer.cost, outcome.receipt.clone());
        let fail = |error: RunError, limit| (RunStatus::Failed, Some(error), limit);
        let (status, error, limit) = match (self.stopping, &outcome.end) {
            (Some(TurnStopReason::Cancelled), _) => (RunStatus::Cancelled, None, None),
            (Some(TurnStopReason::Interrupted(_)), _) => (RunStatus::Interrupted, None, None),
            (Some(TurnStopReason::Limit(limit)), _) => fail(limit::error(limit, &self.settings.limits), Some(limit)),
            (None, TurnEnd::Completed | TurnEnd::Skipped) => (RunStatus::Completed, None, None),
            (None, TurnEnd::Failed(error)) => fail(error.clone(), None),
            (None, TurnEnd::Stopped) => {
                fail(RunError::new("provider_stopped", "the provider stopped before it finished"), None)
            }
        };
        let (response_text, thinking_text) = self.answer.texts();
        let has_skipped = self.skips && response_text.is_empty() && outcome.end == TurnEnd::Completed;
        let skipped = self.stopping.is_none() && (has_skipped || outcome.end == TurnEnd::Skipped);
        let end = StreamEnd {
            stream_id: self.settings.stream_id,
            response_text,
            thinking_text,
            session_id: self.session_id.clone(),
            memory_entries: self.answer.memories.iter().cloned().map(Value::from).collect(),
            model_calls: self.answer.model_calls.clone(),
            skipped,
        };
        self.append(end.into(), None, effects);
        let cost_nanos = cost.map(Cost::as_nanos);
        let terminal: EventBody = match (status, &error) {
            (RunStatus::Cancelled, _) => RunCancelled { receipt, usage, cost, cost_nanos, duration_ms }.into(),
            (_, Some(error)) => RunFailed { error: error.clone(), limit, usage, cost, cost_nanos, duration_ms }.into(),
            (RunStatus::Interrupted, None) => {
                let reason = match self.stopping {
                    Some(TurnStopReason::Interrupted(reason)) => reason,
                    _ => Interruption::Crash,
                };
                RunInterrupted { reason, receipt, usage, cost, cost_nanos, duration_ms }.into()
            }
            _ => RunCompleted { usage, cost, cost_nanos, duration_ms }.into(),
        };
        if let Some(RunError { code, message }) = &error {
            let report = ErrorReported { code: code.clone(), message: message.clone() };
            effects.push(TurnEffect::Append(PendingEvent::new(report)));
        }
        let message = if status == RunStatus::Completed { MessageStatus::Complete } else { MessageStatus::Partial };
        effects.push(TurnEffect::Finish(RunFinish { status, message, terminal, error, outcome, duration_ms }));
    }

    /// The outcome of a tool call without a result is unknown: it is recorded as such and never repeated (invariant
    /// 12).
    fn close_open_items(&mut self, effects: &mut Vec<TurnEffect>) {
        for PendingApproval { id: approval_id, .. } in std::mem::take(&mut self.pending_approvals) {
            self.append(ApprovalResolved::expired(approval_id).into(), None, effects);
        }
        let stream_id = self.settings.stream_id;
        let open: Vec<String> = self.answer.open_calls().map(|call| call.tool_use_id.clone()).collect();
        for tool_use_id in open {
            let content = json!("outcome unknown: the run ended before the tool did");
            let body = ToolResult { stream_id, tool_use_id, content, is_error: true };
            self.append(body.into(), None, effects);
        }
    }
}
