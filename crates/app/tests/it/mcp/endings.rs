//! How the command ends.

use super::{Double, Mcp};
use rustix::process::Signal;
use serde_json::json;

#[tokio::test]
async fn pending_answers_arrive_after_eof() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    mcp.call(1, "slow", json!({"number": 1})).await;
    drop(mcp.input.take());
    double.until("it arrives", |double| double.request_names().contains(&"POST tools/call".into())).await;
    double.release(1);
    let (code, left, _) = mcp.end().await;
    assert_eq!((code, left.len(), &left[0]["id"]), (Some(0), 1, &json!(1)));
    assert_eq!(double.request_names().last().unwrap(), "DELETE");
}

#[tokio::test]
async fn signal_ends_the_session_and_the_command() {
    for (signal, wanted) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let double = Double::start().await;
        let mut mcp = Mcp::initialized(&double).await;
        double.until_listened(1).await;
        mcp.call(1, "slow", json!({"number": 1})).await;
        double.until("it arrives", |double| double.request_names().contains(&"POST tools/call".into())).await;
        mcp.signal(signal);
        double.until("it says goodbye", |double| double.request_names().contains(&"DELETE".into())).await;
        let input = mcp.input.take();
        let (code, left, _) = mcp.end().await;
        assert_eq!((code, left.len()), (Some(wanted), 0));
        drop(input);
    }
}

#[tokio::test]
async fn command_ends_when_stdout_is_closed() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    mcp.output = None;
    mcp.call(1, "plain", json!({})).await;
    let input = mcp.input.take();
    let (code, _, _) = mcp.end().await;
    assert_eq!(code, Some(0));
    assert_eq!(double.request_names().last().unwrap(), "DELETE");
    drop(input);
}
