//! What follows the end of a run and a person's command; whole conversations with random agents.

use super::{
    machine::{EndedTurn, PlannedAnswers, PlannedCell, TapeEffect, TapeMachine, TapeRefusal},
    planner::{RoomRules, first_round, names_restrict},
    planner_tests::{agent, letter, room, written},
};
use domain::{
    ids::{AgentId, MessageId, RunId},
    room::{MemberSettings, RoomPolicy, TurnOrder},
    run::RunStatus,
    time::Timestamp,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

/// A room whose agents answer as the test says.
struct Conversation {
    policy: RoomPolicy,
    agents: Vec<AgentId>,
    now: Timestamp,
    machine: TapeMachine,
    running: Vec<(RunId, AgentId)>,
    /// The cells that were queued.
    queued: Vec<PlannedCell>,
}

impl Conversation {
    fn new(kind: TurnOrder, members: &str) -> Self {
        let (policy, agents) = room(kind, members);
        Self::of(policy, agents)
    }

    fn of(policy: RoomPolicy, agents: Vec<AgentId>) -> Self {
        Self {
            policy,
            agents,
            now: Timestamp::default(),
            machine: TapeMachine::default(),
            running: Vec::new(),
            queued: Vec::new(),
        }
    }

    fn post(&mut self, mentions: &str, replaces: bool) -> MessageId {
        let message_id = MessageId::generate();
        let mentions: Vec<AgentId> = mentions.chars().map(agent).collect();
        let rules = RoomRules { policy: &self.policy, agents: &self.agents, now: self.now };
        let only = names_restrict(&self.policy);
        let cells = first_round(rules, &mentions, self.policy.seed, None, only);
        let audience = if only { mentions } else { Vec::new() };
        let effects = self.machine.post(PlannedAnswers { message_id, seed: 1, audience, cells }, replaces, rules);
        if replaces {
            self.running.clear();
        }
        self.carry_out(effects);
        message_id
    }

    fn carry_out(&mut self, effects: Vec<TapeEffect>) {
        for effect in effects {
            if let TapeEffect::QueueCell(cell) = effect {
                assert!(self.running.is_empty(), "a cell waits for the one before");
                self.running = cell.agents.iter().map(|agent| (RunId::generate(), *agent)).collect();
                self.machine.cell_queued(self.running.iter().map(|(run, _)| *run).collect());
                self.queued.push(cell);
            }
        }
        // Stored and read again at every change.
        self.machine = serde_json::from_value(serde_json::to_value(&self.machine).unwrap()).unwrap();
    }

    /// The agent's run ends. `said` names other agents; `None` skips.
    fn end(&mut self, who: char, said: Option<&str>) {
        self.end_as(who, RunStatus::Completed, said, false);
    }

    fn end_as(&mut self, who: char, status: RunStatus, said: Option<&str>, ends_round: bool) {
        let at = self.running.iter().position(|(_, running)| *running == agent(who));
        let (run, who) = self.running.remove(at.unwrap_or_else(|| panic!("{who} does not run")));
        let named = said.unwrap_or_default().chars().map(agent).collect();
        let turn =
            EndedTurn { run, agent: who, status, has_spoken: said.is_some(), named, ends_round, out_of_budget: false };
        let rules = RoomRules { policy: &self.policy, agents: &self.agents, now: self.now };
        let effects = self.machine.run_ended(&turn, rules);
        self.carry_out(effects);
    }

    fn running(&self) -> String {
        self.running.iter().map(|(_, running)| letter(*running)).collect()
    }

    fn planned(&self) -> String {
        written(self.machine.planned().map(|cell| (cell.kind, &cell.agents[..])))
    }

    fn is_done(&self) -> bool {
        self.machine.is_done(RoomRules { policy: &self.policy, agents: &self.agents, now: self.now })
    }
}

#[test]
fn the_next_cell_is_queued_when_the_last_run_of_a_cell_has_ended() {
    let mut room = Conversation::new(TurnOrder::Concurrent, "a b c.");
    room.post("", false);
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("ab", "c"));
    room.end_as('b', RunStatus::Failed, None, false);
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("a", "c"), "a is still answering");
    room.end('a', Some(""));
    assert_eq!(room.running(), "c");
    assert!(room.is_done(), "the queue has the rest");
}

#[test]
fn a_stop_ends_the_plan_and_other_runs_do_not_matter() {
    for status in [RunStatus::Cancelled, RunStatus::Interrupted] {
        let mut room = Conversation::new(TurnOrder::Everyone, "a:2 b:1");
        room.post("", false);
        let before = room.machine.clone();
        let other = EndedTurn {
            run: RunId::generate(),
            agent: agent('a'),
            status,
            has_spoken: false,
            named: Vec::new(),
            ends_round: false,
            out_of_budget: false,
        };
        let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::default() };
        assert_eq!(room.machine.run_ended(&other, rules), []);
        assert_eq!(room.machine, before, "a run of another post");
        room.end_as('a', status, None, false);
        assert_eq!((room.running().as_str(), room.planned().as_str()), ("", ""));
        assert!(room.is_done());
    }
}

#[test]
fn an_interrupt_cell_is_left_out_if_nothing_was_said() {
    let mut room = Conversation::new(TurnOrder::Everyone, "a:2 b! c:1");
    room.post("", false);
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("b", "a <b> c <b>"));
    room.end('b', None);
    room.end('a', None);
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("c", "<b>"), "a has skipped");
    room.end('c', Some(""));
    assert_eq!(room.running(), "b");
}

#[test]
fn agents_react_to_each_other_until_all_skip() {
    let mut room = Conversation::new(TurnOrder::Everyone, "a:3 b:2 c:1");
    room.policy.follow_up = true;
    room.post("", false);
    for who in ['a', 'b', 'c'] {
        room.end(who, Some(""));
    }
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("a", "b c"), "the first follow-up round");
    room.end('a', None);
    room.end('b', Some("c"));
    room.end('c', None);
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("c", "a"), "c was named; b alone has spoken");
    room.end('c', None);
    room.end('a', None);
    assert!(room.running.is_empty() && room.is_done(), "all have skipped");
}

#[test]
fn nobody_reacts_to_a_transparent_agent_or_a_critic() {
    for members in ["a~ b", "a? b"] {
        let mut room = Conversation::new(TurnOrder::Everyone, members);
        room.policy.follow_up = true;
        room.policy.members.entry(agent('a')).or_default().priority = 1;
        room.post("", false);
        room.end('a', Some("b"));
        room.end('b', None);
        assert!(room.running.is_empty(), "{members}");
    }
}

#[test]
fn rounds_and_messages_are_limited() {
    for (rounds, messages, expected) in [(2, 30, 6), (5, 4, 4), (0, 30, 2), (5, 30, 12)] {
        let mut room = Conversation::new(TurnOrder::Everyone, "a b");
        (room.policy.follow_up, room.policy.max_rounds, room.policy.max_messages) = (true, rounds, messages);
        room.post("", false);
        while let Some((_, running)) = room.running.first().copied() {
            room.end(letter(running), Some(""));
        }
        assert_eq!(room.queued.len(), expected, "{rounds} rounds, {messages} messages");
        assert!(room.is_done());
    }
}

#[test]
fn a_budget_that_is_used_up_ends_the_rounds_but_not_the_plan() {
    let mut room = Conversation::new(TurnOrder::Everyone, "a:2 b:1 c");
    room.policy.follow_up = true;
    room.post("", false);
    let (run, out) = (room.running[0].0, agent('a'));
    let turn = EndedTurn {
        run,
        agent: out,
        status: RunStatus::Failed,
        has_spoken: false,
        named: Vec::new(),
        ends_round: false,
        out_of_budget: true,
    };
    room.running.clear();
    let effects =
        room.machine.run_ended(&turn, RoomRules { policy: &room.policy, agents: &room.agents, now: room.now });
    room.carry_out(effects);
    room.end('b', Some(""));
    room.end('c', Some(""));
    assert!(room.running.is_empty() && room.is_done(), "b and c have answered, and do not go on");
}

#[test]
fn agents_go_on_without_people_only_if_the_room_says_so() {
    for (rounds, expected) in [(0, 2), (2, 6)] {
        let mut room = Conversation::new(TurnOrder::Everyone, "a b");
        (room.policy.follow_up, room.policy.unattended_rounds) = (true, rounds);
        room.post("", false);
        room.now = Timestamp::from_millis(11 * 60 * 1000);
        while let Some((_, running)) = room.running.first().copied() {
            room.end(letter(running), Some(""));
        }
        assert_eq!(room.queued.len(), expected, "nobody has spoken for eleven minutes");
    }
}

#[test]
fn the_last_word_comes_after_all_rounds() {
    let mut room = Conversation::new(TurnOrder::Everyone, "a:2 b:1 c.");
    (room.policy.follow_up, room.policy.max_rounds) = (true, 1);
    room.post("", false);
    for who in ['a', 'b', 'a', 'b'] {
        room.end(who, Some(""));
    }
    assert_eq!(room.running(), "c");
    room.end('c', Some("ab"));
    assert!(room.running.is_empty() && room.is_done());
}

#[test]
fn an_agent_can_end_the_round() {
    let mut room = Conversation::new(TurnOrder::Everyone, "a:3 b:2 c.");
    room.policy.follow_up = true;
    room.post("", false);
    room.end_as('a', RunStatus::Completed, Some(""), true);
    assert_eq!(room.running(), "c", "only the last word is left");
    room.end('c', Some(""));
    assert!(room.running.is_empty() && room.is_done());
}

#[test]
fn the_moderator_names_who_speaks() {
    let mut room = Conversation::new(TurnOrder::Moderator, "m a b");
    room.post("", false);
    room.end('m', Some("ba"));
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("b", "a m"));
    room.end('b', Some("a"));
    room.end('a', Some("b"));
    assert_eq!(room.running(), "m");
    room.end('m', Some(""));
    assert!(room.running.is_empty() && room.is_done(), "nobody was named");
}

#[test]
fn a_named_agent_of_a_mention_room_reacts_if_the_room_says_so() {
    for follow_up in [false, true] {
        let mut room = Conversation::new(TurnOrder::MentionOnly, "a b c");
        room.policy.follow_up = follow_up;
        room.post("a", false);
        room.end('a', Some("c"));
        assert_eq!(room.running(), if follow_up { "c" } else { "" });
    }
}

#[test]
fn a_new_message_replaces_the_plan_or_waits_behind_it() {
    let mut room = Conversation::new(TurnOrder::Everyone, "a:2 b:1");
    room.policy.follow_up = true;
    let first = room.post("", false);
    let second = room.post("", false);
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("a", "b a b"));
    room.end('a', Some(""));
    room.end('b', Some(""));
    assert_eq!(room.running(), "a", "a person has spoken: no follow-up round for the first message");
    assert_eq!(room.queued.iter().map(|cell| cell.message_id).collect::<Vec<_>>(), [first, first, second]);
    let third = room.post("b", true);
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("b", ""));
    assert_eq!(room.queued.last().unwrap().message_id, third);
}

#[test]
fn agents_that_have_left_are_left_out() {
    let mut room = Conversation::new(TurnOrder::Everyone, "a:3 b:2 c:1");
    room.post("", false);
    room.agents.retain(|id| *id != agent('b'));
    room.end('a', Some(""));
    assert_eq!(room.running(), "c");
}

#[test]
fn a_paused_room_starts_nothing_until_it_is_resumed_or_makes_a_step() {
    let mut room = Conversation::new(TurnOrder::Everyone, "a:3 b:2 c:1");
    room.machine.pause();
    room.post("", false);
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("", "a b c"));
    let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::default() };
    let effects = room.machine.step(rules).unwrap();
    room.carry_out(effects);
    assert_eq!(room.running(), "a");
    let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::default() };
    assert_eq!(room.machine.step(rules).unwrap(), [], "a still answers");
    room.end('a', Some(""));
    assert_eq!((room.running().as_str(), room.planned().as_str()), ("", "b c"));
    assert!(!room.is_done(), "a paused room keeps its row");
    let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::default() };
    let effects = room.machine.resume(rules);
    room.carry_out(effects);
    assert_eq!(room.running(), "b");
    let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::default() };
    assert_eq!(room.machine.step(rules), Err(TapeRefusal::NotPaused));
}

#[test]
fn planned_cells_can_be_skipped_inserted_and_reordered() {
    let mut room = Conversation::new(TurnOrder::Everyone, "a:4 b:3 c:2 d:1");
    let message = room.post("", false);
    let names = |room: &Conversation| -> Vec<String> { room.machine.planned().map(|cell| cell.shown().id).collect() };
    assert_eq!(names(&room), ["p2", "p3", "p4"]);
    room.machine.reorder(&["p4".into(), "p2".into(), "p3".into()]).unwrap();
    assert_eq!(room.planned(), "d b c");
    for wrong in [&["p4", "p2"][..], &["p4", "p2", "p2"], &["p4", "p2", "p3", "p3"]] {
        let wrong: Vec<String> = wrong.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(room.machine.reorder(&wrong), Err(TapeRefusal::NotAllCells));
    }
    assert_eq!(room.machine.reorder(&["p1".into()]), Err(TapeRefusal::NoSuchCell("p1".into())));
    room.machine.skip(Some("p2")).unwrap();
    room.machine.skip(None).unwrap();
    assert_eq!(room.planned(), "c");
    assert_eq!(room.machine.skip(Some("p2")), Err(TapeRefusal::NoSuchCell("p2".into())));
    let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::default() };
    assert_eq!(room.machine.insert(message, agent('d'), Some(1), rules), Ok(Vec::new()));
    assert_eq!(room.machine.insert(message, agent('b'), None, rules), Ok(Vec::new()));
    assert_eq!(room.machine.insert(message, agent('b'), Some(4), rules), Err(TapeRefusal::NoSuchPosition(3)));
    assert_eq!(room.planned(), "b c d");
    let skipped = room.machine.skip_current(None).unwrap();
    assert_eq!(skipped, [room.running[0].0]);
    room.end_as('a', RunStatus::Cancelled, None, false);
    assert_eq!(room.running(), "b", "the plan goes on behind a skipped cell");
    room.machine.clear();
    assert_eq!(room.machine.skip(None), Err(TapeRefusal::NothingPlanned));
}

#[test]
fn stored_names_do_not_change() {
    let (run, message, id) = (RunId::generate(), MessageId::generate(), agent('a'));
    // As an earlier version stored it.
    let old = json!({"running": [run], "planned": [{"message_id": message, "agents": [id]}]});
    let mut machine: TapeMachine = serde_json::from_value(old).unwrap();
    let (policy, agents) = (RoomPolicy::default(), vec![id]);
    let rules = RoomRules { policy: &policy, agents: &agents, now: Timestamp::default() };
    let turn = EndedTurn {
        run,
        agent: id,
        status: RunStatus::Completed,
        has_spoken: true,
        named: Vec::new(),
        ends_round: false,
        out_of_budget: false,
    };
    let effects = machine.run_ended(&turn, rules);
    let [TapeEffect::QueueCell(cell)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((cell.message_id, &cell.agents), (message, &agents));
    let mut room = Conversation::new(TurnOrder::Everyone, "a:2 b:1");
    let message = room.post("", false);
    let (run, a, b) = (room.running[0].0, agent('a'), agent('b'));
    assert_eq!(
        serde_json::to_value(&room.machine).unwrap(),
        json!({
            "running": [run],
            "planned": [{"message_id": message, "agents": [b], "id": 2, "kind": "sequential", "reason": "priority", "round": 0}],
            "current": {"message_id": message, "agents": [a], "id": 1, "kind": "sequential", "reason": "priority", "round": 0},
            "progress": {
                "message_id": message, "seed": 1, "audience": [], "asked_at": Timestamp::default(), "unattended_rounds": 0, "round": 0, "runs": 1, "heard": [], "named": [],
                "was_heard": false, "had_last_words": false, "is_over": false,
            },
            "cells": 2,
        })
    );
}

const KINDS: [TurnOrder; 7] = [
    TurnOrder::InOrder,
    TurnOrder::Everyone,
    TurnOrder::Concurrent,
    TurnOrder::MentionOnly,
    TurnOrder::RoundRobin,
    TurnOrder::Moderator,
    TurnOrder::Debate,
];

fn any_member() -> impl Strategy<Value = MemberSettings> {
    (-2..3_i32, any::<[bool; 5]>(), 0..3_u8).prop_map(|(priority, flags, some)| {
        // Most agents have few flags.
        let [interrupt_every_turn, transparent, final_response, critic, aware_only] =
            flags.map(|flag| flag && some == 0);
        MemberSettings {
            priority,
            interrupt_every_turn,
            transparent,
            final_response,
            critic,
            aware_only,
            ..MemberSettings::default()
        }
    })
}

fn any_room() -> impl Strategy<Value = (RoomPolicy, Vec<AgentId>)> {
    let numbers = (0..4_u32, 1..20_u32, 1..4_u32, any::<u32>());
    (0..KINDS.len(), any::<bool>(), numbers, prop::collection::vec(any_member(), 1..7)).prop_map(
        |(kind, follow_up, (max_rounds, max_messages, debate_rounds, seed), members)| {
            let agents: Vec<AgentId> = ('a'..).take(members.len()).map(agent).collect();
            let members = agents.iter().copied().zip(members).collect();
            let kind = KINDS[kind];
            let policy = RoomPolicy {
                kind,
                follow_up,
                max_rounds,
                max_messages,
                debate_rounds,
                seed,
                members,
                ..RoomPolicy::default()
            };
            (policy, agents)
        },
    )
}

/// What a run does: it speaks, skips or fails, and may name others or end the round.
fn any_turn() -> impl Strategy<Value = (u8, Vec<u8>, bool)> {
    (0..8_u8, prop::collection::vec(0..7_u8, 0..3), prop::bool::weighted(0.02))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every conversation ends, within the caps, and nobody is twice in a cell.
    #[test]
    fn every_conversation_ends_within_its_caps(
        (policy, agents) in any_room(),
        mentioned in prop::collection::vec(0..7_u8, 0..3),
        turns in prop::collection::vec(any_turn(), 1..40),
    ) {
        let mut room = Conversation::of(policy.clone(), agents.clone());
        let name = |number: &u8| char::from(b'a' + number);
        room.post(&mentioned.iter().map(name).collect::<String>(), false);
        let mut runs = room.running.len();
        for (kind, named, ends_round) in turns.iter().cycle() {
            let Some((_, running)) = room.running.first().copied() else { break };
            let named: String = named.iter().map(name).filter(|name| agents.contains(&agent(*name))).collect();
            let before = room.queued.len();
            match kind {
                0 => room.end_as(letter(running), RunStatus::Failed, None, false),
                1 | 2 => room.end(letter(running), None),
                _ => room.end_as(letter(running), RunStatus::Completed, Some(&named), *ends_round),
            }
            runs += room.queued[before..].iter().map(|cell| cell.agents.len()).sum::<usize>();
            prop_assert!(runs <= 1000, "it does not end");
        }
        prop_assert!(room.running.is_empty() && room.planned().is_empty() && room.is_done());
        let has_cap = policy.kind != TurnOrder::InOrder || policy.follow_up;
        // Mentioned agents answer in any case.
        let most = if has_cap { (policy.max_messages as usize).max(mentioned.len()) } else { agents.len() * agents.len() + agents.len() };
        prop_assert!(runs <= most, "{runs} runs, at most {most}");
        for cell in &room.queued {
            let distinct: BTreeSet<_> = cell.agents.iter().collect();
            prop_assert_eq!(distinct.len(), cell.agents.len());
            prop_assert!(policy.kind == TurnOrder::Debate || cell.round <= policy.max_rounds);
        }
    }

    /// Whatever happens, a paused room queues nothing; resumed, it continues where it was.
    #[test]
    fn a_paused_room_queues_nothing((policy, agents) in any_room(), pause_at in 0..6_usize, posts in 1..4_usize) {
        let mut room = Conversation::of(policy, agents);
        room.post("", false);
        for _ in 0..pause_at {
            let Some((_, running)) = room.running.first().copied() else { break };
            room.end(letter(running), Some(""));
        }
        room.machine.pause();
        let queued = room.queued.len();
        while let Some((_, running)) = room.running.first().copied() {
            room.end(letter(running), Some(""));
        }
        for post in 0..posts {
            room.post("", post % 2 == 0);
        }
        prop_assert_eq!(room.queued.len(), queued);
        let waits = !room.planned().is_empty();
        let rules = RoomRules { policy: &room.policy, agents: &room.agents, now: Timestamp::default() };
        let effects = room.machine.resume(rules);
        room.carry_out(effects);
        prop_assert_eq!(!room.running.is_empty(), waits);
    }

    /// The order depends on nothing but the room and the seed.
    #[test]
    fn the_same_seed_gives_the_same_conversation((policy, agents) in any_room()) {
        let orders = [(); 2].map(|()| {
            let mut room = Conversation::of(policy.clone(), agents.clone());
            room.post("", false);
            while let Some((_, running)) = room.running.first().copied() {
                room.end(letter(running), Some(""));
            }
            written(room.queued.iter().map(|cell| (cell.kind, &cell.agents[..])))
        });
        prop_assert_eq!(&orders[0], &orders[1]);
    }
}
