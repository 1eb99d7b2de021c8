//! Detects a model that repeats the same calls with the same results.

use super::ToolCallOutcome;
use crate::direct::conversation::ModelToolCall;
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

const WARN: u32 = 3;
const STOP: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatVerdict {
    Fine,
    Warn(u32),
    Stop(u32),
}

/// How often each call with the same result was seen since the last new one.
#[derive(Debug, Default)]
pub struct RepeatDetector(BTreeMap<u64, u32>);

impl RepeatDetector {
    pub fn record(&mut self, call: &ModelToolCall, outcome: &ToolCallOutcome) -> RepeatVerdict {
        let mut hasher = DefaultHasher::new();
        (&call.name, serde_json::Value::Object(call.input.clone()).to_string()).hash(&mut hasher);
        (outcome.for_room.to_string(), outcome.is_error).hash(&mut hasher);
        let key = hasher.finish();
        if !self.0.contains_key(&key) {
            // A new result is progress: all counts restart.
            self.0.values_mut().for_each(|times| *times = 0);
        }
        let times = self.0.entry(key).or_default();
        *times += 1;
        match *times {
            STOP.. => RepeatVerdict::Stop(*times),
            WARN.. => RepeatVerdict::Warn(*times),
            _ => RepeatVerdict::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RepeatDetector, RepeatVerdict, STOP, WARN};
    use crate::direct::{conversation::ModelToolCall, tool_loop::ToolCallOutcome};
    use serde_json::{Map, json};

    fn note(repeats: &mut RepeatDetector, name: &str, result: &str) -> RepeatVerdict {
        let call =
            ModelToolCall { id: "x".into(), name: name.into(), input: Map::new(), signature: None, malformed: None };
        repeats.record(&call, &ToolCallOutcome { for_room: json!(result), for_model: Vec::new(), is_error: false })
    }

    #[test]
    fn alternating_repeats_are_detected() {
        let mut repeats = RepeatDetector::default();
        for round in 1..=STOP {
            for name in ["a", "b"] {
                let expected = match round {
                    STOP => RepeatVerdict::Stop(STOP),
                    WARN.. => RepeatVerdict::Warn(round),
                    _ => RepeatVerdict::Fine,
                };
                // The second call of the first round is new and resets the count of the first.
                let lag = u32::from(name == "a" && round > 1);
                let seen = note(&mut repeats, name, "same");
                if lag == 0 {
                    assert_eq!(seen, expected, "{name} {round}");
                }
            }
        }
    }

    #[test]
    fn new_result_is_progress() {
        let mut repeats = RepeatDetector::default();
        for round in 0..100 {
            assert_eq!(note(&mut repeats, "poll", &round.to_string()), RepeatVerdict::Fine);
        }
    }
}
