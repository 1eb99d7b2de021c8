//! A server inside of this program: no process, no wire, only messages.

use crate::mcp::wire;
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

/// What a server inside of this program does with a request: `initialize`, `tools/list`, `tools/call`.
pub trait Inside: Send + Sync + 'static {
    /// An error has a code and a message, as JSON-RPC has it. Dropped when the caller does not wait any longer.
    fn answer(&self, method: String, params: Value) -> BoxFuture<'static, Result<Value, (i32, String)>>;
}

pub struct InProcess {
    server: Arc<dyn Inside>,
    answers: JoinSet<(RequestId, ServerJsonRpcMessage)>,
    open: HashMap<RequestId, AbortHandle>,
}

impl InProcess {
    pub fn new(server: Arc<dyn Inside>) -> Self {
        Self { server, answers: JoinSet::new(), open: HashMap::new() }
    }

    fn hear(&mut self, message: ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let id = request.id.clone();
                let mut said = serde_json::to_value(&request.request).unwrap_or_default();
                let method = said["method"].as_str().unwrap_or_default().to_owned();
                let answer = self.server.answer(method, said["params"].take());
                let task = {
                    let id = id.clone();
                    async move { (id.clone(), respond(answer.await, id)) }
                };
                self.open.insert(id, self.answers.spawn(task));
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(cancelled) = told.notification
                    && let Some(task) = cancelled.params.request_id.and_then(|id| self.open.remove(&id))
                {
                    task.abort();
                }
            }
            // Nothing is asked from there.
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
}

fn respond(answer: Result<Value, (i32, String)>, id: RequestId) -> ServerJsonRpcMessage {
    let failed = |code: i32, message: String, id: RequestId| {
        ServerJsonRpcMessage::error(ErrorData::new(ErrorCode(code), message, None), Some(id))
    };
    match answer {
        Ok(result) => wire::from_value(json!({"id": id, "result": result}))
            .unwrap_or_else(|| failed(ErrorCode::INTERNAL_ERROR.0, "an answer of no form".to_owned(), id)),
        Err((code, message)) => failed(code, message, id),
    }
}

impl Transport<RoleClient> for InProcess {
    type Error = Infallible;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.hear(message);
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.answers.join_next().await {
                Some(Ok((id, answer))) => {
                    self.open.remove(&id);
                    return Some(answer);
                }
                // Cancelled, or a panic, which is logged where it happens; the asker has a deadline.
                Some(Err(_)) => {}
                // New ones come by `send`, which needs this to be dropped first.
                None => std::future::pending().await,
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.answers.shutdown().await;
        Ok(())
    }
}
