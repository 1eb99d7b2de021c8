//! The cost of one call, computed in integers.

use crate::{
    time::Timestamp,
    usage::{Cost, Usage},
};
use serde::Deserialize;

/// The prices of a model from one date on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRate {
    #[serde(default)]
    from: Option<Timestamp>,
    base: TokenPrices,
    /// Higher prices for longer prompts, by increasing length.
    #[serde(default)]
    above: Vec<LongPromptPrices>,
}

/// Applies to all tokens of a call whose prompt, cached tokens included, is longer than `tokens`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongPromptPrices {
    tokens: u64,
    prices: TokenPrices,
}

/// Micro-dollars per million tokens: every price that vendors publish is a whole number of them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenPrices {
    input: u32,
    output: u32,
    /// Defaults to the input price.
    #[serde(default)]
    cache_read: Option<u32>,
    /// For a five-minute cache. Defaults to the input price.
    #[serde(default)]
    cache_write: Option<u32>,
}

impl ModelRate {
    pub const FREE: Self = Self {
        from: None,
        base: TokenPrices { input: 0, output: 0, cache_read: None, cache_write: None },
        above: Vec::new(),
    };

    pub fn in_force(&self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= at)
    }

    pub fn cost(&self, usage: &Usage) -> Cost {
        let prompt = Usage { output_tokens: 0, ..*usage }.total();
        let tier = self.above.iter().rev().find(|tier| prompt > tier.tokens);
        let prices = tier.map_or(self.base, |tier| tier.prices);
        let sum: i128 = [
            (usage.input_tokens, prices.input),
            (usage.output_tokens, prices.output),
            (usage.cache_read_tokens, prices.cache_read.unwrap_or(prices.input)),
            (usage.cache_write_tokens, prices.cache_write.unwrap_or(prices.input)),
        ]
        .into_iter()
        .map(|(tokens, price)| i128::from(tokens) * i128::from(price))
        .sum();
        // tokens × micro-dollars per million are millionths of a micro-dollar, a thousand of them a nano-dollar.
        // Rounded half up, once.
        Cost::from_nanos(i64::try_from((sum + 500) / 1000).unwrap_or(i64::MAX))
    }

    #[cfg(test)]
    pub fn is_sound(&self) -> bool {
        self.above.is_sorted_by(|a, b| a.tokens < b.tokens)
            && self.above.iter().all(|tier| tier.prices.input >= self.base.input)
    }
}
