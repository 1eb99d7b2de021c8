//! Notices a model that makes the same calls and gets the same results, over and over.

use super::Outcome;
use crate::direct::conversation::Call;
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

const WARN: u32 = 3;
const STOP: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    Warn(u32),
    Stop(u32),
}

/// How often each call with its result was seen since anything new was.
#[derive(Debug, Default)]
pub struct Repeats(BTreeMap<u64, u32>);

impl Repeats {
    pub fn note(&mut self, call: &Call, outcome: &Outcome) -> Verdict {
        let mut hasher = DefaultHasher::new();
        (&call.name, serde_json::Value::Object(call.input.clone()).to_string()).hash(&mut hasher);
        (outcome.shown.to_string(), outcome.is_error).hash(&mut hasher);
        let key = hasher.finish();
        if !self.0.contains_key(&key) {
            // Something new was learned: the count begins again for all.
            self.0.values_mut().for_each(|times| *times = 0);
        }
        let times = self.0.entry(key).or_default();
        *times += 1;
        match *times {
            STOP.. => Verdict::Stop(*times),
            WARN.. => Verdict::Warn(*times),
            _ => Verdict::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Repeats, STOP, Verdict, WARN};
    use crate::direct::{conversation::Call, machine::Outcome};
    use serde_json::{Map, json};

    fn note(repeats: &mut Repeats, name: &str, result: &str) -> Verdict {
        let call = Call { id: "x".into(), name: name.into(), input: Map::new(), malformed: None };
        repeats.note(&call, &Outcome { shown: json!(result), content: Vec::new(), is_error: false })
    }

    #[test]
    fn the_same_again_is_noticed_also_in_turns() {
        let mut repeats = Repeats::default();
        for round in 1..=STOP {
            for name in ["a", "b"] {
                let expected = match round {
                    STOP => Verdict::Stop(STOP),
                    WARN.. => Verdict::Warn(round),
                    _ => Verdict::Fine,
                };
                // The second of the first round is new and sets the first back.
                let lag = u32::from(name == "a" && round > 1);
                let seen = note(&mut repeats, name, "same");
                if lag == 0 {
                    assert_eq!(seen, expected, "{name} {round}");
                }
            }
        }
    }

    #[test]
    fn another_result_is_progress() {
        let mut repeats = Repeats::default();
        for round in 0..100 {
            assert_eq!(note(&mut repeats, "poll", &round.to_string()), Verdict::Fine);
        }
    }
}
