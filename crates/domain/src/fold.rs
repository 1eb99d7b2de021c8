//! Folds the events of one run into an answer, and sums up the usage and the cost of a run. The pump, crash recovery and
//! history requests during a run all use this fold, so they cannot disagree.
//!
//! The cost of one model call comes from `prices`; the engine's turn machine adds it to the usage event that is summed up here.

use crate::{
    event::EventBody,
    ids::MessageId,
    message::{Part, ToolCall, ToolOutcome, join_texts},
    usage::{Cost, Usage},
};

/// The code of the status event of a note that an agent has saved for itself.
pub const MEMORIZED: &str = "memorized";
/// How many notes and model calls the end of a stream lists.
const MAX_LISTED: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Set by `stream_start`.
    pub stream_id: Option<MessageId>,
    /// Set by `stream_end`.
    pub ended: bool,
    pub parts: Vec<Part>,
    pub usage: Usage,
    /// The sum of all costs; `None` before the first usage report and as soon as one price is unknown.
    pub cost: Option<Cost>,
    pub model: Option<String>,
    pub session_id: Option<String>,
    /// The notes that the agent has saved for itself in this turn.
    pub memories: Vec<String>,
    /// The model of each model call, in order.
    pub model_calls: Vec<String>,
    metered: bool,
}

impl Answer {
    pub fn apply(&mut self, body: &EventBody) {
        match body {
            EventBody::StreamStart(e) => self.stream_id = Some(e.stream_id),
            EventBody::ContentDelta(e) => match self.parts.last_mut() {
                Some(Part::Text { text, item }) if *item == e.item => text.push_str(&e.delta),
                _ => self.parts.push(Part::Text { text: e.delta.clone(), item: e.item.clone() }),
            },
            EventBody::ThinkingDelta(e) => match self.parts.last_mut() {
                Some(Part::Thinking { text, item }) if *item == e.item => text.push_str(&e.delta),
                _ => self.parts.push(Part::Thinking { text: e.delta.clone(), item: e.item.clone() }),
            },
            EventBody::Retract(e) => self.parts.retain(|part| match part {
                Part::Text { item, .. } | Part::Thinking { item, .. } => item.as_deref() != Some(&e.item),
                Part::Tool(_) => true,
            }),
            EventBody::ToolUse(e) => self.parts.push(Part::Tool(ToolCall {
                tool_use_id: e.tool_use_id.clone(),
                name: e.name.clone(),
                input: e.input.clone(),
                output: String::new(),
                result: None,
                child: None,
            })),
            EventBody::ToolOutputDelta(e) => {
                if let Some(call) = self.call(&e.tool_use_id) {
                    call.output.push_str(&e.delta);
                }
            }
            EventBody::ToolResult(e) => {
                if let Some(call) = self.call(&e.tool_use_id) {
                    call.result = Some(ToolOutcome { content: e.content.clone(), is_error: e.is_error });
                }
            }
            EventBody::RunDelegated(e) => {
                if let Some(call) = e.tool_use_id.as_deref().and_then(|id| self.call(id)) {
                    call.child = Some(e.child.clone());
                }
            }
            EventBody::Status(e) if e.status == MEMORIZED && self.memories.len() < MAX_LISTED => {
                self.memories.push(e.message.clone());
            }
            EventBody::UsageReported(e) => self.meter(e.usage, e.exact_cost(), e.model.as_deref()),
            EventBody::StreamEnd(e) => {
                self.ended = true;
                self.session_id.clone_from(&e.session_id);
            }
            _ => {}
        }
    }

    /// Tool calls that have no result yet.
    pub fn open_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Tool(call) if call.result.is_none() => Some(call),
            _ => None,
        })
    }

    /// Returns the joined text and the joined thinking.
    pub fn texts(&self) -> (String, String) {
        join_texts(&self.parts)
    }

    fn call(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Tool(call) if call.tool_use_id == id => Some(call),
            _ => None,
        })
    }

    /// Adds the usage and the cost of a model call to those of the run. A call of unknown cost makes the sum unknown.
    fn meter(&mut self, usage: Usage, cost: Option<Cost>, model: Option<&str>) {
        self.usage += usage;
        self.cost = match (self.metered, self.cost, cost) {
            (false, _, first) => first,
            (true, Some(sum), Some(more)) => Some(sum + more),
            (true, _, _) => None,
        };
        self.metered = true;
        if let Some(model) = model {
            self.model = Some(model.to_owned());
        }
        if self.model_calls.len() < MAX_LISTED {
            self.model_calls.push(model.or(self.model.as_deref()).unwrap_or("unknown").to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Answer;
    use crate::{
        event::{
            ContentDelta, EventBody, Retract, RunCompleted, StreamStart, ThinkingDelta, ToolResult, ToolUse,
            UsageReported,
        },
        ids::MessageId,
        usage::{Cost, Usage},
    };
    use serde_json::json;

    fn text(id: MessageId, delta: &str, item: Option<&str>) -> EventBody {
        ContentDelta { stream_id: id, delta: delta.into(), item: item.map(Into::into) }.into()
    }

    fn answer(events: &[EventBody]) -> Answer {
        let mut answer = Answer::default();
        events.iter().for_each(|event| answer.apply(event));
        answer
    }

    #[test]
    fn keeps_order_and_joins_adjacent_deltas() {
        let id = MessageId::generate();
        let folded = answer(&[
            StreamStart { stream_id: id }.into(),
            ThinkingDelta { stream_id: id, delta: "hm".into(), item: None }.into(),
            text(id, "a", None),
            text(id, "b", None),
            ToolUse { stream_id: id, tool_use_id: "t".into(), name: "look".into(), input: json!({}) }.into(),
            text(id, "c", None),
        ]);
        assert_eq!(folded.parts.len(), 4);
        assert_eq!(folded.texts(), ("ab\n\nc".to_owned(), "hm".to_owned()));
        assert_eq!(folded.open_calls().count(), 1);
    }

    #[test]
    fn text_after_a_tool_call_is_a_new_paragraph() {
        let id = MessageId::generate();
        let call = || -> EventBody {
            ToolUse { stream_id: id, tool_use_id: "t".into(), name: "look".into(), input: json!({}) }.into()
        };
        let joined = |before: &str, after: &str| {
            let folded = answer(&[text(id, before, None), call(), call(), text(id, after, None)]);
            folded.texts().0
        };
        assert_eq!(joined("I look.", "It is there."), "I look.\n\nIt is there.");
        assert_eq!(joined("I look.\n", "It is there."), "I look.\n\nIt is there.");
        assert_eq!(joined("I look.", "\n\nIt is there."), "I look.\n\nIt is there.");
        assert_eq!(joined("I look.\n\n\n", "\nIt."), "I look.\n\n\n\nIt.", "nothing is removed");
        assert_eq!(answer(&[call(), text(id, "It.", None)]).texts().0, "It.");
        assert_eq!(answer(&[text(id, "It", Some("1")), text(id, " is.", Some("2"))]).texts().0, "It is.");
    }

    #[test]
    fn a_result_closes_its_call_and_a_retract_removes_only_its_item() {
        let id = MessageId::generate();
        let folded = answer(&[
            text(id, "keep ", Some("1")),
            text(id, "lose", Some("2")),
            ToolUse { stream_id: id, tool_use_id: "t".into(), name: "look".into(), input: json!({}) }.into(),
            ToolResult { stream_id: id, tool_use_id: "t".into(), content: json!("ok"), is_error: false }.into(),
            Retract { stream_id: id, item: "2".into() }.into(),
            text(id, "this", Some("3")),
        ]);
        assert_eq!(folded.texts().0, "keep \n\nthis");
        assert_eq!(folded.open_calls().count(), 0);
    }

    #[test]
    fn one_unknown_price_makes_the_sum_unknown() {
        let report = |cost| -> EventBody {
            UsageReported::new(Usage { input_tokens: 1, ..Usage::default() }, cost, None).into()
        };
        let one = Some(Cost::from_nanos(1));
        assert_eq!(answer(&[]).cost, None);
        assert_eq!(answer(&[report(one), report(one)]).cost, Some(Cost::from_nanos(2)));
        assert_eq!(answer(&[report(one), report(None), report(one)]).cost, None);
    }

    #[test]
    fn a_cost_is_stored_as_an_integer_and_old_events_are_read() {
        // A decimal number of dollars does not hold every nano-dollar of this sum.
        let much = Cost::from_nanos(9_007_199_254_740_993);
        let stored = serde_json::to_value(UsageReported::new(Usage::default(), Some(much), None)).unwrap();
        assert_eq!(stored["cost_nanos"], json!(much.as_nanos()));
        let old = json!({"usage": {}, "cost": 0.004_44, "model": null});
        for (data, nanos) in [(stored, much.as_nanos()), (old, 4_440_000)] {
            let read: UsageReported = serde_json::from_value(data).unwrap();
            assert_eq!(answer(&[read.into()]).cost, Some(Cost::from_nanos(nanos)));
        }
    }

    #[test]
    fn the_end_of_a_run_stores_its_cost_as_an_integer_too() {
        let much = Cost::from_nanos(9_007_199_254_740_993);
        let (usage, cost_nanos) = (Usage::default(), Some(much.as_nanos()));
        let new = RunCompleted { usage, cost: Some(much), cost_nanos, duration_ms: 1 };
        let old = json!({"usage": {}, "cost": 0.004_44, "duration_ms": 1});
        for (data, nanos) in [(serde_json::to_value(new).unwrap(), much.as_nanos()), (old, 4_440_000)] {
            let read: RunCompleted = serde_json::from_value(data).unwrap();
            assert_eq!(read.exact_cost(), Some(Cost::from_nanos(nanos)));
        }
    }
}
