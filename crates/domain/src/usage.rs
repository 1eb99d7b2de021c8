//! Token usage and its cost.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::{Add, AddAssign};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a prompt cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        [self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// The larger of both, for each kind of tokens.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        self.each(other, u64::max)
    }

    /// What this has more than the other, for each kind of tokens.
    #[must_use]
    pub fn beyond(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    fn each(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            input_tokens: join(self.input_tokens, other.input_tokens),
            output_tokens: join(self.output_tokens, other.output_tokens),
            cache_read_tokens: join(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: join(self.cache_write_tokens, other.cache_write_tokens),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
    }
}

/// US dollars, stored as whole nano-dollars so that sums are exact; shown as a decimal number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, utoipa::ToSchema)]
#[schema(value_type = f64, examples(0.0123))]
pub struct Cost(i64);

impl Cost {
    pub const ZERO: Self = Self(0);

    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The cost of one model call as a provider reports it: never negative, and not so large that sums overflow.
    #[must_use]
    pub fn of_a_call(self) -> Self {
        const MOST: i64 = 10_000 * 1_000_000_000;
        Self(self.0.clamp(0, MOST))
    }

    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// What this is more than the other; nothing if it is not.
    #[must_use]
    pub fn beyond(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0).max(0))
    }

    #[expect(clippy::cast_precision_loss, reason = "shown, never summed; exact below nine million dollars")]
    pub fn as_dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_dollars())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        #[expect(clippy::cast_possible_truncation, reason = "float casts saturate")]
        Ok(Self((dollars * 1e9).round() as i64))
    }
}
