//! Who speaks next in a room with several agents. Pure rules: no clock, no ids, no IO.
//!
//! For now one rule: those who were named, else all, one after another in the order they joined. The plan is made when
//! a message is posted and becomes runs in that order; the queue keeps the order, so a richer scheduler replaces this
//! function and nothing else.

use domain::{agent::Agent, ids::AgentId};

/// The agents that will answer, in this order.
pub(crate) fn plan<'a>(seated: &'a [Agent], mentions: &[AgentId]) -> Vec<&'a Agent> {
    seated.iter().filter(|agent| mentions.is_empty() || mentions.contains(&agent.id)).collect()
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
    fn all_in_the_order_they_joined_or_only_those_named() {
        let seated = [agent("a"), agent("b"), agent("c")];
        let names = |mentions: &[AgentId]| -> Vec<String> {
            plan(&seated, mentions).iter().map(|agent| agent.spec.name.to_string()).collect()
        };
        assert_eq!(names(&[]), ["a", "b", "c"]);
        assert_eq!(names(&[seated[2].id, seated[0].id]), ["a", "c"]);
    }
}
