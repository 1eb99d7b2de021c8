//! The runs that a process answers for now: which of them a model call belongs to.

use super::RunMeter;
use reqwest::header::HeaderMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The current turns of one process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct GatewayTurns(Arc<Mutex<CurrentTurns>>);

#[derive(Debug, Default)]
struct CurrentTurns {
    begun: u64,
    current: Vec<BoundTurn>,
}

#[derive(Debug)]
struct BoundTurn {
    number: u64,
    /// What the program sends in a header of this turn's calls.
    name: Option<String>,
    meter: RunMeter,
}

/// Dropping it ends the turn: the process can make no model call of it any more.
#[derive(Debug)]
#[must_use]
pub struct GatewayTurn {
    number: u64,
    turns: GatewayTurns,
}

impl GatewayTurns {
    /// Binds the token of the process to a run. `name` tells its calls from those of other turns, for a process that has
    /// several at a time.
    pub fn begin(&self, meter: &RunMeter, name: Option<&str>) -> GatewayTurn {
        let mut turns = self.lock();
        turns.begun += 1;
        let number = turns.begun;
        turns.current.push(BoundTurn { number, name: name.map(str::to_owned), meter: meter.clone() });
        GatewayTurn { number, turns: self.clone() }
    }

    /// The run that a call with these headers belongs to: the one that it names, else the newest. All are runs of one agent,
    /// so a program that names another one deceives only itself.
    pub(super) fn current(&self, headers: &HeaderMap) -> Option<RunMeter> {
        let turns = self.lock();
        let is_named = |turn: &&BoundTurn| {
            let name = turn.name.as_deref();
            name.is_some_and(|name| headers.values().any(|value| value.as_bytes() == name.as_bytes()))
        };
        let named = turns.current.iter().find(is_named);
        named.or(turns.current.last()).map(|turn| turn.meter.clone())
    }

    fn lock(&self) -> MutexGuard<'_, CurrentTurns> {
        // Every change is a single step, so a panic cannot leave the state inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for GatewayTurn {
    fn drop(&mut self) {
        self.turns.lock().current.retain(|turn| turn.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::GatewayTurns;
    use crate::gateway::RunMeter;
    use domain::usage::Usage;
    use reqwest::header::{HeaderMap, HeaderValue};

    #[test]
    fn a_call_belongs_to_the_turn_that_it_names_else_to_the_newest() {
        let (turns, named) = (GatewayTurns::default(), |name: &'static str| {
            HeaderMap::from_iter([(reqwest::header::FROM, HeaderValue::from_static(name))])
        });
        assert!(turns.current(&HeaderMap::new()).is_none(), "between turns");
        let meters = [RunMeter::default(), RunMeter::default()];
        for (meter, output_tokens) in meters.iter().zip([1, 2]) {
            meter.record(None, Usage { output_tokens, ..Usage::default() });
        }
        let number = |headers: &HeaderMap| turns.current(headers).map(|meter| meter.read().usage[&None].output_tokens);
        let first = turns.begin(&meters[0], Some("thread-1"));
        let second = turns.begin(&meters[1], Some("thread-2"));
        assert_eq!(number(&named("thread-1")), Some(1));
        assert_eq!(number(&named("thread-2")), Some(2));
        assert_eq!(number(&named("other")), Some(2));
        drop(second);
        assert_eq!(number(&named("thread-2")), Some(1));
        drop(first);
        assert_eq!(number(&named("thread-1")), None);
    }
}
