//! Model prices: a table embedded at build time, looked up by model name. `ModelPrice::cost` is the cost of one model call; the
//! cost of a run is the sum of its calls, in `fold`.
//!
//! It must never guess. A name that does not clearly mean one model at one price is unknown, and its cost is `None`.
//! [`PriceSource`] says whose prices a provider's calls are charged at: the same name at another address may be another model.
//! `names` matches names, `rate` computes costs; the data and its export script are in `crates/domain/prices`.

mod names;
mod rate;

use crate::{
    time::Timestamp,
    usage::{Cost, Usage},
};
use rate::ModelRate;
use serde::Deserialize;
use std::{collections::HashMap, sync::LazyLock};

/// The model name of the scripted provider; it is free.
pub const SCRIPTED: &str = "scripted";

/// The price of one model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    id: String,
    vendor: String,
    #[serde(default)]
    exact: Vec<String>,
    #[serde(default)]
    stems: Vec<String>,
    /// Sorted by start date; the first has no date.
    rates: Vec<ModelRate>,
}

/// Finds the price of a model by its name, or `None` if the name is not clear.
pub fn find(model: &str) -> Option<&'static ModelPrice> {
    let table = &*TABLE;
    let index = names::find(model, &table.exact, &table.stems)?;
    table.models.get(index)
}

/// Whose prices apply to the model calls of a provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PriceSource {
    /// Every vendor of the table, by the model's name: the provider's program may call any of them.
    #[default]
    Table,
    /// One vendor of the table.
    Vendor(&'static str),
    /// Nobody knows what the calls cost.
    Unknown,
    /// The operator says that the calls cost nothing.
    Free,
}

impl PriceSource {
    /// Returns the cost of one model call now, or `None` if it is not known.
    pub fn cost(self, model: Option<&str>, usage: &Usage) -> Option<Cost> {
        let found = || find(model?);
        match self {
            Self::Table => found(),
            Self::Vendor(vendor) => found().filter(|price| price.vendor() == vendor),
            Self::Unknown => None,
            Self::Free => return Some(Cost::ZERO),
        }
        .map(|price| price.cost(usage))
    }
}

/// The source and date of the table, such as `genai-prices 0.2.1, 2026-11-15`.
pub fn version() -> &'static str {
    &TABLE.version
}

impl ModelPrice {
    /// The model's main name; a model may have several names.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The vendor that charges this price.
    pub fn vendor(&self) -> &str {
        &self.vendor
    }

    /// Returns the cost of one model call now. Pass the usage of one call, not a sum: some models charge more for a
    /// long prompt, and a sum of short prompts would look like one.
    pub fn cost(&self, usage: &Usage) -> Cost {
        self.cost_at(usage, Timestamp::now())
    }

    /// Returns the cost of a call at another time: announced prices apply from their date.
    pub fn cost_at(&self, usage: &Usage, at: Timestamp) -> Cost {
        self.rates.iter().rev().find(|rate| rate.in_force(at)).map_or(Cost::ZERO, |rate| rate.cost(usage))
    }
}

struct PriceTable {
    version: String,
    models: Vec<ModelPrice>,
    exact: HashMap<String, usize>,
    stems: HashMap<String, usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    version: String,
    models: Vec<ModelPrice>,
}

static TABLE: LazyLock<PriceTable> = LazyLock::new(|| {
    let PriceFile { version, mut models } = serde_json::from_str(include_str!("../../prices/models.json"))
        // The file is part of the program, and the tests below read it.
        .unwrap_or_else(|error| unreachable!("the embedded price table is not valid: {error}"));
    models.push(ModelPrice {
        id: SCRIPTED.to_owned(),
        vendor: "greenroom".to_owned(),
        exact: vec![SCRIPTED.to_owned()],
        stems: Vec::new(),
        rates: vec![ModelRate::FREE],
    });
    let by_name = |names: fn(&ModelPrice) -> &Vec<String>| {
        let pairs = models.iter().enumerate();
        pairs.flat_map(|(index, model)| names(model).iter().map(move |name| (name.clone(), index))).collect()
    };
    let (exact, stems) = (by_name(|model| &model.exact), by_name(|model| &model.stems));
    PriceTable { version, models, exact, stems }
});

#[cfg(test)]
mod tests {
    use super::{PriceSource, TABLE, find, version};
    use crate::{
        time::Timestamp,
        usage::{Cost, Usage},
    };
    use std::collections::HashSet;

    /// 2026-11-15T12:00:00Z and 2026-12-01T00:00:00Z, on both sides of an announced price.
    const NOVEMBER: Timestamp = Timestamp::from_millis(1_794_744_000_000);
    const DECEMBER: Timestamp = Timestamp::from_millis(1_796_083_200_000);

    fn usage(input: u64, output: u64, read: u64, write: u64) -> Usage {
        Usage { input_tokens: input, output_tokens: output, cache_read_tokens: read, cache_write_tokens: write }
    }

    fn nanos(model: &str, usage: Usage) -> i64 {
        find(model).unwrap().cost_at(&usage, NOVEMBER).as_nanos()
    }

    #[test]
    fn costs_of_known_models() {
        let table = [
            // $3 per million in, $15 out, $0.30 cache read, $3.75 cache write:
            // 1,000 × 3,000 + 500 × 15,000 + 10,000 × 300 + 2,000 × 3,750 nanos each = 3 + 7.5 + 3 + 7.5 million.
            ("claude-sonnet-4-5-20250929", usage(1_000, 500, 10_000, 2_000), 21_000_000),
            // $5 and $25: one of each is 5,000 + 25,000 nanos.
            ("claude-opus-4-6", usage(1, 1, 0, 0), 30_000),
            // $1.25 in, $10 out, $0.125 cache read: 1,250 + 10,000 + 125.
            ("gpt-5", usage(1, 1, 1, 0), 11_375),
            // $0.05 in: 50 nanos a token, exactly a nickel for a million.
            ("gpt-5-nano", usage(1_000_000, 0, 0, 0), 50_000_000),
            // $0.0375 in: 37.5 nanos round half up to 38, but two tokens are exactly 75.
            ("command-r7b-12-2024", usage(1, 0, 0, 0), 38),
            ("command-r7b-12-2024", usage(2, 0, 0, 0), 75),
            // Bedrock in one region costs a tenth more than across all: $5.50 against $5.
            ("us.anthropic.claude-opus-4-6-v1:0", usage(1_000_000, 0, 0, 0), 5_500_000_000),
            ("global.anthropic.claude-opus-4-6-v1:0", usage(1_000_000, 0, 0, 0), 5_000_000_000),
            ("scripted", usage(u64::MAX, u64::MAX, u64::MAX, u64::MAX), 0),
        ];
        for (model, usage, expected) in table {
            assert_eq!(nanos(model, usage), expected, "{model} {usage:?}");
        }
    }

    #[test]
    fn without_a_cache_price_cached_tokens_cost_what_input_costs() {
        // gpt-5 names no price for writing its cache: $1.25.
        assert_eq!(nanos("gpt-5", usage(0, 0, 0, 4)), nanos("gpt-5", usage(4, 0, 0, 0)));
        // gpt-5-pro names neither: $15.
        assert_eq!(nanos("gpt-5-pro", usage(1, 0, 1, 1)), 45_000);
    }

    #[test]
    fn a_long_prompt_is_charged_at_the_higher_tier_for_all_its_tokens() {
        // Up to 200,000 tokens $3 in and $15 out, above $6 and $22.50.
        assert_eq!(nanos("claude-sonnet-4-5", usage(200_000, 1_000, 0, 0)), 600_000_000 + 15_000_000);
        assert_eq!(nanos("claude-sonnet-4-5", usage(200_001, 1_000, 0, 0)), 1_200_006_000 + 22_500_000);
        // The cached part of the prompt counts: 1 × $6 + 150,000 × $0.60 + 50,000 × $7.50.
        assert_eq!(nanos("claude-sonnet-4-5", usage(1, 0, 150_000, 50_000)), 6_000 + 90_000_000 + 375_000_000);
        // Output tokens do not count.
        assert_eq!(nanos("claude-sonnet-4-5", usage(1, 200_000, 0, 0)), 3_000 + 3_000_000_000);
    }

    #[test]
    fn an_announced_price_applies_from_its_date() {
        let argon = find("gemini-4-argon").unwrap();
        let one = usage(1, 1, 0, 0);
        assert_eq!(argon.cost_at(&one, NOVEMBER).as_nanos(), 2_000 + 10_000);
        assert_eq!(argon.cost_at(&one, DECEMBER).as_nanos(), 4_000 + 20_000);
    }

    #[test]
    fn a_price_depends_on_who_sells_the_model() {
        let one = usage(1, 1, 1, 0);
        let sonnet = PriceSource::Table.cost(Some("claude-sonnet-4-5"), &one);
        assert_eq!(sonnet.map(Cost::as_nanos), Some(3_000 + 15_000 + 300));
        for (source, model, expected) in [
            (PriceSource::Vendor("anthropic"), Some("claude-sonnet-4-5"), sonnet),
            (PriceSource::Vendor("openai"), Some("claude-sonnet-4-5"), None),
            (PriceSource::Vendor("openai"), Some("gpt-5"), Some(Cost::from_nanos(11_375))),
            // $0.30 in, $2.50 out, $0.03 cache read.
            (PriceSource::Vendor("google"), Some("gemini-2.5-flash"), Some(Cost::from_nanos(300 + 2_500 + 30))),
            (PriceSource::Vendor("google"), Some("gpt-5"), None),
            (PriceSource::Unknown, Some("gpt-5"), None),
            (PriceSource::Free, Some("gpt-5"), Some(Cost::ZERO)),
            (PriceSource::Free, None, Some(Cost::ZERO)),
            (PriceSource::Table, None, None),
        ] {
            assert_eq!(source.cost(model, &one), expected, "{source:?} {model:?}");
        }
    }

    #[test]
    fn huge_token_counts_do_not_overflow() {
        assert_eq!(nanos("o1-pro", usage(u64::MAX, u64::MAX, u64::MAX, u64::MAX)), i64::MAX);
    }

    #[test]
    fn unknown_models_have_no_price() {
        for name in ["", "gpt-99", "llama3", "claude", "my-finetune", "openai/claude-sonnet-4-5", "gpt-oss-120b"] {
            assert!(find(name).is_none(), "{name}");
        }
        // Its vendor sells it at two prices.
        assert!(find("glm-5").is_none());
    }

    #[test]
    fn the_embedded_table_is_valid() {
        assert!(version().starts_with("genai-prices "));
        assert!(include_str!("../../prices/models.json").len() < 100 * 1024);
        let mut seen = HashSet::new();
        for model in &TABLE.models {
            assert!(!model.vendor().is_empty());
            assert!(model.rates.iter().all(super::ModelRate::is_sound), "{}", model.id());
            assert!(model.rates[0].in_force(Timestamp::from_millis(0)), "{} always has a price", model.id());
            for name in model.exact.iter().chain(&model.stems) {
                assert!(seen.insert(name), "{name} means two models");
                assert_eq!(find(name).unwrap().id(), model.id(), "{name}");
            }
        }
    }
}
