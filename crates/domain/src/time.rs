//! Wall-clock time. Stored as milliseconds since 1970 in every database, shown as RFC 3339.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, time::Duration};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, utoipa::ToSchema)]
#[schema(value_type = String, format = DateTime, examples("2026-11-15T09:30:00.250Z"))]
pub struct Timestamp(i64);

impl Timestamp {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_millisecond())
    }

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if the clock went backwards.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let t: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Self(t.as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn prints_three_decimals_and_parses_its_own_output() {
        let t = Timestamp::from_millis(1_763_200_000_250);
        assert_eq!(t.to_string(), "2025-11-15T09:46:40.250Z");
        let json = serde_json::to_string(&t).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), t);
        assert_eq!(Timestamp::from_millis(1_763_200_000_000).to_string(), "2025-11-15T09:46:40.000Z");
    }
}
