//! Counts the tokens of a turn. Codex repeats its counts after a resume, a steer or a compaction, so usage is the
//! growth of the thread's total.

use domain::usage::Usage;
use serde_json::Value;

#[derive(Debug)]
pub struct CodexUsageMeter {
    total: Option<Usage>,
}

impl CodexUsageMeter {
    pub fn new(total: Option<Usage>) -> Self {
        Self { total }
    }

    pub fn total(&self) -> Option<Usage> {
        self.total
    }

    /// Sets the total from a count that belongs to an earlier turn.
    pub fn set_total(&mut self, params: &Value) {
        if let Some(total) = usage(params, "total") {
            self.total = Some(total);
        }
    }

    /// Returns the usage since the last count.
    pub fn update(&mut self, params: &Value) -> Option<Usage> {
        let total = usage(params, "total");
        let used = match (total, self.total) {
            (Some(total), Some(before)) => since(total, before),
            // The previous total is unknown, so count the last model call only.
            _ => usage(params, "last")?,
        };
        self.total = total.or(self.total);
        (used != Usage::default()).then_some(used)
    }
}

fn since(total: Usage, before: Usage) -> Usage {
    Usage {
        input_tokens: total.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: total.output_tokens.saturating_sub(before.output_tokens),
        cache_read_tokens: total.cache_read_tokens.saturating_sub(before.cache_read_tokens),
        cache_write_tokens: total.cache_write_tokens.saturating_sub(before.cache_write_tokens),
    }
}

/// OpenAI includes cached tokens in the input; Greenroom counts them separately. Reasoning is part of the output.
fn usage(params: &Value, which: &str) -> Option<Usage> {
    let counts = params.get("tokenUsage")?.get(which)?;
    let count = |field: &str| counts.get(field).and_then(Value::as_u64).unwrap_or_default();
    let (read, written) = (count("cachedInputTokens"), count("cacheWriteInputTokens"));
    Some(Usage {
        input_tokens: count("inputTokens").saturating_sub(read).saturating_sub(written),
        output_tokens: count("outputTokens"),
        cache_read_tokens: read,
        cache_write_tokens: written,
    })
}
