//! Every policy and every setting of a member, in rooms of 2, 5 and 12 agents: who speaks, in which order, and how often.

use super::{
    requests::{agent, get, message_of, post, post_body, runs_of, wait_for_end},
    tape::{finished, members, new_room, speakers},
};
use domain::{
    event::EventType,
    ids::{AgentId, RoomId},
    run::RunStatus,
};
use serde_json::{Value, json};
use testkit::client::{SeenEvent, TestClient};

on_both_databases! {
    server: all_agents_answer_at_once, only_the_named_answer, agents_take_turns, the_moderator_names_who_speaks,
            a_debate_ends_with_its_judge, an_interrupting_agent_speaks_after_everyone_that_is_heard,
            the_final_response_comes_last_and_listeners_are_silent, a_critic_is_read_by_nobody_else,
            rounds_end_at_their_caps, rounds_end_with_the_budget, a_message_ends_the_rounds_of_the_one_before;
}

const SIZES: [usize; 3] = [2, 5, 12];

/// Agents with names that a text can mention: `n0`, `n1` and so on, with the size of the room in front.
async fn named_agents(api: &TestClient, size: usize, what: &str) -> (Vec<AgentId>, Vec<String>) {
    let (mut agents, mut names) = (Vec::with_capacity(size), Vec::with_capacity(size));
    for number in 0..size {
        let name = format!("{what}{size}n{number}");
        agents.push(agent(api, &name, json!({})).await);
        names.push(name);
    }
    (agents, names)
}

async fn ask(api: &TestClient, room: RoomId, text: &str) -> Vec<SeenEvent> {
    post_body(api, room, json!({"text": text})).await.expect_status(202);
    finished(api, room).await
}

/// Settings that let the agents speak in the order given, the first with these settings besides.
fn in_order(all: &[AgentId], first: &Value) -> Value {
    let settings = all.iter().enumerate().map(|(at, agent)| {
        let mut settings = if at == 0 { first.clone() } else { json!({}) };
        settings["priority"] = json!(100 - at);
        (*agent, settings)
    });
    members(settings)
}

/// Every run is completed, and it said what the message asks for.
async fn assert_all_completed(api: &TestClient, journal: &[SeenEvent], text: &str) {
    for event in journal.iter().filter(|event| event.kind == EventType::RunStarted) {
        let run = api.run(event.run_id.unwrap()).await.unwrap();
        assert_eq!((run.status, message_of(api, &run).await.text.as_str()), (RunStatus::Completed, text));
    }
}

async fn all_agents_answer_at_once(api: &TestClient) {
    for size in SIZES {
        let (all, _) = named_agents(api, size, "at").await;
        let room = new_room(api, &all, json!({"kind": "concurrent"})).await;
        let journal = ask(api, room, "!count 20 20").await;
        assert_eq!(speakers(&journal).len(), size);
        let seqs = |kind: EventType| journal.iter().filter(move |event| event.kind == kind).map(|event| event.seq);
        let (last_start, first_end) = (seqs(EventType::RunStarted).max(), seqs(EventType::RunCompleted).min());
        assert!(last_start < first_end, "{size}: all have begun before the first has ended");
        let text: String = (1..=20).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        assert_all_completed(api, &journal, &text).await;
    }
}

async fn only_the_named_answer(api: &TestClient) {
    for size in SIZES {
        let (all, names) = named_agents(api, size, "mo").await;
        let room = new_room(api, &all, json!({"kind": "mention_only"})).await;
        assert!(speakers(&ask(api, room, "anybody?").await).is_empty());
        let text = format!("@{} and @{}\n!count 2", names[size - 1], names[0]);
        assert_eq!(speakers(&ask(api, room, &text).await), [all[0], all[size - 1]], "{size}: in the order they joined");
    }
}

async fn agents_take_turns(api: &TestClient) {
    for size in SIZES {
        let (all, _) = named_agents(api, size, "rr").await;
        let room = new_room(api, &all, json!({"kind": "round_robin"})).await;
        let mut order = Vec::new();
        for _ in 0..=size {
            order = speakers(&ask(api, room, "!count 1").await);
        }
        let expected: Vec<AgentId> = all.iter().chain(&all[..1]).copied().collect();
        assert_eq!(order, expected, "{size}");
    }
}

async fn the_moderator_names_who_speaks(api: &TestClient) {
    for size in SIZES {
        let (all, names) = named_agents(api, size, "md").await;
        // Everyone names everyone; only the moderator is heard in this.
        let named: String = names.iter().rev().map(|name| format!("@{name} ")).collect();
        let script = format!("!script {}", json!([{"text": named}]));
        let policy = json!({"kind": "moderator", "moderator": all[1], "max_rounds": 2, "mentions": "first"});
        let room = new_room(api, &all, policy).await;
        let posted = post_body(api, room, json!({"text": script, "mentions": [all[1]]})).await.expect_status(202);
        assert_eq!(runs_of(&posted).len(), 1);
        let order = speakers(&finished(api, room).await);
        let mut round: Vec<AgentId> = all.iter().rev().copied().filter(|agent| *agent != all[1]).collect();
        round.push(all[1]);
        // In its second turn it is not asked by the message, and names nobody.
        assert_eq!(order, [&[all[1]], &round[..]].concat(), "{size}: in the order of the names");
    }
}

async fn a_debate_ends_with_its_judge(api: &TestClient) {
    for size in SIZES {
        let (all, _) = named_agents(api, size, "db").await;
        let policy =
            json!({"kind": "debate", "debate_rounds": 2, "judge": all[0], "members": in_order(&all, &json!({}))});
        let room = new_room(api, &all, policy).await;
        let journal = ask(api, room, "!count 1").await;
        let expected: Vec<AgentId> = [&all[1..], &all[1..], &all[..1]].concat();
        assert_eq!(speakers(&journal), expected, "{size}");
    }
}

async fn an_interrupting_agent_speaks_after_everyone_that_is_heard(api: &TestClient) {
    for size in SIZES {
        let (all, _) = named_agents(api, size, "in").await;
        let mut settings = in_order(&all, &json!({"interrupt_every_turn": true}));
        // The last is not heard: nobody reacts to it.
        settings[all[size - 1].to_string()]["transparent"] = json!(true);
        let room = new_room(api, &all, json!({"members": settings})).await;
        let mut expected = vec![all[0]];
        for (at, agent) in all.iter().enumerate().skip(1) {
            expected.push(*agent);
            expected.extend((at < size - 1).then_some(all[0]));
        }
        assert_eq!(speakers(&ask(api, room, "!count 1").await), expected, "{size}");
    }
}

async fn the_final_response_comes_last_and_listeners_are_silent(api: &TestClient) {
    for size in SIZES {
        let (all, _) = named_agents(api, size, "fr").await;
        let mut settings = in_order(&all, &json!({"final_response": true}));
        settings[all[size - 1].to_string()]["aware_only"] = json!(true);
        let room = new_room(api, &all, json!({"members": settings})).await;
        let expected: Vec<AgentId> = [&all[1..size - 1], &all[..1]].concat();
        assert_eq!(speakers(&ask(api, room, "!count 1").await), expected, "{size}");
        // It has read everything, and answers when it is named.
        let asked = json!({"text": "!count 2", "mentions": [all[size - 1]]});
        let posted = post_body(api, room, asked).await.expect_status(202);
        let run = wait_for_end(api, runs_of(&posted)[0]).await;
        assert_eq!((run.agent_id, message_of(api, &run).await.text.as_str()), (all[size - 1], "1 2"));
        let context = get(api, &format!("/api/runs/{}/context", run.id)).await.expect_status(200);
        assert_eq!(context["before"].as_array().unwrap().len(), size, "{size}: the message and all answers: {context}");
    }
}

async fn a_critic_is_read_by_nobody_else(api: &TestClient) {
    for size in SIZES {
        let (all, names) = named_agents(api, size, "cr").await;
        let policy = json!({"follow_up": true, "max_rounds": 1, "members": in_order(&all, &json!({"critic": true}))});
        let room = new_room(api, &all, policy).await;
        let journal = ask(api, room, "!count 1").await;
        let is_of_another = |event: &&SeenEvent| event.kind == EventType::RunStarted && event.agent_id != Some(all[0]);
        let last = journal.iter().rfind(is_of_another).unwrap();
        let context = get(api, &format!("/api/runs/{}/context", last.run_id.unwrap())).await.expect_status(200);
        assert!(!context["before"].to_string().contains(&names[0]), "{size}: {context}");
        assert!(!context["after"].to_string().contains(&names[0]), "{size}: {context}");
        // Two agents that are both heard react to each other; a critic alone has nobody who reacts.
        let others = speakers(&journal).iter().filter(|agent| **agent != all[0]).count();
        assert_eq!(others, if size == 2 { 1 } else { 2 * (size - 1) }, "{size}");
    }
}

async fn rounds_end_at_their_caps(api: &TestClient) {
    for size in SIZES {
        let (all, _) = named_agents(api, size, "fu").await;
        for (policy, runs) in [
            (json!({"follow_up": true, "max_rounds": 1}), 2 * size),
            (json!({"follow_up": true, "max_messages": size + 1}), size + 1),
            (json!({"follow_up": true, "max_rounds": 0}), size),
            (json!({"kind": "concurrent", "follow_up": true, "max_rounds": 1}), 2 * size),
        ] {
            let room = new_room(api, &all, policy.clone()).await;
            assert_eq!(speakers(&ask(api, room, "!count 1").await).len(), runs, "{size}: {policy}");
        }
        let room = new_room(api, &all, json!({"follow_up": true})).await;
        assert_eq!(speakers(&ask(api, room, "!call skip").await).len(), size, "{size}: all have skipped");
    }
}

/// Two answers use the budget up. The agents that are planned then are not asked, and no round follows.
async fn rounds_end_with_the_budget(api: &TestClient) {
    for size in SIZES {
        let (all, _) = named_agents(api, size, "bu").await;
        let room = new_room(api, &all, json!({"follow_up": true})).await;
        let budget = json!({"scope": "room", "id": room, "period": "total", "limit_usd": 0.5});
        post(api, "/api/budgets", &budget).await.expect_status(201);
        let journal = ask(api, room, r#"!script [{"text":"dear"},{"usage":{"cost":0.3}}]"#).await;
        let count = |kind: EventType| journal.iter().filter(|event| event.kind == kind).count();
        // In a room of two the budget ends with the first round; the next one finds that out.
        let refused = if size == 2 { 2 } else { size - 2 };
        assert_eq!((count(EventType::RunCompleted), count(EventType::RunFailed)), (2, refused), "{size}");
    }
}

async fn a_message_ends_the_rounds_of_the_one_before(api: &TestClient) {
    for size in SIZES {
        let (all, _) = named_agents(api, size, "en").await;
        let policy = json!({"follow_up": true, "max_rounds": 1, "when_busy": "enqueue"});
        let room = new_room(api, &all, policy).await;
        post_body(api, room, json!({"text": "!count 5 20"})).await.expect_status(202);
        let journal = ask(api, room, "!count 1").await;
        // The first message is answered once by each, the second by each and in one round.
        assert_eq!(speakers(&journal).len(), 3 * size, "{size}");
    }
}
