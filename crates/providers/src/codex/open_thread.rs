//! Opens a conversation: resumes the existing thread, or starts a new one with the history.

use super::{instance::CodexInstance, thread_router::OpenThread, thread_settings};
use crate::{AgentWorkspace, TurnRequest, codex::parse::text, jsonrpc::CallError, recap};
use domain::{run::RunError, usage::Usage};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// A thread with MCP servers takes a second or two.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// Another of our instances may be about to close the thread.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// A thread that is ready for a turn.
#[derive(Debug)]
pub struct OpenedThread {
    pub thread: String,
    pub model: Option<String>,
    /// Its total usage so far, if known.
    pub total: Option<Usage>,
    /// The prompt, including messages that the thread has missed.
    pub prompt: String,
    /// Why the existing conversation could not be continued.
    pub rebuilt: Option<&'static str>,
}

const CHANGED: &str = "The agent's instructions or MCP servers have changed, so Codex started a new conversation with the \
                       history.";
const GONE: &str = "Codex no longer has its conversation and started a new one with the history.";

pub async fn open(instance: Arc<CodexInstance>, request: TurnRequest) -> Result<OpenedThread, RunError> {
    let mut rebuilt = None;
    if let Some(session) = &request.session {
        let (thread, is_same) = thread_settings::thread_of(&session.id, &request.workspace);
        if is_same {
            let prompt = recap::prompt_with(&session.missed, &request);
            match resume(&instance, &request.workspace, thread).await? {
                Some(OpenThread { model, total, .. }) => {
                    return Ok(OpenedThread { thread: thread.to_owned(), model, total, prompt, rebuilt: None });
                }
                None => rebuilt = Some(GONE),
            }
        } else {
            rebuilt = Some(CHANGED);
        }
    }
    let started = instance.peer.request("thread/start", thread_settings::start(&request.workspace), OPEN_TIMEOUT).await;
    let started = started.map_err(|error| failed("start a conversation", &error))?;
    let Some(thread) = started.get("thread").and_then(|thread| text(thread, "id")) else {
        return Err(RunError::new("bad_output", "Codex started a thread without an id."));
    };
    Ok(OpenedThread {
        thread: thread.to_owned(),
        model: model(&started),
        total: Some(Usage::default()),
        prompt: recap::prompt_with(&request.history.read().await?, &request),
        rebuilt,
    })
}

/// Returns `None` if the thread does not exist any more.
async fn resume(
    instance: &CodexInstance,
    workspace: &AgentWorkspace,
    thread: &str,
) -> Result<Option<OpenThread>, RunError> {
    let known = instance.router.thread(thread);
    if let Some(open) = known.clone().filter(|known| !known.parked) {
        return Ok(Some(open));
    }
    // Recorded first: if this future is dropped, the thread may still be open here, and no other instance can open it.
    instance.router.claim(thread);
    let deadline = tokio::time::Instant::now() + BUSY_TIMEOUT;
    loop {
        let resumed =
            instance.peer.request("thread/resume", thread_settings::resume(workspace, thread), OPEN_TIMEOUT).await;
        match resumed {
            Ok(resumed) => {
                let total = known.and_then(|known| known.total);
                return Ok(Some(OpenThread { model: model(&resumed), total, ..OpenThread::default() }));
            }
            Err(CallError::Refused { message, .. }) if message.contains("active writer") => {
                if tokio::time::Instant::now() >= deadline {
                    instance.router.forget(thread);
                    return Err(RunError::new(
                        "session_busy",
                        "This conversation is open in another Codex. Close it there, then try again.",
                    ));
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            Err(CallError::Refused { message, .. }) => {
                tracing::info!(message, "could not resume a Codex thread");
                instance.router.forget(thread);
                return Ok(None);
            }
            Err(error) => return Err(failed("continue its conversation", &error)),
        }
    }
}

fn model(answer: &Value) -> Option<String> {
    text(answer, "model").map(str::to_owned)
}

pub fn failed(what: &str, error: &CallError) -> RunError {
    let code = match error {
        CallError::Refused { .. } => "program_refused",
        CallError::Timeout | CallError::Overloaded => "program_stuck",
        CallError::Closed(reason) => reason.code(),
    };
    RunError::new(code, format!("Codex could not {what}: {error}"))
}
