//! The faulty CLIs show their faults, and only after the first prompt.

use crate::host::{DEADLINE, Host, control, is_result, user};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Long enough to notice a process that ends.
const A_WHILE: Duration = Duration::from_millis(300);
const ALL: [&str; 3] = ["claude", "codex", "acp"];

/// Does the handshake of the protocol and sends a prompt.
async fn prompted(fault: &str, speaks: &str) -> Host {
    let mut host = Host::start(&["--fault", fault, "--speaks", speaks]);
    match speaks {
        "claude" => {
            host.send(control("r1", "initialize")).await;
            assert_eq!(host.line().await["response"]["subtype"], "success");
        }
        "codex" => {
            host.send(json!({"id": 1, "method": "initialize"})).await;
            assert!(host.line().await["result"]["userAgent"].is_string());
            host.send(json!({"method": "initialized"})).await;
            host.send(json!({"id": 2, "method": "thread/start"})).await;
            let thread = host.line().await["result"]["thread"]["id"].clone();
            assert_eq!(host.line().await["params"]["thread"]["id"], thread);
        }
        _ => {
            host.send(json!({"id": 1, "method": "initialize"})).await;
            assert_eq!(host.line().await["result"]["protocolVersion"], 1);
            host.send(json!({"id": 2, "method": "session/new"})).await;
            assert!(host.line().await["result"]["sessionId"].is_string());
        }
    }
    prompt(&mut host, speaks).await;
    host
}

async fn prompt(host: &mut Host, speaks: &str) {
    host.send(match speaks {
        "claude" => user("go"),
        "codex" => json!({"id": 3, "method": "turn/start", "params": {"threadId": "t"}}),
        _ => json!({"id": 3, "method": "session/prompt", "params": {"sessionId": "s"}}),
    })
    .await;
}

fn is_end(line: &Value) -> bool {
    is_result(line) || line["method"] == "turn/completed" || line["result"]["stopReason"] == "end_turn"
}

fn delta(line: &Value) -> Option<&str> {
    let pointers = ["/event/delta/text", "/params/delta", "/params/update/content/text"];
    pointers.iter().find_map(|pointer| line.pointer(pointer)?.as_str())
}

async fn answer(host: &mut Host) -> String {
    host.until(is_end).await.iter().filter_map(delta).collect()
}

#[tokio::test]
async fn garbage_is_in_the_middle_of_a_good_answer() {
    for speaks in ALL {
        let mut host = prompted("garbage", speaks).await;
        let mut text = String::new();
        let mut garbage = 0;
        loop {
            let bytes = host.bytes().await;
            let Ok(line) = serde_json::from_slice::<Value>(&bytes) else {
                garbage += 1;
                assert!(String::from_utf8(bytes).is_err());
                continue;
            };
            text.extend(delta(&line));
            if is_end(&line) {
                break;
            }
        }
        assert_eq!((text.as_str(), garbage), ("Before after.", 1), "{speaks}");
        prompt(&mut host, speaks).await;
        assert_eq!(answer(&mut host).await, "All is well.", "{speaks}");
        assert_eq!(host.finish().await.0.code(), Some(0));
    }
}

#[tokio::test]
async fn output_ends_with_half_a_line() {
    for speaks in ALL {
        let mut host = prompted("half-line", speaks).await;
        host.until(|line| delta(line).is_some()).await;
        let last = host.bytes().await;
        assert!(last.starts_with(b"{") && !last.ends_with(b"\n"), "{speaks}: {last:?}");
        assert_eq!(host.bytes().await, b"");
    }
}

#[tokio::test]
async fn long_line_has_100_megabytes() {
    let mut host = prompted("long-line", "acp").await;
    let line = host.bytes().await;
    assert!(line.len() > 100 * 1024 * 1024 && line.ends_with(b"\n"));
    assert_eq!(answer(&mut host).await, "");
}

#[tokio::test]
async fn silent_until_the_input_ends() {
    for (fault, words) in [("silence", 0), ("stall", 1)] {
        for speaks in ALL {
            let mut host = prompted(fault, speaks).await;
            host.send(control("r2", "interrupt")).await;
            host.send(json!({"id": 9, "method": "turn/interrupt"})).await;
            let (status, rest, _) = host.finish().await;
            let lines = rest.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            assert_eq!(lines.filter(|line| delta(line).is_some()).count(), words, "{fault} {speaks}");
            assert_eq!(status.code(), Some(0));
            assert!(words > 0 || rest.is_empty(), "{rest}");
        }
    }
    let mut host = Host::start(&["--fault", "silence-at-start"]);
    host.send(control("r1", "initialize")).await;
    assert_eq!(host.finish().await.1, "");
}

#[tokio::test]
async fn exits_with_a_message_on_stderr() {
    for speaks in ALL {
        let (status, rest, errors) = prompted("exit", speaks).await.finish().await;
        assert_eq!((status.code(), rest.as_str()), (Some(1), ""));
        assert!(errors.starts_with("fatal: "), "{errors}");
    }
    let mut host = Host::start(&["--fault", "exit-at-start"]);
    let status = timeout(DEADLINE, host.child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn hanging_cli_ignores_eof_and_sigterm() {
    for fault in ["hang-on-eof", "hang-after-end"] {
        let mut host = prompted(fault, "claude").await;
        match fault {
            "hang-on-eof" => assert_eq!(host.until(|line| delta(line).is_some()).await.len(), 4),
            _ => assert_eq!(answer(&mut host).await, "All is well."),
        }
        host.close();
        host.signal(Signal::TERM);
        assert!(timeout(A_WHILE, host.child.wait()).await.is_err(), "{fault}: the process ended");
        host.signal(Signal::KILL);
        timeout(DEADLINE, host.child.wait()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn orphan_has_its_own_session() {
    let mut host = prompted("setsid-child", "codex").await;
    let text = answer(&mut host).await;
    let id: i32 = text.strip_prefix("Left process ").unwrap().parse().unwrap();
    // `setsid` executes `sleep` shortly after it is started.
    let leads_its_session = || {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        stat.contains("(sleep)") && stat.rsplit(") ").next().unwrap().split(' ').nth(3) == Some(&id.to_string())
    };
    timeout(DEADLINE, async {
        while !leads_its_session() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(host.finish().await.0.code(), Some(0));
    assert!(leads_its_session());
    kill_process(Pid::from_raw(id).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn burst_is_complete() {
    for speaks in ALL {
        let mut host = prompted("burst", speaks).await;
        let expected: String = (1..=10_000).map(|number| format!("{number} ")).collect();
        assert_eq!(answer(&mut host).await, expected, "{speaks}");
    }
}
