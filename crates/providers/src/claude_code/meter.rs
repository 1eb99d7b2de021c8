//! The usage of a turn, counted once.
//!
//! There are three sources, and each is incomplete: the figures by model have the cost and include subagents and
//! summaries, but not a stream that broke off; the sum includes a retried stream, but not subagents; both are zero for
//! an interrupted stream, whose usage is only in the stream itself. So the figures by model are reported as they are,
//! and any usage beyond them, according to the other sources, is reported without a cost.

use crate::TurnEvent;
use domain::usage::{Cost, Usage};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct ClaudeUsageMeter {
    /// The usage of the messages before the current one.
    before: Usage,
    current: Usage,
    model: Option<String>,
}

impl ClaudeUsageMeter {
    pub fn start(&mut self, usage: &Value, model: Option<&str>) {
        self.before += std::mem::take(&mut self.current);
        self.current = usage_of(usage);
        if let Some(model) = model {
            self.model = Some(model.to_owned());
        }
    }

    /// Updates the current message. Its figures only grow; a missing field means no change.
    pub fn update(&mut self, usage: &Value) {
        self.current = self.current.larger(usage_of(usage));
    }

    /// Returns the usage seen in the stream.
    pub fn into_streamed(self) -> Option<TurnEvent> {
        let mut usage = self.before;
        usage += self.current;
        (usage.total() > 0).then_some(TurnEvent::Usage { usage, model: self.model, cost: None })
    }

    pub fn into_result(self, result: &Value) -> Vec<TurnEvent> {
        let mut events = Vec::new();
        let mut counted = Usage::default();
        for (model, figures) in result["model_usage_since_last_result"].as_object().into_iter().flatten() {
            let usage = usage_by_model(figures);
            let cost = figures.get("costUSD").and_then(|cost| serde_json::from_value::<Cost>(cost.clone()).ok());
            if usage.total() > 0 || cost.is_some_and(|cost| cost != Cost::ZERO) {
                counted += usage;
                events.push(TurnEvent::Usage { usage, model: Some(model.clone()), cost });
            }
        }
        let mut seen = self.before;
        seen += self.current;
        let rest = seen.larger(usage_of(&result["usage"])).beyond(counted);
        if rest.total() > 0 {
            events.push(TurnEvent::Usage { usage: rest, model: self.model, cost: None });
        }
        events
    }
}

fn usage_of(usage: &Value) -> Usage {
    figures(usage, ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"])
}

fn usage_by_model(usage: &Value) -> Usage {
    figures(usage, ["inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"])
}

fn figures(usage: &Value, names: [&str; 4]) -> Usage {
    let [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens] =
        names.map(|name| usage.get(name).and_then(Value::as_u64).unwrap_or(0));
    Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens }
}
