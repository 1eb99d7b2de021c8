//! Calls that go well, and calls that go wrong without the server going down.

use super::{DEADLINE, McpFixture, good, nothing, within};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use workbench::mcp::{CallOptions, McpContent, McpFailure, McpProgress};

#[tokio::test]
async fn results_are_complete() {
    let fixture = McpFixture::new();
    let server = good();
    let echoed = fixture.call(&server, "echo", json!({"text": "hällo"})).await.unwrap();
    assert_eq!((echoed.text().as_str(), echoed.is_error, echoed.notices.len()), ("hällo", false, 0));
    let sum = fixture.call(&server, "add", json!({"a": 2, "b": 3})).await.unwrap();
    assert_eq!(sum.structured, Some(json!({"sum": 5})));
    let image = fixture.call(&server, "image", json!({})).await.unwrap();
    assert!(matches!(&image.content[0], McpContent::Image { media_type, .. } if media_type == "image/png"));
    assert!(matches!(&image.content[1], McpContent::Resource { text: Some(text), .. } if text == "inside"));
    assert!(matches!(&image.content[2], McpContent::ResourceLink { uri, .. } if uri == "file:///b.txt"));
    let odd = fixture.call(&server, "odd_content", json!({})).await.unwrap();
    assert!(matches!(&odd.content[0], McpContent::Other { value } if value["beam"] == 1));
    assert_eq!(fixture.call(&server, "empty", json!({})).await.unwrap().content, []);
    let failed = fixture.call(&server, "fail", json!({})).await.unwrap();
    assert_eq!((failed.is_error, failed.code, failed.text().as_str()), (true, None, "it did not work"));
    fixture.close().await;
}

#[tokio::test]
async fn errors_are_results_with_code_and_message() {
    let fixture = McpFixture::new();
    let server = good();
    let refused = fixture.call(&server, "refuse", json!({})).await.unwrap();
    assert_eq!((refused.is_error, refused.code), (true, Some(-32602)));
    assert_eq!(refused.text(), "MCP error -32602: no such thing ({\"by\":\"fake\"})");
    let unknown = fixture.call(&server, "unheard_of", json!({})).await.unwrap();
    assert!(unknown.is_error && unknown.text().contains("Unknown tool: unheard_of"));
    let begin = Instant::now();
    let odd = fixture.call(&server, "string_error", json!({})).await.unwrap();
    assert_eq!((odd.is_error, odd.text().as_str()), (true, "MCP error -32603: boom"));
    assert!(begin.elapsed() < Duration::from_secs(20), "the call must not wait for the deadline");
    assert_eq!(fixture.manager.status(&server).failures, 0);
    fixture.close().await;
}

#[tokio::test]
async fn oversized_answer_fails_only_its_own_call() {
    let fixture = McpFixture::new();
    let server = good();
    for tool in ["huge", "huge_late_id"] {
        let huge = fixture.call(&server, tool, json!({}));
        let (huge, other) = tokio::join!(huge, fixture.call(&server, "echo", json!({"text": "me too"})));
        let (huge, other) = (huge.unwrap(), other.unwrap());
        assert!(huge.is_error && huge.text().contains("a message of 19 MB; the limit is 16 MB"), "{}", huge.text());
        assert_eq!(other.text(), "me too");
    }
    assert_eq!(fixture.manager.status(&server).restarts, 0);
    fixture.close().await;
}

#[tokio::test]
async fn deadline_cancels_the_call_on_the_server() {
    let fixture = McpFixture::new();
    let server = good();
    let failure = fixture.call_with(&server, "hang", json!({}), within(300)).await.unwrap_err();
    assert!(matches!(failure, McpFailure::Timeout { .. }), "{failure}");
    wait_for_cancellation(&fixture, &server).await;
    assert_eq!(fixture.text(&server, "noise").await, "with noise");
    let status = fixture.manager.status(&server);
    assert_eq!((status.calls, status.failures, status.in_flight), (2, 1, 0));
    fixture.close().await;
}

async fn wait_for_cancellation(fixture: &McpFixture, server: &domain::mcp::NamedMcpServer) {
    timeout(DEADLINE, async {
        let told = || fixture.manager.logs(server).lines.iter().any(|line| line.text.starts_with("cancelled "));
        while !told() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the server gets a cancellation");
}

#[tokio::test]
async fn cancel_and_drop_both_stop_the_tool() {
    for goes_away in [false, true] {
        let fixture = McpFixture::new();
        let server = good();
        fixture.manager.tools(&server).await.unwrap();
        let cancel = CancellationToken::new();
        let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
        let call = fixture.manager.call(&server, "hang", nothing(), options);
        if goes_away {
            assert!(timeout(Duration::from_millis(300), call).await.is_err());
        } else {
            let (called, ()) = tokio::join!(call, async {
                while fixture.manager.status(&server).in_flight == 0 {
                    tokio::task::yield_now().await;
                }
                // The request has been sent by now; the token is checked before and after.
                tokio::time::sleep(Duration::from_millis(100)).await;
                cancel.cancel();
            });
            assert!(matches!(called, Err(McpFailure::Cancelled)), "{called:?}");
        }
        wait_for_cancellation(&fixture, &server).await;
        assert_eq!(fixture.text(&server, "noise").await, "with noise");
        fixture.close().await;
    }
}

#[tokio::test]
async fn progress_is_forwarded_in_order() {
    let fixture = McpFixture::new();
    let (sender, mut receiver) = mpsc::channel(10);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    assert_eq!(fixture.call_with(&good(), "steps", json!({}), options).await.unwrap().text(), "done");
    let mut steps = Vec::new();
    while let Some(McpProgress { progress, total, message }) = timeout(DEADLINE, receiver.recv()).await.unwrap() {
        steps.push((progress, total, message.unwrap()));
    }
    let expected = [1.0, 2.0, 3.0].map(|step| (step, Some(3.0), format!("step {step}")));
    assert_eq!(steps, expected);
    fixture.close().await;
}

#[tokio::test]
async fn server_log_is_kept() {
    let fixture = McpFixture::new();
    let server = good();
    assert_eq!(fixture.text(&server, "log").await, "logged");
    let lines = fixture.manager.logs(&server).lines;
    assert!(lines.iter().any(|line| line.source == "server" && line.text == "the disk is nearly full"), "{lines:?}");
    fixture.close().await;
}
