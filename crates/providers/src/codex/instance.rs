//! One `codex app-server` that runs: many threads, many turns at once, one pair of pipes.
//!
//! A task of its own reads, hands on by thread and, when the program is gone or is told to go, makes sure that it is.

use super::{
    ask,
    desk::Desk,
    launch::{Launched, Process},
    parse::{not_logged_in, text},
};
use crate::jsonrpc::{CallError, CloseReason, Connection, Dialect, Incoming, Peer};
use domain::run::{Receipt, RunError};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use workbench::process::Ended;

/// Start-up takes a fifth of a second on an idle machine.
const START: Duration = Duration::from_secs(30);
/// A program whose output has ended has ended itself, or is about to.
const EXIT: Duration = Duration::from_secs(1);
/// A message of a failure shows the end of what the program wrote.
const LAST_WORDS: usize = 2000;

#[derive(Debug)]
pub struct Instance {
    pub peer: Peer,
    pub desk: Desk,
    stop: CancellationToken,
    why: Mutex<String>,
    lost: watch::Receiver<Option<Arc<Lost>>>,
    is_new: AtomicBool,
}

/// How an instance ended.
#[derive(Debug)]
pub struct Lost {
    pub error: RunError,
    pub receipt: Receipt,
}

impl Instance {
    /// Greets a program that was just started. When this fails, the program is gone; dropped, it is told to go. `permit`
    /// is given back when it has gone.
    pub async fn start(
        launched: Launched,
        tasks: &TaskTracker,
        permit: OwnedSemaphorePermit,
    ) -> Result<Arc<Self>, RunError> {
        let Launched { output, input, process, api_key } = launched;
        let (connection, peer, incoming) = Connection::start(output, input, Dialect { with_version_field: false });
        let (told, lost) = watch::channel(None);
        let instance = Arc::new(Self {
            peer,
            desk: Desk::default(),
            stop: CancellationToken::new(),
            why: Mutex::default(),
            lost,
            is_new: AtomicBool::new(true),
        });
        let keeper = keep(Arc::clone(&instance), connection, incoming, process, told);
        tasks.spawn(async move {
            keeper.await;
            drop(permit);
        });
        let unfinished = instance.stop.clone().drop_guard();
        match instance.greet(api_key).await {
            Ok(()) => {
                unfinished.disarm();
                Ok(instance)
            }
            // A program that ended by itself tells more than that it did not answer.
            Err(_) if instance.peer.closed().is_some() => Err(instance.lost().await.error.clone()),
            Err(error) => {
                instance.end(&error.message).await;
                Err(error)
            }
        }
    }

    async fn greet(&self, api_key: Option<String>) -> Result<(), RunError> {
        let hello = json!({
            "clientInfo": {"name": "greenroom", "title": "Greenroom", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {
                "experimentalApi": true,
                "optOutNotificationMethods": [
                    "account/rateLimits/updated", "thread/readState/changed", "remoteControl/status/changed",
                ],
            },
        });
        self.ask("initialize", hello).await?;
        self.peer.notify("initialized", Value::Null).map_err(|error| failed("initialized", &error))?;
        if let Some(key) = api_key {
            self.ask("account/login/start", json!({"type": "apiKey", "apiKey": key})).await?;
        }
        // Without a login it would ask for an answer in vain, for a quarter of a minute.
        let account = self.ask("account/read", json!({})).await.unwrap_or_default();
        let needs_one = account.get("requiresOpenaiAuth").and_then(Value::as_bool).unwrap_or_default();
        if needs_one && account.get("account").is_some_and(Value::is_null) {
            return Err(not_logged_in("it has no account and no key"));
        }
        Ok(())
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, RunError> {
        self.peer.request(method, params, START).await.map_err(|error| match error {
            CallError::Timeout => {
                RunError::new("start_timeout", format!("Codex did not answer {method} within {} s.", START.as_secs()))
            }
            other => failed(method, &other),
        })
    }

    /// True once: for whoever uses it first.
    pub fn is_new(&self) -> bool {
        self.is_new.swap(false, Ordering::Relaxed)
    }

    pub fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    /// Waits until it has ended, whatever the reason.
    pub async fn lost(&self) -> Arc<Lost> {
        let mut lost = self.lost.clone();
        // The task that tells never ends without a word, unless everything ends.
        let told = lost.wait_for(Option::is_some).await.ok().and_then(|lost| lost.clone());
        told.unwrap_or_else(|| Arc::new(Lost { error: crashed("Codex was stopped."), receipt: Receipt::default() }))
    }

    /// Stops it with all its turns; these fail with `why`.
    pub async fn end(&self, why: &str) -> Arc<Lost> {
        {
            let mut reason = self.why.lock().unwrap_or_else(PoisonError::into_inner);
            if reason.is_empty() {
                why.clone_into(&mut reason);
            }
        }
        self.stop.cancel();
        self.lost().await
    }
}

fn failed(method: &str, error: &CallError) -> RunError {
    let code = match error {
        CallError::Refused { .. } => "program_refused",
        CallError::Timeout | CallError::Overloaded => "program_stuck",
        CallError::Closed(reason) => reason.code(),
    };
    RunError::new(code, format!("Codex did not take {method}: {error}"))
}

fn crashed(message: impl Into<String>) -> RunError {
    RunError::new("program_crashed", message)
}

async fn keep(
    instance: Arc<Instance>,
    connection: Connection,
    mut incoming: mpsc::Receiver<Incoming>,
    mut process: Box<dyn Process>,
    told: watch::Sender<Option<Arc<Lost>>>,
) {
    let closed = tokio::select! {
        biased;
        reason = route(&instance, &mut incoming) => Some(reason),
        () = instance.stop.cancelled() => None,
    };
    connection.close().await;
    let mut error = match &closed {
        Some(reason) => {
            let ended = tokio::time::timeout(EXIT, process.ended()).await.ok();
            RunError::new(reason.code(), how(reason, ended))
        }
        None => crashed(instance.why.lock().unwrap_or_else(PoisonError::into_inner).clone()),
    };
    let words = process.last_words();
    if closed.is_some() && !words.is_empty() {
        let from = words.char_indices().rev().take(LAST_WORDS).last().map_or(0, |(at, _)| at);
        error.message = format!("{} It wrote last: {}", error.message, &words[from..]);
    }
    let receipt = process.stop().await;
    let seats = instance.desk.dismiss();
    told.send_replace(Some(Arc::new(Lost { error, receipt })));
    for seat in seats {
        // A turn that takes no more will see that the sender is gone.
        drop(seat.try_send(Incoming::Closed(closed.clone().unwrap_or(CloseReason::Dropped))));
    }
}

fn how(reason: &CloseReason, ended: Option<Ended>) -> String {
    let ended = match ended {
        Some(Ended::Code(code)) => format!("Codex ended in the middle of its work with exit code {code}"),
        Some(Ended::Signal(signal)) => format!("Codex was killed by signal {signal}"),
        Some(Ended::Unknown) => "Codex is gone".to_owned(),
        None => "Codex runs but cannot be understood any more".to_owned(),
    };
    match reason {
        CloseReason::Ended => format!("{ended}."),
        other => format!("{ended}: {other}."),
    }
}

/// Reads until there is nothing more to read.
async fn route(instance: &Instance, incoming: &mut mpsc::Receiver<Incoming>) -> CloseReason {
    while let Some(message) = incoming.recv().await {
        let (thread, request) = match &message {
            Incoming::Closed(reason) => return reason.clone(),
            Incoming::Notification { method, params, .. } => {
                let thread = text(params, "threadId");
                if let ("thread/closed", Some(thread)) = (method.as_str(), thread) {
                    instance.desk.forget(thread);
                }
                (thread, None)
            }
            Incoming::Request { id, method, params, .. } => {
                (text(params, "threadId"), Some((id.clone(), method.clone())))
            }
        };
        let thread = thread.map(str::to_owned);
        let undelivered = match thread.as_deref().and_then(|thread| instance.desk.seat(thread)) {
            Some(seat) => seat.send(message).await.err().map(|unsent| unsent.0),
            None => Some(message),
        };
        match (undelivered, request, thread) {
            (Some(_), Some((id, method)), _) => {
                if let Err(error) = instance.peer.respond(id, ask::refusal(&method)) {
                    tracing::debug!(method, %error, "a request without a turn could not be refused");
                }
            }
            (Some(message), None, Some(thread)) => instance.desk.remember(thread, message),
            _ => {}
        }
    }
    CloseReason::Dropped
}
