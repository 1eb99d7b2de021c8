//! A running `codex app-server`: many threads and concurrent turns over one pair of pipes.
//!
//! A task reads its output, routes messages by thread, and stops the program when it exits or is told to stop.

use super::{
    command,
    home::{self, CodexHome},
    parse::{not_logged_in, text},
    requests,
    thread_router::ThreadRouter,
};
use crate::{
    gateway::{GatewayAccess, GatewayTurns},
    jsonrpc::{CallError, CloseReason, RpcConnection, RpcFormat, RpcIncoming, RpcPeer},
    program::{AgentProgram, STOP_TIMEOUTS},
};
use domain::run::{Receipt, RunError};
use serde_json::{Value, json};
use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use workbench::process::{LaunchedProcess, ProcessHandle, ProgramExit};

pub const INSTALL_ADVICE: &str =
    "Install Codex with `npm install -g @openai/codex`, or set its path in the configuration.";
/// Start-up takes a fifth of a second on an idle machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a program may take to exit after its output has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of its stderr is included in an error message.
const STDERR_CHARS: usize = 2000;

#[derive(Debug)]
pub struct CodexInstance {
    pub peer: RpcPeer,
    pub router: ThreadRouter,
    stop: CancellationToken,
    stop_reason: Mutex<String>,
    ended: watch::Receiver<Option<Arc<InstanceEnd>>>,
    is_new: AtomicBool,
    /// Which turns may call models, if it is in a sandbox.
    pub model_calls: Option<GatewayTurns>,
}

/// How an instance ended.
#[derive(Debug)]
pub struct InstanceEnd {
    pub error: RunError,
    pub receipt: Receipt,
}

impl CodexInstance {
    /// Starts the program for the agent with this home folder, and initializes it. If this fails, the program has
    /// exited; dropping the future stops it. `permit` is released when the program has exited.
    pub async fn start(
        program: &AgentProgram,
        home: &CodexHome,
        tasks: &TaskTracker,
        permit: OwnedSemaphorePermit,
    ) -> Result<Arc<Self>, RunError> {
        let LaunchedCodex { process: launched, api_key, access } = launch(program, home).await?;
        let LaunchedProcess { stdin, stdout, handle } = launched;
        let (connection, peer, incoming) = RpcConnection::start(stdout, stdin, RpcFormat { with_version_field: false });
        let (ended, lost) = watch::channel(None);
        let instance = Arc::new(Self {
            peer,
            router: ThreadRouter::default(),
            stop: CancellationToken::new(),
            stop_reason: Mutex::default(),
            ended: lost,
            is_new: AtomicBool::new(true),
            model_calls: access.as_ref().map(|access| access.turns().clone()),
        });
        let supervisor = supervise(Arc::clone(&instance), connection, incoming, handle, ended);
        tasks.spawn(async move {
            supervisor.await;
            drop((permit, access));
        });
        let unfinished = instance.stop.clone().drop_guard();
        match instance.initialize(api_key).await {
            Ok(()) => {
                unfinished.disarm();
                Ok(instance)
            }
            // The error of a program that exited is more useful than the failed request.
            Err(_) if instance.peer.close_reason().is_some() => Err(instance.wait_for_end().await.error.clone()),
            Err(error) => {
                instance.stop_with(&error.message).await;
                Err(error)
            }
        }
    }

    async fn initialize(&self, api_key: Option<String>) -> Result<(), RunError> {
        let params = json!({
            "clientInfo": {"name": "greenroom", "title": "Greenroom", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {
                "experimentalApi": true,
                "optOutNotificationMethods": [
                    "account/rateLimits/updated", "thread/readState/changed", "remoteControl/status/changed",
                ],
            },
        });
        self.request("initialize", params).await?;
        self.peer.notify("initialized", Value::Null).map_err(|error| failed("initialized", &error))?;
        if let Some(key) = api_key {
            self.request("account/login/start", json!({"type": "apiKey", "apiKey": key})).await?;
        }
        // Without a login, Codex would retry for a quarter of a minute.
        let account = self.request("account/read", json!({})).await.unwrap_or_default();
        let needs_one = account.get("requiresOpenaiAuth").and_then(Value::as_bool).unwrap_or_default();
        if needs_one && account.get("account").is_some_and(Value::is_null) {
            return Err(not_logged_in("no account and no API key"));
        }
        Ok(())
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, RunError> {
        self.peer.request(method, params, START_TIMEOUT).await.map_err(|error| match error {
            CallError::Timeout => RunError::new(
                "start_timeout",
                format!("Codex did not answer {method} within {} s.", START_TIMEOUT.as_secs()),
            ),
            other => failed(method, &other),
        })
    }

    /// Returns true only for the first caller.
    pub fn take_first_use(&self) -> bool {
        self.is_new.swap(false, Ordering::Relaxed)
    }

    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits until the instance has ended, for any reason.
    pub async fn wait_for_end(&self) -> Arc<InstanceEnd> {
        let mut lost = self.ended.clone();
        // The supervising task always sends a value, unless the runtime is shut down.
        let end = lost.wait_for(Option::is_some).await.ok().and_then(|lost| lost.clone());
        end.unwrap_or_else(|| {
            Arc::new(InstanceEnd { error: crashed("Codex was stopped."), receipt: Receipt::default() })
        })
    }

    /// Stops the instance and all its turns, which fail with the message `why`.
    pub async fn stop_with(&self, why: &str) -> Arc<InstanceEnd> {
        {
            let mut reason = self.stop_reason.lock().unwrap_or_else(PoisonError::into_inner);
            if reason.is_empty() {
                why.clone_into(&mut reason);
            }
        }
        self.stop.cancel();
        self.wait_for_end().await
    }
}

fn failed(method: &str, error: &CallError) -> RunError {
    let code = match error {
        CallError::Refused { .. } => "program_refused",
        CallError::Timeout | CallError::Overloaded => "program_stuck",
        CallError::Closed(reason) => reason.code(),
    };
    RunError::new(code, format!("Codex request {method} failed: {error}"))
}

fn crashed(message: impl Into<String>) -> RunError {
    RunError::new("program_crashed", message)
}

struct LaunchedCodex {
    process: LaunchedProcess,
    /// The API key to log in with.
    api_key: Option<String>,
    /// Its token for the model gateway, if it is in a sandbox.
    access: Option<GatewayAccess>,
}

/// Prepares the agent's folder and starts the program.
async fn launch(program: &AgentProgram, home: &CodexHome) -> Result<LaunchedCodex, RunError> {
    let Some(found) = program.locate() else {
        let message = format!("No program {:?} was found. {INSTALL_ADVICE}", program.command);
        return Err(RunError::new("program_missing", message));
    };
    let prepared = tokio::task::spawn_blocking({
        let (program, home) = (program.for_workspace(&command::WIRES, &home.provider_settings), home.clone());
        move || match &home.sandbox {
            Some(sandbox) => {
                home::prepare_inside(&home, sandbox)?;
                let AgentProgram { gateway, environment, .. } = &program;
                let (key, servers) = (&sandbox.key, &home.mcp_servers);
                let access = gateway.issue(key, &command::WIRES, environment, &home.provider_settings, servers);
                let access = access.map_err(io::Error::other)?;
                Ok((command::app_server_inside(&program, &found, &home, sandbox, &access), None, Some(access)))
            }
            None => {
                home::prepare(&home.folder, &program)?;
                let api_key = command::api_key(&program, &home.folder);
                Ok((command::app_server(&program, &found, &home.folder), api_key, None))
            }
        }
    });
    let prepared: io::Result<_> = prepared.await.map_err(io::Error::other).and_then(|inner| inner);
    let (command, api_key, access) =
        prepared.map_err(|error| crashed(format!("Cannot prepare the agent's Codex folder: {error}")))?;
    let launched = program.launcher.launch(command).await;
    let process = launched.map_err(|error| crashed(format!("{error}. {INSTALL_ADVICE}")))?;
    Ok(LaunchedCodex { process, api_key, access })
}

async fn supervise(
    instance: Arc<CodexInstance>,
    connection: RpcConnection,
    mut incoming: mpsc::Receiver<RpcIncoming>,
    mut process: Box<dyn ProcessHandle>,
    end: watch::Sender<Option<Arc<InstanceEnd>>>,
) {
    let closed = tokio::select! {
        biased;
        reason = route(&instance, &mut incoming) => Some(reason),
        () = instance.stop.cancelled() => None,
    };
    connection.close().await;
    let mut error = match &closed {
        Some(reason) => {
            let ended = tokio::time::timeout(EXIT_TIMEOUT, process.wait()).await.ok();
            RunError::new(reason.code(), end_message(reason, ended))
        }
        None => crashed(instance.stop_reason.lock().unwrap_or_else(PoisonError::into_inner).clone()),
    };
    let stderr = process.stderr().text();
    if closed.is_some() && !stderr.is_empty() {
        let from = stderr.char_indices().rev().take(STDERR_CHARS).last().map_or(0, |(at, _)| at);
        error.message = format!("{} Last output on stderr: {}", error.message, &stderr[from..]);
    }
    let receipt = process.stop(STOP_TIMEOUTS).await;
    let queues = instance.router.detach_all();
    end.send_replace(Some(Arc::new(InstanceEnd { error, receipt })));
    for queue in queues {
        // A turn with a full queue sees that the sender was dropped.
        drop(queue.try_send(RpcIncoming::Closed(closed.clone().unwrap_or(CloseReason::Dropped))));
    }
}

fn end_message(reason: &CloseReason, ended: Option<ProgramExit>) -> String {
    let ended = match ended {
        Some(ProgramExit::Code(code)) => format!("Codex exited unexpectedly with exit code {code}"),
        Some(ProgramExit::Signal(signal)) => format!("Codex was killed by signal {signal}"),
        Some(ProgramExit::Unknown) => "Codex exited unexpectedly".to_owned(),
        None => "Codex is running, but its output cannot be read".to_owned(),
    };
    match reason {
        CloseReason::Ended => format!("{ended}."),
        other => format!("{ended}: {other}."),
    }
}

/// Routes messages until the connection is closed.
async fn route(instance: &CodexInstance, incoming: &mut mpsc::Receiver<RpcIncoming>) -> CloseReason {
    while let Some(message) = incoming.recv().await {
        let (thread, request) = match &message {
            RpcIncoming::Closed(reason) => return reason.clone(),
            RpcIncoming::Notification { method, params, .. } => {
                let thread = text(params, "threadId");
                if let ("thread/closed", Some(thread)) = (method.as_str(), thread) {
                    instance.router.forget(thread);
                }
                (thread, None)
            }
            RpcIncoming::Request { id, method, params, .. } => {
                (text(params, "threadId"), Some((id.clone(), method.clone())))
            }
        };
        let thread = thread.map(str::to_owned);
        let undelivered = match thread.as_deref().and_then(|thread| instance.router.queue(thread)) {
            Some(queue) => queue.send(message).await.err().map(|unsent| unsent.0),
            None => Some(message),
        };
        match (undelivered, request, thread) {
            (Some(_), Some((id, method)), _) => {
                if let Err(error) = instance.peer.respond(id, requests::refusal(&method)) {
                    tracing::debug!(method, %error, "could not refuse a request without a turn");
                }
            }
            (Some(message), None, Some(thread)) => instance.router.buffer_early(thread, message),
            _ => {}
        }
    }
    CloseReason::Dropped
}
