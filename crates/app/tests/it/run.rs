//! `greenroom run` and `greenroom events --follow` on connections that break.

use crate::{
    double::{AGENT, Double, ROOM, RUN, STREAM, end},
    greenroom, output_of, run,
};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

fn counted(n: usize) -> String {
    (1..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(" é🦀 ")
}

#[tokio::test]
async fn broken_connections_lose_and_duplicate_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    double.append(Some(RUN), "run_started", json!({"provider": "scripted", "model": null}));
    double.append(Some(RUN), "stream_start", json!({"stream_id": STREAM}));
    for i in 1..=60 {
        double.say(&if i == 1 { i.to_string() } else { format!(" é🦀 {i}") });
    }
    double.end("run_completed", json!({}));
    // Also before the first complete frame, and inside a four-byte character.
    double.cut_after((0..20).map(|i| i * 97 + i % 5));
    let output = run(dir.path(), &["run", "echo", "hello", "--server", &double.url()]).await;
    assert_eq!(output.stdout, counted(60) + "\n", "{}", output.stderr);
    assert_eq!(output.code, Some(0));
    assert!(output.stderr.contains("12 tokens · cost unknown · 1.3 s"), "{}", output.stderr);
    assert!(
        !output.stderr.contains('\u{1b}') && !output.stderr.contains('\r'),
        "no spinner without a terminal: {}",
        output.stderr
    );
    let seen = double.seen();
    assert!(seen.iter().filter(|line| line.starts_with("feed")).count() > 20, "{seen:?}");
    assert_eq!(seen.iter().filter(|line| line.starts_with("message")).count(), 1);
}

#[tokio::test]
async fn lost_response_is_retried_with_the_same_key() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    double.say("hi");
    double.end("run_completed", json!({"cost": 0.001234}));
    double.lose_answers(2);
    let output = run(dir.path(), &["run", AGENT, "hello", "--room", ROOM, "--server", &double.url()]).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "hi\n"), "{}", output.stderr);
    assert!(output.stderr.contains("$0.001234"), "{}", output.stderr);
    let sent: Vec<String> = double.seen().into_iter().filter(|line| line.starts_with("message")).collect();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|line| *line == sent[0] && !line.ends_with("none")), "{sent:?}");
}

#[tokio::test]
async fn interrupt_stops_the_run_and_prints_the_receipt() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    double.say("one");
    let receipt = json!({"processes": 1, "signals": ["SIGTERM"], "millis": 12});
    double.on_cancel("content_delta", json!({"stream_id": STREAM, "delta": " two"}));
    double.on_cancel("run_cancelled", end(json!({"receipt": receipt})));
    let mut child = greenroom(dir.path(), &["run", "echo", "!hang", "--server", &double.url()]).spawn().unwrap();
    let mut first = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"one");
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = output_of(child).await;
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    assert_eq!(output.stdout, " two\n", "text before the stop must be shown");
    assert!(output.stderr.contains("cancelled after 12 ms, 1 process ended (SIGTERM)"), "{}", output.stderr);
    assert!(double.seen().contains(&format!("cancel {RUN}")));
}

#[tokio::test]
async fn thinking_tools_and_failures_go_to_stderr() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    double.append(Some(RUN), "thinking_delta", json!({"stream_id": STREAM, "delta": "hm\u{1b}[31m"}));
    let call = json!({"stream_id": STREAM, "tool_use_id": "t", "name": "look", "input": {"at": "a\nb\u{9b}"}});
    double.append(Some(RUN), "tool_use", call);
    let result = json!({"stream_id": STREAM, "tool_use_id": "t", "content": "line\nline", "is_error": false});
    double.append(Some(RUN), "tool_result", result);
    double.append(Some(RUN), "invented_later", json!({"x": 1}));
    double.say("said\u{1b}]0;title\u{7}");
    double.append(
        Some("01900000-0000-7000-8000-0000000000ff"),
        "content_delta",
        json!({"stream_id": STREAM, "delta": "of another run"}),
    );
    double.end("run_failed", json!({"error": {"code": "overloaded", "message": "try later"}}));
    let output = run(dir.path(), &["run", "echo", "hello", "--server", &double.url()]).await;
    assert_eq!(output.code, Some(1));
    assert_eq!(output.stdout, "said␛]0;title␇\n");
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(lines[..3], ["hm␛[31m", "→ look {\"at\":\"a\\nb\\u{9b}\"}", "✓ line line"]);
    assert!(lines[3].starts_with("failed: try later (overloaded) · 12 tokens"), "{lines:?}");
}

#[tokio::test]
async fn json_prints_only_the_events_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    double.say("a\u{9b}2J\nb");
    double.end("run_completed", json!({}));
    let mut child = greenroom(dir.path(), &["run", "echo", "-", "--json", "--server", &double.url()]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"from a pipe\n").await.unwrap();
    let output = output_of(child).await;
    assert_eq!(output.stderr, "");
    let events: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["data"]["delta"], "a\u{9b}2J\nb");
    assert!(!output.stdout.contains('\u{9b}'));
    assert!(double.seen()[0].starts_with("message \"from a pipe\" key"), "{:?}", double.seen());
}

#[tokio::test]
async fn restore_to_before_the_run_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    double.say("one");
    let first = ": hello\n\n".len() + 600;
    double.cut_after([first]);
    let mut child = greenroom(dir.path(), &["run", "echo", "hello", "--server", &double.url()]).spawn().unwrap();
    let mut shown = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut shown).await.unwrap();
    double.restore(1);
    // Enough to reach the cut.
    for _ in 0..4 {
        double.append(None, "status", json!({"status": "x", "message": "x"}));
    }
    let output = output_of(child).await;
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("restored to a time before this run"), "{}", output.stderr);
}

#[tokio::test]
async fn events_pages_and_then_follows_across_reconnects() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    for i in 2..=5 {
        double.say(&i.to_string());
    }
    let url = double.url();
    let seqs = |out: &str| -> Vec<u64> {
        out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap()).collect()
    };
    let output = run(dir.path(), &["events", ROOM, "--after", "1", "--server", &url]).await;
    assert_eq!((output.code, seqs(&output.stdout)), (Some(0), vec![2, 3, 4, 5]), "{}", output.stderr);

    double.cut_after([3, 30, 300]);
    let mut child = greenroom(dir.path(), &["events", ROOM, "--follow", "--server", &url]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for seq in 1..=9_u64 {
        if seq > 5 {
            double.say("live");
        }
        let line = tokio::time::timeout(crate::DEADLINE, lines.next_line()).await.unwrap().unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["seq"], seq);
    }
}
