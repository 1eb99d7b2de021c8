//! A scripted agent, the real `claude` and the real `codex` in one room: they answer in turn and at once, are interrupted
//! together, read each other, and give each other tasks.

use crate::{
    cli_fixture::{Cli, CliFixture},
    requests::{
        RoomFollower, counted, get, journal, message_of, post_and_wait, post_body, runs_of, wait_for_end, within,
    },
};
use domain::{
    event::EventType,
    ids::{AgentId, RoomId},
    message::{MessageStatus, Part},
    run::RunStatus,
};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::client::{SeenEvent, TestClient};

struct MixedRoom {
    fixture: CliFixture,
    api: TestClient,
    /// The scripted agent, Claude and Codex.
    agents: [AgentId; 3],
}

impl MixedRoom {
    async fn start() -> Self {
        let fixture = CliFixture::start_all(&[Cli::ClaudeCode, Cli::Codex], "test-key", &[]).await;
        let api = fixture.api();
        let scripted = api.scripted_agent().await.unwrap();
        let open = json!({"tools": {"allow": ["*"]}});
        let claude = fixture.agent_of(Cli::ClaudeCode, "Claude", open.clone()).await;
        let codex = fixture.agent_of(Cli::Codex, "Codex", open).await;
        Self { fixture, api, agents: [scripted, claude, codex] }
    }

    async fn room(&self, mut policy: Value) -> RoomId {
        let priorities = self.agents.iter().zip([2, 1, 0]);
        policy["members"] =
            priorities.map(|(agent, priority)| (agent.to_string(), json!({"priority": priority}))).collect();
        self.api.create_room_with("Mixed", &self.agents, policy).await.unwrap().id
    }

    /// Waits until nothing runs and nothing is planned.
    async fn idle(&self, room: RoomId) -> Vec<SeenEvent> {
        within("the end of the plan", async {
            while get(&self.api, &format!("/api/rooms/{room}/tape")).await.expect_status(200)["state"] != "idle" {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        journal(&self.api, room).await
    }

    /// Asserts that all three have completed an answer, and returns the agents with their answers, in the order in which they
    /// began.
    async fn answers(&self, events: &[SeenEvent]) -> Vec<(AgentId, String)> {
        let mut answers = Vec::new();
        for event in events.iter().filter(|event| event.kind == EventType::RunStarted) {
            let run = self.api.run(event.run_id.unwrap()).await.unwrap();
            assert_eq!(run.status, RunStatus::Completed, "{}", self.fixture.details(&run, events));
            answers.push((run.agent_id, message_of(&self.api, &run).await.text));
        }
        assert_eq!(answers.len(), 3);
        answers
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_three_providers_answer_in_turn_and_read_each_other() {
    let mixed = MixedRoom::start().await;
    let room = mixed.room(json!({"kind": "everyone"})).await;
    post_body(&mixed.api, room, json!({"text": "!count 5"})).await.expect_status(202);
    let events = mixed.idle(room).await;
    let answers = mixed.answers(&events).await;
    assert_eq!(answers.iter().map(|(agent, _)| *agent).collect::<Vec<_>>(), mixed.agents, "by priority");
    assert_eq!(answers[0].1, counted(5));
    assert!(answers.iter().all(|(_, text)| !text.is_empty()), "{answers:?}");
    // What the others have said is the history of an agent that is asked alone.
    for agent in &mixed.agents[1..] {
        let posted =
            post_body(&mixed.api, room, json!({"text": "!recall", "mentions": [agent]})).await.expect_status(202);
        let run = wait_for_end(&mixed.api, runs_of(&posted)[0]).await;
        let details = mixed.fixture.details(&run, &journal(&mixed.api, room).await);
        assert_eq!((run.status, run.agent_id), (RunStatus::Completed, *agent), "{details}");
        let text = message_of(&mixed.api, &run).await.text;
        assert!(text.contains("!count 5") && text.contains(&counted(5)), "{text}\n{details}");
    }
    // The programs pass on who the agent is, and what the others have said, with their names.
    let requests: Vec<String> = mixed.fixture.models().requests().iter().map(|asked| asked.body.to_string()).collect();
    for name in ["Claude", "Codex"] {
        let told = format!("You are {name}, in a room with people and with other agents");
        let is_told = |request: &String| {
            request.contains(&told) && request.contains("<said by=") && request.contains(&counted(5))
        };
        assert!(requests.iter().any(is_told), "{told}");
    }
    mixed.fixture.finish().await;
}

/// People cut in at different moments: before the programs have begun, and while all three speak. No text is lost or doubled, and
/// no process is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_three_providers_answer_at_once_and_are_interrupted_together() {
    let mixed = MixedRoom::start().await;
    let room = mixed.room(json!({"kind": "concurrent"})).await;
    let mut follower = RoomFollower::start(&mixed.api, room).await;
    let mut cut = Vec::new();
    for pause in [Some(0), None, Some(30), Some(300), None] {
        let posted = post_body(&mixed.api, room, json!({"text": "!count 2000 25"})).await.expect_status(202);
        let runs = runs_of(&posted);
        assert_eq!(runs.len(), 3);
        match pause {
            Some(pause) => tokio::time::sleep(Duration::from_millis(pause)).await,
            None => {
                for run in &runs {
                    follower.first_delta(*run).await;
                }
            }
        }
        cut.push((runs, pause.is_none()));
    }
    let last = runs_of(&post_body(&mixed.api, room, json!({"text": "!count 3"})).await.expect_status(202));
    for run in last {
        let run = wait_for_end(&mixed.api, run).await;
        let details = mixed.fixture.details(&run, &journal(&mixed.api, room).await);
        assert_eq!(run.status, RunStatus::Completed, "{details}");
        assert_eq!(message_of(&mixed.api, &run).await.text.trim(), counted(3), "{details}");
    }
    let events = mixed.idle(room).await;
    for (run, has_spoken) in cut.into_iter().flat_map(|(runs, spoke)| runs.into_iter().map(move |run| (run, spoke))) {
        let run = mixed.api.run(run).await.unwrap();
        let details = mixed.fixture.details(&run, &events);
        assert_eq!(run.status, RunStatus::Interrupted, "{details}");
        let ends = events.iter().filter(|event| event.run_id == Some(run.id) && event.kind.ends_a_run()).count();
        assert_eq!(ends, 1, "{details}");
        let history = mixed.api.messages(room, None, 100).await.unwrap().messages;
        let partial: Vec<_> = history.iter().filter(|message| message.run_id == Some(run.id)).collect();
        assert!(partial.len() <= 1 && (!has_spoken || !partial[0].text.is_empty()), "{details}");
        for partial in partial {
            assert_eq!(partial.status, MessageStatus::Partial, "{details}");
            assert!(counted(2000).starts_with(partial.text.trim_end()), "{partial:?}");
        }
    }
    mixed.fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_gives_a_task_to_codex_and_both_remember() {
    let mixed = MixedRoom::start().await;
    let (api, [_, claude, codex]) = (&mixed.api, mixed.agents);
    let room = api.create_room("A room", &[claude]).await.unwrap().id;
    let task = format!("!call delegate {}", json!({"agent": "Codex", "task": "!count 5"}));
    let run = post_and_wait(api, room, &task).await;
    let (answer, details) = (message_of(api, &run).await, mixed.fixture.details(&run, &journal(api, room).await));
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    assert!(answer.text.contains(&counted(5)), "{}\n{details}", answer.text);
    let child = answer.parts.iter().find_map(|part| match part {
        Part::Tool(call) => call.child.clone(),
        _ => None,
    });
    let child = api.run(child.unwrap().run_id).await.unwrap();
    assert_eq!((child.agent_id, child.parent_id, child.depth), (codex, Some(run.id), 1));
    for agent in [claude, codex] {
        let room = api.create_room("A room", &[agent]).await.unwrap().id;
        let run = post_and_wait(api, room, r#"!call memorize {"text": "likes tea"}"#).await;
        let details = mixed.fixture.details(&run, &journal(api, room).await);
        let notes = get(api, &format!("/api/agents/{agent}/memories")).await.expect_status(200);
        assert_eq!(notes["memories"][0]["text"], "likes tea", "{details}");
    }
    mixed.fixture.finish().await;
}
