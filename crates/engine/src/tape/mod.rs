//! The tape: which agent of a room speaks next. It decides which agents answer, in which cells, and what follows. Pure: no clock,
//! no ids, no IO.
//!
//! The agents of a cell answer side by side, the cells one after another; the queue keeps the order. One rule for now:
//! the mentioned agents, else all, each in a cell of its own, in the order they joined. `machine` is what is planned behind
//! the queued runs: it hears how runs end and says what to queue. No rule of today makes such a plan.

mod machine;
mod mentions;

pub(crate) use machine::{PlannedCell, TapeEffect, TapeInput, TapeMachine};
pub(crate) use mentions::mentions_in;

use domain::{agent::Agent, ids::AgentId};

/// Returns the agents that will answer a message, in order.
pub(crate) fn plan<'a>(agents: &'a [Agent], mentions: &[AgentId]) -> Vec<&'a Agent> {
    agents.iter().filter(|agent| mentions.is_empty() || mentions.contains(&agent.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::plan;
    use domain::{
        agent::{Agent, AgentSpec},
        ids::AgentId,
        name::Name,
        time::Timestamp,
    };

    fn agent(name: &str) -> Agent {
        Agent {
            id: AgentId::generate(),
            spec: AgentSpec::new(Name::parse(name).unwrap(), "scripted"),
            created_at: Timestamp::default(),
            updated_at: Timestamp::default(),
        }
    }

    #[test]
    fn plan_keeps_joining_order_and_honors_mentions() {
        let agents = [agent("a"), agent("b"), agent("c")];
        let names = |mentions: &[AgentId]| -> Vec<String> {
            plan(&agents, mentions).iter().map(|agent| agent.spec.name.to_string()).collect()
        };
        assert_eq!(names(&[]), ["a", "b", "c"]);
        assert_eq!(names(&[agents[2].id, agents[0].id]), ["a", "c"]);
    }
}
