//! Agents on bare model APIs, through the whole server, against the double of both vendors.

use crate::doors::scene::{Audience, agent, answered, data, ended, journal, message_of, post, room_of, say};
use domain::{event::EventType, ids::RoomId, message::Part, run::RunStatus};
use serde_json::{Value, json};
use std::fs;
use testkit::{
    client::{Api, SeenEvent},
    database::TestDatabase,
    models::{Models, Progress},
    server::TestServer,
};

/// The three ways: each vendor's API, and a server of somebody else's by its own name.
const PROVIDERS: [&str; 3] = ["anthropic", "openai", "local"];

struct Stage {
    models: Models,
    server: TestServer,
}

impl Stage {
    async fn open() -> Self {
        Self::open_with(TestDatabase::sqlite(), "test-key").await
    }

    async fn open_with(database: TestDatabase, key: &str) -> Self {
        let models = Models::start().await.unwrap();
        let (plain, openai) = (models.url(), format!("{}/v1", models.url()));
        let local = format!("local = {openai}");
        let settings = [
            ("anthropic.base_url", plain.as_str()),
            ("openai.base_url", openai.as_str()),
            ("openai.endpoints", local.as_str()),
            ("direct.retries", "2"),
        ];
        let environment = [("ANTHROPIC_API_KEY", key), ("OPENAI_API_KEY", key)];
        let server = TestServer::start_in(database, &settings, &environment).await;
        Self { models, server }
    }

    fn api(&self) -> &Api {
        self.server.api()
    }

    async fn room(&self, provider: &str, settings: Value) -> RoomId {
        let mut all = json!({"provider": provider, "model": "double"});
        all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let agent = agent(self.api(), &format!("on {provider} {}", uuid::Uuid::now_v7()), all).await;
        room_of(self.api(), &[agent]).await
    }

    /// What was said, once it is complete.
    async fn said(&self, room: RoomId, text: &str) -> String {
        let run = answered(self.api(), room, text).await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        assert!(run.usage.input_tokens > 0 && run.usage.output_tokens > 0, "{:?}", run.usage);
        message_of(self.api(), &run).await.text
    }

    async fn close(self) {
        self.server.finish().await;
        self.models.stop().await;
    }
}

fn statuses(journal: &[SeenEvent]) -> Vec<String> {
    let of = journal.iter().filter(|event| event.kind == EventType::Status);
    of.map(|event| data(event)["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_thinking_and_what_was_said_before() {
    let stage = Stage::open().await;
    for provider in PROVIDERS {
        let room = stage.room(provider, json!({"system_prompt": "Be brief."})).await;
        assert_eq!(stage.said(room, "!count 3").await, "1 2 3");
        let run = answered(stage.api(), room, "!think one two").await;
        let message = message_of(stage.api(), &run).await;
        assert_eq!((message.thinking.as_str(), message.text.as_str()), ("one two", "The answer is 42."));
        let recalled = stage.said(room, "!recall").await;
        assert!(recalled.starts_with("I remember 3 user texts: \"!count 3\", \"!think one two\""), "{recalled}");
        let asked = stage.models.requests();
        let last = asked.last().unwrap();
        assert_eq!(last.key.as_deref(), (provider != "local").then_some("test-key"), "{provider}");
        assert!(last.body.to_string().contains("Be brief."));
        assert_eq!(last.body.to_string().contains("cache_control"), provider == "anthropic");
    }
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_tool_then_several_at_once_and_all_of_it_is_remembered() {
    let stage = Stage::open().await;
    for provider in PROVIDERS {
        let room = stage.room(provider, json!({})).await;
        let told = stage.said(room, "!call current_time").await;
        assert!(told.contains("Done. The tool returned: 20"), "{told}");
        let two = "!call memory {\"action\":\"save\",\"text\":\"likes tea\"}\n!call current_time {}";
        let run = answered(stage.api(), room, two).await;
        let parts = message_of(stage.api(), &run).await.parts;
        let names: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Tool(call) => call.result.as_ref().filter(|result| !result.is_error).map(|_| call.name.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(names, ["memory", "current_time"], "{parts:?}");
        stage.said(room, "and now").await;
        let last = stage.models.requests().pop().unwrap().body.to_string();
        assert!(last.contains("likes tea") && last.contains("Saved."), "earlier calls are in the context: {last}");
    }
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_the_text_are_carried_out_and_never_shown() {
    let stage = Stage::open().await;
    for (provider, run_tools) in [("anthropic", "after"), ("openai", "while_streaming"), ("local", "after")] {
        let options = json!({"tool_calling": "xml", "run_tools": run_tools, "parallel": false});
        let room = stage.room(provider, json!({"model_options": options})).await;
        let told = stage.said(room, "!xml current_time {}").await;
        assert!(told.contains("I will use a tool.") && told.contains("Done. The tool returned: 20"), "{told}");
        assert!(!told.contains('<'), "{told}");
        let request = &stage.models.requests().pop().unwrap().body;
        assert!(request["tools"].is_null() && request.to_string().contains("function_calls"), "{request}");
    }
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_pass_is_asked_again_and_the_room_is_told() {
    let stage = Stage::open().await;
    for provider in ["anthropic", "openai"] {
        for (prompt, said) in [
            ("!fail-once 429 a", "Recovered after a failure."),
            ("!fail-once 529 b", "Recovered after a failure."),
            ("!fail-once 503 c", "Recovered after a failure."),
            ("!midfail-once d", "Recovered after a failure."),
        ] {
            let room = stage.room(provider, json!({})).await;
            assert_eq!(stage.said(room, &format!("{prompt} {provider}")).await, said, "{prompt}");
            assert_eq!(statuses(&journal(stage.api(), room).await), ["retrying"], "{prompt}");
        }
    }
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_pass_fails_and_what_was_said_is_kept() {
    let stage = Stage::open().await;
    for (provider, code) in [("anthropic", "model_overloaded"), ("openai", "model_failed")] {
        let room = stage.room(provider, json!({})).await;
        let run = answered(stage.api(), room, "!midfail").await;
        assert_eq!(run.status, RunStatus::Failed);
        assert_eq!(run.error.as_ref().unwrap().code, code, "{:?}", run.error);
        let text = message_of(stage.api(), &run).await.text;
        assert_eq!(text, "Some partial text before the stream breaks", "said once, however often it was tried");
        let run = answered(stage.api(), room, "!fail 400").await;
        assert_eq!(run.error.unwrap().code, "model_refused");
    }
    let refused = stage.models.requests().iter().filter(|request| request.prompt == "!fail 400").count();
    assert_eq!(refused, 2, "a request that is wrong is not made again");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_key_is_final_at_once_and_never_told() {
    let stage = Stage::open_with(TestDatabase::sqlite(), "bad-key").await;
    for (provider, variable) in [("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")] {
        let room = stage.room(provider, json!({})).await;
        let run = answered(stage.api(), room, "hello").await;
        let error = run.error.unwrap();
        assert_eq!(error.code, "authentication_failed");
        assert!(error.message.contains(variable), "{}", error.message);
        let journal = journal(stage.api(), room).await;
        assert!(statuses(&journal).is_empty() && journal.iter().all(|event| !event.json.contains("bad-key")));
    }
    assert_eq!(stage.models.requests().len(), 2);
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_closes_the_connection() {
    let stage = Stage::open().await;
    for provider in ["anthropic", "openai"] {
        let room = stage.room(provider, json!({})).await;
        let mut audience = Audience::of(stage.api(), room).await;
        let prompt = format!("!slow 100000 20\n{provider}");
        let run = say(stage.api(), room, &prompt).await;
        audience.first_word(run).await;
        let cancelled = stage.api().cancel_run(run).await.unwrap();
        assert_eq!(cancelled.status, RunStatus::Cancelled);
        let gone = stage.models.wait_for(crate::DEADLINE, |request| {
            request.prompt.contains(provider) && request.progress() == Progress::ClientGone
        });
        gone.await.expect("the socket is closed");
        let message = message_of(stage.api(), &stage.api().run(run).await.unwrap()).await;
        assert!(message.text.starts_with("word0 "), "{}", message.text);
    }
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_by_a_person() {
    let stage = Stage::open().await;
    let room = stage.room("anthropic", json!({})).await;
    let mut audience = Audience::of(stage.api(), room).await;
    let run = say(stage.api(), room, "!call ask_user {\"question\":\"Which?\"}").await;
    let asked = data(&audience.until_kind(EventType::ApprovalRequested, run).await);
    assert_eq!(asked["is_question"], true);
    let path = format!("/api/runs/{run}/approvals/{}", asked["approval_id"].as_str().unwrap());
    post(stage.api(), &path, &json!({"decision": "allow", "input": {"answer": "this one"}})).await.is(204);
    let run = ended(stage.api(), run).await;
    let text = message_of(stage.api(), &run).await.text;
    assert!(text.ends_with("Done. The tool returned: this one"), "{text}");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_is_the_agents_own_in_every_room() {
    let stage = Stage::open().await;
    let settings = json!({"provider": "openai", "model": "double"});
    let (ann, bob) = (agent(stage.api(), "Ann", settings.clone()).await, agent(stage.api(), "Bob", settings).await);
    let first = room_of(stage.api(), &[ann]).await;
    stage.said(first, "!call memory {\"action\":\"save\",\"text\":\"the code is 7421\"}").await;
    let recall = "!call memory {\"action\":\"recall\",\"text\":\"code\"}";
    let another = room_of(stage.api(), &[ann]).await;
    let told = stage.said(another, recall).await;
    assert!(told.contains("the code is 7421"), "{told}");
    let others = room_of(stage.api(), &[bob]).await;
    let told = stage.said(others, recall).await;
    assert!(told.contains("There are no such notes."), "{told}");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skill_is_named_in_the_prompt_and_loaded_when_needed() {
    let stage = Stage::open().await;
    let folder = stage.server.database().folder().join("skills/brewing");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("SKILL.md"),
        "---\nname: brewing\ndescription: How tea is made.\n---\nBoil the water first.\n",
    )
    .unwrap();
    let room = stage.room("anthropic", json!({"skills": ["brewing"]})).await;
    let told = stage.said(room, "!call skill {\"name\":\"brewing\"}").await;
    assert!(told.contains("Boil the water first."), "{told}");
    let first = stage.models.requests()[0].body["system"].to_string();
    assert!(first.contains("How tea is made.") && !first.contains("Boil the water"), "{first}");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_outgrows_the_context_is_folded_and_the_room_is_told() {
    let stage = Stage::open().await;
    let room = stage.room("openai", json!({"model_options": {"context_window": 4096, "max_output_tokens": 256}})).await;
    for number in 0..4 {
        stage.said(room, &format!("{number} {}", "long ".repeat(600))).await;
    }
    let told = statuses(&journal(stage.api(), room).await);
    assert!(told.contains(&"compacted".to_owned()), "{told:?}");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_that_cannot_work_are_refused_when_they_are_made() {
    let stage = Stage::open().await;
    let make = async |spec: Value| post(stage.api(), "/api/agents", &spec).await;
    let no_model = make(json!({"name": "a", "provider": "anthropic"})).await.is_refused(422, "unprocessable");
    assert!(no_model["detail"].as_str().unwrap().contains("model"), "{no_model}");
    let options = json!({"tool_calling": "xml"});
    let scripted = make(json!({"name": "b", "provider": "scripted", "model_options": options})).await;
    assert_eq!(scripted.is_refused(422, "unprocessable")["pointer"], "/model_options");
    let wrong = json!({"context_window": 1});
    make(json!({"name": "c", "provider": "openai", "model": "m", "model_options": wrong}))
        .await
        .is_refused(422, "unprocessable");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_an_mcp_server_are_called_and_one_that_crashed_comes_back() {
    let stage = Stage::open().await;
    let fake = json!({"name": "fake", "command": testkit::programs::fake_mcp(), "args": ["good"]});
    post(stage.api(), "/api/mcp-servers", &fake).await.is(201);
    for provider in PROVIDERS {
        let settings = json!({"mcp_servers": ["fake"], "tools": {"allow": ["mcp__fake__*"]}});
        let room = stage.room(provider, settings).await;
        let told = stage.said(room, "!call mcp__fake__echo {\"text\":\"from afar\"}").await;
        assert!(told.ends_with("Done. The tool returned: from afar"), "{told}");
        let told = stage.said(room, "!call mcp__fake__fail").await;
        assert!(told.contains("it did not work"), "{told}");

        // It dies in the middle of a call: that call has failed, and the next one finds it alive.
        let run = answered(stage.api(), room, "!call mcp__fake__crash").await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        let parts = message_of(stage.api(), &run).await.parts;
        let failed = |part: &Part| matches!(part, Part::Tool(call) if call.result.as_ref().is_some_and(|r| r.is_error));
        assert!(parts.iter().any(failed), "{parts:?}");
        let told = stage.said(room, "!call mcp__fake__echo {\"text\":\"again\"}").await;
        assert!(told.ends_with("Done. The tool returned: again"), "{told}");
        let heard = statuses(&journal(stage.api(), room).await);
        assert!(heard.iter().any(|status| status == "mcp_server_restarted"), "{heard:?}");
    }
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_of_an_mcp_server_asks_first() {
    let stage = Stage::open().await;
    let fake = json!({"name": "fake", "command": testkit::programs::fake_mcp(), "args": ["good"]});
    post(stage.api(), "/api/mcp-servers", &fake).await.is(201);
    let room = stage.room("openai", json!({"mcp_servers": ["fake"]})).await;
    for (answer, returned) in [
        (json!({"decision": "allow"}), "as asked"),
        (json!({"decision": "allow", "input": {"text": "changed"}}), "changed"),
        (json!({"decision": "deny"}), "not allowed"),
    ] {
        let mut audience = Audience::of(stage.api(), room).await;
        let run = say(stage.api(), room, "!call mcp__fake__echo {\"text\":\"as asked\"}").await;
        let asked = data(&audience.until_kind(EventType::ApprovalRequested, run).await);
        assert_eq!((&asked["name"], &asked["input"]), (&json!("mcp__fake__echo"), &json!({"text": "as asked"})));
        let path = format!("/api/runs/{run}/approvals/{}", asked["approval_id"].as_str().unwrap());
        post(stage.api(), &path, &answer).await.is(204);
        let run = ended(stage.api(), run).await;
        let text = message_of(stage.api(), &run).await.text.to_lowercase();
        assert!(text.contains(returned), "{answer}: {text}");
    }
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skill_takes_parameters_and_its_body_reaches_the_model() {
    let stage = Stage::open().await;
    let skill = json!({"name": "greet", "description": "Greets", "body": "Greet in {{language}}, with {{count}} words.",
                       "parameters": [{"name": "language", "type": "text", "required": true},
                                      {"name": "count", "type": "number", "default": 3}]});
    post(stage.api(), "/api/skills", &skill).await.is(201);
    for provider in PROVIDERS {
        let room = stage.room(provider, json!({"skills": ["greet"]})).await;
        stage.said(room, "/greet language=Welsh").await;
        let asked = stage.models.requests().pop().unwrap().body.to_string();
        assert!(asked.contains("Greet in Welsh, with 3 words."), "{provider}: {asked}");
        let missing = json!({"text": "/greet count=2"});
        let refused =
            post(stage.api(), &format!("/api/rooms/{room}/messages"), &missing).await.is_refused(422, "unprocessable");
        assert!(refused["detail"].as_str().unwrap().contains("language"), "{refused}");
    }
    stage.close().await;
}
