//! The protocol's reference server, over each of its three transports.

use crate::scene::{DEADLINE, Listening, Scene, stdio};
use domain::mcp::{Server, Transport};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};
use workbench::mcp::{CallOptions, Content, State};

async fn examine(scene: &Scene, server: &Server) {
    let listing = timeout(DEADLINE, scene.manager.tools(server)).await.unwrap().unwrap();
    assert_eq!(listing.protocol_version, "2025-11-25");
    assert_eq!(listing.quarantined, []);
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.len() >= 12 && names.contains(&"get-tiny-image"), "{names:?}");

    assert_eq!(scene.call(server, "echo", json!({"message": "hi"})).await.text(), "Echo: hi");
    let sum = scene.call(server, "get-sum", json!({"a": 2, "b": 3})).await;
    assert!(sum.text().contains('5'), "{sum:?}");
    let image = scene.call(server, "get-tiny-image", json!({})).await;
    assert!(
        image
            .content
            .iter()
            .any(|block| matches!(block, Content::Image { media_type, .. } if media_type == "image/png"))
    );
    let weather = scene.call(server, "get-structured-content", json!({"location": "New York"})).await;
    assert!(weather.structured.is_some(), "{weather:?}");
    let links = scene.call(server, "get-resource-links", json!({"count": 2})).await;
    assert!(links.content.iter().any(|block| matches!(block, Content::ResourceLink { .. })), "{links:?}");
    let wrong = scene.call(server, "get-sum", json!({"a": "two"})).await;
    assert!(wrong.is_error, "{wrong:?}");

    let (progress, mut steps) = mpsc::channel(20);
    let options = CallOptions { progress: Some(progress), ..CallOptions::default() };
    let long = scene.call_with(server, "trigger-long-running-operation", json!({"duration": 1, "steps": 4}), options);
    assert!(!long.await.is_error);
    let mut count = 0;
    while steps.recv().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 4);
    let status = scene.manager.status(server);
    assert_eq!((status.state, status.failures, status.restarts), (State::Ready, 0, 0));
}

#[tokio::test]
async fn over_stdio() {
    let scene = Scene::new().await;
    let server = stdio(&scene.servers.node, &[scene.servers.everything.to_str().unwrap(), "stdio"]);
    examine(&scene, &server).await;
    assert_eq!(scene.manager.status(&server).noise_lines, 0);
    scene.close().await;
}

#[tokio::test]
async fn over_legacy_sse() {
    let scene = Scene::new().await;
    let listening = Listening::start(&scene.servers, "sse").await;
    let url = format!("http://127.0.0.1:{}/sse", listening.port);
    examine(&scene, &Server::new("real", Transport::Sse { url, headers: [].into() })).await;
    scene.close().await;
}

#[tokio::test]
async fn over_streamable_http() {
    let scene = Scene::new().await;
    let listening = Listening::start(&scene.servers, "streamableHttp").await;
    let url = format!("http://127.0.0.1:{}/mcp", listening.port);
    examine(&scene, &Server::new("real", Transport::Http { url, headers: [].into() })).await;
    scene.close().await;
}

#[tokio::test]
async fn an_http_server_that_was_away_is_found_again() {
    let scene = Scene::new().await;
    let first = Listening::start(&scene.servers, "sse").await;
    let server = |port: u16| {
        Server::new("real", Transport::Sse { url: format!("http://127.0.0.1:{port}/sse"), headers: [].into() })
    };
    let it = server(first.port);
    assert_eq!(scene.call(&it, "echo", json!({"message": "hi"})).await.text(), "Echo: hi");
    drop(first);
    timeout(DEADLINE, async {
        while scene.manager.status(&it).state == State::Ready {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("its end is noticed");
    let gone = scene.manager.tools(&it).await.unwrap_err();
    assert_eq!(gone.code(), "mcp_unreachable", "{gone}");
    scene.close().await;
}
