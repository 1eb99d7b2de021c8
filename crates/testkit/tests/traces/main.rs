//! Traces, exported by the real server to a real collector. `cargo xtask test traces` installs it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy treats only #[test] functions as tests, not their helpers"
)]

mod collector;

use collector::{CollectedSpan, Collector};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::{ServerLaunch, TestClient},
    programs,
};
use tokio::time::{sleep, timeout};

const DEADLINE: Duration = Duration::from_secs(30);
/// In the prompt, the input of the tool and its result.
const SECRET: &str = "xyzzy";
/// The trace and the span of the client that posts the message.
const CLIENT: (&str, &str) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");

/// Runs a server that has one agent answer one message, with an approved tool call. Returns the ids of the run and its room.
async fn run_an_agent(collector: &Collector, settings: &[(&str, &str)]) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut launch = ServerLaunch::new(programs::greenroom(), folder.path().join("data"))
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint());
    for (name, value) in settings {
        launch = launch.with(name, *value);
    }
    let server = launch.start().await.unwrap();
    let api = server.client().unwrap();
    let agent = send(&api, Method::POST, "/api/agents", json!({"name": "ada", "provider": "scripted"})).await;
    let room = send(&api, Method::POST, "/api/rooms", json!({"name": "r", "agents": [agent["id"]]})).await;
    let room = room["id"].as_str().unwrap().to_owned();
    let text = format!("!ask Bash {{\"cmd\":\"{SECRET}\"}}");
    let post = api.request(Method::POST, &format!("/api/rooms/{room}/messages")).json(&json!({"text": text}));
    let post = post.header("traceparent", format!("00-{}-{}-01", CLIENT.0, CLIENT.1));
    let posted: Value = post.send().await.unwrap().json().await.unwrap();
    let run = posted["runs"][0]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(&api, "/api/approvals?status=pending", |list| list["approvals"][0]["id"].is_string()).await;
    let approval = approval["approvals"][0]["id"].as_str().unwrap();
    send(&api, Method::POST, &format!("/api/runs/{run}/approvals/{approval}"), json!({"decision": "allow"})).await;
    wait_for(&api, &format!("/api/runs/{run}"), |run| run["status"] == "completed").await;
    // Exports what is left.
    server.terminate(DEADLINE).await.unwrap();
    (run, room)
}

async fn send(api: &TestClient, method: Method, path: &str, body: Value) -> Value {
    let response = api.request(method, path).json(&body).send().await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).unwrap_or_default()
}

async fn wait_for(api: &TestClient, path: &str, is_there: impl Fn(&Value) -> bool) -> Value {
    let waiting = async {
        loop {
            let found: Value = api.request(Method::GET, path).send().await.unwrap().json().await.unwrap();
            if is_there(&found) {
                return found;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(DEADLINE, waiting).await.unwrap_or_else(|_| panic!("{path} did not become what was awaited"))
}

fn attribute<'a>(span: &'a CollectedSpan, name: &str) -> &'a str {
    span.attributes.get(name).unwrap_or_else(|| panic!("{name} is missing: {span:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_gets_request_run_model_call_tool_and_approval() {
    let collector = Collector::start().await;
    let (run, room) = run_an_agent(&collector, &[]).await;
    let trace = run.replace('-', "");
    let spans = collector.spans_until(|spans| spans.iter().any(|span| span.name == "invoke_agent ada")).await;
    let named = |name: &str| {
        spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}: {spans:#?}"))
    };

    let request = named("POST /api/rooms/{id}/messages");
    assert_eq!((request.trace.as_str(), request.parent.as_str()), CLIENT, "the client's trace goes on");
    assert_eq!(
        (request.kind.as_str(), attribute(request, "http.response.status_code")),
        ("SPAN_KIND_SERVER", "Int(202)")
    );

    let invoked = named("invoke_agent ada");
    assert_eq!((invoked.trace.as_str(), invoked.parent.as_str()), (trace.as_str(), ""), "a run outlives its request");
    assert_eq!(invoked.links, [(request.trace.clone(), request.id.clone())], "so it links to it");
    for (name, value) in [
        ("gen_ai.operation.name", "Str(invoke_agent)".to_owned()),
        ("gen_ai.provider.name", "Str(scripted)".to_owned()),
        ("gen_ai.agent.name", "Str(ada)".to_owned()),
        ("gen_ai.conversation.id", format!("Str({room})")),
        ("greenroom.run.status", "Str(completed)".to_owned()),
    ] {
        assert_eq!(attribute(invoked, name), value, "{name}");
    }
    assert!(attribute(invoked, "gen_ai.usage.output_tokens").starts_with("Int("));

    let chat = spans.iter().find(|span| span.name.starts_with("chat")).expect("a model call");
    assert_eq!((&chat.trace, &chat.parent, chat.kind.as_str()), (&trace, &invoked.id, "SPAN_KIND_CLIENT"));
    assert_eq!(attribute(chat, "gen_ai.operation.name"), "Str(chat)");
    let tool = named("execute_tool Bash");
    assert_eq!((&tool.trace, &tool.parent), (&trace, &invoked.id));
    assert_eq!(attribute(tool, "gen_ai.tool.name"), "Str(Bash)");
    let approval = named("approval Bash");
    assert_eq!((&approval.trace, &approval.parent), (&trace, &tool.id));
    assert_eq!(attribute(approval, "greenroom.approval.decision"), "Str(allow)");
    assert!(!collector.log().contains(SECRET), "no content unless the operator asks for it");

    // With the operator's consent the same run has its content.
    let with_content = [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")];
    let (run, _) = run_an_agent(&collector, &with_content).await;
    let trace = run.replace('-', "");
    let is_there = |span: &CollectedSpan| span.trace == trace && span.name == "invoke_agent ada";
    let spans = collector.spans_until(|spans| spans.iter().any(is_there)).await;
    let of_run = spans.iter().filter(|span| span.trace == trace);
    let shown: Vec<&str> = of_run
        .filter(|span| span.attributes.values().any(|value| value.contains(SECRET)))
        .map(|span| span.name.as_str())
        .collect();
    assert!(shown.contains(&"invoke_agent ada") && shown.contains(&"execute_tool Bash"), "{shown:?}");
    collector.stop().await;
}
