//! Runs that agents start: `delegate` and `ask_agent`, the tree of a run, and what holds for a whole tree.

use super::requests::{
    RoomFollower, agent, counted, delete, get, journal, message_of, post, post_and_wait, post_text, room_of, runs_of,
    wait_for_end, within,
};
use domain::{
    event::EventType,
    ids::{AgentId, RoomId, RunId},
    message::{Author, Part},
    name::Name,
    run::{Run, RunStatus},
    run_tree::MAX_TREE_DEPTH,
};
use greenroom::serve::RunningServer;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::TestClient,
    database::TestDatabase,
    server::{TestServer, config, operator_of},
};

on_both_databases! {
    server: a_delegated_task_runs_as_a_child_and_its_answer_is_the_result, several_tasks_run_side_by_side,
            a_member_of_the_room_can_be_asked, invariant_25_tree_no_run_outlives_the_cancel_of_its_parent,
            invariant_25_tree_no_run_outlives_the_budget_of_its_parent, invariant_25_tree_a_run_that_ends_takes_its_children_along,
            a_deleted_room_takes_the_rooms_of_its_children_along, a_child_may_do_no_more_than_its_parent,
            a_failed_child_is_a_failed_tool_call;
    database: an_agent_that_calls_itself_stops_at_the_bound_and_takes_nobodys_slots;
}

/// A message that makes an agent give another one a task.
fn delegating(agent: &str, task: &str) -> String {
    format!("!call delegate {}", json!({"agent": agent, "task": task}))
}

/// Two agents, `Ann` in a room of her own.
async fn ann_and_ben(api: &TestClient) -> (AgentId, AgentId, RoomId) {
    let (ann, ben) = (agent(api, "Ann", json!({})).await, agent(api, "Ben", json!({})).await);
    (ann, ben, room_of(api, &[ann]).await)
}

/// Waits until the tree of a run has this many runs and the last of them is running, and returns them.
async fn running_tree(api: &TestClient, run: RunId, size: usize) -> Vec<Run> {
    within("the tree", async {
        loop {
            let runs = tree(api, run).await;
            if runs.len() == size && runs.iter().all(|run| run.status == RunStatus::Running) {
                return runs;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

async fn tree(api: &TestClient, run: RunId) -> Vec<Run> {
    let tree = get(api, &format!("/api/runs/{run}/tree")).await.expect_status(200);
    serde_json::from_value(tree["runs"].clone()).unwrap()
}

async fn a_delegated_task_runs_as_a_child_and_its_answer_is_the_result(api: &TestClient) {
    let (ann, ben, room) = ann_and_ben(api).await;
    let script = r#"!script [{"text":"done"},{"usage":{"cost":0.25}}]"#;
    let run = post_and_wait(api, room, &delegating("Ben", script)).await;
    assert_eq!(run.status, RunStatus::Completed);
    let answer = message_of(api, &run).await;
    assert_eq!(answer.text, "done");
    let Some(Part::Tool(call)) = answer.parts.first() else { panic!("{answer:?}") };
    let child = call.child.clone().unwrap();
    assert_eq!((call.name.as_str(), call.output.as_str(), child.agent_id), ("delegate", "done", ben));
    assert_eq!(call.result.as_ref().unwrap().content, json!("done"));

    let shown = get(api, &format!("/api/runs/{}", run.id)).await.expect_status(200);
    assert_eq!(shown["children"], json!([child.run_id]));
    let below = api.run(child.run_id).await.unwrap();
    assert_eq!((below.parent_id, below.root_id, below.depth), (Some(run.id), Some(run.id), 1));
    assert_eq!(below.room_id, child.room_id);
    let whole = get(api, &format!("/api/runs/{}/tree", run.id)).await.expect_status(200);
    assert_eq!((&whole["cost"], &whole["runs"][1]["agent_name"]), (&json!(0.25), &json!("Ben")));
    assert_eq!(tree(api, run.id).await.iter().map(|run| run.id).collect::<Vec<_>>(), [run.id, child.run_id]);
    let timeline = get(api, &format!("/api/runs/{}/timeline", run.id)).await.expect_status(200);
    let spans = timeline["spans"].as_array().unwrap();
    assert!(spans.iter().any(|span| span["child_run_id"] == json!(child.run_id)), "{timeline}");
    get(api, &format!("/api/runs/{}/tree", RunId::generate())).await.expect_problem(404, "not_found");

    // The task is a message of the agent that asked, in a room that no list shows.
    let task = api.messages(child.room_id, None, 10).await.unwrap().messages.remove(0);
    assert_eq!(
        (task.text.as_str(), task.author),
        (script, Author::Agent { id: ann, name: Name::parse("Ann").unwrap() })
    );
    assert_eq!(api.room(child.room_id).await.unwrap().parent_run_id, Some(run.id));
    let rooms = get(api, "/api/rooms").await.expect_status(200);
    assert!(!rooms.to_string().contains(&child.room_id.to_string()), "{rooms}");
    let events = journal(api, room).await;
    assert_eq!(events.iter().filter(|event| event.kind == EventType::RunDelegated).count(), 1);
    let unknown = post_and_wait(api, room, &delegating("Zoe", "hello")).await;
    let text = message_of(api, &unknown).await.text;
    assert!(text.contains("there is no agent \"Zoe\"") && text.contains("Ben"), "{text}");
}

async fn several_tasks_run_side_by_side(api: &TestClient) {
    let (_, _, room) = ann_and_ben(api).await;
    let task = |to: u32| json!({"agent": "Ben", "task": format!("!count {to} 20")});
    let calls = json!([task(30), task(31), task(32)]);
    let run = post_and_wait(api, room, &format!("!call delegate {calls}")).await;
    assert_eq!(run.status, RunStatus::Completed);
    let children = &tree(api, run.id).await[1..];
    assert_eq!(children.len(), 3);
    let last_start = children.iter().map(|run| run.started_at.unwrap()).max().unwrap();
    let first_end = children.iter().map(|run| run.ended_at.unwrap()).min().unwrap();
    assert!(last_start < first_end, "all three ran before the first had ended");
    let text = message_of(api, &run).await.text;
    for to in [30, 31, 32] {
        assert!(text.contains(&counted(to)), "{text}");
    }
}

async fn a_member_of_the_room_can_be_asked(api: &TestClient) {
    let (ann, ben, _) = ann_and_ben(api).await;
    agent(api, "Cyd", json!({})).await;
    let room = api.create_room_with("Two", &[ann, ben], json!({})).await.unwrap().id;
    let ask = |agent: &str| {
        let call = format!("!call ask_agent {}", json!({"agent": agent, "question": "!count 3"}));
        json!({"text": call, "mentions": [ann]})
    };
    for (name, expected) in [("Ben", "1 2 3"), ("Cyd", "there is no agent \"Cyd\" here; there are: Ann, Ben")] {
        let posted = post(api, &format!("/api/rooms/{room}/messages"), &ask(name)).await.expect_status(202);
        let run = wait_for_end(api, posted["runs"][0]["id"].as_str().unwrap().parse().unwrap()).await;
        let text = message_of(api, &run).await.text;
        assert!(text.contains(expected), "{text}");
    }
}

async fn invariant_25_tree_no_run_outlives_the_cancel_of_its_parent(api: &TestClient) {
    let (_, _, room) = ann_and_ben(api).await;
    let run = post_text(api, room, &delegating("Ben", &delegating("Ann", "!hang"))).await;
    let runs = running_tree(api, run, 3).await;
    let stopped = post(api, &format!("/api/runs/{run}/cancel"), &json!({})).await.expect_status(200);
    assert_eq!((&stopped["status"], &stopped["stopped_below"]), (&json!("cancelled"), &json!(2)));
    for run in &runs {
        assert_eq!(
            api.run(run.id).await.unwrap().status,
            RunStatus::Cancelled,
            "when the cancel returns, all have stopped"
        );
    }
    // From the middle, only what is below ends; the run above goes on with an error.
    let run = post_text(api, room, &delegating("Ben", &delegating("Ann", "!hang"))).await;
    let runs = running_tree(api, run, 3).await;
    api.cancel_run(runs[1].id).await.unwrap();
    assert_eq!(api.run(runs[2].id).await.unwrap().status, RunStatus::Cancelled);
    let run = wait_for_end(api, run).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert!(message_of(api, &run).await.text.contains("Ben was stopped (cancelled)"));
}

async fn invariant_25_tree_no_run_outlives_the_budget_of_its_parent(api: &TestClient) {
    let (ann, _, room) = ann_and_ben(api).await;
    for (scope, id) in [("agent", json!(ann)), ("room", json!(room))] {
        let budget = json!({"scope": scope, "id": id, "period": "total", "limit_usd": 0.5});
        post(api, "/api/budgets", &budget).await.expect_status(201);
    }
    let spends =
        r#"!script [{"text":"dear"},{"usage":{"cost":0.75}},{"model_call":true},{"text":"!"},{"model_call":true}]"#;
    let run = post_and_wait(api, room, &delegating("Ben", spends)).await;
    let child = &tree(api, run.id).await[1];
    assert_eq!(child.error.as_ref().unwrap().code, "limit_budget", "{child:?}");
    let budgets = get(api, "/api/budgets").await.expect_status(200);
    for budget in budgets["budgets"].as_array().unwrap() {
        assert_eq!(budget["spent_usd"], json!(0.75), "what a child costs counts for the agent and the room above it");
    }
    post(api, &format!("/api/rooms/{room}/messages"), &json!({"text": "more"}))
        .await
        .expect_problem(402, "budget_exceeded");
}

async fn invariant_25_tree_a_run_that_ends_takes_its_children_along(api: &TestClient) {
    let (_, _, room) = ann_and_ben(api).await;
    let run = post_text(api, room, &delegating("Ben", &delegating("Ann", "!hang"))).await;
    let runs = running_tree(api, run, 3).await;
    let again = json!({"text": "!count 2", "when_busy": "interrupt"});
    let next = post(api, &format!("/api/rooms/{room}/messages"), &again).await.expect_status(202);
    assert_eq!(wait_for_end(api, run).await.status, RunStatus::Interrupted);
    for below in &runs[1..] {
        assert_eq!(wait_for_end(api, below.id).await.status, RunStatus::Cancelled);
    }
    assert_eq!(wait_for_end(api, runs_of(&next)[0]).await.status, RunStatus::Completed);
}

async fn a_deleted_room_takes_the_rooms_of_its_children_along(api: &TestClient) {
    let (_, _, room) = ann_and_ben(api).await;
    let run = post_text(api, room, &delegating("Ben", &delegating("Ann", "!hang"))).await;
    let runs = running_tree(api, run, 3).await;
    delete(api, &format!("/api/rooms/{room}")).await.expect_status(204);
    for run in &runs {
        get(api, &format!("/api/rooms/{}", run.room_id)).await.expect_problem(404, "not_found");
    }
    let left = get(api, "/api/runs?status=running").await.expect_status(200);
    assert_eq!(left["runs"], json!([]));
}

async fn a_child_may_do_no_more_than_its_parent(api: &TestClient) {
    agent(api, "Ben", json!({"tools": {"allow": ["Bash", "Read"]}})).await;
    let strict = agent(api, "Ann", json!({"tools": {"allow": ["Read"], "deny": ["Write"]}})).await;
    let room = room_of(api, &[strict]).await;
    let ask = |tool: &str| delegating("Ben", &format!("!ask {tool} {{}}"));
    let read = post_and_wait(api, room, &ask("Read")).await;
    assert_eq!(message_of(api, &read).await.text, "allowed", "both allow it");
    let write = post_and_wait(api, room, &ask("Write")).await;
    assert_eq!(message_of(api, &write).await.text, "denied", "the agent above may not");
    let run = post_text(api, room, &ask("Bash")).await;
    let waiting = within("the approval", async {
        loop {
            let open = get(api, "/api/approvals?status=pending").await.expect_status(200);
            if let Some(approval) = open["approvals"].as_array().unwrap().first() {
                return approval.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(waiting["tool"], "Bash", "a person decides what the agent above may not do alone");
    let child: RunId = waiting["run_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(api.run(child).await.unwrap().parent_id, Some(run));
    api.allow(child, waiting["id"].as_str().unwrap().parse().unwrap()).await.unwrap();
    let run = wait_for_end(api, run).await;
    assert_eq!(message_of(api, &run).await.text, "allowed");
}

async fn a_failed_child_is_a_failed_tool_call(api: &TestClient) {
    let (_, _, room) = ann_and_ben(api).await;
    let run = post_and_wait(api, room, &delegating("Ben", "!fail broken It broke.")).await;
    let answer = message_of(api, &run).await;
    let Some(Part::Tool(call)) = answer.parts.first() else { panic!("{answer:?}") };
    assert!(call.result.as_ref().unwrap().is_error);
    assert!(answer.text.contains("Ben failed: It broke."), "{}", answer.text);
}

/// The server has one slot for runs that people start. A tree that needs one slot per level must not wait for itself, and
/// nobody must wait for it.
async fn an_agent_that_calls_itself_stops_at_the_bound_and_takes_nobodys_slots(database: TestDatabase) {
    let server = TestServer::start_with(database, &[("runs.concurrency", "2")]).await;
    let api = server.api();
    let ann = agent(api, "Ann", json!({})).await;
    let (room, other) = (room_of(api, &[ann]).await, room_of(api, &[ann]).await);
    let nested = |levels: u32, last: &str| (0..levels).fold(last.to_owned(), |task, _| delegating("Ann", &task));
    let run = post_and_wait(api, room, &nested(MAX_TREE_DEPTH + 1, "!count 3")).await;
    assert_eq!(run.status, RunStatus::Completed);
    assert_eq!(tree(api, run.id).await.len(), MAX_TREE_DEPTH as usize + 1);
    let text = message_of(api, &run).await.text;
    assert!(text.contains("3 levels below the first one, which is the limit"), "{text}");
    // Two trees take all slots of all levels below the first; a person's message is answered all the same.
    let hanging = post_text(api, room, &nested(MAX_TREE_DEPTH, "!hang")).await;
    running_tree(api, hanging, MAX_TREE_DEPTH as usize + 1).await;
    assert_eq!(post_and_wait(api, other, "!count 3").await.status, RunStatus::Completed);
    let stopped = post(api, &format!("/api/runs/{hanging}/cancel"), &json!({})).await.expect_status(200);
    assert_eq!(stopped["stopped_below"], json!(MAX_TREE_DEPTH));
    server.finish().await;
}

/// The parent runs on one server, one of its children on the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_25_tree_across_two_servers() {
    let settings = [("runs.concurrency", "1"), ("runs.lease_seconds", "3")];
    let first = TestServer::start_with(TestDatabase::postgres(), &settings).await;
    let owned: Vec<(String, String)> = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let second = RunningServer::start(&config(first.database(), &owned)).await.unwrap();
    let (here, there) = (first.api().clone(), operator_of(&second));
    let (_, _, room) = ann_and_ben(&here).await;
    let tasks: Vec<Value> = (0..2).map(|_| json!({"agent": "Ben", "task": "!hang"})).collect();
    let run = post_text(&here, room, &format!("!call delegate {}", json!(tasks))).await;
    // A server has one slot for children, so each has one of them.
    let runs = running_tree(&there, run, 3).await;
    let stopped = post(&there, &format!("/api/runs/{run}/cancel"), &json!({})).await.expect_status(200);
    assert_eq!((&stopped["status"], &stopped["stopped_below"]), (&json!("cancelled"), &json!(2)));
    for run in runs {
        assert_eq!(here.run(run.id).await.unwrap().status, RunStatus::Cancelled);
    }
    // A child that ends on the other server: its answer arrives here.
    let mut follower = RoomFollower::start(&here, room).await;
    let tasks = json!([{"agent": "Ben", "task": "!hang"}, {"agent": "Ben", "task": "!count 3"}]);
    let run = post_text(&here, room, &format!("!call delegate {tasks}")).await;
    follower.until("the answer", |event| event.kind == EventType::ToolResult && event.data.contains("1 2 3")).await;
    there.cancel_run(run).await.unwrap();
    second.stop().await;
    first.finish().await;
}
