//! Servers of this program itself.

use super::{Scene, within};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use workbench::mcp::{Failure, Inside, State};

#[derive(Default)]
struct Clock {
    abandoned: Arc<AtomicUsize>,
}

/// Counts when it is dropped.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Inside for Clock {
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
async fn a_server_inside_of_the_program_is_used_like_any_other() {
    let scene = Scene::new();
    let clock = Clock::default();
    let abandoned = Arc::clone(&clock.abandoned);
    let server = scene.manager.host("clock", Arc::new(clock));
    let listing = scene.manager.tools(&server).await.unwrap();
    assert_eq!((listing.tools.len(), listing.server.as_ref().unwrap().name.as_str()), (1, "clock"));
    assert_eq!(scene.text(&server, "now").await, "noon");
    let refused = scene.call(&server, "unheard_of", json!({})).await.unwrap();
    assert_eq!((refused.is_error, refused.code), (true, Some(-32601)));
    let before = abandoned.load(Ordering::SeqCst);
    let failure = scene.call_with(&server, "later", json!({}), within(100)).await.unwrap_err();
    assert!(matches!(failure, Failure::Timeout { .. }));
    while abandoned.load(Ordering::SeqCst) == before {
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.manager.status(&server).state, State::Ready);
    assert_eq!(scene.supervisor.living(), 0);
    scene.close().await;
}
