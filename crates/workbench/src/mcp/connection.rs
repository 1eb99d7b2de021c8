//! One living connection: calls with deadlines, and lists of tools with an end. How it comes about is in `open`.

use super::{CallResult, Failure, Identity, Listing, handler::Handler, open, settings::Settings, transport::Ending};
use crate::process::Stderr;
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

/// How a tool is called.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// `None`: what the config says, else the manager's own.
    pub deadline: Option<Duration>,
    /// Told how far the tool is, if it says so.
    pub progress: Option<mpsc::Sender<Progress>>,
    pub cancel: CancellationToken,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct Peered {
    pub protocol_version: String,
    pub server: Option<Identity>,
    pub instructions: Option<String>,
}

/// A list, and how many changes the server had told of when it was asked for.
type Kept = Option<(u64, Arc<Listing>)>;

pub struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    pub(super) handler: Handler,
    pub(super) ending: Ending,
    pub(super) peered: Peered,
    pub(super) started: Instant,
    pub(super) process_id: Option<i32>,
    pub(super) stderr: Option<Stderr>,
    /// For what outlives a call that was given up.
    pub(super) chores: TaskTracker,
    pub(super) asking: AsyncMutex<()>,
    pub(super) listing: Mutex<Kept>,
}

enum Answer {
    Result(Value),
    Refused(ErrorData),
}

/// Tells the server that nobody waits any more, also when the caller just went away.
struct Abandoned<'a> {
    connection: &'a Connection,
    id: Option<RequestId>,
    reason: &'static str,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        // A future may outlive its runtime; then the server ends as well.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (peer, reason) = (self.connection.peer.clone(), self.reason.to_owned());
        self.connection.chores.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some(reason));
            let notification = CancelledNotification::new(params);
            if timeout(Duration::from_secs(5), peer.send_notification(notification.into())).await.is_err() {
                tracing::debug!("an MCP server does not take the news that a call was given up");
            }
        });
    }
}

impl Connection {
    /// Why it is over, once that is so.
    pub fn ended(&self) -> Option<String> {
        let over = self.ending.get().map(str::to_owned);
        over.or_else(|| self.peer.is_transport_closed().then(|| "the connection was closed".to_owned()))
    }

    pub fn kept(&self) -> Option<Arc<Listing>> {
        self.keep().as_ref().map(|(_, listing)| Arc::clone(listing))
    }

    fn keep(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self) -> u64 {
        *self.handler.changes().borrow()
    }

    fn fresh(&self) -> Option<Arc<Listing>> {
        let changes = self.changes();
        self.keep().as_ref().filter(|(seen, _)| *seen == changes).map(|(_, listing)| Arc::clone(listing))
    }

    /// Asks only if the server said that something has changed since it was asked last.
    pub async fn tools(&self, settings: &Settings) -> Result<Arc<Listing>, Failure> {
        if let Some(listing) = self.fresh() {
            return Ok(listing);
        }
        let _asking = self.asking.lock().await;
        if let Some(listing) = self.fresh() {
            return Ok(listing);
        }
        let changes = self.changes();
        let listing = Arc::new(self.list(settings).await?);
        *self.keep() = Some((changes, Arc::clone(&listing)));
        Ok(listing)
    }

    /// All pages within one deadline. Not rmcp's way, which follows a cursor that comes again for ever.
    async fn list(&self, settings: &Settings) -> Result<Listing, Failure> {
        let (until, never) = (Moment::now() + settings.list, CancellationToken::new());
        let Peered { protocol_version, server, instructions } = self.peered.clone();
        let mut listing = Listing { protocol_version, server, instructions, ..Listing::default() };
        let (mut names, mut cursors, mut cursor) = (HashSet::new(), HashSet::new(), None::<String>);
        for _ in 0..settings.max_pages {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let left = until.saturating_duration_since(Moment::now());
            let answer = self.ask(request, left, settings.list, "list its tools", None, &never);
            let mut page = match answer.await? {
                Answer::Result(Value::Object(page)) => page,
                Answer::Result(other) => return Err(Failure::BadAnswer(start_of(&other.to_string()))),
                // A server without tools need not know the method.
                Answer::Refused(error) if error.code == ErrorCode::METHOD_NOT_FOUND => return Ok(listing),
                Answer::Refused(error) => {
                    return Err(Failure::BadAnswer(format!("error {} on tools/list: {}", error.code.0, error.message)));
                }
            };
            match page.remove("tools") {
                Some(Value::Array(tools)) => listing.add(tools, &mut names, settings.max_tools),
                Some(_) => return Err(Failure::BadAnswer("its tools are no list".to_owned())),
                None => return Err(Failure::BadAnswer("its answer to tools/list has no tools".to_owned())),
            }
            match page.remove("nextCursor") {
                Some(Value::String(next)) if !next.is_empty() => {
                    if !cursors.insert(next.clone()) {
                        listing.remarks.push("it named a page of its tools twice; the list ends there".to_owned());
                        return Ok(listing);
                    }
                    cursor = Some(next);
                }
                _ => return Ok(listing),
            }
        }
        listing
            .remarks
            .push(format!("its list of tools has more than {} pages; the rest is left out", settings.max_pages));
        Ok(listing)
    }

    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        deadline: Duration,
        options: &CallOptions,
    ) -> Result<CallResult, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let progress = options.progress.clone();
        match self.ask(request, deadline, deadline, "answer a call", progress, &options.cancel).await? {
            Answer::Result(result) => CallResult::read(result).map_err(Failure::BadAnswer),
            Answer::Refused(error) => Ok(CallResult::refused(error.code.0.into(), &error.message, error.data.as_ref())),
        }
    }

    /// `left` of the `whole` deadline that the caller set.
    async fn ask(
        &self,
        request: ClientRequest,
        left: Duration,
        whole: Duration,
        what: &'static str,
        progress: Option<mpsc::Sender<Progress>>,
        cancel: &CancellationToken,
    ) -> Result<Answer, Failure> {
        let mut abandoned = Abandoned { connection: self, id: None, reason: "the caller does not wait any longer" };
        let answer = async {
            let options = PeerRequestOptions::no_options();
            let mut sent = self.peer.send_cancellable_request(request, options).await?;
            abandoned.id = Some(sent.id.clone());
            let _watching = progress.map(|sender| self.handler.watch(sent.progress_token.clone(), sender));
            let answer = (&mut sent.rx).await.unwrap_or(Err(ServiceError::TransportClosed));
            abandoned.id = None;
            answer
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Failure::Cancelled),
            answer = timeout(left, answer) => answer,
        };
        match answer {
            Ok(Ok(ServerResult::CustomResult(result))) => Ok(Answer::Result(result.0)),
            Ok(Ok(other)) => match serde_json::to_value(other) {
                Ok(result) => Ok(Answer::Result(result)),
                Err(error) => Err(Failure::BadAnswer(error.to_string())),
            },
            Ok(Err(ServiceError::McpError(error))) => Ok(Answer::Refused(error)),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => {
                abandoned.reason = "its time is over";
                Err(Failure::Timeout { what, after: whole, detail: String::new() })
            }
        }
    }

    fn failed(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::TransportSend(error) => {
                let source = error.error.as_ref();
                open::unauthorized(source).unwrap_or_else(|| Failure::Unreachable(open::chain(source)))
            }
            ServiceError::Cancelled { reason } => {
                Failure::BadAnswer(format!("it cancelled the call: {}", reason.unwrap_or_default()))
            }
            other => Failure::Crashed(self.ended().unwrap_or_else(|| other.to_string())),
        }
    }

    /// The server is asked to end and is ended by force if it does not. rmcp's own end of a connection would need a
    /// runtime that still runs, so this comes before.
    pub async fn close(&self, patience: Duration) {
        self.ending.set("it was stopped");
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut service) = service {
            match service.close_with_timeout(patience).await {
                Ok(Some(_)) => {}
                Ok(None) => tracing::warn!("an MCP server does not end in time; its kill domain is ended without it"),
                Err(error) => tracing::debug!(%error, "the task of an MCP connection ended badly"),
            }
        }
    }
}

fn start_of(text: &str) -> String {
    text.chars().take(200).collect()
}
