//! Who speaks next (the next speaker): which agents answer a message, in which cells and why. The policies of a room (turn order) as a pure function.
//!
//! [`first_round`] plans the answers to a message, [`next_round`] what follows when they have ended. The caps are applied here:
//! no plan is longer than what is left of a message's runs.

use super::{
    progress::Progress,
    shuffle::{combined, shuffle},
};
use domain::{
    ids::AgentId,
    room::{MemberSettings, MentionRule, RoomPolicy, TurnOrder},
    tape::{CellKind, CellReason},
    time::Timestamp,
};
use std::time::Duration;

/// The policy of a room and its agents, in the order they joined, at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoomRules<'a> {
    pub policy: &'a RoomPolicy,
    pub agents: &'a [AgentId],
    pub now: Timestamp,
}

/// A cell of a plan that has no id yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellDraft {
    pub kind: CellKind,
    pub agents: Vec<AgentId>,
    pub reason: CellReason,
    pub round: u32,
}

impl CellDraft {
    fn one(agent: AgentId, reason: CellReason, round: u32) -> Self {
        Self { kind: CellKind::Sequential, agents: vec![agent], reason, round }
    }
}

impl RoomRules<'_> {
    pub(super) fn member(&self, agent: AgentId) -> MemberSettings {
        self.policy.member(agent)
    }

    pub(super) fn contains(&self, agent: AgentId) -> bool {
        self.agents.contains(&agent)
    }

    /// The agents that speak without being named, in joining order.
    fn speakers(&self) -> Vec<AgentId> {
        let speaks = |agent: &AgentId| {
            let member = self.member(*agent);
            !member.aware_only && !self.has_last_word(*agent)
        };
        self.agents.iter().copied().filter(speaks).collect()
    }

    fn interrupters(&self) -> Vec<AgentId> {
        self.speakers().into_iter().filter(|agent| self.member(*agent).interrupt_every_turn).collect()
    }

    /// A room's only agent answers as usual.
    fn has_last_word(&self, agent: AgentId) -> bool {
        self.member(agent).final_response && self.agents.len() > 1
    }

    /// The agents that speak after all others, highest priority first.
    fn last_speakers(&self) -> Vec<AgentId> {
        let mut last: Vec<AgentId> = self.agents.iter().copied().filter(|agent| self.has_last_word(*agent)).collect();
        last.sort_by_key(|agent| -self.member(*agent).priority);
        last
    }

    pub(super) fn moderator(&self) -> Option<AgentId> {
        let chosen = self.policy.moderator.filter(|agent| self.contains(*agent));
        chosen.or_else(|| self.agents.first().copied())
    }

    fn judge(&self) -> Option<AgentId> {
        let chosen = self.policy.judge.filter(|agent| self.contains(*agent));
        chosen.or_else(|| self.last_speakers().first().copied()).or_else(|| self.agents.last().copied())
    }

    /// By priority, highest first; equal ones in the order that the seed decides.
    fn by_priority(&self, mut agents: Vec<AgentId>, seed: u64) -> Vec<AgentId> {
        shuffle(&mut agents, seed);
        agents.sort_by_key(|agent| -self.member(*agent).priority);
        agents
    }
}

/// Returns whether the agents that a text names are the only ones that answer it.
pub(crate) fn names_restrict(policy: &RoomPolicy) -> bool {
    policy.mentions == MentionRule::Only || policy.kind == TurnOrder::MentionOnly
}

/// Plans the answers to a message. `mentions` are the agents that it names, `last_speaker` answered last in this room.
pub(crate) fn first_round(
    rules: RoomRules<'_>,
    mentions: &[AgentId],
    seed: u32,
    last_speaker: Option<AgentId>,
    only_mentioned: bool,
) -> Vec<CellDraft> {
    let mentioned: Vec<AgentId> = rules.agents.iter().copied().filter(|agent| mentions.contains(agent)).collect();
    if only_mentioned && !mentioned.is_empty() {
        return match rules.policy.kind {
            TurnOrder::Concurrent => all_at_once(mentioned, CellReason::Mentioned, 0),
            _ => mentioned.into_iter().map(|agent| CellDraft::one(agent, CellReason::Mentioned, 0)).collect(),
        };
    }
    let others =
        || -> Vec<AgentId> { rules.speakers().into_iter().filter(|agent| !mentioned.contains(agent)).collect() };
    let mentioned_first = mentioned.iter().map(|agent| (*agent, CellReason::Mentioned));
    let mut cells = match rules.policy.kind {
        TurnOrder::InOrder => {
            let rest = others().into_iter().map(|agent| (agent, CellReason::JoiningOrder));
            one_after_another(rules, mentioned_first.chain(rest), 0)
        }
        TurnOrder::Everyone => {
            let rest = rules.by_priority(others(), combined(seed, 0));
            let rest = rest.into_iter().map(|agent| (agent, CellReason::Priority));
            one_after_another(rules, mentioned_first.chain(rest), 0)
        }
        TurnOrder::Concurrent => {
            let all = mentioned.iter().copied().chain(others()).collect();
            all_at_once(all, CellReason::AllAtOnce, 0)
        }
        TurnOrder::MentionOnly => Vec::new(),
        TurnOrder::RoundRobin => {
            let next = after(&rules.speakers(), last_speaker).into_iter().next();
            let next = next.filter(|agent| !mentioned.contains(agent)).map(|agent| (agent, CellReason::RoundRobin));
            one_after_another(rules, mentioned_first.chain(next), 0)
        }
        TurnOrder::Moderator => {
            let moderator = rules.moderator().map(|agent| (agent, CellReason::Moderator));
            let others = mentioned_first.filter(|(agent, _)| Some(*agent) != rules.moderator());
            others.chain(moderator).map(|(agent, reason)| CellDraft::one(agent, reason, 0)).collect()
        }
        TurnOrder::Debate => debate(rules, seed),
    };
    // Without further rounds the last words belong to the plan that everybody sees.
    let speaks_now = !may_have_rounds(rules) || cells.is_empty();
    if speaks_now && !matches!(rules.policy.kind, TurnOrder::Debate | TurnOrder::MentionOnly) {
        let left = runs_left(rules, 0).saturating_sub(rules.last_speakers().len());
        limit(&mut cells, left);
        cells.extend(last_words(rules, 0));
    }
    limit(&mut cells, runs_left(rules, 0));
    cells
}

/// Plans what follows when everything planned has ended: a round in which agents react to each other, then the last
/// words, then nothing.
pub(super) fn next_round(rules: RoomRules<'_>, progress: &mut Progress) -> Vec<CellDraft> {
    let last_speakers =
        if progress.had_last_words || !progress.audience.is_empty() { 0 } else { rules.last_speakers().len() };
    let left = runs_left(rules, progress.runs).saturating_sub(last_speakers);
    let may_go_on = !progress.is_over && may_have_rounds(rules) && progress.round < rules.policy.max_rounds;
    if may_go_on && left > 0 && is_attended(rules, progress) {
        let mut cells = match rules.policy.kind {
            TurnOrder::Moderator => moderated(rules, progress),
            _ => reactions(rules, progress),
        };
        limit(&mut cells, left);
        if !cells.is_empty() {
            progress.next_round();
            return cells;
        }
    }
    progress.is_over = true;
    if progress.had_last_words || last_speakers == 0 || !may_have_rounds(rules) {
        return Vec::new();
    }
    progress.had_last_words = true;
    let mut cells = last_words(rules, progress.round);
    limit(&mut cells, runs_left(rules, progress.runs));
    cells
}

/// Returns whether a further round may start: soon after the person's message, or as far as the room lets its agents go on
/// alone. Counts the rounds without a person.
fn is_attended(rules: RoomRules<'_>, progress: &mut Progress) -> bool {
    let attended = Duration::from_secs(60 * u64::from(rules.policy.attended_minutes));
    if rules.now <= progress.asked_at + attended {
        return true;
    }
    progress.unattended_rounds += 1;
    progress.unattended_rounds <= rules.policy.unattended_rounds
}

/// Returns whether agents may go on after they have answered a message.
pub(super) fn may_have_rounds(rules: RoomRules<'_>) -> bool {
    let RoomPolicy { kind, follow_up, .. } = rules.policy;
    rules.agents.len() > 1
        && match kind {
            TurnOrder::Moderator => true,
            TurnOrder::Debate => false,
            _ => *follow_up,
        }
}

/// Rooms of earlier versions have no limit: all their agents answer once.
fn runs_left(rules: RoomRules<'_>, used: u32) -> usize {
    match rules.policy.kind {
        TurnOrder::InOrder if !rules.policy.follow_up => usize::MAX,
        _ => rules.policy.max_messages.saturating_sub(used) as usize,
    }
}

/// Each agent in a cell of its own, with those that interrupt every turn before all and after each that is heard.
fn one_after_another(
    rules: RoomRules<'_>,
    order: impl Iterator<Item = (AgentId, CellReason)>,
    round: u32,
) -> Vec<CellDraft> {
    let interrupters = rules.interrupters();
    let interrupt = |but: Option<AgentId>| {
        let agents: Vec<AgentId> = interrupters.iter().copied().filter(|agent| Some(*agent) != but).collect();
        let (kind, reason) = (CellKind::Interrupt, CellReason::InterruptsEveryTurn);
        (!agents.is_empty()).then_some(CellDraft { kind, agents, reason, round })
    };
    let mut cells: Vec<CellDraft> = interrupt(None).filter(|_| round == 0).into_iter().collect();
    for (agent, reason) in order {
        if interrupters.contains(&agent) && reason != CellReason::Mentioned {
            continue;
        }
        cells.push(CellDraft::one(agent, reason, round));
        if rules.member(agent).is_heard() {
            cells.extend(interrupt(Some(agent)));
        }
    }
    cells
}

fn all_at_once(agents: Vec<AgentId>, reason: CellReason, round: u32) -> Vec<CellDraft> {
    match agents.len() {
        0 => Vec::new(),
        1 => agents.into_iter().map(|agent| CellDraft::one(agent, reason, round)).collect(),
        _ => vec![CellDraft { kind: CellKind::Concurrent, agents, reason, round }],
    }
}

fn debate(rules: RoomRules<'_>, seed: u32) -> Vec<CellDraft> {
    let judge = rules.judge();
    let debaters: Vec<AgentId> = rules.speakers().into_iter().filter(|agent| Some(*agent) != judge).collect();
    let order = rules.by_priority(debaters, combined(seed, 0));
    let mut cells: Vec<CellDraft> = (0..rules.policy.debate_rounds)
        .flat_map(|round| order.iter().map(move |agent| CellDraft::one(*agent, CellReason::Debate, round)))
        .collect();
    limit(&mut cells, runs_left(rules, 0).saturating_sub(1));
    let last = cells.last().map_or(0, |cell| cell.round);
    cells.extend(judge.map(|agent| CellDraft::one(agent, CellReason::Judge, last)));
    cells
}

fn last_words(rules: RoomRules<'_>, round: u32) -> Vec<CellDraft> {
    rules.last_speakers().into_iter().map(|agent| CellDraft::one(agent, CellReason::FinalResponse, round)).collect()
}

/// A round in which agents react to what was said in the one before.
fn reactions(rules: RoomRules<'_>, progress: &Progress) -> Vec<CellDraft> {
    let round = progress.round + 1;
    if progress.heard.is_empty() {
        return Vec::new();
    }
    // An agent that alone has spoken has nothing to react to.
    let has_news = |agent: &AgentId| progress.heard.iter().any(|heard| heard != agent);
    let is_free = |agent: &AgentId| rules.contains(*agent) && !rules.has_last_word(*agent) && has_news(agent);
    let named: Vec<AgentId> = progress.named.iter().copied().filter(is_free).collect();
    let is_other = |agent: &AgentId| {
        let was_asked = progress.audience.is_empty() || progress.audience.contains(agent);
        was_asked && is_free(agent) && !named.contains(agent)
    };
    let others: Vec<AgentId> = match rules.policy.kind {
        TurnOrder::MentionOnly => Vec::new(),
        _ => rules.speakers().into_iter().filter(is_other).collect(),
    };
    let others = match rules.policy.kind {
        TurnOrder::InOrder => others,
        TurnOrder::RoundRobin => after(&others, progress.heard.last().copied()),
        _ => rules.by_priority(others, combined(progress.seed, u64::from(round))),
    };
    let named_first = named.iter().map(|agent| (*agent, CellReason::Mentioned));
    if rules.policy.kind == TurnOrder::Concurrent {
        return all_at_once(named.iter().copied().chain(others).collect(), CellReason::FollowUp, round);
    }
    let rest = others.into_iter().map(|agent| (agent, CellReason::FollowUp));
    one_after_another(rules, named_first.chain(rest), round)
}

/// The agents that the moderator has named, then the moderator again.
fn moderated(rules: RoomRules<'_>, progress: &Progress) -> Vec<CellDraft> {
    let Some(moderator) = rules.moderator() else { return Vec::new() };
    let round = progress.round + 1;
    let named = progress.named.iter().copied().filter(|agent| *agent != moderator && rules.contains(*agent));
    let mut cells: Vec<CellDraft> =
        named.map(|agent| CellDraft::one(agent, CellReason::NamedByModerator, round)).collect();
    if !cells.is_empty() {
        cells.push(CellDraft::one(moderator, CellReason::Moderator, round));
    }
    cells
}

/// The agents in turn, beginning behind `last`.
fn after(agents: &[AgentId], last: Option<AgentId>) -> Vec<AgentId> {
    let start = agents.iter().position(|agent| Some(*agent) == last).map_or(0, |at| at + 1);
    agents[start..].iter().chain(&agents[..start]).copied().collect()
}

/// Keeps the first `most` runs of a plan.
fn limit(cells: &mut Vec<CellDraft>, most: usize) {
    let mut left = most;
    cells.retain_mut(|cell| {
        cell.agents.truncate(left);
        left -= cell.agents.len();
        !cell.agents.is_empty()
    });
}
