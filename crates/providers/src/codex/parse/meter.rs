//! Tokens of a turn. Codex repeats its counts: when a thread is resumed, when somebody steers, after it summed up the
//! conversation. Only what the thread's total grew by has been used.

use domain::usage::Usage;
use serde_json::Value;

#[derive(Debug)]
pub struct Meter {
    total: Option<Usage>,
}

impl Meter {
    pub fn new(total: Option<Usage>) -> Self {
        Self { total }
    }

    pub fn total(&self) -> Option<Usage> {
        self.total
    }

    /// A count that belongs to an earlier turn.
    pub fn known(&mut self, params: &Value) {
        if let Some(total) = usage(params, "total") {
            self.total = Some(total);
        }
    }

    /// What was used since the last count.
    pub fn update(&mut self, params: &Value) -> Option<Usage> {
        let total = usage(params, "total");
        let used = match (total, self.total) {
            (Some(total), Some(before)) => since(total, before),
            // How much the thread had used before is not known: the last model call is what we saw happen.
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

/// Cached tokens are part of the input as OpenAI counts it; ours are counted apart. Reasoning is part of the output.
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
