//! Messages for a prompt in progress. Version 1 of the protocol has no method for it; some agents offer the extension
//! `_session/steering`, and say so when they are initialized (`_meta.steering.supported`).

use crate::jsonrpc::{CallError, RpcPeer};
use domain::ids::MessageId;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};

/// How long an agent may take to confirm a message: less than the engine waits.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

/// The messages that the agent has not confirmed yet.
#[derive(Debug, Default)]
pub struct AcpSteering {
    requests: JoinSet<(MessageId, Result<Value, CallError>)>,
}

impl AcpSteering {
    /// Sends a message. An agent whose prompt has just ended must not begin another one by itself: the engine queues a
    /// run for a message that was not taken.
    pub fn send(&mut self, peer: &RpcPeer, session: &str, message: MessageId, text: &str) {
        let params = json!({
            "sessionId": session,
            "prompt": [{"type": "text", "text": text}],
            "_meta": {"steering": {"idleBehavior": "promptRequired"}},
        });
        let peer = peer.clone();
        self.requests.spawn(async move {
            let reply = peer.request("_session/steering", params, CONFIRM_TIMEOUT).await;
            (message, reply)
        });
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Waits for the next reply: whether the agent has taken the message. `None` if a task failed. Cancel safe.
    pub async fn next(&mut self) -> Option<(MessageId, bool)> {
        let (message, reply) = match self.requests.join_next().await {
            Some(reply) => reply.inspect_err(report_panic).ok()?,
            None => std::future::pending().await,
        };
        let is_taken = match reply {
            Ok(reply) => reply["outcome"].as_str() == Some("injected"),
            Err(error) => {
                tracing::debug!(%error, "an agent did not take a message during a prompt");
                false
            }
        };
        Some((message, is_taken))
    }
}

fn report_panic(error: &JoinError) {
    tracing::error!(%error, "the task of a message for a prompt in progress failed");
}
