//! How it ends.

use super::{Double, Mcp};
use rustix::process::Signal;
use serde_json::json;

#[tokio::test]
async fn answers_that_are_open_at_the_end_of_the_input_still_come() {
    let double = Double::start().await;
    let mut mcp = Mcp::greeted(&double).await;
    mcp.call(1, "slow", json!({"number": 1})).await;
    drop(mcp.input.take());
    double.until("it arrives", |double| double.whats().contains(&"POST tools/call".into())).await;
    double.release(1);
    let (code, left, _) = mcp.end().await;
    assert_eq!((code, left.len(), &left[0]["id"]), (Some(0), 1, &json!(1)));
    assert_eq!(double.whats().last().unwrap(), "DELETE");
}

#[tokio::test]
async fn a_signal_ends_the_session_and_the_command() {
    for (signal, wanted) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let double = Double::start().await;
        let mut mcp = Mcp::greeted(&double).await;
        double.until_listened(1).await;
        mcp.call(1, "slow", json!({"number": 1})).await;
        double.until("it arrives", |double| double.whats().contains(&"POST tools/call".into())).await;
        mcp.signal(signal);
        double.until("it says goodbye", |double| double.whats().contains(&"DELETE".into())).await;
        let input = mcp.input.take();
        let (code, left, _) = mcp.end().await;
        assert_eq!((code, left.len()), (Some(wanted), 0));
        drop(input);
    }
}

#[tokio::test]
async fn it_does_not_outlive_its_reader() {
    let double = Double::start().await;
    let mut mcp = Mcp::greeted(&double).await;
    mcp.output = None;
    mcp.call(1, "plain", json!({})).await;
    let input = mcp.input.take();
    let (code, _, _) = mcp.end().await;
    assert_eq!(code, Some(0));
    assert_eq!(double.whats().last().unwrap(), "DELETE");
    drop(input);
}
