//! Opening a conversation: the thread that was there, or a new one that is told what was said.

use super::{desk::Thread, instance::Instance, settings};
use crate::{Place, TurnRequest, codex::parse::text, jsonrpc::CallError, recap};
use domain::{run::RunError, usage::Usage};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// A thread with MCP servers takes a second or two.
const OPEN: Duration = Duration::from_secs(30);
/// Another program of ours may be about to let go of the thread.
const BUSY: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(200);

/// A thread that takes turns now.
#[derive(Debug)]
pub struct Opened {
    pub thread: String,
    pub model: Option<String>,
    /// What it has used before, if that is known.
    pub total: Option<Usage>,
    /// With what the thread has not been told.
    pub prompt: String,
    /// Why a conversation that was there could not be gone on with.
    pub rebuilt: Option<&'static str>,
}

const CHANGED: &str = "The agent's instructions or MCP servers have changed, so Codex began a new conversation; it was \
                       told what was said so far.";
const GONE: &str =
    "Codex does not have its conversation any more and began a new one; it was told what was said so far.";

pub async fn open(instance: Arc<Instance>, request: TurnRequest) -> Result<Opened, RunError> {
    let mut rebuilt = None;
    if let Some(session) = &request.session {
        let (thread, is_same) = settings::thread_of(&session.id, &request.place);
        if is_same {
            let prompt = recap::prompt_with(&session.unheard, &request.prompt);
            match resume(&instance, &request.place, thread).await? {
                Some(Thread { model, total, .. }) => {
                    return Ok(Opened { thread: thread.to_owned(), model, total, prompt, rebuilt: None });
                }
                None => rebuilt = Some(GONE),
            }
        } else {
            rebuilt = Some(CHANGED);
        }
    }
    let started = instance.peer.request("thread/start", settings::start(&request.place), OPEN).await;
    let started = started.map_err(|error| failed("start a conversation", &error))?;
    let Some(thread) = started.get("thread").and_then(|thread| text(thread, "id")) else {
        return Err(RunError::new("bad_output", "Codex started a conversation and did not name it."));
    };
    Ok(Opened {
        thread: thread.to_owned(),
        model: model(&started),
        total: Some(Usage::default()),
        prompt: recap::prompt_with(&request.history.read().await?, &request.prompt),
        rebuilt,
    })
}

/// `None` when there is no such thread any more.
async fn resume(instance: &Instance, place: &Place, thread: &str) -> Result<Option<Thread>, RunError> {
    let known = instance.desk.thread(thread);
    if let Some(open) = known.clone().filter(|known| !known.parked) {
        return Ok(Some(open));
    }
    // Even if nobody waits for the answer any more: this instance may have the thread then, and no other can.
    instance.desk.claim(thread);
    let deadline = tokio::time::Instant::now() + BUSY;
    loop {
        let resumed = instance.peer.request("thread/resume", settings::resume(place, thread), OPEN).await;
        match resumed {
            Ok(resumed) => {
                let total = known.and_then(|known| known.total);
                return Ok(Some(Thread { model: model(&resumed), total, ..Thread::default() }));
            }
            Err(CallError::Refused { message, .. }) if message.contains("active writer") => {
                if tokio::time::Instant::now() >= deadline {
                    instance.desk.forget(thread);
                    return Err(RunError::new(
                        "session_busy",
                        "This conversation is open in another Codex. Close it there, then ask again.",
                    ));
                }
                tokio::time::sleep(AGAIN).await;
            }
            Err(CallError::Refused { message, .. }) => {
                tracing::info!(message, "a thread of Codex cannot be resumed");
                instance.desk.forget(thread);
                return Ok(None);
            }
            Err(error) => return Err(failed("go on with its conversation", &error)),
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
