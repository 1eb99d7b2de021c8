//! Calls that go well, and calls that go wrong without the server going down.

use super::{DEADLINE, Scene, good, nothing, within};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use workbench::mcp::{CallOptions, Content, Failure, Progress};

#[tokio::test]
async fn results_come_with_all_that_is_in_them() {
    let scene = Scene::new();
    let server = good();
    let echoed = scene.call(&server, "echo", json!({"text": "hällo"})).await.unwrap();
    assert_eq!((echoed.text().as_str(), echoed.is_error, echoed.notices.len()), ("hällo", false, 0));
    let sum = scene.call(&server, "add", json!({"a": 2, "b": 3})).await.unwrap();
    assert_eq!(sum.structured, Some(json!({"sum": 5})));
    let image = scene.call(&server, "image", json!({})).await.unwrap();
    assert!(matches!(&image.content[0], Content::Image { media_type, .. } if media_type == "image/png"));
    assert!(matches!(&image.content[1], Content::Resource { text: Some(text), .. } if text == "inside"));
    assert!(matches!(&image.content[2], Content::ResourceLink { uri, .. } if uri == "file:///b.txt"));
    let odd = scene.call(&server, "odd_content", json!({})).await.unwrap();
    assert!(matches!(&odd.content[0], Content::Other { value } if value["beam"] == 1));
    assert_eq!(scene.call(&server, "empty", json!({})).await.unwrap().content, []);
    let failed = scene.call(&server, "fail", json!({})).await.unwrap();
    assert_eq!((failed.is_error, failed.code, failed.text().as_str()), (true, None, "it did not work"));
    scene.close().await;
}

#[tokio::test]
async fn refusals_are_results_with_code_and_message() {
    let scene = Scene::new();
    let server = good();
    let refused = scene.call(&server, "refuse", json!({})).await.unwrap();
    assert_eq!((refused.is_error, refused.code), (true, Some(-32602)));
    assert_eq!(refused.text(), "MCP error -32602: no such thing ({\"by\":\"fake\"})");
    let unknown = scene.call(&server, "unheard_of", json!({})).await.unwrap();
    assert!(unknown.is_error && unknown.text().contains("Unknown tool: unheard_of"));
    let begin = Instant::now();
    let odd = scene.call(&server, "string_error", json!({})).await.unwrap();
    assert_eq!((odd.is_error, odd.text().as_str()), (true, "MCP error -32603: boom"));
    assert!(begin.elapsed() < Duration::from_secs(20), "it is not waited for until the deadline");
    assert_eq!(scene.manager.status(&server).failures, 0);
    scene.close().await;
}

#[tokio::test]
async fn an_answer_of_eighteen_megabytes_is_refused_and_the_others_go_on() {
    let scene = Scene::new();
    let server = good();
    for tool in ["huge", "huge_late_id"] {
        let huge = scene.call(&server, tool, json!({}));
        let (huge, other) = tokio::join!(huge, scene.call(&server, "echo", json!({"text": "me too"})));
        let (huge, other) = (huge.unwrap(), other.unwrap());
        assert!(huge.is_error && huge.text().contains("a message of 19 MB; more than 16 MB"), "{}", huge.text());
        assert_eq!(other.text(), "me too");
    }
    assert_eq!(scene.manager.status(&server).restarts, 0);
    scene.close().await;
}

#[tokio::test]
async fn a_call_has_a_deadline_and_the_server_is_told() {
    let scene = Scene::new();
    let server = good();
    let failure = scene.call_with(&server, "hang", json!({}), within(300)).await.unwrap_err();
    assert!(matches!(failure, Failure::Timeout { .. }), "{failure}");
    told_of_a_cancel(&scene, &server).await;
    assert_eq!(scene.text(&server, "noise").await, "with noise");
    let status = scene.manager.status(&server);
    assert_eq!((status.calls, status.failures, status.in_flight), (2, 1, 0));
    scene.close().await;
}

async fn told_of_a_cancel(scene: &Scene, server: &domain::mcp::Server) {
    timeout(DEADLINE, async {
        let told = || scene.manager.logs(server).lines.iter().any(|line| line.text.starts_with("cancelled "));
        while !told() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the server is told");
}

#[tokio::test]
async fn whoever_cancels_or_goes_away_stops_the_tool() {
    for goes_away in [false, true] {
        let scene = Scene::new();
        let server = good();
        scene.manager.tools(&server).await.unwrap();
        let cancel = CancellationToken::new();
        let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
        let call = scene.manager.call(&server, "hang", nothing(), options);
        if goes_away {
            assert!(timeout(Duration::from_millis(300), call).await.is_err());
        } else {
            let (called, ()) = tokio::join!(call, async {
                while scene.manager.status(&server).in_flight == 0 {
                    tokio::task::yield_now().await;
                }
                // The request is on its way; the token is looked at before and after.
                tokio::time::sleep(Duration::from_millis(100)).await;
                cancel.cancel();
            });
            assert!(matches!(called, Err(Failure::Cancelled)), "{called:?}");
        }
        told_of_a_cancel(&scene, &server).await;
        assert_eq!(scene.text(&server, "noise").await, "with noise");
        scene.close().await;
    }
}

#[tokio::test]
async fn progress_is_passed_on_in_order() {
    let scene = Scene::new();
    let (sender, mut receiver) = mpsc::channel(10);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    assert_eq!(scene.call_with(&good(), "steps", json!({}), options).await.unwrap().text(), "done");
    let mut steps = Vec::new();
    while let Some(Progress { progress, total, message }) = timeout(DEADLINE, receiver.recv()).await.unwrap() {
        steps.push((progress, total, message.unwrap()));
    }
    let expected = [1.0, 2.0, 3.0].map(|step| (step, Some(3.0), format!("step {step}")));
    assert_eq!(steps, expected);
    scene.close().await;
}

#[tokio::test]
async fn the_servers_log_is_kept() {
    let scene = Scene::new();
    let server = good();
    assert_eq!(scene.text(&server, "log").await, "logged");
    let lines = scene.manager.logs(&server).lines;
    assert!(lines.iter().any(|line| line.source == "server" && line.text == "the disk is nearly full"), "{lines:?}");
    scene.close().await;
}
