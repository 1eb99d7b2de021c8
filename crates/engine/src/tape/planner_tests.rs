//! Tables: who answers a message under each policy. Agents are letters; `a:3` has a priority, `b!` interrupts every turn, `c~` is
//! transparent, `d.` has the last word, `e?` is a critic and `f-` speaks only when named. In a plan `[ab]` is a concurrent cell and
//! `<a>` an interrupt cell.

use super::planner::{RoomRules, first_round, names_restrict};
use domain::{
    ids::AgentId,
    room::{MemberSettings, MentionRule, RoomPolicy, TurnOrder},
    tape::CellKind,
    time::Timestamp,
};
use std::collections::BTreeSet;

pub(super) fn agent(letter: char) -> AgentId {
    format!("{:032x}", u32::from(letter)).parse().unwrap()
}

pub(super) fn letter(agent: AgentId) -> char {
    char::from_u32(u32::try_from(agent.0.as_u128()).unwrap()).unwrap()
}

/// A room of these agents.
pub(super) fn room(kind: TurnOrder, members: &str) -> (RoomPolicy, Vec<AgentId>) {
    let (mut policy, mut agents) = (RoomPolicy { kind, ..RoomPolicy::default() }, Vec::new());
    for word in members.split_whitespace() {
        let id = agent(word.chars().next().unwrap());
        let mut settings = MemberSettings::default();
        let (flags, priority) = word.split_once(':').unwrap_or((word, "0"));
        settings.priority = priority.parse().unwrap();
        for flag in flags.chars().skip(1) {
            match flag {
                '!' => settings.interrupt_every_turn = true,
                '~' => settings.transparent = true,
                '.' => settings.final_response = true,
                '?' => settings.critic = true,
                '-' => settings.aware_only = true,
                other => panic!("{other}"),
            }
        }
        policy.members.insert(id, settings);
        agents.push(id);
    }
    (policy, agents)
}

pub(super) fn written<'a>(cells: impl IntoIterator<Item = (CellKind, &'a [AgentId])>) -> String {
    let cell = |(kind, agents): (CellKind, &[AgentId])| {
        let names: String = agents.iter().copied().map(letter).collect();
        match kind {
            CellKind::Sequential => names,
            CellKind::Concurrent => format!("[{names}]"),
            CellKind::Interrupt => format!("<{names}>"),
        }
    };
    cells.into_iter().map(cell).collect::<Vec<_>>().join(" ")
}

fn plan(policy: &RoomPolicy, agents: &[AgentId], mentions: &str, last: Option<char>) -> String {
    let mentions: Vec<AgentId> = mentions.chars().map(agent).collect();
    let rules = RoomRules { policy, agents, now: Timestamp::default() };
    let cells = first_round(rules, &mentions, policy.seed, last.map(agent), names_restrict(policy));
    written(cells.iter().map(|cell| (cell.kind, &cell.agents[..])))
}

#[test]
fn each_policy_plans_the_answers_to_a_message() {
    use TurnOrder::{Concurrent, Debate, Everyone, InOrder, MentionOnly, Moderator, RoundRobin};
    let table: &[(TurnOrder, &str, &str, &str)] = &[
        // As in rooms of earlier versions.
        (InOrder, "a", "", "a"),
        (InOrder, "a b c", "", "a b c"),
        (InOrder, "a b c", "c", "c"),
        (InOrder, "a b c", "ca", "a c"),
        (InOrder, "a b:9 c", "", "a b c"),
        (InOrder, "a b- c", "", "a c"),
        (InOrder, "a b- c", "b", "b"),
        (InOrder, "a. b c", "", "b c a"),
        (InOrder, "a. ", "", "a"),
        (InOrder, "a b! c", "", "<b> a <b> c <b>"),
        (InOrder, "", "", ""),
        // By priority, negative ones last.
        (Everyone, "a", "", "a"),
        (Everyone, "a:1 b:2 c:3", "", "c b a"),
        (Everyone, "a:-1 b:2 c", "", "b c a"),
        (Everyone, "a:-1 b:-2", "", "a b"),
        (Everyone, "a:1 b:2 c:3", "a", "a"),
        (Everyone, "a:1 b:2 c:3", "ab", "a b"),
        (Everyone, "a:1 b- c:3", "", "c a"),
        (Everyone, "a:1 b- c:3", "b", "b"),
        (Everyone, "a- b-", "", ""),
        // Those that interrupt come first, and after each that is heard.
        (Everyone, "a:2 b! c:1", "", "<b> a <b> c <b>"),
        (Everyone, "a:2 b! c!:1", "", "<bc> a <bc>"),
        (Everyone, "a~:2 b! c:1", "", "<b> a c <b>"),
        (Everyone, "a?:2 b! c:1", "", "<b> a c <b>"),
        (Everyone, "a! b!", "", "<ab>"),
        (Everyone, "a!", "", "<a>"),
        (Everyone, "a:2 b!- c:1", "", "a c"),
        // The last word.
        (Everyone, "a.:9 b:2 c:1", "", "b c a"),
        (Everyone, "a.:1 b.:2 c", "", "c b a"),
        (Everyone, "a.:1 b.", "", "a b"),
        (Everyone, "a- b.", "", "b"),
        (Everyone, "a.", "", "a"),
        (Everyone, "a. b:1", "b", "b"),
        (Everyone, "a. b! c", "", "<b> c <b> a"),
        // All at once.
        (Concurrent, "a", "", "a"),
        (Concurrent, "a b c", "", "[abc]"),
        (Concurrent, "a b c", "bc", "[bc]"),
        (Concurrent, "a b c", "b", "b"),
        (Concurrent, "a b- c", "", "[ac]"),
        (Concurrent, "a b. c", "", "[ac] b"),
        (Concurrent, "a b! c", "", "[abc]"),
        // Only who is named.
        (MentionOnly, "a b c", "", ""),
        (MentionOnly, "a b c", "cb", "b c"),
        (MentionOnly, "a b- c", "b", "b"),
        (MentionOnly, "a", "", ""),
        // The first of a round, as nobody has spoken.
        (RoundRobin, "a b c", "", "a"),
        (RoundRobin, "a- b c", "", "b"),
        (RoundRobin, "a b c", "c", "c"),
        (RoundRobin, "a b! c", "", "<b> a <b>"),
        // The moderator names the others.
        (Moderator, "a b c", "", "a"),
        (Moderator, "a b c", "b", "b"),
        (Moderator, "a", "", "a"),
        // Two rounds, then the judge.
        (Debate, "a:2 b:1 c", "", "a b a b c"),
        (Debate, "a. b:2 c:1", "", "b c b c a"),
        (Debate, "a:2 b- c:1 d", "", "a c a c d"),
        (Debate, "a b c", "b", "b"),
        (Debate, "a", "", "a"),
    ];
    for (kind, members, mentions, expected) in table {
        let (policy, agents) = room(*kind, members);
        assert_eq!(plan(&policy, &agents, mentions, None), *expected, "{kind:?} {members:?} @{mentions}");
    }
}

#[test]
fn mentions_may_come_first() {
    use TurnOrder::{Concurrent, Everyone, InOrder, Moderator, RoundRobin};
    for (kind, members, mentions, expected) in [
        (Everyone, "a:3 b:2 c:1", "c", "c a b"),
        (Everyone, "a:3 b:2 c:1", "cb", "b c a"),
        (Everyone, "a:3 b! c:1", "c", "<b> c <b> a <b>"),
        (Everyone, "a:3 b! c:1", "b", "<b> b a <b> c <b>"),
        (Everyone, "a:3 b- c:1", "b", "b a c"),
        (InOrder, "a b c", "c", "c a b"),
        (Concurrent, "a b c", "c", "[cab]"),
        (RoundRobin, "a b c", "c", "c a"),
        (RoundRobin, "a b c", "a", "a"),
        (Moderator, "a b c", "c", "c a"),
        (Moderator, "a b c", "a", "a"),
    ] {
        let (policy, agents) = room(kind, members);
        let policy = RoomPolicy { mentions: MentionRule::First, ..policy };
        assert_eq!(plan(&policy, &agents, mentions, None), expected, "{kind:?} {members:?} @{mentions}");
    }
}

#[test]
fn agents_take_turns() {
    let (policy, agents) = room(TurnOrder::RoundRobin, "a b- c d");
    for (last, next) in [(None, "a"), (Some('a'), "c"), (Some('c'), "d"), (Some('d'), "a"), (Some('x'), "a")] {
        assert_eq!(plan(&policy, &agents, "", last), next, "after {last:?}");
    }
}

#[test]
fn the_policy_names_moderator_and_judge() {
    let (mut policy, agents) = room(TurnOrder::Moderator, "a b c");
    policy.moderator = Some(agent('b'));
    assert_eq!(plan(&policy, &agents, "", None), "b");
    policy.moderator = Some(agent('x'));
    assert_eq!(plan(&policy, &agents, "", None), "a", "the moderator has left");
    let (mut policy, agents) = room(TurnOrder::Debate, "a:2 b c:1");
    (policy.judge, policy.debate_rounds) = (Some(agent('b')), 3);
    assert_eq!(plan(&policy, &agents, "", None), "a c a c a c b");
    policy.max_messages = 4;
    assert_eq!(plan(&policy, &agents, "", None), "a c a b", "the judge speaks in any case");
}

#[test]
fn plans_are_limited_except_in_rooms_of_earlier_versions() {
    let all: String = ('A'..='Z').chain('a'..='n').map(|letter| format!("{letter} ")).collect();
    for (kind, most) in [(TurnOrder::InOrder, 40), (TurnOrder::Everyone, 30), (TurnOrder::Concurrent, 30)] {
        let (policy, agents) = room(kind, &all);
        let rules = RoomRules { policy: &policy, agents: &agents, now: Timestamp::default() };
        let cells = first_round(rules, &[], 1, None, true);
        assert_eq!(cells.iter().map(|cell| cell.agents.len()).sum::<usize>(), most, "{kind:?}");
    }
    let (mut policy, agents) = room(TurnOrder::Everyone, "a:3 b:2 c. d:1");
    policy.max_messages = 2;
    assert_eq!(plan(&policy, &agents, "", None), "a c", "the last word is kept");
}

#[test]
fn the_same_seed_gives_the_same_order_and_others_give_others() {
    let (mut policy, agents) = room(TurnOrder::Everyone, "a b c d e f:1");
    let mut orders = BTreeSet::new();
    for seed in 0..200 {
        policy.seed = seed;
        let order = plan(&policy, &agents, "", None);
        assert_eq!(order, plan(&policy, &agents, "", None));
        assert!(order.starts_with('f'), "{order}");
        let mut letters: Vec<char> = order.chars().filter(|c| c.is_alphabetic()).collect();
        letters.sort_unstable();
        assert_eq!(letters.iter().collect::<String>(), "abcdef");
        orders.insert(order);
    }
    assert!(orders.len() > 60, "only {} orders", orders.len());
}

/// Every room of up to four agents with every single flag, under every policy: nobody is twice in a cell, only members speak,
/// and those that only listen are silent.
#[test]
fn every_small_room_has_a_valid_plan() {
    use TurnOrder::{Concurrent, Debate, Everyone, InOrder, MentionOnly, Moderator, RoundRobin};
    let mut cases = 0;
    for kind in [InOrder, Everyone, Concurrent, MentionOnly, RoundRobin, Moderator, Debate] {
        for size in 1..=4_usize {
            for flags in 0..6_usize.pow(u32::try_from(size).unwrap()) {
                let flag =
                    |at: usize| ["", "!", "~", ".", "?", "-"][flags / 6_usize.pow(u32::try_from(at).unwrap()) % 6];
                let members: Vec<String> =
                    ('a'..).take(size).enumerate().map(|(at, name)| format!("{name}{}", flag(at))).collect();
                let (policy, agents) = room(kind, &members.join(" "));
                let cells = first_round(
                    RoomRules { policy: &policy, agents: &agents, now: Timestamp::default() },
                    &[],
                    7,
                    None,
                    true,
                );
                for cell in &cells {
                    let distinct: BTreeSet<_> = cell.agents.iter().collect();
                    assert_eq!(distinct.len(), cell.agents.len(), "{kind:?} {members:?}");
                    assert!(cell.agents.iter().all(|agent| agents.contains(agent)));
                    assert!(cell.kind != CellKind::Sequential || cell.agents.len() == 1);
                    let is_silent = |agent: &&AgentId| policy.member(**agent).aware_only;
                    let has_role = matches!(kind, Moderator | Debate);
                    assert!(has_role || !cell.agents.iter().any(|agent| is_silent(&agent)), "{kind:?} {members:?}");
                }
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 7 * (6 + 36 + 216 + 1296));
}
