//! The MCP reference server over each of its three transports.

use crate::fixture::{DEADLINE, Listening, McpFixture, stdio};
use domain::mcp::{McpTransport, NamedMcpServer};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};
use workbench::mcp::{CallOptions, McpContent, McpServerState};

async fn examine(fixture: &McpFixture, server: &NamedMcpServer) {
    let listing = timeout(DEADLINE, fixture.manager.tools(server)).await.unwrap().unwrap();
    assert_eq!(listing.protocol_version, "2025-11-25");
    assert_eq!(listing.quarantined, []);
    let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.len() >= 12 && names.contains(&"get-tiny-image"), "{names:?}");

    assert_eq!(fixture.call(server, "echo", json!({"message": "hi"})).await.text(), "Echo: hi");
    let sum = fixture.call(server, "get-sum", json!({"a": 2, "b": 3})).await;
    assert!(sum.text().contains('5'), "{sum:?}");
    let image = fixture.call(server, "get-tiny-image", json!({})).await;
    assert!(
        image
            .content
            .iter()
            .any(|block| matches!(block, McpContent::Image { media_type, .. } if media_type == "image/png"))
    );
    let weather = fixture.call(server, "get-structured-content", json!({"location": "New York"})).await;
    assert!(weather.structured.is_some(), "{weather:?}");
    let links = fixture.call(server, "get-resource-links", json!({"count": 2})).await;
    assert!(links.content.iter().any(|block| matches!(block, McpContent::ResourceLink { .. })), "{links:?}");
    let wrong = fixture.call(server, "get-sum", json!({"a": "two"})).await;
    assert!(wrong.is_error, "{wrong:?}");

    let (progress, mut steps) = mpsc::channel(20);
    let options = CallOptions { progress: Some(progress), ..CallOptions::default() };
    let long = fixture.call_with(server, "trigger-long-running-operation", json!({"duration": 1, "steps": 4}), options);
    assert!(!long.await.is_error);
    let mut count = 0;
    while steps.recv().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 4);
    let status = fixture.manager.status(server);
    assert_eq!((status.state, status.failures, status.restarts), (McpServerState::Ready, 0, 0));
}

#[tokio::test]
async fn over_stdio() {
    let fixture = McpFixture::new().await;
    let server = stdio(&fixture.servers.node, &[fixture.servers.everything.to_str().unwrap(), "stdio"]);
    examine(&fixture, &server).await;
    assert_eq!(fixture.manager.status(&server).noise_lines, 0);
    fixture.close().await;
}

#[tokio::test]
async fn over_legacy_sse() {
    let fixture = McpFixture::new().await;
    let listening = Listening::start(&fixture.servers, "sse").await;
    let url = format!("http://127.0.0.1:{}/sse", listening.port);
    examine(&fixture, &NamedMcpServer::new("real", McpTransport::Sse { url, headers: [].into() })).await;
    fixture.close().await;
}

#[tokio::test]
async fn over_streamable_http() {
    let fixture = McpFixture::new().await;
    let listening = Listening::start(&fixture.servers, "streamableHttp").await;
    let url = format!("http://127.0.0.1:{}/mcp", listening.port);
    examine(&fixture, &NamedMcpServer::new("real", McpTransport::Http { url, headers: [].into() })).await;
    fixture.close().await;
}

#[tokio::test]
async fn lost_http_server_is_reported_as_unreachable() {
    let fixture = McpFixture::new().await;
    let first = Listening::start(&fixture.servers, "sse").await;
    let server = |port: u16| {
        NamedMcpServer::new(
            "real",
            McpTransport::Sse { url: format!("http://127.0.0.1:{port}/sse"), headers: [].into() },
        )
    };
    let first_server = server(first.port);
    assert_eq!(fixture.call(&first_server, "echo", json!({"message": "hi"})).await.text(), "Echo: hi");
    drop(first);
    timeout(DEADLINE, async {
        while fixture.manager.status(&first_server).state == McpServerState::Ready {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the end of the server is detected");
    let gone = fixture.manager.tools(&first_server).await.unwrap_err();
    assert_eq!(gone.code(), "mcp_unreachable", "{gone}");
    fixture.close().await;
}
