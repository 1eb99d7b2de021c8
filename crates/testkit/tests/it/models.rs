//! Requests to each vendor's API as a CLI sends them, and the frames of the responses.

use axum::http::StatusCode;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::{
    process::Stdio,
    time::{Duration, Instant},
};
use testkit::{
    client::{ReceivedFrame, ReceivedFrameParser},
    models::{AnswerProgress, ModelDouble, VendorApi},
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

const DEADLINE: Duration = Duration::from_secs(60);

fn http() -> reqwest::Client {
    // Fails only if a provider is installed already, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy().build().unwrap()
}

async fn post(models: &ModelDouble, path: &str, body: Value) -> reqwest::Response {
    let request = http().post(format!("{}{path}", models.url())).header("x-api-key", "test-key").json(&body);
    timeout(DEADLINE, request.send()).await.unwrap().unwrap()
}

/// Returns all frames, and whether the response was complete.
async fn frames(response: reqwest::Response) -> (Vec<ReceivedFrame>, bool) {
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let (mut parser, mut frames) = (ReceivedFrameParser::default(), Vec::new());
    let mut bytes = response.bytes_stream();
    while let Some(chunk) = timeout(DEADLINE, bytes.next()).await.unwrap() {
        let Ok(chunk) = chunk else { return (frames, false) };
        parser.push(&chunk, &mut frames).unwrap();
    }
    (frames, true)
}

async fn stream(models: &ModelDouble, path: &str, body: Value) -> Vec<Value> {
    let (frames, is_whole) = frames(post(models, path, body).await).await;
    assert!(is_whole);
    let data = frames.into_iter().filter(|frame| frame.data != "[DONE]");
    data.map(|frame| {
        let value: Value = serde_json::from_str(&frame.data).unwrap();
        if let Some(event) = frame.event {
            assert_eq!(value["type"], event);
        }
        value
    })
    .collect()
}

fn joined(lines: &[Value], pointer: &str) -> String {
    lines.iter().filter_map(|line| line.pointer(pointer)?.as_str()).collect()
}

fn types(lines: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    types.dedup();
    types
}

fn messages(prompt: &str) -> Value {
    json!({
        "model": "claude-x", "stream": true, "max_tokens": 100, "tools": [{"name": "Bash"}, {"name": "Write"}],
        "messages": [{"role": "user", "content": prompt}],
    })
}

fn responses(prompt: &str) -> Value {
    let custom = json!({"type": "custom", "name": "apply_patch"});
    json!({
        "model": "gpt-x", "stream": true, "tools": [{"type": "function", "name": "exec_command"}, custom],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}],
    })
}

fn chat(prompt: &str) -> Value {
    json!({
        "model": "gpt-x", "stream": true, "messages": [{"role": "user", "content": prompt}],
        "tools": [{"type": "function", "function": {"name": "shell"}}],
    })
}

fn contents(prompt: &str) -> Value {
    json!({
        "contents": [{"role": "user", "parts": [{"text": prompt}]}],
        "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
    })
}

const GEMINI: &str = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";

#[tokio::test]
async fn anthropic_messages_are_streamed() {
    let models = ModelDouble::start().await.unwrap();
    let lines = stream(&models, "/v1/messages?beta=true", messages("!think a b")).await;
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected: Vec<&str> = ["message_start", "ping"]
        .into_iter()
        .chain(block)
        .chain(block)
        .chain(["message_delta", "message_stop"])
        .collect();
    assert_eq!(types(&lines), expected);
    assert_eq!(joined(&lines, "/delta/thinking"), "a b");
    assert_eq!(joined(&lines, "/delta/text"), "The answer is 42.");
    assert_eq!(joined(&lines, "/delta/stop_reason"), "end_turn");
    assert!(!joined(&lines, "/delta/signature").is_empty());
    assert_eq!(lines[0]["message"]["model"], "claude-x");

    let lines = stream(&models, "/v1/messages", messages("!tool echo hi")).await;
    let call = lines.iter().find(|line| line["content_block"]["type"] == "tool_use").unwrap();
    assert_eq!(call["content_block"]["name"], "Bash");
    let input: Value = serde_json::from_str(&joined(&lines, "/delta/partial_json")).unwrap();
    assert_eq!(input["command"], "echo hi");
    assert_eq!(joined(&lines, "/delta/stop_reason"), "tool_use");
}

#[tokio::test]
async fn anthropic_messages_without_streaming() {
    let models = ModelDouble::start().await.unwrap();
    let mut body = messages("!midfail");
    body["stream"] = json!(false);
    let answer: Value = post(&models, "/v1/messages", body).await.json().await.unwrap();
    assert_eq!(answer["content"][0]["text"], "Some partial text before the stream breaks");
    assert_eq!(answer["stop_reason"], "end_turn");
    let counted: Value = post(&models, "/v1/messages/count_tokens", messages("hello")).await.json().await.unwrap();
    assert!(counted["input_tokens"].as_u64().unwrap() > 1);
}

#[tokio::test]
async fn openai_responses_are_streamed() {
    let models = ModelDouble::start().await.unwrap();
    let lines = stream(&models, "/v1/responses", responses("!think a b")).await;
    let numbers: Vec<u64> = lines.iter().map(|line| line["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..lines.len() as u64).collect::<Vec<_>>());
    let delta = |kind: &str| -> String {
        lines.iter().filter(|line| line["type"] == kind).filter_map(|line| line["delta"].as_str()).collect()
    };
    assert_eq!(delta("response.reasoning_summary_text.delta"), "**Reasoning**\n\na b");
    assert_eq!(delta("response.output_text.delta"), "The answer is 42.");
    let last = lines.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["output"][1]["content"][0]["text"], "The answer is 42.");
    assert!(last["response"]["usage"]["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap() > 0);

    let output = |lines: &[Value], at: usize| lines.last().unwrap()["response"]["output"][at].clone();
    let call = output(&stream(&models, "/v1/responses", responses("!tool ls")).await, 1);
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("exec_command")));
    assert_eq!(call["arguments"], "{\"cmd\":\"ls\",\"yield_time_ms\":10000}");
    let patch = output(&stream(&models, "/v1/responses", responses("!write a.txt")).await, 1);
    assert_eq!(patch["type"], "custom_tool_call");
    assert!(patch["input"].as_str().unwrap().starts_with("*** Begin Patch"));
    let spaced = output(&stream(&models, "/v1/responses", responses("!call mcp__x/echo {\"a\":1}")).await, 1);
    assert_eq!((&spaced["namespace"], &spaced["name"]), (&json!("mcp__x"), &json!("echo")));
}

#[tokio::test]
async fn openai_chat_completions_are_streamed_or_whole() {
    let models = ModelDouble::start().await.unwrap();
    let (frames, _) = frames(post(&models, "/v1/chat/completions", chat("!count 3")).await).await;
    assert_eq!(frames.last().unwrap().data, "[DONE]");
    let lines = stream(&models, "/v1/chat/completions", chat("!tool ls")).await;
    assert_eq!(joined(&lines, "/choices/0/delta/content"), "I will use a tool.");
    assert_eq!(joined(&lines, "/choices/0/finish_reason"), "tool_calls");
    let input: Value =
        serde_json::from_str(&joined(&lines, "/choices/0/delta/tool_calls/0/function/arguments")).unwrap();
    assert_eq!(input["command"], json!(["bash", "-lc", "ls"]));
    assert!(lines.last().unwrap()["usage"]["total_tokens"].as_u64().unwrap() > 1);

    let mut body = chat("!count 3");
    body["stream"] = json!(false);
    let answer: Value = post(&models, "/v1/chat/completions", body).await.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"], json!({"role": "assistant", "content": "1 2 3"}));
}

#[tokio::test]
async fn gemini_is_streamed_or_whole() {
    let models = ModelDouble::start().await.unwrap();
    let lines = stream(&models, GEMINI, contents("!think a b")).await;
    assert_eq!(lines[0]["candidates"][0]["content"]["parts"][0]["thought"], true);
    assert_eq!(joined(&lines[1..], "/candidates/0/content/parts/0/text"), "The answer is 42.");
    assert_eq!(joined(&lines, "/candidates/0/finishReason"), "STOP");
    assert!(lines.last().unwrap()["usageMetadata"]["thoughtsTokenCount"].as_u64().unwrap() > 0);

    let lines = stream(&models, GEMINI, contents("!tool ls")).await;
    let call = lines.iter().find_map(|line| line.pointer("/candidates/0/content/parts/0/functionCall")).unwrap();
    assert_eq!((&call["name"], &call["args"]["command"]), (&json!("run_shell_command"), &json!("ls")));

    let whole = "/v1beta/models/gemini-x:generateContent";
    let answer: Value = post(&models, whole, contents("!count 2")).await.json().await.unwrap();
    assert_eq!(answer["candidates"][0]["content"]["parts"][0]["text"], "1 2");
    let counted: Value =
        post(&models, "/v1beta/models/gemini-x:countTokens", contents("x")).await.json().await.unwrap();
    assert!(counted["totalTokens"].as_u64().unwrap() > 1);

    // A side question of the CLI does not run the user's directive.
    let mut side = contents("!fail-once 500");
    side["generationConfig"] = json!({"responseMimeType": "application/json"});
    let answer: Value = post(&models, whole, side).await.json().await.unwrap();
    let text = answer["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["next_speaker"], "user");
    assert_eq!(post(&models, GEMINI, contents("!fail-once 500")).await.status(), 500);
}

#[tokio::test]
async fn errors_have_the_vendors_shape() {
    let models = ModelDouble::start().await.unwrap();
    let cases = [
        ("/v1/messages", messages("!fail 429"), "/error/type", "rate_limit_error"),
        ("/v1/responses", responses("!fail 429"), "/error/code", "rate_limit_exceeded"),
        ("/v1/chat/completions", chat("!fail 429"), "/error/code", "rate_limit_exceeded"),
        (GEMINI, contents("!fail 429"), "/error/status", "RESOURCE_EXHAUSTED"),
    ];
    for (path, body, pointer, code) in cases {
        let response = post(&models, path, body).await;
        assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"1".parse().unwrap()));
        let error: Value = response.json().await.unwrap();
        assert_eq!(error.pointer(pointer), Some(&json!(code)), "{error}");
    }
    for (path, body, status) in [("/v1/messages", messages("!fail"), 529), (GEMINI, contents("!fail"), 500)] {
        assert_eq!(post(&models, path, body).await.status(), status);
    }
    assert_eq!(post(&models, "/v1/messages", messages("!fail-once 503 x")).await.status(), 503);
    let lines = stream(&models, "/v1/messages", messages("!fail-once 503 x")).await;
    assert_eq!(joined(&lines, "/delta/text"), "Recovered after a failure.");
    assert_eq!(post(&models, "/v1/nothing", json!({})).await.status(), 404);
}

#[tokio::test]
async fn bad_key_and_bad_model_are_rejected() {
    let models = ModelDouble::start().await.unwrap();
    let endpoints = [("/v1/messages", "x-api-key"), ("/v1/responses", "authorization"), (GEMINI, "x-goog-api-key")];
    for (path, header) in endpoints {
        let key = if header == "authorization" { "Bearer bad-key" } else { "bad-key" };
        let request = http().post(format!("{}{path}", models.url())).header(header, key).json(&json!({}));
        assert_eq!(request.send().await.unwrap().status(), 401, "{path}");
    }
    let mut body = messages("hello");
    body["model"] = json!("a-bad-model-1");
    let error: Value = post(&models, "/v1/messages", body).await.json().await.unwrap();
    assert_eq!(error["error"]["type"], "not_found_error");
    let path = "/v1beta/models/bad-model:streamGenerateContent";
    assert_eq!(post(&models, path, contents("hello")).await.status(), 404);
}

#[tokio::test]
async fn streams_break_as_scripted() {
    let models = ModelDouble::start().await.unwrap();
    let lines = stream(&models, "/v1/messages", messages("!midfail")).await;
    assert_eq!(lines.last().unwrap()["error"]["type"], "overloaded_error");
    let lines = stream(&models, "/v1/responses", responses("!midfail")).await;
    assert_eq!(lines.last().unwrap()["type"], "response.failed");
    let lines = stream(&models, GEMINI, contents("!midfail")).await;
    assert_eq!(lines.last().unwrap()["error"]["status"], "UNAVAILABLE");
    for (path, body) in [
        ("/v1/messages", messages("!cut")),
        ("/v1/responses", responses("!cut")),
        ("/v1/chat/completions", chat("!cut")),
        (GEMINI, contents("!cut")),
    ] {
        let (frames, is_whole) = frames(post(&models, path, body).await).await;
        assert!(!is_whole && frames.len() > 5, "{path}: {frames:?}");
    }
}

#[tokio::test]
async fn words_are_paced() {
    let models = ModelDouble::start().await.unwrap();
    let begin = Instant::now();
    stream(&models, "/v1/messages", messages("!count 21 10")).await;
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(200), "{took:?}");
    // Accumulated delays would take longer; a busy machine may still be late once.
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test]
async fn requests_are_recorded() {
    let models = ModelDouble::start().await.unwrap();
    let list = http().get(format!("{}/v1/models", models.url())).send().await.unwrap();
    assert_eq!(list.json::<Value>().await.unwrap()["object"], "list");
    let prompt = "<conversation_so_far>\n<said by=\"ann\">\nbefore\n</said>\n</conversation_so_far>\n\n!recall";
    let lines = stream(&models, "/v1/messages", messages(prompt)).await;
    assert_eq!(joined(&lines, "/delta/text"), "I remember 1 user texts: \"!recall\". I was told 1 more: \"before\"");
    let requests = models.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!((requests[0].api, requests[0].method.as_str()), (None, "GET"));
    let asked = &requests[1];
    assert_eq!((asked.api, asked.path.as_str()), (Some(VendorApi::Messages), "/v1/messages"));
    assert_eq!((asked.model.as_deref(), asked.key.as_deref()), (Some("claude-x"), Some("test-key")));
    assert_eq!((asked.prompt.as_str(), &asked.body["max_tokens"]), ("!recall", &json!(100)));
    assert_eq!(asked.headers["x-api-key"], "test-key");
    models.wait_for(DEADLINE, |request| request.progress() == AnswerProgress::Complete).await.unwrap();
}

#[tokio::test]
async fn client_disconnect_is_recorded() {
    let models = ModelDouble::start().await.unwrap();
    let mut bytes = post(&models, "/v1/messages", messages("!slow 100000 1")).await.bytes_stream();
    timeout(DEADLINE, bytes.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(models.requests()[0].progress(), AnswerProgress::Answering);
    drop(bytes);
    models.wait_for(DEADLINE, |request| request.progress() == AnswerProgress::ClientDisconnected).await.unwrap();
}

#[tokio::test]
async fn stop_closes_connections_and_frees_the_port() {
    let models = ModelDouble::start().await.unwrap();
    let (url, port) = (models.url(), models.address().port());
    let response = post(&models, "/v1/messages", messages("!slow 100000 50")).await;
    timeout(DEADLINE, models.stop()).await.unwrap();
    assert!(!frames(response).await.1);
    assert!(http().get(&url).send().await.is_err());
    drop(ModelDouble::start_on(port).await.unwrap());
}

#[tokio::test]
async fn model_double_runs_as_a_program() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_model-double"));
    let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert_eq!(http().get(format!("{url}/healthz")).send().await.unwrap().status(), 200);
    let mut refused = Command::new(env!("CARGO_BIN_EXE_model-double"));
    assert_eq!(refused.arg("no-port").stderr(Stdio::null()).status().await.unwrap().code(), Some(2));
}
