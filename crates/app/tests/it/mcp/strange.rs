//! Clients and servers that do not behave.

use super::{Double, Mcp, text};
use serde_json::{Value, json};

#[tokio::test]
async fn invalid_messages_get_an_error_and_do_not_end_the_session() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(4 * 1024 * 1024));
    for (line, code) in [
        ("hello", -32700),
        ("{\"id\":", -32700),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
        ("{}", -32600),
        (&long, -32600),
    ] {
        mcp.write_line(line).await;
        let answer = mcp.read().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null), "{answer}");
    }
    mcp.write_line("").await;
    mcp.call(1, "plain", json!({})).await;
    assert_eq!(text(&mcp.read_answer(1).await), "a\nb");
    mcp.end().await;
    assert_eq!(double.request_names().iter().filter(|what| *what == "POST tools/call").count(), 1);
}

#[tokio::test]
async fn duplicate_request_id_is_rejected() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    mcp.call(1, "slow", json!({"number": 1})).await;
    mcp.call(1, "plain", json!({})).await;
    let refused = mcp.read_answer(1).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("open already"), "{refused}");
    double.release(1);
    assert_eq!(text(&mcp.read_answer(1).await), "done");
    mcp.end().await;
}

#[tokio::test]
async fn invalid_server_response_is_not_forwarded() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    mcp.call(1, "garbage", json!({})).await;
    let refused = mcp.read_answer(1).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("not a JSON-RPC message"), "{refused}");
    mcp.end().await;
}

#[tokio::test]
async fn token_is_sent_and_a_wrong_one_is_reported() {
    let double = Double::start().await;
    double.want_token("grm_secret");
    let mut stranger = Mcp::start_with(&double.url(), Some("grm_wrong"));
    stranger.ask(1, "initialize", json!({"protocolVersion": "2025-11-25"})).await;
    let refused = stranger.read_answer(1).await;
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("Send an access token.") && said.contains("GREENROOM_TOKEN"), "{said}");
    let (code, _, notes) = stranger.end().await;
    assert_eq!(code, Some(0));
    assert!(notes.contains("GREENROOM_TOKEN") && !notes.contains("grm_"), "{notes}");
    let mut mcp = Mcp::start_with(&double.url(), Some("grm_secret"));
    mcp.initialize().await;
    mcp.call(1, "plain", json!({})).await;
    mcp.read_answer(1).await;
    mcp.end().await;
}
