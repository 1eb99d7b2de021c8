//! Transport for an in-process server: no process and no socket, only messages.

use crate::mcp::server_message;
use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    },
    transport::Transport,
};
use serde_json::{Value, json};
use std::{collections::HashMap, convert::Infallible, sync::Arc};
use tokio::task::{AbortHandle, JoinSet};

/// An in-process MCP server. It answers `initialize`, `tools/list` and `tools/call`.
pub trait InProcessServer: Send + Sync + 'static {
    /// An error is a JSON-RPC code and message. The future is dropped when the caller cancels.
    fn answer(&self, method: String, params: Value) -> BoxFuture<'static, Result<Value, (i32, String)>>;
}

pub struct InProcessTransport {
    server: Arc<dyn InProcessServer>,
    answers: JoinSet<(RequestId, ServerJsonRpcMessage)>,
    pending: HashMap<RequestId, AbortHandle>,
}

impl InProcessTransport {
    pub fn new(server: Arc<dyn InProcessServer>) -> Self {
        Self { server, answers: JoinSet::new(), pending: HashMap::new() }
    }

    fn handle_message(&mut self, message: ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let id = request.id.clone();
                let mut json = serde_json::to_value(&request.request).unwrap_or_default();
                let method = json["method"].as_str().unwrap_or_default().to_owned();
                let answer = self.server.answer(method, json["params"].take());
                let task = {
                    let id = id.clone();
                    async move { (id.clone(), respond(answer.await, id)) }
                };
                self.pending.insert(id, self.answers.spawn(task));
            }
            JsonRpcMessage::Notification(message) => {
                if let ClientNotification::CancelledNotification(cancelled) = message.notification
                    && let Some(task) = cancelled.params.request_id.and_then(|id| self.pending.remove(&id))
                {
                    task.abort();
                }
            }
            // In-process servers send no requests.
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
}

fn respond(answer: Result<Value, (i32, String)>, id: RequestId) -> ServerJsonRpcMessage {
    let failed = |code: i32, message: String, id: RequestId| {
        ServerJsonRpcMessage::error(ErrorData::new(ErrorCode(code), message, None), Some(id))
    };
    match answer {
        Ok(result) => server_message::from_value(json!({"id": id, "result": result})).unwrap_or_else(|| {
            failed(ErrorCode::INTERNAL_ERROR.0, "the server returned an invalid answer".to_owned(), id)
        }),
        Err((code, message)) => failed(code, message, id),
    }
}

impl Transport<RoleClient> for InProcessTransport {
    type Error = Infallible;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.handle_message(message);
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.answers.join_next().await {
                Some(Ok((id, answer))) => {
                    self.pending.remove(&id);
                    return Some(answer);
                }
                // Cancelled or panicked. Panics are logged elsewhere, and the request has a deadline.
                Some(Err(_)) => {}
                // New requests arrive by `send`, which cancels this call first.
                None => std::future::pending().await,
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.answers.shutdown().await;
        Ok(())
    }
}
