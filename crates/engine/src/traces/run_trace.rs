//! The spans of one run, built from what its provider reports. Pure. The trace of a run has the run's id, so that the
//! trace of a run is found without a search.

use super::span::{AttributeValue, SpanContext, SpanError, TraceSpan, TraceSpanKind, new_span_id};
use domain::{
    event::Decision,
    fold::Answer,
    ids::{AgentId, ApprovalId, RoomId, RunId},
    run::{RunError, RunStatus},
    time::Timestamp,
    usage::Usage,
};
use providers::{TurnCommand, TurnEvent};
use serde_json::Value;
use std::collections::BTreeMap;

/// More spans of one run are left out; their number is in the span of the run.
const MAX_SPANS: usize = 2000;
/// How much of a text is in a span, if the operator has enabled content.
const MAX_CONTENT_BYTES: usize = 16 * 1024;

/// What is known of a run when it starts.
#[derive(Clone, Debug)]
pub(crate) struct TracedRun {
    pub run_id: RunId,
    pub room_id: RoomId,
    pub agent_id: AgentId,
    pub agent_name: String,
    pub provider: String,
    pub model: Option<String>,
    pub prompt: String,
    pub started_at: Timestamp,
}

#[derive(Debug)]
pub(crate) struct RunTrace {
    run: TracedRun,
    span_id: [u8; 8],
    with_content: bool,
    model_call: Option<OpenSpan>,
    tools: BTreeMap<String, OpenSpan>,
    approvals: BTreeMap<ApprovalId, OpenSpan>,
    links: Vec<SpanContext>,
    ended: Vec<TraceSpan>,
    begun: usize,
}

#[derive(Debug)]
struct OpenSpan {
    span_id: [u8; 8],
    parent: [u8; 8],
    name: String,
    kind: TraceSpanKind,
    started_at: Timestamp,
    attributes: Vec<(&'static str, AttributeValue)>,
}

impl RunTrace {
    pub fn new(run: TracedRun, with_content: bool) -> Self {
        Self {
            run,
            span_id: new_span_id(),
            with_content,
            model_call: None,
            tools: BTreeMap::new(),
            approvals: BTreeMap::new(),
            links: Vec::new(),
            ended: Vec::new(),
            begun: 0,
        }
    }

    /// The request that queued the run.
    pub fn link(&mut self, request: Option<SpanContext>) {
        self.links.extend(request);
    }

    pub fn take_ended(&mut self) -> Vec<TraceSpan> {
        std::mem::take(&mut self.ended)
    }

    pub fn on_event(&mut self, event: &TurnEvent, now: Timestamp) {
        match event {
            TurnEvent::ModelCall => self.begin_model_call(now),
            TurnEvent::Usage { usage, model, .. } | TurnEvent::EstimatedUsage { usage, model } => {
                self.end_model_call(Some(usage), model.as_deref(), now);
            }
            TurnEvent::ToolUse { id, name, input } => self.begin_tool(id, name, input, now),
            TurnEvent::ToolResult { id, content, is_error } => self.end_tool(id, content, *is_error, now),
            TurnEvent::Approval { id, tool_use_id, name, .. } => {
                self.begin_approval(*id, tool_use_id.as_deref(), name, now);
            }
            TurnEvent::ApprovalWithdrawn { id } => self.end_approval(*id, "withdrawn", now),
            TurnEvent::Text { .. }
            | TurnEvent::Thinking { .. }
            | TurnEvent::Retract { .. }
            | TurnEvent::ToolOutput { .. }
            | TurnEvent::FileChanged { .. }
            | TurnEvent::Status { .. }
            | TurnEvent::Waiting { .. }
            | TurnEvent::Session { .. }
            | TurnEvent::Room(_)
            | TurnEvent::Delegated { .. }
            | TurnEvent::Steered { .. } => {}
        }
    }

    pub fn on_command(&mut self, command: &TurnCommand, now: Timestamp) {
        if let TurnCommand::ResolveApproval { approval, decision, .. } = command {
            let decision = match decision {
                Decision::Allow => "allow",
                Decision::Deny => "deny",
                Decision::Expired => "expired",
            };
            self.end_approval(*approval, decision, now);
        }
    }

    /// Ends the run and everything that is still open.
    pub fn end(&mut self, status: RunStatus, error: Option<&RunError>, answer: &Answer, now: Timestamp) {
        self.end_model_call(None, None, now);
        for id in self.approvals.keys().copied().collect::<Vec<_>>() {
            self.end_approval(id, "run_ended", now);
        }
        for (_, open) in std::mem::take(&mut self.tools) {
            let error = SpanError { code: "run_ended".into(), message: "the run ended during the call".into() };
            self.close(open, Some(error), now);
        }
        let run = &self.run;
        let mut attributes: Vec<(&'static str, AttributeValue)> = vec![
            ("gen_ai.operation.name", "invoke_agent".into()),
            ("gen_ai.provider.name", run.provider.as_str().into()),
            ("gen_ai.agent.id", run.agent_id.to_string().into()),
            ("gen_ai.agent.name", run.agent_name.as_str().into()),
            ("gen_ai.conversation.id", run.room_id.to_string().into()),
            ("greenroom.run.id", run.run_id.to_string().into()),
            ("greenroom.run.status", status.as_str().into()),
        ];
        attributes.extend(run.model.as_deref().map(|model| ("gen_ai.request.model", model.into())));
        attributes.extend(answer.model.as_deref().map(|model| ("gen_ai.response.model", model.into())));
        attributes.extend(usage_attributes(&answer.usage));
        if let Some(cost) = answer.cost {
            attributes.push(("greenroom.cost_usd", AttributeValue::Number(cost.as_nanos() as f64 / 1e9)));
        }
        if self.begun > MAX_SPANS {
            attributes.push(("greenroom.spans_left_out", ((self.begun - MAX_SPANS) as u64).into()));
        }
        if self.with_content {
            attributes.push(("gen_ai.input.messages", message("user", &run.prompt)));
            attributes.push(("gen_ai.output.messages", message("assistant", &answer.texts().0)));
        }
        let failed = |error: &RunError| SpanError { code: error.code.clone(), message: error.message.clone() };
        self.ended.push(TraceSpan {
            context: self.context(self.span_id),
            parent: None,
            name: format!("invoke_agent {}", run.agent_name),
            kind: TraceSpanKind::Internal,
            started_at: run.started_at,
            ended_at: now,
            attributes,
            links: self.links.clone(),
            error: error.map(failed),
        });
    }

    fn begin_model_call(&mut self, now: Timestamp) {
        self.end_model_call(None, None, now);
        let model = self.run.model.clone();
        let name = model.as_deref().map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
        let mut attributes: Vec<(&'static str, AttributeValue)> =
            vec![("gen_ai.operation.name", "chat".into()), ("gen_ai.provider.name", self.run.provider.as_str().into())];
        attributes.extend(model.map(|model| ("gen_ai.request.model", model.into())));
        self.model_call = self.open(self.span_id, name, TraceSpanKind::Client, attributes, now);
    }

    fn end_model_call(&mut self, usage: Option<&Usage>, model: Option<&str>, now: Timestamp) {
        let Some(mut open) = self.model_call.take() else { return };
        open.attributes.extend(usage.into_iter().flat_map(usage_attributes));
        open.attributes.extend(model.map(|model| ("gen_ai.response.model", model.into())));
        self.close(open, None, now);
    }

    fn begin_tool(&mut self, id: &str, tool: &str, input: &Value, now: Timestamp) {
        let mut attributes: Vec<(&'static str, AttributeValue)> = vec![
            ("gen_ai.operation.name", "execute_tool".into()),
            ("gen_ai.tool.name", tool.into()),
            ("gen_ai.tool.call.id", id.into()),
        ];
        if self.with_content {
            attributes.push(("gen_ai.tool.call.arguments", cut(&input.to_string()).into()));
        }
        let name = format!("execute_tool {tool}");
        if let Some(open) = self.open(self.span_id, name, TraceSpanKind::Internal, attributes, now) {
            self.tools.insert(id.to_owned(), open);
        }
    }

    fn end_tool(&mut self, id: &str, content: &Value, is_error: bool, now: Timestamp) {
        let Some(mut open) = self.tools.remove(id) else { return };
        if self.with_content {
            open.attributes.push(("gen_ai.tool.call.result", cut(&content.to_string()).into()));
        }
        let error =
            is_error.then(|| SpanError { code: "tool_error".into(), message: "the tool reported an error".into() });
        self.close(open, error, now);
    }

    fn begin_approval(&mut self, id: ApprovalId, tool_use_id: Option<&str>, tool: &str, now: Timestamp) {
        let parent = tool_use_id.and_then(|id| self.tools.get(id)).map_or(self.span_id, |tool| tool.span_id);
        let attributes = vec![("gen_ai.tool.name", tool.into()), ("greenroom.approval.id", id.to_string().into())];
        if let Some(open) = self.open(parent, format!("approval {tool}"), TraceSpanKind::Internal, attributes, now) {
            self.approvals.insert(id, open);
        }
    }

    fn end_approval(&mut self, id: ApprovalId, decision: &str, now: Timestamp) {
        let Some(mut open) = self.approvals.remove(&id) else { return };
        open.attributes.push(("greenroom.approval.decision", decision.into()));
        self.close(open, None, now);
    }

    fn open(
        &mut self,
        parent: [u8; 8],
        name: String,
        kind: TraceSpanKind,
        attributes: Vec<(&'static str, AttributeValue)>,
        started_at: Timestamp,
    ) -> Option<OpenSpan> {
        self.begun += 1;
        let is_kept = self.begun <= MAX_SPANS;
        is_kept.then(|| OpenSpan { span_id: new_span_id(), parent, name, kind, started_at, attributes })
    }

    fn close(&mut self, open: OpenSpan, error: Option<SpanError>, now: Timestamp) {
        let OpenSpan { span_id, parent, name, kind, started_at, attributes } = open;
        let context = self.context(span_id);
        let parent = Some(parent);
        self.ended.push(TraceSpan {
            context,
            parent,
            name,
            kind,
            started_at,
            ended_at: now,
            attributes,
            links: Vec::new(),
            error,
        });
    }

    fn context(&self, span_id: [u8; 8]) -> SpanContext {
        SpanContext { trace_id: self.run.run_id.0.into_bytes(), span_id, is_sampled: true }
    }
}

fn usage_attributes(usage: &Usage) -> [(&'static str, AttributeValue); 4] {
    [
        ("gen_ai.usage.input_tokens", usage.input_tokens.into()),
        ("gen_ai.usage.output_tokens", usage.output_tokens.into()),
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens.into()),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens.into()),
    ]
}

/// One message, in the form of the conventions.
fn message(role: &str, text: &str) -> AttributeValue {
    let parts = serde_json::json!([{"type": "text", "content": cut(text)}]);
    serde_json::json!([{"role": role, "parts": parts}]).to_string().into()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_CONTENT_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::{RunTrace, TracedRun};
    use crate::traces::{AttributeValue, SpanContext, TraceSpan, TraceSpanKind};
    use domain::{
        event::{Decision, UsageReported},
        fold::Answer,
        ids::{AgentId, ApprovalId, RoomId, RunId},
        run::{RunError, RunStatus},
        time::Timestamp,
        usage::Usage,
    };
    use providers::{TurnCommand, TurnEvent};
    use serde_json::json;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn trace(with_content: bool) -> RunTrace {
        let run = TracedRun {
            run_id: RunId::generate(),
            room_id: RoomId::generate(),
            agent_id: AgentId::generate(),
            agent_name: "Ada".into(),
            provider: "openai".into(),
            model: Some("gpt-x".into()),
            prompt: "the secret question".into(),
            started_at: at(1),
        };
        RunTrace::new(run, with_content)
    }

    /// A run with a model call, an approved tool call with a result, and text.
    fn traced(with_content: bool) -> (RunTrace, Vec<TraceSpan>) {
        let mut trace = trace(with_content);
        let approval = ApprovalId::generate();
        let usage = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
        trace.on_event(&TurnEvent::ModelCall, at(2));
        trace.on_event(&TurnEvent::Text { delta: "hm".into(), item: None }, at(3));
        trace.on_event(&TurnEvent::Usage { usage, model: Some("gpt-x-1".into()), cost: None }, at(4));
        let input = json!({"path": "secret input"});
        trace.on_event(&TurnEvent::ToolUse { id: "t".into(), name: "read".into(), input: input.clone() }, at(5));
        let (tool_use_id, name) = (Some("t".to_owned()), "read".to_owned());
        trace.on_event(&TurnEvent::Approval { id: approval, tool_use_id, name, input, is_question: false }, at(6));
        trace.on_command(&TurnCommand::ResolveApproval { approval, decision: Decision::Allow, input: None }, at(7));
        let result = TurnEvent::ToolResult { id: "t".into(), content: json!("secret result"), is_error: true };
        trace.on_event(&result, at(8));
        trace.link(Some(SpanContext::beneath(None)));
        let mut answer = Answer::default();
        answer.apply(&UsageReported::new(usage, None, None).into());
        trace.end(RunStatus::Completed, None, &answer, at(9));
        let spans = trace.take_ended();
        (trace, spans)
    }

    fn value<'a>(span: &'a TraceSpan, name: &str) -> Option<&'a AttributeValue> {
        span.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    #[test]
    fn a_run_is_the_parent_of_its_calls_and_links_to_its_request() {
        let (trace, spans) = traced(false);
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["chat gpt-x", "approval read", "execute_tool read", "invoke_agent Ada"]);
        let [chat, approval, tool, run] = spans.as_slice() else { panic!("{spans:?}") };
        let trace_id = trace.run.run_id.0.into_bytes();
        assert!(spans.iter().all(|span| span.context.trace_id == trace_id), "the trace is found by the run's id");
        assert_eq!((chat.parent, tool.parent), (Some(run.context.span_id), Some(run.context.span_id)));
        assert_eq!(approval.parent, Some(tool.context.span_id));
        assert_eq!((run.parent, run.links.len()), (None, 1));
        assert_ne!(run.links[0].trace_id, trace_id, "a link, not a parent");
        assert_eq!((chat.kind, chat.started_at, chat.ended_at), (TraceSpanKind::Client, at(2), at(4)));
        assert_eq!(value(chat, "gen_ai.usage.input_tokens"), Some(&AttributeValue::Integer(7)));
        assert_eq!(value(run, "gen_ai.usage.output_tokens"), Some(&AttributeValue::Integer(3)));
        assert_eq!(value(approval, "greenroom.approval.decision"), Some(&"allow".into()));
        assert!(tool.error.is_some() && run.error.is_none());
    }

    #[test]
    fn content_is_in_spans_only_if_it_is_enabled() {
        assert!(!format!("{:?}", traced(false).1).contains("secret"));
        let with = format!("{:?}", traced(true).1);
        for word in ["secret question", "secret input", "secret result"] {
            assert!(with.contains(word), "{word}");
        }
    }

    #[test]
    fn the_end_of_a_run_ends_what_is_open_and_carries_its_error() {
        let mut trace = trace(false);
        trace.on_event(&TurnEvent::ModelCall, at(2));
        trace.on_event(&TurnEvent::ToolUse { id: "t".into(), name: "read".into(), input: json!({}) }, at(3));
        let error = RunError::new("program_crashed", "it crashed");
        trace.end(RunStatus::Failed, Some(&error), &Answer::default(), at(9));
        let spans = trace.take_ended();
        assert_eq!(spans.len(), 3);
        assert!(spans.iter().all(|span| span.ended_at == at(9)));
        assert_eq!(spans[2].error.as_ref().unwrap().code, "program_crashed");
    }

    #[test]
    fn a_run_has_a_limited_number_of_spans() {
        let mut trace = trace(false);
        (0..super::MAX_SPANS + 5).for_each(|_| trace.on_event(&TurnEvent::ModelCall, at(2)));
        trace.end(RunStatus::Completed, None, &Answer::default(), at(9));
        let spans = trace.take_ended();
        assert_eq!(spans.len(), super::MAX_SPANS + 1);
        assert_eq!(value(&spans[super::MAX_SPANS], "greenroom.spans_left_out"), Some(&AttributeValue::Integer(5)));
    }
}
