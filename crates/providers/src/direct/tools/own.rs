//! Greenroom's own tools: none of them can do harm, so nobody is asked.

use super::{Skill, memory, skill};
use crate::{
    Memory,
    direct::{
        machine::{Manner, Outcome},
        wire::Offer,
    },
    host_tools::{self, Called},
};
use domain::time::Timestamp;
use serde_json::{Map, Value};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Own {
    /// Of [`host_tools`].
    Host(&'static str),
    Skill(Arc<Vec<Skill>>),
    Memory(Memory),
}

/// Those that there is a use for.
pub fn all(skills: &Arc<Vec<Skill>>, memory: &Memory) -> Vec<(Own, Offer, Manner)> {
    let mut all: Vec<(Own, Offer, Manner)> = host_tools::TOOLS
        .iter()
        .map(|tool| {
            let offer =
                Offer { name: tool.name.to_owned(), description: tool.description.to_owned(), schema: (tool.schema)() };
            let manner = if tool.name == "ask_user" { Manner::Question } else { Manner::Free };
            (Own::Host(tool.name), offer, manner)
        })
        .collect();
    if !skills.is_empty() {
        all.push((Own::Skill(Arc::clone(skills)), skill::offer(skills), Manner::Free));
    }
    if memory.notes().is_some() {
        all.push((Own::Memory(memory.clone()), memory::offer(), Manner::Free));
    }
    all
}

impl Own {
    pub async fn run(&self, input: &Map<String, Value>, now: Timestamp) -> Outcome {
        match self {
            Self::Host(name) => match host_tools::call(name, &Value::Object(input.clone()), now) {
                Called::Done(outcome) => Outcome::text(outcome.text, outcome.is_error),
                // A question never gets here: its answer is its result.
                Called::Ask { .. } => Outcome::text("Nobody can be asked here.", true),
            },
            Self::Skill(skills) => skill::run(skills, input).await,
            Self::Memory(memory) => memory::run(memory, input).await,
        }
    }
}
