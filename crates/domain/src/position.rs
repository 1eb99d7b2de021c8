//! A position in a room's journal: (epoch, seq). The epoch belongs to the store and changes on a restore, so that a
//! cursor from before the restore is reset instead of silently missing events (invariant 8).

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// 1 for a room's first event; 0 means "before the first".
pub type Seq = u64;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, examples("7c9e6f2a"))]
pub struct Epoch(String);

impl Epoch {
    pub fn generate() -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        Self(id.chars().take(8).collect())
    }

    pub fn parse(text: &str) -> Result<Self, PositionError> {
        let fits = (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric());
        if fits { Ok(Self(text.to_owned())) } else { Err(PositionError) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The last event a client has: `17` (in any epoch) or `7c9e6f2a-17`, the `id:` of an SSE frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    pub epoch: Option<Epoch>,
    pub seq: Seq,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a position is a whole number from 0 up, or <epoch>-<number> as in the id of an SSE frame")]
pub struct PositionError;

impl Position {
    pub const START: Self = Self { epoch: None, seq: 0 };
}

impl FromStr for Position {
    type Err = PositionError;
    fn from_str(text: &str) -> Result<Self, PositionError> {
        let (epoch, digits) = match text.rsplit_once('-') {
            Some((epoch, digits)) => (Some(Epoch::parse(epoch)?), digits),
            None => (None, text),
        };
        // `u64::from_str` accepts a leading '+'; a position does not. The cap is what both databases can store.
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(PositionError);
        }
        let seq = digits.parse().ok().filter(|&n: &u64| i64::try_from(n).is_ok()).ok_or(PositionError)?;
        Ok(Self { epoch, seq })
    }
}

#[cfg(test)]
mod tests {
    use super::{Epoch, Position};

    #[test]
    fn parses_both_forms_and_rejects_others() {
        let bare: Position = "17".parse().unwrap();
        assert_eq!((bare.epoch, bare.seq), (None, 17));
        let full: Position = "7c9e6f2a-17".parse().unwrap();
        assert_eq!((full.epoch.unwrap().as_str(), full.seq), ("7c9e6f2a", 17));
        for bad in [
            "",
            "-",
            "-1",
            "+1",
            "1.5",
            "x",
            "a-",
            "a--1",
            "99999999999999999999",
            "9223372036854775808",
            "a b-1",
            "\n1",
        ] {
            assert!(bad.parse::<Position>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn generated_epochs_parse_and_differ() {
        let epoch = Epoch::generate();
        assert_eq!(Epoch::parse(epoch.as_str()).unwrap(), epoch);
        assert_ne!(epoch, Epoch::generate());
    }
}
