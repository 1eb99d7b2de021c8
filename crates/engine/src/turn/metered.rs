//! What the model gateway has counted of a turn's calls, against what the provider reports of them: each call counts once.

use domain::{
    event::UsageReported,
    fold::Answer,
    prices::PriceSource,
    usage::{Cost, Usage},
};
use std::{collections::BTreeMap, ops::Add as _};

/// The usage of the calls at the gateway so far, by the name that the API gives its model.
#[derive(Debug, Default)]
pub(super) struct MeteredUsage(pub BTreeMap<Option<String>, Usage>);

impl MeteredUsage {
    /// What the calls cost beyond what the provider has reported. Unknown prices count nothing, as in budgets.
    pub fn unreported_cost(&self, answer: &Answer, prices: PriceSource, model: Option<&str>) -> Cost {
        let known = self.costs(prices, model).map(Option::unwrap_or_default).fold(Cost::ZERO, Cost::add);
        known.beyond(answer.cost.unwrap_or_default())
    }

    /// The calls that the provider has not reported when the turn ends: those of tools, and of a program that was stopped.
    pub fn unreported(&self, answer: &Answer, prices: PriceSource, model: Option<&str>) -> Option<UsageReported> {
        let mut metered = Usage::default();
        self.0.values().for_each(|usage| metered += *usage);
        if metered.total() <= answer.usage.total() {
            return None;
        }
        let is_known = self.costs(prices, model).all(|cost| cost.is_some());
        let cost = is_known.then(|| self.unreported_cost(answer, prices, model));
        let only = self.0.keys().next().filter(|_| self.0.len() == 1).and_then(Option::as_deref);
        let model = only.or(model).map(str::to_owned);
        Some(UsageReported::new(metered.beyond(answer.usage), cost, model))
    }

    fn costs(&self, prices: PriceSource, model: Option<&str>) -> impl Iterator<Item = Option<Cost>> {
        self.0.iter().map(move |(named, usage)| prices.cost(named.as_deref().or(model), usage))
    }
}
