//! The tape: who speaks in a room of several agents, and what people change about it.

use super::requests::{agent, data, get, head, journal, post, post_body, response_to, runs_of, wait_for_end, within};
use domain::{
    event::EventType,
    ids::{AgentId, RoomId, RunId},
    run::RunStatus,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use testkit::client::{SeenEvent, TestClient};

on_both_databases! {
    server: a_new_room_lets_everyone_answer_by_priority, agents_of_a_concurrent_cell_answer_at_the_same_time,
            a_paused_room_starts_nothing, a_planned_cell_can_be_skipped_moved_and_inserted, agents_react_to_each_other_up_to_the_caps,
            a_policy_changes_while_the_room_lives, a_message_can_be_posted_without_a_run_and_a_run_started_without_a_message,
            a_room_with_one_agent_has_no_plan, cancelling_a_room_ends_its_plan, agents_take_turns_and_a_judge_speaks_last,
            the_context_of_a_run_can_be_read_back, waiting_messages_are_reordered, agents_skip_whisper_and_end_the_round, a_plan_does_not_grow_without_limit;
}

pub async fn agents(api: &TestClient, count: usize) -> Vec<AgentId> {
    let mut agents = Vec::with_capacity(count);
    for number in 0..count {
        agents.push(agent(api, &format!("agent {number}"), json!({})).await);
    }
    agents
}

/// A room with the defaults of today, and these changes.
pub async fn new_room(api: &TestClient, agents: &[AgentId], policy: Value) -> RoomId {
    api.create_room_with("A room", agents, policy).await.unwrap().id
}

pub async fn tape(api: &TestClient, room: RoomId) -> Value {
    get(api, &format!("/api/rooms/{room}/tape")).await.expect_status(200)
}

pub async fn command(api: &TestClient, room: RoomId, command: &str, body: Value) -> Value {
    post(api, &format!("/api/rooms/{room}/tape/{command}"), &body).await.expect_status(200)
}

/// Waits until nothing runs and nothing is planned, and returns the journal.
pub async fn finished(api: &TestClient, room: RoomId) -> Vec<SeenEvent> {
    within("the end of the plan", async {
        loop {
            let now = tape(api, room).await;
            if now["cells"].as_array().unwrap().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    journal(api, room).await
}

/// The agents in the order in which their runs started.
pub fn speakers(journal: &[SeenEvent]) -> Vec<AgentId> {
    journal.iter().filter(|event| event.kind == EventType::RunStarted).map(|event| event.agent_id.unwrap()).collect()
}

/// Every run has one end, and no two runs overlap.
fn assert_one_after_another(journal: &[SeenEvent]) {
    let mut running: Option<RunId> = None;
    for event in journal {
        if event.kind == EventType::RunStarted {
            assert_eq!(running.replace(event.run_id.unwrap()), None, "a run starts while another runs");
        } else if event.kind.ends_a_run() {
            assert_eq!(running.take(), event.run_id);
        }
    }
}

pub fn members(settings: impl IntoIterator<Item = (AgentId, Value)>) -> Value {
    Value::Object(settings.into_iter().map(|(agent, settings)| (agent.to_string(), settings)).collect())
}

async fn a_new_room_lets_everyone_answer_by_priority(api: &TestClient) {
    for size in [2, 5, 12] {
        let all: Vec<AgentId> = {
            let mut all = Vec::new();
            for number in 0..size {
                all.push(agent(api, &format!("agent {number} of {size}"), json!({})).await);
            }
            all
        };
        // The last one first; the first one last.
        let settings = members([(all[size - 1], json!({"priority": 5})), (all[0], json!({"priority": -5}))]);
        let room = new_room(api, &all, json!({"members": settings})).await;
        let policy = get(api, &format!("/api/rooms/{room}")).await.expect_status(200)["policy"].clone();
        assert_eq!(
            (&policy["kind"], &policy["when_busy"], &policy["follow_up"]),
            (&json!("everyone"), &json!("interrupt"), &json!(false))
        );
        let posted = post_body(api, room, json!({"text": "!count 3"})).await.expect_status(202);
        assert_eq!(runs_of(&posted).len(), 1, "the others are planned");
        let journal = finished(api, room).await;
        let order = speakers(&journal);
        assert_eq!((order.len(), order[0], order[size - 1]), (size, all[size - 1], all[0]));
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), size, "each once");
        assert_one_after_another(&journal);
        let planned: Vec<_> = journal.iter().filter(|event| event.kind == EventType::TapePlanned).map(data).collect();
        assert_eq!(planned.len(), 1);
        assert_eq!(planned[0]["cells"], json!(order), "what was planned is what happened");
        assert_eq!(planned[0]["plan"][0]["reason"], "priority");
        assert_eq!(planned[0]["message_id"], posted["message"]["id"]);
    }
}

async fn agents_of_a_concurrent_cell_answer_at_the_same_time(api: &TestClient) {
    let all = agents(api, 5).await;
    let room = new_room(api, &all, json!({"kind": "concurrent"})).await;
    let posted = post_body(api, room, json!({"text": "!count 40 20"})).await.expect_status(202);
    assert_eq!(runs_of(&posted).len(), 5);
    let journal = finished(api, room).await;
    let of = |kind: EventType| journal.iter().filter(move |event| event.kind == kind);
    let last_start = of(EventType::RunStarted).map(|event| event.seq).max().unwrap();
    let first_end = of(EventType::RunCompleted).map(|event| event.seq).min().unwrap();
    assert!(last_start < first_end, "all run before the first has ended");
    // Their text is interleaved: between two deltas of one agent are some of others.
    let deltas: Vec<_> = of(EventType::ContentDelta).map(|event| event.agent_id.unwrap()).collect();
    let changes = deltas.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes > 20, "{changes} changes of the speaker in {} deltas", deltas.len());
    let history = api.messages(room, None, 100).await.unwrap();
    let whole: String = (1..=40).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(
        history.messages.iter().filter(|message| message.text == whole).count(),
        5,
        "no text is lost or doubled"
    );
    assert_eq!(journal.iter().filter(|event| event.kind.ends_a_run()).count(), 5);
}

async fn a_paused_room_starts_nothing(api: &TestClient) {
    let all = agents(api, 3).await;
    let settings = members([(all[0], json!({"priority": 3})), (all[1], json!({"priority": 2}))]);
    let room = new_room(api, &all, json!({"members": settings})).await;
    assert_eq!(tape(api, room).await, json!({"state": "idle", "cells": [], "round": 0, "messages": 0}));
    assert_eq!(command(api, room, "pause", json!({})).await["state"], "paused");
    let posted = post_body(api, room, json!({"text": "!count 2"})).await.expect_status(202);
    assert_eq!(posted["runs"], json!([]));
    let planned = tape(api, room).await;
    let cells = planned["cells"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["status"] == "planned"), "{planned}");
    assert_eq!(
        cells.iter().map(|cell| cell["agents"][0].clone()).collect::<Vec<_>>(),
        all.iter().map(|id| json!(id)).collect::<Vec<_>>()
    );
    // A run that is started in a paused room waits too.
    let started = post(api, &format!("/api/rooms/{room}/runs"), &json!({"agent_id": all[2]})).await.expect_status(202);
    let waiting: RunId = started["id"].as_str().unwrap().parse().unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(speakers(&journal(api, room).await).is_empty());
    assert_eq!(api.run(waiting).await.unwrap().status, RunStatus::Queued);
    // The first step is what was queued, the next the first planned cell.
    command(api, room, "step", json!({})).await;
    assert_eq!(wait_for_end(api, waiting).await.status, RunStatus::Completed);
    command(api, room, "step", json!({})).await;
    within("the step", async {
        while speakers(&journal(api, room).await).len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(speakers(&journal(api, room).await), [all[2], all[0]], "one step, one cell");
    command(api, room, "resume", json!({})).await;
    assert_eq!(speakers(&finished(api, room).await), [all[2], all[0], all[1], all[2]]);
    assert_eq!(tape(api, room).await["state"], "idle");
    post(api, &format!("/api/rooms/{room}/tape/step"), &json!({})).await.expect_problem(409, "conflict");
}

async fn waiting_messages_are_reordered(api: &TestClient) {
    // One agent: runs are queued. Two agents: the answers to later messages are only planned.
    for count in [1, 2] {
        let mut all = Vec::new();
        for number in 0..count {
            all.push(agent(api, &format!("agent {number} of {count}"), json!({})).await);
        }
        let room = new_room(api, &all, json!({"when_busy": "enqueue"})).await;
        let say = async |text: &str| {
            post_body(api, room, json!({"text": text, "mentions": [all[0]]})).await.expect_status(202)["message"]["id"]
                .clone()
        };
        let running = say("!count 2000 5").await;
        let (one, two, three) = (say("one").await, say("two").await, say("three").await);
        let waiting = async || -> Vec<Value> {
            let cells = tape(api, room).await["cells"].clone();
            cells.as_array().unwrap().iter().map(|cell| cell["message_id"].clone()).collect()
        };
        assert_eq!(waiting().await, [&running, &one, &two, &three].map(Value::clone));
        command(api, room, "reorder", json!({"messages": [three, one, two]})).await;
        assert_eq!(waiting().await, [&running, &three, &one, &two].map(Value::clone), "{count} agents");
        for wrong in [json!([one, two]), json!([running, one, two, three]), json!([one, one, two])] {
            let path = format!("/api/rooms/{room}/tape/reorder");
            post(api, &path, &json!({"messages": wrong})).await.expect_problem(409, "conflict");
        }
        let first = tape(api, room).await["cells"][0]["runs"][0]["id"].as_str().unwrap().parse::<RunId>().unwrap();
        api.cancel_run(first).await.unwrap();
        let journal = finished(api, room).await;
        let answered: Vec<Value> = journal
            .iter()
            .filter(|event| event.kind == EventType::RunStarted)
            .map(|event| {
                let queued = |other: &&SeenEvent| other.kind == EventType::RunQueued && other.run_id == event.run_id;
                data(journal.iter().find(queued).unwrap())["message_id"].clone()
            })
            .collect();
        assert_eq!(answered, [running, three.clone(), one.clone(), two.clone()], "{count} agents");
        let told = journal.iter().filter(|event| event.kind == EventType::TapePlanned).map(data);
        let told: Vec<Value> = told.filter_map(|data| data.get("messages").cloned()).collect();
        assert_eq!(told, [json!([three, one, two])]);
    }
}

async fn a_planned_cell_can_be_skipped_moved_and_inserted(api: &TestClient) {
    let all = agents(api, 4).await;
    let priorities = (0..4).map(|at| (all[at], json!({"priority": 4 - at})));
    let room = new_room(api, &all, json!({"members": members(priorities)})).await;
    let first = runs_of(&post_body(api, room, json!({"text": "!count 2000 5"})).await.expect_status(202))[0];
    let now = tape(api, room).await;
    assert_eq!((&now["state"], &now["cells"][0]["runs"][0]["id"]), (&json!("running"), &json!(first)));
    let ids: Vec<Value> = (1..4).map(|at| now["cells"][at]["id"].clone()).collect();
    let reordered = command(api, room, "reorder", json!({"cells": [ids[2], ids[1], ids[0]]})).await;
    assert_eq!(reordered["cells"][1]["agents"], json!([all[3]]));
    command(api, room, "skip", json!({"cell": ids[1]})).await;
    let inserted = command(api, room, "insert", json!({"agent_id": all[2], "at": 2})).await;
    assert_eq!(
        (&inserted["cells"][3]["agents"], &inserted["cells"][3]["reason"]),
        (&json!([all[2]]), &json!("inserted"))
    );
    for (name, body, status, code) in [
        ("skip", json!({"cell": "p999"}), 409, "conflict"),
        ("reorder", json!({"cells": []}), 422, "unprocessable"),
        ("reorder", json!({"cells": ids, "messages": [room]}), 422, "unprocessable"),
        ("reorder", json!({"cells": ids[..1]}), 422, "unprocessable"),
        ("insert", json!({"agent_id": room}), 422, "unprocessable"),
        ("insert", json!({"agent_id": all[0], "at": 9}), 422, "unprocessable"),
    ] {
        post(api, &format!("/api/rooms/{room}/tape/{name}"), &body).await.expect_problem(status, code);
    }
    // The running cell is skipped last: the plan goes on behind it.
    command(api, room, "skip", json!({"cell": now["cells"][0]["id"]})).await;
    assert_eq!(wait_for_end(api, first).await.status, RunStatus::Cancelled);
    within("the next", async {
        while speakers(&journal(api, room).await).len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let journal = journal(api, room).await;
    assert_eq!(speakers(&journal)[1], all[3]);
    let changes: Vec<_> = journal
        .iter()
        .filter(|event| event.kind == EventType::TapePlanned)
        .filter_map(|event| data(event).get("change").cloned())
        .collect();
    assert_eq!(json!(changes), json!(["reordered", "skipped", "inserted", "skipped"]));
    response_to(api.request(Method::POST, &format!("/api/rooms/{room}/cancel"))).await.expect_status(200);
}

async fn agents_react_to_each_other_up_to_the_caps(api: &TestClient) {
    let all = agents(api, 2).await;
    for (policy, rounds, runs) in [
        (json!({"follow_up": true, "max_rounds": 2}), 2, 6),
        (json!({"follow_up": true, "max_messages": 3}), 1, 3),
        (json!({}), 0, 2),
    ] {
        let room = new_room(api, &all, policy.clone()).await;
        post_body(api, room, json!({"text": "hello"})).await.expect_status(202);
        let journal = finished(api, room).await;
        assert_eq!(speakers(&journal).len(), runs, "{policy}");
        assert_one_after_another(&journal);
        let planned = journal.iter().filter(|event| event.kind == EventType::TapePlanned);
        let last = planned.map(|event| data(event)["round"].as_u64().unwrap_or(0)).max();
        assert_eq!(last, Some(rounds), "{policy}");
    }
}

async fn a_policy_changes_while_the_room_lives(api: &TestClient) {
    let all = agents(api, 3).await;
    let room = new_room(api, &all, json!({})).await;
    let path = format!("/api/rooms/{room}");
    let patch = async |body: Value| response_to(api.request(Method::PATCH, &path).json(&body)).await;
    let changed =
        patch(json!({"policy": {"kind": "mention_only", "members": members([(all[1], json!({"critic": true}))])}}))
            .await;
    let changed = changed.expect_status(200);
    assert_eq!(
        (&changed["policy"]["kind"], &changed["policy"]["when_busy"]),
        (&json!("mention_only"), &json!("interrupt"))
    );
    let posted = post_body(api, room, json!({"text": "anybody?"})).await.expect_status(202);
    assert_eq!(posted["runs"], json!([]), "nobody was named");
    let posted = post_body(api, room, json!({"text": "!count 1", "mentions": [all[1]]})).await.expect_status(202);
    wait_for_end(api, runs_of(&posted)[0]).await;
    let changed =
        patch(json!({"policy": {"members": members([(all[1], json!({"priority": 3}))])}})).await.expect_status(200);
    let settings = &changed["policy"]["members"][all[1].to_string()];
    assert_eq!((&settings["critic"], &settings["priority"]), (&json!(true), &json!(3)), "other settings stay");
    let left = patch(json!({"agents": [all[0], all[2]]})).await.expect_status(200);
    assert_eq!(left["policy"]["members"], json!({}), "an agent that leaves takes its settings with it");
    for (wrong, pointer, why) in [
        (json!({"kind": "chaos"}), "/policy/kind", "it must be one of `in_order`"),
        (json!({"max_rounds": 1000}), "/policy", "max_rounds"),
        (json!({"max_rounds": 2.5}), "/policy/max_rounds", "a whole number"),
        (json!({"loud": true}), "/policy/loud", "this field is unknown"),
    ] {
        let problem = patch(json!({"policy": wrong})).await.expect_problem(400, "invalid_request");
        assert_eq!(problem["pointer"], pointer, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(why), "{problem}");
    }
    let foreign = patch(json!({"policy": {"judge": all[1]}})).await.expect_problem(422, "unprocessable");
    assert!(foreign["detail"].as_str().unwrap().contains("is not in this room"), "{foreign}");
    let wrong = json!({"name": "r", "agents": [], "policy": {"moderator": all[0]}});
    post(api, "/api/rooms", &wrong).await.expect_problem(422, "unprocessable");
}

async fn a_message_can_be_posted_without_a_run_and_a_run_started_without_a_message(api: &TestClient) {
    let all = agents(api, 2).await;
    let room = new_room(api, &all, json!({})).await;
    let runs = format!("/api/rooms/{room}/runs");
    post(api, &runs, &json!({})).await.expect_problem(409, "conflict");
    let posted = post_body(api, room, json!({"text": "!count 4", "run": false})).await.expect_status(202);
    assert_eq!((&posted["runs"], head(api, room).await), (&json!([]), 3), "two joined, one spoke");
    let started = post(api, &runs, &json!({"agent_id": all[1]})).await.expect_status(202);
    let run = wait_for_end(api, started["id"].as_str().unwrap().parse().unwrap()).await;
    assert_eq!(
        (run.agent_id, run.message_id.to_string()),
        (all[1], posted["message"]["id"].as_str().unwrap().to_owned())
    );
    // A note does not interrupt.
    let busy =
        runs_of(&post_body(api, room, json!({"text": "!count 100 10", "mentions": [all[0]]})).await.expect_status(202))
            [0];
    post_body(api, room, json!({"text": "a note", "run": false})).await.expect_status(202);
    assert_eq!(wait_for_end(api, busy).await.status, RunStatus::Completed);
}

async fn a_room_with_one_agent_has_no_plan(api: &TestClient) {
    let all = agents(api, 1).await;
    for kind in ["everyone", "concurrent", "round_robin", "moderator", "debate", "in_order"] {
        let room = new_room(api, &all, json!({"kind": kind, "follow_up": true})).await;
        let posted = post_body(api, room, json!({"text": "!count 2"})).await.expect_status(202);
        let run = wait_for_end(api, runs_of(&posted)[0]).await;
        assert_eq!(run.status, RunStatus::Completed);
        let kinds: Vec<_> = journal(api, room).await.iter().map(|event| event.kind).collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == EventType::RunStarted).count(), 1, "{kind}");
        assert!(!kinds.contains(&EventType::TapePlanned), "{kind}");
    }
}

async fn cancelling_a_room_ends_its_plan(api: &TestClient) {
    let all = agents(api, 3).await;
    let room = new_room(api, &all, json!({"follow_up": true})).await;
    let run = runs_of(&post_body(api, room, json!({"text": "!count 5000 5"})).await.expect_status(202))[0];
    let stopped = response_to(api.request(Method::POST, &format!("/api/rooms/{room}/cancel"))).await.expect_status(200);
    assert_eq!(stopped["runs"][0]["id"], json!(run));
    assert_eq!(tape(api, room).await["cells"], json!([]));
    // Also while it is paused and nothing runs.
    command(api, room, "pause", json!({})).await;
    post_body(api, room, json!({"text": "!count 5"})).await.expect_status(202);
    response_to(api.request(Method::POST, &format!("/api/rooms/{room}/cancel"))).await.expect_status(200);
    assert_eq!(tape(api, room).await["cells"], json!([]));
    assert_eq!(command(api, room, "resume", json!({})).await["state"], "idle");
    assert_eq!(speakers(&journal(api, room).await).len(), 1);
}

async fn agents_take_turns_and_a_judge_speaks_last(api: &TestClient) {
    let all = agents(api, 3).await;
    let room = new_room(api, &all, json!({"kind": "round_robin"})).await;
    for turn in 0..4 {
        let posted = post_body(api, room, json!({"text": "!count 1"})).await.expect_status(202);
        assert_eq!(wait_for_end(api, runs_of(&posted)[0]).await.agent_id, all[turn % 3]);
    }
    let room = new_room(api, &all, json!({"kind": "debate", "debate_rounds": 3, "judge": all[1]})).await;
    post_body(api, room, json!({"text": "!count 1"})).await.expect_status(202);
    let order = speakers(&finished(api, room).await);
    assert_eq!((order.len(), order[6]), (7, all[1]));
    assert!(!order[..6].contains(&all[1]) && order[0] == order[2] && order[1] == order[3]);
}

async fn the_context_of_a_run_can_be_read_back(api: &TestClient) {
    let all = agents(api, 2).await;
    let settings = members([(all[0], json!({"priority": 1}))]);
    let room = new_room(api, &all, json!({"members": settings})).await;
    post_body(api, room, json!({"text": "!count 3"})).await.expect_status(202);
    let journal = finished(api, room).await;
    let runs: Vec<RunId> =
        journal.iter().filter(|event| event.kind == EventType::RunStarted).map(|event| event.run_id.unwrap()).collect();
    let context = async |run: RunId| get(api, &format!("/api/runs/{run}/context")).await.expect_status(200);
    let (first, second) = (context(runs[0]).await, context(runs[1]).await);
    assert_eq!((&first["before"], &first["after"]), (&json!([]), &json!([])));
    assert_eq!(first["prompt"]["text"], "!count 3");
    assert_eq!(second["prompt"], first["prompt"]);
    assert_eq!(second["after"], json!([{"by": "agent 0", "text": "1 2 3"}]), "the question before its answer");
    let told = second["system_prompt"].as_str().unwrap();
    assert!(told.contains("You are agent 1") && told.contains("agent 0"), "{told}");
    get(api, &format!("/api/runs/{room}/context")).await.expect_problem(404, "not_found");
}

async fn agents_skip_whisper_and_end_the_round(api: &TestClient) {
    let all = agents(api, 2).await;
    let room = new_room(api, &all, json!({"follow_up": true})).await;
    post_body(api, room, json!({"text": "!call skip"})).await.expect_status(202);
    let skipped = finished(api, room).await;
    let ends: Vec<_> = skipped.iter().filter(|event| event.kind == EventType::StreamEnd).map(data).collect();
    assert_eq!(ends.len(), 2, "nobody reacts to silence");
    assert!(ends.iter().all(|end| end["skipped"] == true && end["response_text"] == ""), "{ends:?}");
    post_body(api, room, json!({"text": "!call end_round"})).await.expect_status(202);
    assert_eq!(speakers(&finished(api, room).await).len(), 3, "one has ended the round");
    let whisper = json!({"text": "!call whisper {\"text\": \"between us\"}", "mentions": [all[0]]});
    post_body(api, room, whisper).await.expect_status(202);
    let journal = finished(api, room).await;
    let whispers = journal.iter().filter(|event| event.kind == EventType::Status && data(event)["status"] == "whisper");
    assert_eq!(whispers.map(|event| data(event)["message"].clone()).collect::<Vec<_>>(), [json!("between us")]);
    // An agent that is alone has none of these tools.
    let alone = new_room(api, &all[..1], json!({})).await;
    let posted = post_body(api, alone, json!({"text": "!call skip"})).await.expect_status(202);
    let run = wait_for_end(api, runs_of(&posted)[0]).await;
    assert!(!super::requests::message_of(api, &run).await.text.is_empty(), "it says that there is no such tool");
}

async fn a_plan_does_not_grow_without_limit(api: &TestClient) {
    let all = agents(api, 3).await;
    let policy = json!({"kind": "debate", "debate_rounds": 100, "max_messages": 1000, "when_busy": "enqueue"});
    let room = new_room(api, &all, policy).await;
    command(api, room, "pause", json!({})).await;
    for _ in 0..5 {
        post_body(api, room, json!({"text": "!count 1"})).await.expect_status(202);
    }
    assert_eq!(tape(api, room).await["cells"].as_array().unwrap().len(), 5 * 201);
    let refused = post_body(api, room, json!({"text": "!count 1"})).await.expect_problem(429, "queue_full");
    assert!(refused["detail"].as_str().unwrap().contains("cancel the room"), "{refused}");
    post_body(api, room, json!({"text": "a note", "run": false})).await.expect_status(202);
    post_body(api, room, json!({"text": "!count 1", "when_busy": "interrupt"})).await.expect_status(202);
    assert_eq!(tape(api, room).await["cells"].as_array().unwrap().len(), 201, "a message that interrupts replaces it");
    response_to(api.request(Method::POST, &format!("/api/rooms/{room}/cancel"))).await.expect_status(200);
    command(api, room, "resume", json!({})).await;
}
