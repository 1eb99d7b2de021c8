//! One open connection to an MCP server: tool calls with deadlines, and bounded tool lists. `open` creates it.

use super::{
    McpCallResult, McpFailure, McpServerIdentity, McpToolListing, handler::McpClientHandler, open,
    settings::McpClientSettings, transport::EndReason,
};
use crate::process::StderrTail;
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientRequest,
        ErrorCode, ErrorData, ListToolsRequest, PaginatedRequestParams, RequestId, ServerResult,
    },
    service::{Peer, PeerRequestOptions, RunningService, ServiceError},
};
use serde_json::{Map, Value};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc},
    time::{Instant as Moment, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Options for one tool call.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// `None`: the timeout of the server's config, else that of the settings.
    pub deadline: Option<Duration>,
    /// Receives progress, if the server sends any.
    pub progress: Option<mpsc::Sender<McpProgress>>,
    pub cancel: CancellationToken,
}

#[derive(Clone, PartialEq, Debug)]
pub struct McpProgress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// What the server said about itself in the handshake.
#[derive(Clone, Debug)]
pub struct McpServerInfo {
    pub protocol_version: String,
    pub server: Option<McpServerIdentity>,
    pub instructions: Option<String>,
}

/// A tool list, and the number of change notifications received before it was requested.
type CachedListing = Option<(u64, Arc<McpToolListing>)>;

pub struct McpConnection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) service: Mutex<Option<RunningService<RoleClient, McpClientHandler>>>,
    pub(super) handler: McpClientHandler,
    pub(super) end_reason: EndReason,
    pub(super) server_info: McpServerInfo,
    pub(super) started: Instant,
    pub(super) process_id: Option<i32>,
    pub(super) stderr: Option<StderrTail>,
    /// Runs cancellation notices that outlive their call.
    pub(super) background_tasks: TaskTracker,
    pub(super) list_lock: AsyncMutex<()>,
    pub(super) listing: Mutex<CachedListing>,
}

enum RpcOutcome {
    Result(Value),
    Error(ErrorData),
}

/// Sends a cancellation to the server if the request is dropped before its answer.
struct CancelOnDrop<'a> {
    connection: &'a McpConnection,
    id: Option<RequestId>,
    reason: &'static str,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        // A future may outlive its runtime; then the server connection ends as well.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (peer, reason) = (self.connection.peer.clone(), self.reason.to_owned());
        self.connection.background_tasks.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some(reason));
            let notification = CancelledNotification::new(params);
            if timeout(Duration::from_secs(5), peer.send_notification(notification.into())).await.is_err() {
                tracing::debug!("could not send a cancellation to the MCP server");
            }
        });
    }
}

impl McpConnection {
    /// Returns why the connection ended, or `None` while it is open.
    pub fn end_reason(&self) -> Option<String> {
        let over = self.end_reason.get().map(str::to_owned);
        over.or_else(|| self.peer.is_transport_closed().then(|| "the connection was closed".to_owned()))
    }

    pub fn cached_listing(&self) -> Option<Arc<McpToolListing>> {
        self.lock_listing().as_ref().map(|(_, listing)| Arc::clone(listing))
    }

    fn lock_listing(&self) -> std::sync::MutexGuard<'_, CachedListing> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self) -> u64 {
        *self.handler.changes().borrow()
    }

    fn current_listing(&self) -> Option<Arc<McpToolListing>> {
        let changes = self.changes();
        self.lock_listing().as_ref().filter(|(seen, _)| *seen == changes).map(|(_, listing)| Arc::clone(listing))
    }

    /// Returns the cached list unless the server has announced a change since.
    pub async fn tools(&self, settings: &McpClientSettings) -> Result<Arc<McpToolListing>, McpFailure> {
        if let Some(listing) = self.current_listing() {
            return Ok(listing);
        }
        let _asking = self.list_lock.lock().await;
        if let Some(listing) = self.current_listing() {
            return Ok(listing);
        }
        let changes = self.changes();
        let listing = Arc::new(self.fetch_listing(settings).await?);
        *self.lock_listing() = Some((changes, Arc::clone(&listing)));
        Ok(listing)
    }

    /// Fetches all pages within one deadline. rmcp's own function would follow a repeated cursor endlessly.
    async fn fetch_listing(&self, settings: &McpClientSettings) -> Result<McpToolListing, McpFailure> {
        let (until, never) = (Moment::now() + settings.list_timeout, CancellationToken::new());
        let McpServerInfo { protocol_version, server, instructions } = self.server_info.clone();
        let mut listing = McpToolListing { protocol_version, server, instructions, ..McpToolListing::default() };
        let (mut names, mut cursors, mut cursor) = (HashSet::new(), HashSet::new(), None::<String>);
        for _ in 0..settings.max_pages {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let left = until.saturating_duration_since(Moment::now());
            let answer = self.request(request, left, settings.list_timeout, "list its tools", None, &never);
            let mut page = match answer.await? {
                RpcOutcome::Result(Value::Object(page)) => page,
                RpcOutcome::Result(other) => return Err(McpFailure::BadAnswer(start_of(&other.to_string()).into())),
                // A server without tools need not implement the method.
                RpcOutcome::Error(error) if error.code == ErrorCode::METHOD_NOT_FOUND => return Ok(listing),
                RpcOutcome::Error(error) => {
                    let text = format!("error {} on tools/list: {}", error.code.0, error.message);
                    return Err(McpFailure::BadAnswer(text.into()));
                }
            };
            match page.remove("tools") {
                Some(Value::Array(tools)) => listing.add_page(tools, &mut names, settings.max_tools),
                Some(_) => {
                    return Err(McpFailure::BadAnswer("the tools in its answer to tools/list are not an array".into()));
                }
                None => return Err(McpFailure::BadAnswer("its answer to tools/list has no tools".into())),
            }
            match page.remove("nextCursor") {
                Some(Value::String(next)) if !next.is_empty() => {
                    if !cursors.insert(next.clone()) {
                        listing.remarks.push("its tool list repeats a page cursor; the list ends there".to_owned());
                        return Ok(listing);
                    }
                    cursor = Some(next);
                }
                _ => return Ok(listing),
            }
        }
        listing.remarks.push(format!("its tool list has more than {} pages; the rest is left out", settings.max_pages));
        Ok(listing)
    }

    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        deadline: Duration,
        options: &CallOptions,
    ) -> Result<McpCallResult, McpFailure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let progress = options.progress.clone();
        match self.request(request, deadline, deadline, "answer a call", progress, &options.cancel).await? {
            RpcOutcome::Result(result) => {
                McpCallResult::from_result(result).map_err(|error| McpFailure::BadAnswer(error.into()))
            }
            RpcOutcome::Error(error) => {
                Ok(McpCallResult::from_rpc_error(error.code.0.into(), &error.message, error.data.as_ref()))
            }
        }
    }

    /// `left` is the rest of the `whole` timeout that the caller set.
    async fn request(
        &self,
        request: ClientRequest,
        left: Duration,
        whole: Duration,
        what: &'static str,
        progress: Option<mpsc::Sender<McpProgress>>,
        cancel: &CancellationToken,
    ) -> Result<RpcOutcome, McpFailure> {
        let mut abandoned = CancelOnDrop { connection: self, id: None, reason: "the caller canceled the request" };
        let answer = async {
            let options = PeerRequestOptions::no_options();
            let mut sent = self.peer.send_cancellable_request(request, options).await?;
            abandoned.id = Some(sent.id.clone());
            let _watching = progress.map(|sender| self.handler.watch_progress(sent.progress_token.clone(), sender));
            let answer = (&mut sent.rx).await.unwrap_or(Err(ServiceError::TransportClosed));
            abandoned.id = None;
            answer
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(McpFailure::Cancelled),
            answer = timeout(left, answer) => answer,
        };
        match answer {
            Ok(Ok(ServerResult::CustomResult(result))) => Ok(RpcOutcome::Result(result.0)),
            Ok(Ok(other)) => match serde_json::to_value(other) {
                Ok(result) => Ok(RpcOutcome::Result(result)),
                Err(error) => Err(McpFailure::BadAnswer(error.to_string().into())),
            },
            Ok(Err(ServiceError::McpError(error))) => Ok(RpcOutcome::Error(error)),
            Ok(Err(error)) => Err(self.request_failure(error)),
            Err(_) => {
                abandoned.reason = "the request timed out";
                Err(McpFailure::Timeout { what, after: whole, detail: String::new() })
            }
        }
    }

    fn request_failure(&self, error: ServiceError) -> McpFailure {
        match error {
            ServiceError::TransportSend(error) => {
                let source = error.error.as_ref();
                open::known_failure(source).unwrap_or_else(|| McpFailure::Unreachable(open::error_chain(source).into()))
            }
            ServiceError::Cancelled { reason } => {
                McpFailure::BadAnswer(format!("it canceled the call: {}", reason.unwrap_or_default()).into())
            }
            other => McpFailure::Crashed(self.end_reason().unwrap_or_else(|| other.to_string()).into()),
        }
    }

    /// Asks the server to end, and kills it if it does not. Must run while the runtime is alive: rmcp closes
    /// connections in a task.
    pub async fn close(&self, timeout: Duration) {
        self.end_reason.set("it was stopped");
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut service) = service {
            match service.close_with_timeout(timeout).await {
                Ok(Some(_)) => {}
                Ok(None) => tracing::warn!("an MCP server did not end in time; killing its processes"),
                Err(error) => tracing::debug!(%error, "the task of an MCP connection failed"),
            }
        }
    }
}

fn start_of(text: &str) -> String {
    text.chars().take(200).collect()
}
