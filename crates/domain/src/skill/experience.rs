//! The experience of a skill, computed from the ratings of its training rounds.

use serde::{Deserialize, Serialize};

/// A rating from 1 (useless) to 5 (perfect).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "u8", into = "u8")]
#[schema(value_type = u8, minimum = 1, maximum = 5, examples(4))]
pub struct Score(u8);

impl TryFrom<u8> for Score {
    type Error = &'static str;
    fn try_from(score: u8) -> Result<Self, Self::Error> {
        match score {
            1..=5 => Ok(Self(score)),
            _ => Err("a score is a number from 1 to 5"),
        }
    }
}

impl From<Score> for u8 {
    fn from(score: Score) -> Self {
        score.0
    }
}

/// The weight of the newest rating against all earlier ratings.
const NEWEST: f64 = 0.3;
/// The number of ratings at which the mean counts half.
const HALF_BELIEVED: f64 = 5.0;

/// Returns 0 to 100, or `None` without ratings. Takes the oldest rating first. Recent ratings weigh more, and few
/// ratings count little: `round(100 · m · n / (n + 5))`, where `m` is a running mean that each rating, as
/// (score − 1) / 4, moves by 0.3.
pub fn experience(scores: impl IntoIterator<Item = Score>) -> Option<u8> {
    let (mut mean, mut count) = (None, 0.0);
    for score in scores {
        let quality = f64::from(score.0 - 1) / 4.0;
        mean = Some(mean.map_or(quality, |mean| (1.0 - NEWEST) * mean + NEWEST * quality));
        count += 1.0;
    }
    let points = 100.0 * mean? * count / (count + HALF_BELIEVED);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 100")]
    Some(points.round() as u8)
}

#[cfg(test)]
mod tests {
    use super::{Score, experience};
    use proptest::prelude::*;

    fn of(scores: &[u8]) -> Option<u8> {
        experience(scores.iter().map(|score| Score::try_from(*score).unwrap()))
    }

    #[test]
    fn follows_the_documented_formula() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[1]), Some(0));
        assert_eq!(of(&[5]), Some(17));
        assert_eq!(of(&[5; 5]), Some(50));
        assert_eq!(of(&[1, 5]), Some(9));
        assert_eq!(of(&[5, 1]), Some(20));
        assert!(Score::try_from(0).is_err() && Score::try_from(6).is_err());
    }

    proptest! {
        #[test]
        fn stays_in_range_and_a_better_rating_never_lowers_it(
            scores in proptest::collection::vec(1_u8..=5, 1..60), at in any::<prop::sample::Index>(),
        ) {
            let before = of(&scores).unwrap();
            prop_assert!(before <= 100);
            let mut better = scores.clone();
            let one = &mut better[at.index(scores.len())];
            *one = (*one + 1).min(5);
            prop_assert!(of(&better).unwrap() >= before);
        }
    }
}
