//! The revision without sessions.

use super::{Double, MODERN, Mcp, text};
use serde_json::json;

#[tokio::test]
async fn requests_have_protocol_headers() {
    let double = Double::start().await;
    let mut mcp = Mcp::start(&double.url());
    mcp.call_modern(1, "plain", json!({})).await;
    assert_eq!(text(&mcp.read_answer(1).await), "a\nb");
    let meta = json!({"io.modelcontextprotocol/protocolVersion": MODERN});
    mcp.ask(2, "resources/read", json!({"uri": "x://é", "_meta": meta})).await;
    mcp.read_answer(2).await;
    mcp.ask(3, "server/discover", json!({"_meta": meta})).await;
    mcp.read_answer(3).await;
    // An error response without the id.
    mcp.call_modern(4, "refused", json!({})).await;
    let refused = mcp.read_answer(4).await;
    assert_eq!(refused["error"], json!({"code": -32020, "message": "headers differ"}));
    let (code, _, notes) = mcp.end().await;
    assert_eq!((code, notes.as_str()), (Some(0), ""));
    let seen = double.seen();
    let heads: Vec<_> = seen
        .iter()
        .map(|seen| {
            assert_eq!((seen.header("mcp-session-id"), seen.header("mcp-protocol-version")), (None, Some(MODERN)));
            (seen.header("mcp-method").unwrap(), seen.header("mcp-name"))
        })
        .collect();
    assert_eq!(
        heads,
        [
            ("tools/call", Some("plain")),
            ("resources/read", Some("=?base64?eDovL8Op?=")),
            ("server/discover", None),
            ("tools/call", Some("refused")),
        ]
    );
}

#[tokio::test]
async fn cancel_closes_the_connection() {
    let double = Double::start().await;
    let mut mcp = Mcp::start(&double.url());
    mcp.call_modern(1, "slow", json!({"number": 9})).await;
    double.until("it arrives", |double| double.request_names().len() == 1).await;
    mcp.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    double.until("it hangs up", |double| double.closed_streams() == 1).await;
    // The id can be reused.
    mcp.call_modern(1, "plain", json!({})).await;
    assert_eq!(text(&mcp.read_answer(1).await), "a\nb");
    assert_eq!(double.request_names(), ["POST tools/call", "POST tools/call"]);
    mcp.end().await;
}

#[tokio::test]
async fn subscription_survives_reconnects_and_ends_with_the_client() {
    let double = Double::start().await;
    let mut mcp = Mcp::start(&double.url());
    let meta = json!({"io.modelcontextprotocol/protocolVersion": MODERN});
    mcp.ask(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}, "_meta": meta})).await;
    assert_eq!(mcp.read().await["method"], "notifications/subscriptions/acknowledged");
    let listens =
        |double: &Double| double.request_names().iter().filter(|what| *what == "POST subscriptions/listen").count();
    assert_eq!(listens(&double), 1);
    double.restart();
    double.until("it subscribes again", |double| listens(double) == 2).await;
    // The client gets change notifications instead of a second acknowledgement.
    let missed = mcp.read().await;
    assert_eq!(missed["method"], "notifications/tools/list_changed");
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"});
    double.until_open().await;
    double.announce(&super::double::frame(&changed)).await;
    assert_eq!(mcp.read().await, changed);
    // As a server that shuts down gracefully.
    double.announce(&super::double::frame(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}))).await;
    double.until("it subscribes once more", |double| listens(double) == 3).await;
    assert_eq!(mcp.read().await["method"], "notifications/tools/list_changed");
    let (code, left, _) = mcp.end().await;
    assert_eq!((code, left), (Some(0), Vec::new()));
    double.until("it hangs up", |double| double.closed_streams() == 3).await;
}
