//! Restarts of the server.

use super::{Double, LEGACY, Mcp, double::frame, text};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[tokio::test]
async fn restart_is_invisible_to_the_client() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    for (id, method, params) in [
        (1, "resources/subscribe", json!({"uri": "x://1"})),
        (2, "resources/subscribe", json!({"uri": "x://2"})),
        (3, "resources/unsubscribe", json!({"uri": "x://1"})),
        (4, "logging/setLevel", json!({"level": "warning"})),
    ] {
        mcp.ask(id, method, params).await;
        mcp.read_answer(id).await;
    }
    double.until_listened(1).await;
    let before = double.seen().len();
    double.restart();
    // The stream detects the restart, and the client is notified of possible changes.
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}});
    assert_eq!(mcp.read().await, changed);
    let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "x://2"}});
    assert_eq!(mcp.read().await, updated);
    let again = |double: &Double| {
        double.seen()[before..].iter().any(|seen| seen.what == "GET" && seen.header("mcp-session-id") == Some("s2"))
    };
    double.until("it listens in the new session", again).await;
    mcp.call(5, "plain", json!({})).await;
    mcp.read_answer(5).await;
    let seen = double.seen();
    let handshakes: Vec<&Value> =
        seen.iter().filter(|seen| seen.what == "POST initialize").map(|seen| &seen.body["params"]).collect();
    assert_eq!((handshakes.len(), handshakes[0]), (2, handshakes[1]));
    let after: Vec<(&str, &Value)> = seen[before..]
        .iter()
        .filter(|seen| seen.what.starts_with("POST") && seen.what != "POST initialize")
        .map(|seen| {
            assert_eq!(
                (seen.header("mcp-session-id"), seen.header("mcp-protocol-version")),
                (Some("s2"), Some(LEGACY))
            );
            (seen.what.as_str(), &seen.body["params"])
        })
        .collect();
    assert_eq!(
        after[..3],
        [
            ("POST notifications/initialized", &Value::Null),
            ("POST logging/setLevel", &json!({"level": "warning"})),
            ("POST resources/subscribe", &json!({"uri": "x://2"})),
        ]
    );
    mcp.end().await;
    assert_eq!(double.seen().last().unwrap().header("mcp-session-id"), Some("s2"));
}

#[tokio::test]
async fn request_in_a_lost_session_is_repeated_once() {
    let double = Double::start().await;
    double.refuse_streams();
    let mut mcp = Mcp::initialized(&double).await;
    mcp.call(1, "plain", json!({})).await;
    mcp.read_answer(1).await;
    double.restart();
    for id in 2..=9 {
        mcp.call(id, "plain", json!({})).await;
    }
    let mut answered = Vec::new();
    while answered.len() < 8 {
        let answer = mcp.read().await;
        if answer["method"] == "notifications/tools/list_changed" {
            continue;
        }
        assert_eq!(text(&answer), "a\nb");
        answered.push(answer["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, (2..=9).collect::<Vec<_>>());
    let handshakes = double.request_names().iter().filter(|what| *what == "POST initialize").count();
    assert_eq!(handshakes, 2, "one handshake must serve all requests");
    mcp.end().await;
}

#[tokio::test]
async fn requests_without_a_server_get_a_helpful_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut mcp = Mcp::start(&format!("http://{address}"));
    for id in 1..=2 {
        mcp.ask(id, "initialize", json!({"protocolVersion": LEGACY})).await;
        let refused = mcp.read_answer(id).await;
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains(&address.to_string()) && said.contains("greenroom serve"), "{said}");
    }
    let double = Double::on(TcpListener::bind(address).await.unwrap());
    mcp.initialize().await;
    double.until_listened(1).await;
    double.announce(&frame(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))).await;
    assert_eq!(mcp.read().await["method"], "notifications/tools/list_changed");
    mcp.end().await;
}
