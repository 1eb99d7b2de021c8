//! Transcripts played by the fake CLI.

use crate::host::{Host, control, is_result, transcripts, user};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn answer(request: &Value, response: Value) -> Value {
    let response = json!({"subtype": "success", "request_id": request["request_id"], "response": response});
    json!({"type": "control_response", "response": response})
}

fn text_of(lines: &[Value]) -> String {
    lines.iter().filter_map(|line| line["event"]["delta"]["text"].as_str()).collect()
}

/// Plays the recorded host with other ids: sends each `in`, expects each `out`.
async fn play_again(name: &str) {
    let text = std::fs::read_to_string(transcripts().join(format!("{name}.jsonl"))).unwrap();
    let mut host = Host::replay(name, &[]);
    let mut exit = None;
    for entry in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let mut line = entry["line"].clone();
        match entry["dir"].as_str().unwrap() {
            "in" => {
                let is_request = line.get("method").is_some() && line.get("id").is_some();
                if is_request {
                    line["id"] = json!(format!("mine {}", line["id"]));
                }
                if line["type"] == "control_request" {
                    line["request_id"] = json!(format!("mine {}", line["request_id"]));
                }
                host.send(line).await;
            }
            "out" => {
                let heard = host.line().await;
                for field in ["type", "subtype", "method", "result", "error"] {
                    assert_eq!(heard.get(field), line.get(field), "{name}: {heard}");
                }
                let id = |line: &Value| match line.get("method") {
                    None if line.get("id").is_some() => format!("\"mine {}\"", line["id"]),
                    _ => line["id"].to_string(),
                };
                assert_eq!(heard["id"].to_string(), id(&line), "{name}");
            }
            _ => exit = line["exit"].as_i64().or(exit),
        }
    }
    let (status, rest, errors) = host.finish().await;
    assert_eq!((status.code().map(i64::from), rest.as_str()), (exit, ""), "{name}: {errors}");
}

#[tokio::test]
async fn all_transcripts_play_to_the_end() {
    let mut names: Vec<String> = std::fs::read_dir(transcripts())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned()))
        .collect();
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    for name in names {
        play_again(&name).await;
    }
}

#[tokio::test]
async fn host_with_other_ids_is_supported() {
    let mut host = Host::replay("claude-hello", &["--session-id", "my-session"]);
    host.send(control("r1", "initialize")).await;
    assert_eq!(host.line().await, answer(&control("r1", ""), json!({})));
    host.send(user("hi")).await;
    let lines = host.until(is_result).await;
    let result = lines.last().unwrap();
    assert_eq!(text_of(&lines), "Hello from the mock. You said: say hello");
    assert_eq!(result["result"], text_of(&lines));
    assert_eq!(result["user_message_uuids"], json!(["uuid of hi"]));
    assert!(lines.iter().all(|line| line["session_id"] == "my-session"));
    host.send(control("r2", "get_context_usage")).await;
    assert_eq!(host.line().await["response"]["request_id"], "r2");
    let (status, rest, errors) = host.finish().await;
    assert_eq!((status.code(), rest.as_str(), errors.as_str()), (Some(0), "", ""));
}

#[tokio::test]
async fn early_interrupt_is_answered_with_its_own_id() {
    let mut host = Host::replay("claude-interrupt", &[]);
    host.send(user("count")).await;
    host.until(|line| line["event"]["delta"]["text"].is_string()).await;
    host.send(control("mine", "interrupt")).await;
    let lines = host.until(is_result).await;
    let confirmed = lines.iter().find(|line| line["type"] == "control_response").unwrap();
    assert_eq!(confirmed["response"]["request_id"], "mine");
    assert_eq!(lines.last().unwrap()["terminal_reason"], "aborted_streaming");
    host.send(user("go on")).await;
    assert_eq!(host.until(is_result).await.last().unwrap()["is_error"], false);
    assert_eq!(host.finish().await.0.code(), Some(0));
}

#[tokio::test]
async fn turn_is_finished_after_eof() {
    let mut host = Host::replay("claude-tool", &[]);
    host.send(user("tool")).await;
    host.close();
    assert_eq!(host.until(is_result).await.last().unwrap()["is_error"], false);
    assert_eq!(host.finish().await.0.code(), Some(0));
}

#[tokio::test]
async fn different_verdict_is_a_mismatch() {
    let is_ask = |line: &Value| line["request"]["subtype"] == "can_use_tool";
    let mut host = Host::replay("claude-permission", &[]);
    host.send(user("touch")).await;
    let asked = host.until(is_ask).await;
    host.send(answer(asked.last().unwrap(), json!({"behavior": "allow", "updatedInput": {}}))).await;
    host.until(is_result).await;
    host.send(user("touch again")).await;
    let asked = host.until(is_ask).await;
    host.send(answer(asked.last().unwrap(), json!({"behavior": "allow", "updatedInput": {}}))).await;
    host.finish_mismatched("line 67: expected the answer \"deny\" to ").await;
}

#[tokio::test]
async fn unrecorded_input_is_a_mismatch() {
    let mut host = Host::replay("claude-hello", &[]);
    host.send(user("one")).await;
    host.until(is_result).await;
    host.send(user("two")).await;
    host.finish_mismatched("nothing more was recorded, got a user's message: ").await;

    let mut host = Host::replay("codex-hello", &[]);
    host.send(json!({"id": 1, "method": "thread/start"})).await;
    host.finish_mismatched("line 2: expected the request initialize, got the request thread/start: ").await;

    let mut host = Host::replay("codex-hello", &[]);
    host.send_raw("{half\n").await;
    host.finish_mismatched("not JSON: {half").await;
}

#[tokio::test]
async fn pace_follows_the_recorded_clock() {
    let mut host = Host::replay("codex-hello", &["--pace", "2"]);
    host.send(json!({"id": "a", "method": "initialize"})).await;
    host.until(|line| line["id"] == "a").await;
    host.send(json!({"method": "initialized"})).await;
    host.send(json!({"id": "b", "method": "model/list"})).await;
    host.send(json!({"id": "c", "method": "thread/start"})).await;
    let lines = host.until(|line| line["id"] == "c").await;
    assert!(lines.contains(&json!({"jsonrpc": "2.0", "id": "b", "result": {}})), "{lines:?}");
    let thread = lines.last().unwrap()["result"]["thread"]["id"].clone();
    host.send(json!({"id": "d", "method": "turn/start", "params": {"threadId": thread}})).await;
    let begin = Instant::now();
    host.until(|line| line["method"] == "turn/completed").await;
    // 257 ms were recorded.
    assert!(begin.elapsed() >= Duration::from_millis(514), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn version_and_usage_errors() {
    for (arguments, version) in [
        (&["--version"][..], "2.1.325 (Claude Code)\n"),
        (&["--version", "--speaks", "codex", "--replay", "x"], "codex-cli 0.166.0\n"),
    ] {
        let (status, output, _) = Host::start(arguments).finish().await;
        assert_eq!((status.code(), output.as_str()), (Some(0), version));
    }
    for arguments in [&["-p"][..], &["--replay", "gone.jsonl"], &["--fault", "unheard-of"]] {
        let (status, _, errors) = Host::start(arguments).finish().await;
        assert_eq!(status.code(), Some(2));
        assert!(errors.starts_with("replay: "), "{errors}");
    }
}

#[test]
fn other_crates_find_the_program() {
    assert_eq!(testkit::programs::replay(), std::path::Path::new(env!("CARGO_BIN_EXE_replay")));
}
