//! In-process servers.

use super::{McpFixture, within};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use workbench::mcp::{InProcessServer, McpFailure, McpServerState};

#[derive(Default)]
struct Clock {
    abandoned: Arc<AtomicUsize>,
}

/// Counts its drops.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl InProcessServer for Clock {
    fn answer(&self, method: String, params: Value) -> BoxFuture<'static, Result<Value, (i32, String)>> {
        let waiting = Waiting(Arc::clone(&self.abandoned));
        Box::pin(async move {
            match (method.as_str(), params["name"].as_str()) {
                ("initialize", _) => Ok(json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "clock", "version": "1"},
                })),
                ("tools/list", _) => Ok(json!({"tools": [{"name": "now", "inputSchema": {"type": "object"}}]})),
                ("tools/call", Some("now")) => Ok(json!({"content": [{"type": "text", "text": "noon"}]})),
                ("tools/call", Some("later")) => {
                    let _waiting = waiting;
                    std::future::pending().await
                }
                _ => Err((-32601, format!("no {method}"))),
            }
        })
    }
}

#[tokio::test]
async fn in_process_server_works_like_any_other() {
    let fixture = McpFixture::new();
    let clock = Clock::default();
    let abandoned = Arc::clone(&clock.abandoned);
    let server = fixture.manager.register_in_process("clock", Arc::new(clock));
    let listing = fixture.manager.tools(&server).await.unwrap();
    assert_eq!((listing.tools.len(), listing.server.as_ref().unwrap().name.as_str()), (1, "clock"));
    assert_eq!(fixture.text(&server, "now").await, "noon");
    let refused = fixture.call(&server, "unheard_of", json!({})).await.unwrap();
    assert_eq!((refused.is_error, refused.code), (true, Some(-32601)));
    let before = abandoned.load(Ordering::SeqCst);
    let failure = fixture.call_with(&server, "later", json!({}), within(100)).await.unwrap_err();
    assert!(matches!(failure, McpFailure::Timeout { .. }));
    while abandoned.load(Ordering::SeqCst) == before {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.manager.status(&server).state, McpServerState::Ready);
    assert_eq!(fixture.supervisor.running(), 0);
    fixture.close().await;
}
