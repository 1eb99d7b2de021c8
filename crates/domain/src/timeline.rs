//! How a run spent its time, derived from its events. Pure: the same events always give the same spans.

use crate::{
    event::{Event, EventBody, EventType, Status},
    ids::{ApprovalId, RunId},
    time::Timestamp,
};
use serde::Serialize;

/// Times are milliseconds since the run was queued.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct Timeline {
    pub run_id: RunId,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Sorted by start. Tool spans may overlap; model spans never overlap with anything.
    pub spans: Vec<Span>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// The run waits in the queue.
    Queued,
    /// The model thinks or answers.
    Model,
    Tool,
    /// A tool call waits for approval.
    Approval,
    /// The provider waits for something else: a free slot, a retry.
    Waiting,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct Span {
    pub kind: SpanKind,
    /// The name of the tool, the model, or the reason for waiting.
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The run of another agent that the tool call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<RunId>,
    pub from_ms: u64,
    /// `null` while the span is open.
    pub to_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

/// Builds the timeline of a run from its events, in order. Deltas only need their time, not their text. Events that
/// cannot be parsed are skipped.
pub fn timeline(run_id: RunId, events: &[Event]) -> Timeline {
    let mut builder = TimelineBuilder::new(run_id);
    for event in events.iter().filter(|event| event.run_id == Some(run_id)) {
        match event.kind {
            EventType::ContentDelta | EventType::ThinkingDelta => builder.delta(event.created_at),
            _ => {
                if let Ok(body) = event.body() {
                    builder.add(&body, event.created_at);
                }
            }
        }
        if event.kind.ends_a_run() {
            builder.end(event.created_at);
            break;
        }
    }
    builder.timeline
}

struct TimelineBuilder {
    timeline: Timeline,
    queued_at: Option<Timestamp>,
    model: Option<String>,
    approvals: Vec<(ApprovalId, usize)>,
}

impl TimelineBuilder {
    fn new(run_id: RunId) -> Self {
        let timeline = Timeline { run_id, started_at: None, ended_at: None, spans: Vec::new() };
        Self { timeline, queued_at: None, model: None, approvals: Vec::new() }
    }

    fn add(&mut self, body: &EventBody, at: Timestamp) {
        match body {
            EventBody::RunQueued(_) => {
                self.queued_at = Some(at);
                self.open(SpanKind::Queued, None, None, at);
            }
            EventBody::RunStarted(started) => {
                self.timeline.started_at = Some(at);
                self.model.clone_from(&started.model);
                self.close(SpanKind::Queued, at);
                self.think(at);
            }
            EventBody::Status(status) if is_wait(status) => {
                self.close(SpanKind::Waiting, at);
                self.close(SpanKind::Model, at);
                self.open(SpanKind::Waiting, Some(status.status.clone()), None, at);
            }
            EventBody::Status(_) => {}
            EventBody::ToolUse(call) => {
                self.stop_thinking(at);
                self.open(SpanKind::Tool, Some(call.name.clone()), Some(call.tool_use_id.clone()), at);
            }
            EventBody::RunDelegated(started) => {
                let is_it = |span: &&mut Span| {
                    span.kind == SpanKind::Tool && span.to_ms.is_none() && span.tool_use_id == started.tool_use_id
                };
                if let Some(span) = self.timeline.spans.iter_mut().rev().find(is_it) {
                    span.child_run_id = Some(started.child.run_id);
                }
            }
            EventBody::ToolResult(result) => {
                let open = self.timeline.spans.iter_mut().rev().find(|span| {
                    span.kind == SpanKind::Tool
                        && span.to_ms.is_none()
                        && span.tool_use_id.as_deref() == Some(&result.tool_use_id)
                });
                let to = since(self.queued_at, at);
                if let Some(span) = open {
                    span.to_ms = Some(to.max(span.from_ms));
                    span.is_error = Some(result.is_error);
                }
                self.think(at);
            }
            EventBody::ApprovalRequested(asked) => {
                self.stop_thinking(at);
                self.approvals.push((asked.approval_id, self.timeline.spans.len()));
                self.open(SpanKind::Approval, Some(asked.name.clone()), asked.tool_use_id.clone(), at);
            }
            EventBody::ApprovalResolved(resolved) => {
                let to = since(self.queued_at, at);
                let asked = self.approvals.iter().position(|(id, _)| *id == resolved.approval_id);
                if let Some((_, index)) = asked.map(|found| self.approvals.swap_remove(found))
                    && let Some(span) = self.timeline.spans.get_mut(index)
                {
                    span.to_ms = Some(to.max(span.from_ms));
                }
                self.think(at);
            }
            EventBody::UsageReported(usage) if self.model.is_none() => {
                self.model.clone_from(&usage.model);
                let unnamed = |span: &&mut Span| span.kind == SpanKind::Model && span.name.is_none();
                self.timeline.spans.iter_mut().filter(unnamed).for_each(|span| span.name.clone_from(&usage.model));
            }
            _ => {}
        }
    }

    /// A delta ends a wait.
    fn delta(&mut self, at: Timestamp) {
        self.close(SpanKind::Waiting, at);
        self.think(at);
    }

    /// Opens a model span if no other span of the run is open.
    fn think(&mut self, at: Timestamp) {
        if self.timeline.started_at.is_some() && self.timeline.spans.iter().all(|span| span.to_ms.is_some()) {
            self.open(SpanKind::Model, self.model.clone(), None, at);
        }
    }

    fn stop_thinking(&mut self, at: Timestamp) {
        self.close(SpanKind::Waiting, at);
        self.close(SpanKind::Model, at);
    }

    fn open(&mut self, kind: SpanKind, name: Option<String>, tool_use_id: Option<String>, at: Timestamp) {
        let from_ms = since(self.queued_at, at);
        self.timeline.spans.push(Span {
            kind,
            name,
            tool_use_id,
            child_run_id: None,
            from_ms,
            to_ms: None,
            is_error: None,
        });
    }

    fn close(&mut self, kind: SpanKind, at: Timestamp) {
        let to = since(self.queued_at, at);
        let open = |span: &&mut Span| span.kind == kind && span.to_ms.is_none();
        self.timeline.spans.iter_mut().filter(open).for_each(|span| span.to_ms = Some(to.max(span.from_ms)));
    }

    /// Closes all spans: none outlasts its run.
    fn end(&mut self, at: Timestamp) {
        self.timeline.ended_at = Some(at);
        let to = since(self.queued_at, at);
        let open = self.timeline.spans.iter_mut().filter(|span| span.to_ms.is_none());
        open.for_each(|span| span.to_ms = Some(to.max(span.from_ms)));
        // A model span of zero length between two tools is noise.
        self.timeline.spans.retain(|span| span.kind != SpanKind::Model || span.to_ms != Some(span.from_ms));
    }
}

fn is_wait(status: &Status) -> bool {
    status.status.starts_with("waiting") || status.status == "retrying"
}

fn since(queued_at: Option<Timestamp>, at: Timestamp) -> u64 {
    queued_at.map_or(0, |queued| u64::try_from(at.since(queued).as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Span, SpanKind, Timeline, timeline};
    use crate::{
        event::{
            ApprovalRequested, ApprovalResolved, ContentDelta, Decision, Event, EventBody, NewEvent, RunCompleted,
            RunQueued, RunStarted, Status, ToolResult, ToolUse,
        },
        ids::{AgentId, ApprovalId, MessageId, RoomId, RunId},
        time::Timestamp,
        usage::Usage,
    };
    use serde_json::{Value, json};

    fn read(bodies: Vec<(i64, EventBody)>) -> Timeline {
        let (room_id, run_id) = (RoomId::generate(), RunId::generate());
        let event = |(seq, (at, body)): (usize, (i64, EventBody))| {
            let NewEvent { id, kind, run_id, agent_id, data, raw } =
                NewEvent::new(body).of_run(run_id, AgentId::generate());
            let created_at = Timestamp::from_millis(1_000_000 + at);
            Event { id, room_id, seq: seq as u64 + 1, kind, run_id, agent_id, data, raw, created_at }
        };
        timeline(run_id, &bodies.into_iter().enumerate().map(event).collect::<Vec<_>>())
    }

    fn queued() -> EventBody {
        RunQueued { message_id: MessageId::generate() }.into()
    }

    fn started() -> EventBody {
        RunStarted { provider: "p".into(), model: Some("m".into()) }.into()
    }

    fn uses(id: &str) -> EventBody {
        let stream_id = MessageId::generate();
        ToolUse { stream_id, tool_use_id: id.into(), name: format!("tool {id}"), input: json!({}) }.into()
    }

    fn returns(id: &str, is_error: bool) -> EventBody {
        let stream_id = MessageId::generate();
        ToolResult { stream_id, tool_use_id: id.into(), content: Value::Null, is_error }.into()
    }

    fn completed() -> EventBody {
        RunCompleted { usage: Usage::default(), cost: None, cost_nanos: None, duration_ms: 0 }.into()
    }

    fn says() -> EventBody {
        ContentDelta { stream_id: MessageId::generate(), delta: "x".into(), item: None }.into()
    }

    fn status(status: &str) -> EventBody {
        Status { status: status.into(), message: String::new(), message_id: None }.into()
    }

    fn rows(timeline: &Timeline) -> Vec<(SpanKind, u64, Option<u64>)> {
        timeline.spans.iter().map(|span| (span.kind, span.from_ms, span.to_ms)).collect()
    }

    #[test]
    fn tools_overlap_and_the_model_continues_after_the_last_result() {
        use SpanKind::{Model, Queued, Tool};
        let said = read(vec![
            (0, queued()),
            (10, started()),
            (30, uses("a")),
            (35, uses("b")),
            (50, returns("a", false)),
            (80, returns("b", true)),
            (100, completed()),
        ]);
        let expected = [
            (Queued, 0, Some(10)),
            (Model, 10, Some(30)),
            (Tool, 30, Some(50)),
            (Tool, 35, Some(80)),
            (Model, 80, Some(100)),
        ];
        assert_eq!(rows(&said), expected);
        assert_eq!(said.spans[1].name.as_deref(), Some("m"));
        let Span { name, tool_use_id, is_error, .. } = &said.spans[3];
        assert_eq!((name.as_deref(), tool_use_id.as_deref(), *is_error), (Some("tool b"), Some("b"), Some(true)));
        assert_eq!(said.ended_at, Some(Timestamp::from_millis(1_000_100)));
    }

    #[test]
    fn an_unfinished_run_has_open_spans_and_an_ended_run_has_none() {
        use SpanKind::{Model, Queued, Tool};
        assert_eq!(rows(&read(vec![(0, queued())])), [(Queued, 0, None)]);
        let open = vec![(0, queued()), (5, started()), (9, uses("a"))];
        assert_eq!(rows(&read(open.clone())), [(Queued, 0, Some(5)), (Model, 5, Some(9)), (Tool, 9, None)]);
        let ended = read([open, vec![(20, completed()), (99, uses("late"))]].concat());
        assert_eq!(rows(&ended).last(), Some(&(Tool, 9, Some(20))), "a tool without a result ends with its run");
        assert_eq!(rows(&read(vec![(0, queued()), (7, completed())])), [(Queued, 0, Some(7))], "never started");
        assert!(read(Vec::new()).spans.is_empty());
    }

    #[test]
    fn approvals_and_waits_do_not_count_as_model_time() {
        use SpanKind::{Approval, Model, Queued, Tool, Waiting};
        let approval_id = ApprovalId::generate();
        let asks = ApprovalRequested {
            approval_id,
            tool_use_id: Some("a".into()),
            name: "tool a".into(),
            input: Value::Null,
            expires_at: Timestamp::from_millis(0),
            is_question: false,
            pattern: None,
        };
        let answer = ApprovalResolved { decision: Decision::Allow, ..ApprovalResolved::expired(approval_id) };
        let said = read(vec![
            (0, queued()),
            (1, started()),
            (1, status("waiting_for_slot")),
            (4, status("compacting")),
            (6, says()),
            (10, uses("a")),
            (12, asks.into()),
            (40, answer.into()),
            (50, returns("a", false)),
            (60, completed()),
        ]);
        let expected = [
            (Queued, 0, Some(1)),
            (Waiting, 1, Some(6)),
            (Model, 6, Some(10)),
            (Tool, 10, Some(50)),
            (Approval, 12, Some(40)),
            (Model, 50, Some(60)),
        ];
        assert_eq!(rows(&said), expected);
    }

    #[test]
    fn a_clock_that_goes_backwards_makes_no_negative_span() {
        let said = read(vec![(100, queued()), (50, started()), (40, completed())]);
        assert!(said.spans.iter().all(|span| span.to_ms >= Some(span.from_ms)), "{said:?}");
    }
}
