//! What a turn knows of the company in its room: who it is, who else is there, and how turns work. An agent that is alone
//! gets nothing of it.

use crate::Engine;
use domain::{
    agent::Agent,
    ids::{AgentId, RoomId},
    owner::Owner,
    room::{RoomPolicy, TurnOrder},
};
use store::StoreError;

/// What an agent is told when it speaks again without a new message.
pub(super) const YOUR_TURN_AGAIN: &str = "It is your turn again. React to what was said since your last turn, or call the tool \
                                          `skip` if you have nothing to add.";

#[derive(Debug, Clone)]
pub(crate) struct RoomView {
    policy: RoomPolicy,
    agents: Vec<Agent>,
}

impl RoomView {
    /// A deleted room has no agents.
    pub(crate) async fn load(engine: &Engine, owner: &Owner, room: RoomId) -> Result<Self, StoreError> {
        match engine.store().room_with_agents(owner, room).await {
            Ok((policy, agents)) => Ok(Self { policy, agents }),
            Err(StoreError::NotFound) => Ok(Self { policy: RoomPolicy::default(), agents: Vec::new() }),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn has_company(&self) -> bool {
        self.agents.len() > 1
    }

    pub(super) fn keeps_raw(&self) -> bool {
        self.policy.keep_raw
    }

    /// The agents whose words this agent does not read.
    pub(super) fn unheard_by(&self, me: AgentId) -> Vec<AgentId> {
        let is_unheard = |agent: &&Agent| agent.id != me && self.policy.member(agent.id).critic;
        self.agents.iter().filter(is_unheard).map(|agent| agent.id).collect()
    }

    /// Gives an agent what the room chooses for it, and tells it who it is and who is here.
    pub(crate) fn apply_to(&self, agent: &mut Agent) {
        self.policy.member(agent.id).apply_to(&mut agent.spec);
        self.introduce(agent);
    }

    /// Adds to an agent's system prompt who it is and who is here.
    pub(crate) fn introduce(&self, agent: &mut Agent) {
        if !self.has_company() {
            return;
        }
        let introduction = introduction(&self.policy, &self.agents, agent.id);
        let own = agent.spec.system_prompt.as_deref().map(str::trim).filter(|own| !own.is_empty());
        agent.spec.system_prompt = Some(match own {
            Some(own) => format!("{own}\n\n{introduction}"),
            None => introduction,
        });
    }
}

fn introduction(policy: &RoomPolicy, agents: &[Agent], me: AgentId) -> String {
    let name = |id: AgentId| agents.iter().find(|agent| agent.id == id).map_or("you", |agent| agent.spec.name.as_str());
    let others: Vec<&str> =
        agents.iter().filter(|agent| agent.id != me).map(|agent| agent.spec.name.as_str()).collect();
    let (my_name, mine) = (name(me), policy.member(me));
    let mut lines = vec![
        format!("You are {my_name}, in a room with people and with other agents: {}.", others.join(", ")),
        "Messages of others are marked with the name of who said them. Speak only for yourself.".to_owned(),
    ];
    let order = match policy.kind {
        TurnOrder::InOrder | TurnOrder::Everyone => "The agents answer one after another.",
        TurnOrder::Concurrent => "The agents answer at the same time, without seeing each other's answers.",
        TurnOrder::MentionOnly => "An agent answers when it is named.",
        TurnOrder::RoundRobin => "The agents take turns: one answers each message.",
        TurnOrder::Moderator if policy.moderator == Some(me) => {
            "You are the moderator: name with @ the agents that should speak next. The discussion ends when you name none."
        }
        TurnOrder::Moderator => "A moderator decides who speaks next.",
        TurnOrder::Debate if policy.judge == Some(me) => "The others debate. You speak last and judge.",
        TurnOrder::Debate => "The agents debate for several rounds; then one judges.",
    };
    lines.push(order.to_owned());
    if policy.follow_up {
        lines.push("Afterwards they may react to each other. Name an agent with @ to ask it.".to_owned());
    }
    if mine.critic {
        lines.push("You are the critic: only people read what you say.".to_owned());
    }
    if mine.final_response {
        lines.push("You speak last, after all others.".to_owned());
    }
    lines.push(
        "If you have nothing to add, call the tool `skip` instead of writing. `whisper` tells people something that the other agents \
         do not read, and `end_round` ends the discussion."
            .to_owned(),
    );
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::RoomView;
    use domain::{
        agent::{Agent, AgentSpec},
        ids::AgentId,
        name::Name,
        room::{MemberSettings, RoomPolicy},
        time::Timestamp,
    };

    fn agent(name: &str) -> Agent {
        let spec =
            AgentSpec { system_prompt: Some("Be brief.".into()), ..AgentSpec::new(Name::parse(name).unwrap(), "p") };
        Agent { id: AgentId::generate(), spec, created_at: Timestamp::default(), updated_at: Timestamp::default() }
    }

    #[test]
    fn an_agent_in_company_is_told_who_is_here() {
        let agents = vec![agent("Ann"), agent("Bob"), agent("Cyd")];
        let critic = MemberSettings { critic: true, ..MemberSettings::default() };
        let members = [(agents[1].id, critic)].into_iter().collect();
        let policy = RoomPolicy { follow_up: true, members, ..RoomPolicy::for_new_room() };
        let view = RoomView { policy, agents: agents.clone() };
        let (mut ann, mut bob) = (agents[0].clone(), agents[1].clone());
        view.introduce(&mut ann);
        view.introduce(&mut bob);
        assert_eq!(
            ann.spec.system_prompt.unwrap(),
            "Be brief.\n\nYou are Ann, in a room with people and with other agents: Bob, Cyd.\nMessages of others are \
             marked with the name of who said them. Speak only for yourself.\nThe agents answer one after \
             another.\nAfterwards they may react to each other. Name an agent with @ to ask it.\nIf you have nothing to \
             add, call the tool `skip` instead of writing. `whisper` tells people something that the other agents do not \
             read, and `end_round` ends the discussion."
        );
        assert!(bob.spec.system_prompt.unwrap().contains("You are the critic"));
        assert_eq!((view.unheard_by(ann.id), view.unheard_by(bob.id)), (vec![bob.id], Vec::new()));
    }

    #[test]
    fn an_agent_that_is_alone_keeps_its_prompt() {
        let ann = agent("Ann");
        let view = RoomView { policy: RoomPolicy::for_new_room(), agents: vec![ann.clone()] };
        let mut introduced = ann.clone();
        view.introduce(&mut introduced);
        assert_eq!(introduced, ann);
    }
}
