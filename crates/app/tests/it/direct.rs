//! Agents on bare model APIs, through the whole server, with doubles of the vendors.

use crate::endpoints::requests::{
    RoomFollower, agent, data, delete, get, journal, message_of, post, post_and_wait, post_text, response_to, room_of,
    wait_for_end,
};
use domain::{event::EventType, ids::RoomId, message::Part, run::RunStatus};
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, path::Path};
use testkit::{
    client::{SeenEvent, TestClient},
    database::TestDatabase,
    models::{AnswerProgress, ModelDouble},
    server::TestServer,
};

/// Each vendor's APIs, and a custom OpenAI-compatible endpoint.
const PROVIDERS: [&str; 5] = ["anthropic", "openai", "openai_responses", "google", "local"];
/// Those at a vendor.
const VENDORS: [&str; 4] = ["anthropic", "openai", "openai_responses", "google"];

pub struct DirectFixture {
    pub models: ModelDouble,
    server: TestServer,
}

impl DirectFixture {
    pub async fn open() -> Self {
        Self::open_with(TestDatabase::sqlite(), "test-key").await
    }

    pub async fn open_with(database: TestDatabase, key: &str) -> Self {
        Self::open_with_settings(database, key, &[]).await
    }

    async fn open_with_settings(database: TestDatabase, key: &str, more: &[(&str, &str)]) -> Self {
        let models = ModelDouble::start().await.unwrap();
        let (plain, openai) = (models.url(), format!("{}/v1", models.url()));
        let local = format!("local = {openai}");
        let settings = [
            ("anthropic.base_url", plain.as_str()),
            ("openai.base_url", openai.as_str()),
            ("google.base_url", plain.as_str()),
            ("openai.endpoints", local.as_str()),
            ("direct.retries", "2"),
        ];
        let settings = [&settings[..], more].concat();
        let environment = [("ANTHROPIC_API_KEY", key), ("OPENAI_API_KEY", key), ("GEMINI_API_KEY", key)];
        let server = TestServer::start_with_environment(database, &settings, &environment).await;
        Self { models, server }
    }

    pub fn api(&self) -> &TestClient {
        self.server.api()
    }

    pub fn data_folder(&self) -> &Path {
        self.server.database().folder()
    }

    /// The newest request to a model, as text.
    pub fn last_request_text(&self) -> String {
        self.models.requests().pop().unwrap().body.to_string()
    }

    pub async fn room(&self, provider: &str, settings: Value) -> RoomId {
        let mut all = json!({"provider": provider, "model": "double"});
        all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let agent = agent(self.api(), &format!("on {provider} {}", uuid::Uuid::now_v7()), all).await;
        room_of(self.api(), &[agent]).await
    }

    /// Posts a message and returns the text of the completed answer.
    pub async fn answer_to(&self, room: RoomId, text: &str) -> String {
        let run = post_and_wait(self.api(), room, text).await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        assert!(run.usage.input_tokens > 0 && run.usage.output_tokens > 0, "{:?}", run.usage);
        message_of(self.api(), &run).await.text
    }

    pub async fn close(self) {
        self.server.finish().await;
        self.models.stop().await;
    }
}

pub fn statuses(journal: &[SeenEvent]) -> Vec<String> {
    let of = journal.iter().filter(|event| event.kind == EventType::Status);
    of.map(|event| data(event)["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_thinking_and_history() {
    let fixture = DirectFixture::open().await;
    for provider in PROVIDERS {
        let room = fixture.room(provider, json!({"system_prompt": "Be brief."})).await;
        assert_eq!(fixture.answer_to(room, "!count 3").await, "1 2 3");
        let run = post_and_wait(fixture.api(), room, "!think one two").await;
        let message = message_of(fixture.api(), &run).await;
        // The doubles of OpenAI's Responses and of Gemini put a title first, as their originals do.
        assert!(message.thinking.ends_with("one two"), "{provider}: {}", message.thinking);
        assert_eq!(message.text, "The answer is 42.", "{provider}");
        let recalled = fixture.answer_to(room, "!recall").await;
        assert!(recalled.starts_with("I remember 3 user texts: \"!count 3\", \"!think one two\""), "{recalled}");
        let asked = fixture.models.requests();
        let last = asked.last().unwrap();
        assert_eq!(last.key.as_deref(), (provider != "local").then_some("test-key"), "{provider}");
        assert!(last.body.to_string().contains("Be brief."));
        assert_eq!(last.body.to_string().contains("cache_control"), provider == "anthropic");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_and_parallel_tool_calls_stay_in_the_context() {
    let fixture = DirectFixture::open().await;
    for provider in PROVIDERS {
        let room = fixture.room(provider, json!({})).await;
        let text = fixture.answer_to(room, "!call current_time").await;
        assert!(text.contains("Done. The tool returned: 20"), "{text}");
        let two = "!call memorize {\"text\":\"likes tea\"}\n!call current_time {}";
        let run = post_and_wait(fixture.api(), room, two).await;
        let parts = message_of(fixture.api(), &run).await.parts;
        let names: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Tool(call) => call.result.as_ref().filter(|result| !result.is_error).map(|_| call.name.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(names, ["memorize", "current_time"], "{parts:?}");
        fixture.answer_to(room, "and now").await;
        let last = fixture.models.requests().pop().unwrap().body.to_string();
        assert!(last.contains("likes tea") && last.contains("Saved."), "earlier calls must be in the context: {last}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xml_calls_are_executed_and_hidden() {
    let fixture = DirectFixture::open().await;
    for (provider, run_tools) in [("anthropic", "after"), ("openai", "while_streaming"), ("local", "after")] {
        let options = json!({"tool_calling": "xml", "run_tools": run_tools, "parallel": false});
        let room = fixture.room(provider, json!({"model_options": options})).await;
        let text = fixture.answer_to(room, "!xml current_time {}").await;
        assert!(text.contains("I will use a tool.") && text.contains("Done. The tool returned: 20"), "{text}");
        assert!(!text.contains('<'), "{text}");
        let request = &fixture.models.requests().pop().unwrap().body;
        assert!(request["tools"].is_null() && request.to_string().contains("function_calls"), "{request}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transient_errors_are_retried_with_a_status() {
    let fixture = DirectFixture::open().await;
    for provider in VENDORS {
        for (prompt, said) in [
            ("!fail-once 429 a", "Recovered after a failure."),
            ("!fail-once 529 b", "Recovered after a failure."),
            ("!fail-once 503 c", "Recovered after a failure."),
            ("!midfail-once d", "Recovered after a failure."),
        ] {
            let room = fixture.room(provider, json!({})).await;
            assert_eq!(fixture.answer_to(room, &format!("{prompt} {provider}")).await, said, "{prompt}");
            assert_eq!(statuses(&journal(fixture.api(), room).await), ["retrying"], "{prompt}");
        }
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permanent_errors_fail_and_keep_the_partial_text() {
    let fixture = DirectFixture::open().await;
    for provider in VENDORS {
        let code = if provider == "anthropic" { "model_overloaded" } else { "model_failed" };
        let room = fixture.room(provider, json!({})).await;
        let run = post_and_wait(fixture.api(), room, "!midfail").await;
        assert_eq!(run.status, RunStatus::Failed);
        assert_eq!(run.error.as_ref().unwrap().code, code, "{:?}", run.error);
        let text = message_of(fixture.api(), &run).await.text;
        assert_eq!(text, "Some partial text before the stream breaks", "the text must appear once despite retries");
        let run = post_and_wait(fixture.api(), room, "!fail 400").await;
        assert_eq!(run.error.unwrap().code, "model_refused");
    }
    let refused = fixture.models.requests().iter().filter(|request| request.prompt == "!fail 400").count();
    assert_eq!(refused, VENDORS.len(), "an invalid request must not be retried");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_key_fails_at_once_and_is_not_leaked() {
    let fixture = DirectFixture::open_with(TestDatabase::sqlite(), "bad-key").await;
    for (provider, variable) in [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("openai_responses", "OPENAI_API_KEY"),
        ("google", "GEMINI_API_KEY"),
    ] {
        let room = fixture.room(provider, json!({})).await;
        let run = post_and_wait(fixture.api(), room, "hello").await;
        let error = run.error.unwrap();
        assert_eq!(error.code, "authentication_failed");
        assert!(error.message.contains(variable), "{}", error.message);
        let journal = journal(fixture.api(), room).await;
        assert!(statuses(&journal).is_empty() && journal.iter().all(|event| !event.json.contains("bad-key")));
    }
    assert_eq!(fixture.models.requests().len(), VENDORS.len());
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_closes_the_connection_and_costs_what_was_used() {
    let prices = [("direct.vendor_prices", "anthropic,openai,openai_responses,google")];
    let fixture = DirectFixture::open_with_settings(TestDatabase::sqlite(), "test-key", &prices).await;
    for (provider, model) in [
        ("anthropic", "claude-sonnet-4-5"),
        ("openai", "gpt-5"),
        ("openai_responses", "gpt-5"),
        ("google", "gemini-2.5-pro"),
    ] {
        let room = fixture.room(provider, json!({"model": model})).await;
        let mut follower = RoomFollower::start(fixture.api(), room).await;
        let prompt = format!("!slow 100000 20\nto {provider}");
        let run = post_text(fixture.api(), room, &prompt).await;
        follower.first_delta(run).await;
        let cancelled = fixture.api().cancel_run(run).await.unwrap();
        assert_eq!(cancelled.status, RunStatus::Cancelled);
        let gone = fixture.models.wait_for(crate::DEADLINE, |request| {
            request.prompt.ends_with(&format!("to {provider}"))
                && request.progress() == AnswerProgress::ClientDisconnected
        });
        gone.await.expect("the connection is closed");
        let run = fixture.api().run(run).await.unwrap();
        let message = message_of(fixture.api(), &run).await;
        assert!(message.text.starts_with("word0 "), "{}", message.text);
        // Neither of OpenAI's APIs reports the usage of an answer that is stopped, and Anthropic's only that of the prompt.
        let used =
            journal(fixture.api(), room).await.into_iter().filter(|event| event.kind == EventType::UsageReported);
        let used: Vec<Value> = used.map(|event| data(&event)).collect();
        assert_eq!(used.len(), 1, "{provider}: {used:?}");
        assert_eq!(used[0]["is_estimated"] == true, provider != "google", "{provider}: {used:?}");
        let tokens = run.usage;
        assert!(
            tokens.input_tokens > 0 && tokens.output_tokens * 9 >= message.text.len() as u64,
            "{provider}: {tokens:?}"
        );
        assert!(run.cost.is_some_and(|cost| cost.as_nanos() > 0), "{provider}: {:?}", run.cost);
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reasoning_is_sent_back_with_the_calls_that_it_led_to() {
    let fixture = DirectFixture::open().await;
    for provider in ["openai_responses", "google"] {
        let room = fixture.room(provider, json!({})).await;
        fixture.answer_to(room, "!think about it\n!call current_time").await;
        let asked = fixture.models.requests().pop().unwrap().body.clone();
        if provider == "google" {
            let part =
                &asked["contents"][1]["parts"].as_array().unwrap().iter().find(|part| part["functionCall"].is_object());
            assert_eq!(part.unwrap()["thoughtSignature"], "ZG91Ymxl", "{asked}");
        } else {
            let kinds: Vec<&str> =
                asked["input"].as_array().unwrap().iter().filter_map(|it| it["type"].as_str()).collect();
            assert_eq!(kinds, ["message", "reasoning", "message", "function_call", "function_call_output"], "{asked}");
            assert_eq!(asked["input"][1]["encrypted_content"], "ZG91Ymxl");
            assert_eq!((&asked["store"], &asked["include"][0]), (&json!(false), &json!("reasoning.encrypted_content")));
        }
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_costs_what_its_server_is_known_to_charge() {
    let settings = [("direct.vendor_prices", "openai"), ("direct.free", "local")];
    let fixture = DirectFixture::open_with_settings(TestDatabase::sqlite(), "test-key", &settings).await;
    // `openai_responses` is at an address of which nothing is known.
    for (provider, expected) in [("openai", None), ("local", Some(Some(0))), ("openai_responses", Some(None))] {
        let room = fixture.room(provider, json!({"model": "gpt-5"})).await;
        let run = post_and_wait(fixture.api(), room, "!count 3").await;
        let cost = run.cost.map(domain::usage::Cost::as_nanos);
        match expected {
            Some(expected) => assert_eq!(cost, expected, "{provider}"),
            None => assert!(cost.is_some_and(|cost| cost > 0), "{provider}: {cost:?}"),
        }
    }
    fixture.close().await;
}

/// The variables of the vendors' SDKs, which their programs read too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn variables_of_the_sdks_set_addresses_keys_and_headers() {
    let models = ModelDouble::start().await.unwrap();
    let (plain, openai) = (models.url(), format!("{}/v1/", models.url()));
    let environment = [
        ("ANTHROPIC_BASE_URL", plain.as_str()),
        ("ANTHROPIC_AUTH_TOKEN", "token-of-a-gateway"),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Team: blue\nX-Room: one"),
        ("OPENAI_BASE_URL", openai.as_str()),
        ("OPENAI_API_KEY", "key-of-openai"),
        // One of two spellings each.
        ("OPENAI_ORGANIZATION", "org-1"),
        ("OPENAI_PROJECT_ID", "project-1"),
        ("GOOGLE_GEMINI_BASE_URL", plain.as_str()),
        ("GOOGLE_API_KEY", "key-of-google"),
    ];
    let server = TestServer::start_with_environment(TestDatabase::sqlite(), &[], &environment).await;
    let fixture = DirectFixture { models, server };
    for (provider, key, header) in [
        ("anthropic", "token-of-a-gateway", ("x-team", "blue")),
        ("openai", "key-of-openai", ("openai-organization", "org-1")),
        ("openai_responses", "key-of-openai", ("openai-project", "project-1")),
        ("google", "key-of-google", ("x-goog-api-key", "key-of-google")),
    ] {
        let room = fixture.room(provider, json!({})).await;
        assert_eq!(fixture.answer_to(room, "!count 2").await, "1 2");
        let asked = fixture.models.requests().pop().unwrap();
        assert_eq!(asked.key.as_deref(), Some(key), "{provider}");
        assert_eq!(asked.headers.get(header.0).map(String::as_str), Some(header.1), "{provider}");
    }
    let listed = get(fixture.api(), "/api/providers").await.expect_status(200).to_string();
    for source in ["ANTHROPIC_BASE_URL", "headers from ANTHROPIC_AUTH_TOKEN", "key from GOOGLE_API_KEY"] {
        assert!(listed.contains(source), "{listed}");
    }
    for secret in ["token-of-a-gateway", "key-of-openai", "key-of-google", "blue"] {
        assert!(!listed.contains(secret), "{listed}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn question_is_answered_by_a_person() {
    let fixture = DirectFixture::open().await;
    let room = fixture.room("anthropic", json!({})).await;
    let mut follower = RoomFollower::start(fixture.api(), room).await;
    let run = post_text(fixture.api(), room, "!call ask_user {\"question\":\"Which?\"}").await;
    let asked = data(&follower.until_kind(EventType::ApprovalRequested, run).await);
    assert_eq!(asked["is_question"], true);
    let path = format!("/api/runs/{run}/approvals/{}", asked["approval_id"].as_str().unwrap());
    post(fixture.api(), &path, &json!({"decision": "allow", "input": {"answer": "this one"}})).await.expect_status(204);
    let run = wait_for_end(fixture.api(), run).await;
    let text = message_of(fixture.api(), &run).await.text;
    assert!(text.ends_with("Done. The tool returned: this one"), "{text}");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_belongs_to_the_agent_across_rooms() {
    let fixture = DirectFixture::open().await;
    let settings = json!({"provider": "openai", "model": "double"});
    let (ann, bob) = (agent(fixture.api(), "Ann", settings.clone()).await, agent(fixture.api(), "Bob", settings).await);
    let first = room_of(fixture.api(), &[ann]).await;
    fixture.answer_to(first, "!call memorize {\"text\":\"the code is 7421\"}").await;
    let recall = "!call recall {\"about\":\"code\"}";
    let another = room_of(fixture.api(), &[ann]).await;
    let text = fixture.answer_to(another, recall).await;
    assert!(text.contains("the code is 7421"), "{text}");
    let others = room_of(fixture.api(), &[bob]).await;
    let text = fixture.answer_to(others, recall).await;
    assert!(text.contains("There are no such notes."), "{text}");
    // A person sees, corrects and deletes what the agent has saved.
    let path = format!("/api/agents/{ann}/memories");
    let listed = get(fixture.api(), &path).await.expect_status(200);
    assert_eq!(listed["memories"][0]["text"], "the code is 7421", "{listed}");
    let note = format!("{path}/{}", listed["memories"][0]["id"].as_str().unwrap());
    let change = |text: &str| fixture.api().request(Method::PATCH, &note).json(&json!({"text": text}));
    response_to(change("the code is 9000")).await.expect_status(204);
    response_to(change(" ")).await.expect_status(400);
    let text = fixture.answer_to(another, recall).await;
    assert!(text.contains("the code is 9000"), "{text}");
    let of_bob = note.replace(&ann.to_string(), &bob.to_string());
    delete(fixture.api(), &of_bob).await.expect_status(404);
    delete(fixture.api(), &note).await.expect_status(204);
    delete(fixture.api(), &note).await.expect_status(404);
    assert_eq!(get(fixture.api(), &path).await.expect_status(200)["memories"], json!([]));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skill_is_listed_in_the_prompt_and_loaded_on_demand() {
    let fixture = DirectFixture::open().await;
    let folder = fixture.server.database().folder().join("skills/brewing");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("SKILL.md"),
        "---\nname: brewing\ndescription: How tea is made.\n---\nBoil the water first.\n",
    )
    .unwrap();
    let room = fixture.room("anthropic", json!({"skills": ["brewing"]})).await;
    let text = fixture.answer_to(room, "!call skill {\"name\":\"brewing\"}").await;
    assert!(text.contains("Boil the water first."), "{text}");
    let first = fixture.models.requests()[0].body["system"].to_string();
    assert!(first.contains("How tea is made.") && !first.contains("Boil the water"), "{first}");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_context_is_compacted_with_a_status() {
    let fixture = DirectFixture::open().await;
    let room =
        fixture.room("openai", json!({"model_options": {"context_window": 4096, "max_output_tokens": 256}})).await;
    for number in 0..4 {
        fixture.answer_to(room, &format!("{number} {}", "long ".repeat(600))).await;
    }
    let statuses_seen = statuses(&journal(fixture.api(), room).await);
    assert!(statuses_seen.contains(&"compacted".to_owned()), "{statuses_seen:?}");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_settings_are_rejected_on_create() {
    let fixture = DirectFixture::open().await;
    let make = async |spec: Value| post(fixture.api(), "/api/agents", &spec).await;
    let no_model = make(json!({"name": "a", "provider": "anthropic"})).await.expect_problem(422, "unprocessable");
    assert!(no_model["detail"].as_str().unwrap().contains("model"), "{no_model}");
    let options = json!({"tool_calling": "xml"});
    let scripted = make(json!({"name": "b", "provider": "scripted", "model_options": options})).await;
    assert_eq!(scripted.expect_problem(422, "unprocessable")["pointer"], "/model_options");
    for (provider, wrong, pointer) in [
        ("openai", json!({"context_window": 1}), "/model_options/context_window"),
        ("openai", json!({"temperature": 3}), "/model_options/temperature"),
        ("anthropic", json!({"temperature": 1.5}), "/model_options/temperature"),
        ("openai_responses", json!({"stop": ["END"]}), "/model_options/stop"),
        ("google", json!({"thinking": "low", "thinking_budget_tokens": 2048}), "/model_options/thinking_budget_tokens"),
        ("codex", json!({"temperature": 0.5}), "/model_options"),
    ] {
        let refused = make(json!({"name": "c", "provider": provider, "model": "m", "model_options": wrong})).await;
        assert_eq!(refused.expect_problem(422, "unprocessable")["pointer"], pointer, "{provider} {wrong}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_reach_every_api_under_its_own_names() {
    let fixture = DirectFixture::open().await;
    let options = json!({"top_p": 0.5, "max_output_tokens": 500, "stop": ["END"]});
    for (provider, options, expected) in [
        ("anthropic", options.clone(), json!({"top_p": 0.5, "max_tokens": 500, "stop_sequences": ["END"]})),
        ("openai", options.clone(), json!({"top_p": 0.5, "max_tokens": 500, "stop": ["END"]})),
        (
            "openai_responses",
            json!({"temperature": 0.5, "max_output_tokens": 500, "thinking": "low"}),
            json!({"temperature": 0.5, "max_output_tokens": 500, "reasoning": {"effort": "low", "summary": "auto"}}),
        ),
        (
            "google",
            json!({"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 500, "stop": ["END"], "thinking": "high"}),
            json!({"generationConfig": {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 500, "stopSequences": ["END"],
                                        "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "high"}}}),
        ),
    ] {
        let room = fixture.room(provider, json!({"model_options": options})).await;
        fixture.answer_to(room, "hello").await;
        let asked = fixture.models.requests().pop().unwrap().body.clone();
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&asked[key], value, "{provider}: {key} of {asked}");
        }
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_chooses_the_model_and_the_effort_of_its_agents() {
    let fixture = DirectFixture::open().await;
    let api = fixture.api();
    let options = json!({"model_options": {"thinking": "low", "max_output_tokens": 500}});
    let room = fixture.room("openai", options).await;
    let agent = api.room(room).await.unwrap().agents[0];
    let choose = async |choice: Value| {
        let body = json!({"policy": {"members": {(agent.to_string()): choice}}});
        response_to(api.request(Method::PATCH, &format!("/api/rooms/{room}")).json(&body)).await
    };
    let asked = async || {
        let run = post_and_wait(api, room, "hello").await;
        assert_eq!(run.status, RunStatus::Completed);
        let body = fixture.models.requests().pop().unwrap().body.clone();
        let started = journal(api, room).await;
        let started = started.iter().rfind(|event| event.kind == EventType::RunStarted).map(data).unwrap();
        assert_eq!(started["model"], body["model"], "the journal names the model that answers");
        json!([body["model"], body["reasoning_effort"], body["max_tokens"]])
    };
    assert_eq!(asked().await, json!(["double", "low", 500]));
    choose(json!({"model": "double-2", "thinking": "high"})).await.expect_status(200);
    assert_eq!(asked().await, json!(["double-2", "high", 500]), "the rest stays the agent's own");
    choose(json!({"model": null, "thinking": "off"})).await.expect_status(200);
    assert_eq!(asked().await, json!(["double", null, 500]), "compatible servers have no word for it");
    for (choice, field) in [(json!({"model": "--model"}), "model"), (json!({"model": "a\nb"}), "model")] {
        let problem = choose(choice).await.expect_problem(400, "invalid_request");
        assert_eq!(problem["pointer"], format!("/policy/members/{agent}/{field}"));
    }
    choose(json!({"thinking": "a lot"})).await.expect_problem(400, "invalid_request");
    choose(json!({"thinking": null})).await.expect_status(200);
    assert_eq!(asked().await, json!(["double", "low", 500]));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effort_that_a_provider_does_not_know_is_refused() {
    let fixture = DirectFixture::open().await;
    let demo = agent(fixture.api(), "demo", json!({"provider": "scripted"})).await;
    let body = json!({"name": "a", "agents": [demo], "policy": {"members": {(demo.to_string()): {"thinking": "low"}}}});
    let refused = post(fixture.api(), "/api/rooms", &body).await.expect_problem(422, "unprocessable");
    assert_eq!(refused["pointer"], format!("/policy/members/{demo}/thinking"));
    let providers = get(fixture.api(), "/api/providers").await.expect_status(200);
    let efforts = |id: &str| {
        let all = providers["providers"].as_array().unwrap();
        all.iter().find(|provider| provider["id"] == id).unwrap()["efforts"].clone()
    };
    assert_eq!((efforts("scripted"), efforts("codex")), (json!([]), json!(["low", "medium", "high"])));
    assert_eq!(efforts("anthropic"), json!(["off", "low", "medium", "high"]));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_tools_work_and_crashed_servers_restart() {
    let fixture = DirectFixture::open().await;
    let fake = json!({"name": "fake", "command": testkit::programs::fake_mcp(), "args": ["good"]});
    post(fixture.api(), "/api/mcp-servers", &fake).await.expect_status(201);
    for provider in PROVIDERS {
        let settings = json!({"mcp_servers": ["fake"], "tools": {"allow": ["mcp__fake__*"]}});
        let room = fixture.room(provider, settings).await;
        let text = fixture.answer_to(room, "!call mcp__fake__echo {\"text\":\"from afar\"}").await;
        assert!(text.ends_with("Done. The tool returned: from afar"), "{text}");
        let text = fixture.answer_to(room, "!call mcp__fake__fail").await;
        assert!(text.contains("it did not work"), "{text}");

        // The server crashes during a call: that call fails, and the next call restarts it.
        let run = post_and_wait(fixture.api(), room, "!call mcp__fake__crash").await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        let parts = message_of(fixture.api(), &run).await.parts;
        let failed = |part: &Part| matches!(part, Part::Tool(call) if call.result.as_ref().is_some_and(|r| r.is_error));
        assert!(parts.iter().any(failed), "{parts:?}");
        let text = fixture.answer_to(room, "!call mcp__fake__echo {\"text\":\"again\"}").await;
        assert!(text.ends_with("Done. The tool returned: again"), "{text}");
        let statuses_seen = statuses(&journal(fixture.api(), room).await);
        assert!(statuses_seen.iter().any(|status| status == "mcp_server_restarted"), "{statuses_seen:?}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_tool_needs_approval() {
    let fixture = DirectFixture::open().await;
    let fake = json!({"name": "fake", "command": testkit::programs::fake_mcp(), "args": ["good"]});
    post(fixture.api(), "/api/mcp-servers", &fake).await.expect_status(201);
    let room = fixture.room("openai", json!({"mcp_servers": ["fake"]})).await;
    for (answer, returned) in [
        (json!({"decision": "allow"}), "as asked"),
        (json!({"decision": "allow", "input": {"text": "changed"}}), "changed"),
        (json!({"decision": "deny"}), "not allowed"),
    ] {
        let mut follower = RoomFollower::start(fixture.api(), room).await;
        let run = post_text(fixture.api(), room, "!call mcp__fake__echo {\"text\":\"as asked\"}").await;
        let asked = data(&follower.until_kind(EventType::ApprovalRequested, run).await);
        assert_eq!((&asked["name"], &asked["input"]), (&json!("mcp__fake__echo"), &json!({"text": "as asked"})));
        let path = format!("/api/runs/{run}/approvals/{}", asked["approval_id"].as_str().unwrap());
        post(fixture.api(), &path, &answer).await.expect_status(204);
        let run = wait_for_end(fixture.api(), run).await;
        let text = message_of(fixture.api(), &run).await.text.to_lowercase();
        assert!(text.contains(returned), "{answer}: {text}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invoked_skill_is_filled_in_and_reaches_the_model() {
    let fixture = DirectFixture::open().await;
    let skill = json!({"name": "greet", "description": "Greets", "body": "Greet in {{language}}, with {{count}} words.",
                       "parameters": [{"name": "language", "type": "text", "required": true},
                                      {"name": "count", "type": "number", "default": 3}]});
    post(fixture.api(), "/api/skills", &skill).await.expect_status(201);
    for provider in PROVIDERS {
        let room = fixture.room(provider, json!({"skills": ["greet"]})).await;
        fixture.answer_to(room, "/greet language=Welsh").await;
        let asked = fixture.models.requests().pop().unwrap().body.to_string();
        assert!(asked.contains("Greet in Welsh, with 3 words."), "{provider}: {asked}");
        let missing = json!({"text": "/greet count=2"});
        let refused = post(fixture.api(), &format!("/api/rooms/{room}/messages"), &missing)
            .await
            .expect_problem(422, "unprocessable");
        assert!(refused["detail"].as_str().unwrap().contains("language"), "{refused}");
    }
    fixture.close().await;
}
