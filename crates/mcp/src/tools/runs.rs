//! Runs: asking an agent, waiting, stopping, answering what it asks.

use super::{
    arguments::{Trouble, agent_of, id, within},
    definitions::{DEFAULT_WAIT, MAX_WAIT},
};
use crate::{
    follow::{Follow, Followed, Hear},
    handler::Asking,
    logging, resources,
};
use domain::{
    event::Decision,
    fold::Answer,
    ids::{ApprovalId, RoomId, RunId},
    run::RunStatus,
};
use engine::commands::{Approval, Execute, OnDisconnect};
use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How often progress is told: a reader's eye is not quicker, and a busy model is.
const PROGRESS: Duration = Duration::from_millis(100);
const PROGRESS_TEXT: usize = 2_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAgent {
    agent: String,
    message: String,
    #[serde(default)]
    room: Option<String>,
    #[serde(default)]
    wait: Option<bool>,
    #[serde(default)]
    wait_seconds: Option<u64>,
    #[serde(default)]
    on_disconnect: OnDisconnect,
}

pub async fn run_agent(asking: &Asking<'_>, wish: RunAgent) -> Result<Value, Trouble> {
    let (engine, owner) = (&asking.house.engine, &asking.owner);
    let patience = patience(wish.wait_seconds)?;
    let conversation: Option<RoomId> = wish.room.as_deref().map(|room| id("room", room)).transpose()?;
    let agents = asking.agents().await?;
    let agent = agent_of(&agents, &wish.agent)?.id;
    let execute = Execute { message: wish.message, conversation, when_busy: None };
    let posted = engine.execute(owner, agent, execute, None).await;
    let posted = posted.map_err(match conversation {
        Some(room) => Trouble::missing(&format!("room {room}"), "leave it out to begin a new one, or see list_rooms"),
        None => Trouble::missing("such agent any more", "see list_agents"),
    })?;
    let Some(run) = posted.runs.first() else {
        return Err(Trouble("the message was stored, but nobody answers it".into()));
    };
    let patience = if wish.wait.unwrap_or(true) { patience } else { Duration::ZERO };
    wait(asking, run.id, patience, wish.on_disconnect).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitForRun {
    run_id: String,
    #[serde(default)]
    wait_seconds: Option<u64>,
}

pub async fn wait_for_run(asking: &Asking<'_>, wish: WaitForRun) -> Result<Value, Trouble> {
    let run = id("run_id", &wish.run_id)?;
    wait(asking, run, patience(wish.wait_seconds)?, OnDisconnect::Continue).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRun {
    run_id: String,
}

pub async fn cancel_run(asking: &Asking<'_>, wish: CancelRun) -> Result<Value, Trouble> {
    let run: RunId = id("run_id", &wish.run_id)?;
    let stopped = asking.house.engine.cancel_run(&asking.owner, run).await.map_err(no_run(run))?;
    Ok(json!({"run_id": stopped.id, "status": stopped.status, "receipt": stopped.receipt}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerApproval {
    run_id: String,
    approval_id: String,
    decision: Said,
    #[serde(default)]
    input: Option<Map<String, Value>>,
    #[serde(default)]
    remember: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Allow,
    Deny,
}

pub async fn answer_approval(asking: &Asking<'_>, wish: AnswerApproval) -> Result<Value, Trouble> {
    let (engine, owner) = (&asking.house.engine, &asking.owner);
    let run: RunId = id("run_id", &wish.run_id)?;
    let approval: ApprovalId = id("approval_id", &wish.approval_id)?;
    let decision = match wish.decision {
        Said::Allow => Decision::Allow,
        Said::Deny => Decision::Deny,
    };
    let answer = Approval { decision, input: wish.input.map(Value::Object), remember: wish.remember };
    let what = format!("approval {approval} of run {run} that waits");
    let answered = engine.approve(owner, run, approval, answer).await;
    answered.map_err(Trouble::missing(&what, "wait_for_run shows those that do"))?;
    let status = engine.store().run(owner, run).await?.status;
    Ok(json!({"run_id": run, "status": status, "next": "call wait_for_run for the rest of the answer"}))
}

fn patience(seconds: Option<u64>) -> Result<Duration, Trouble> {
    within("wait_seconds", seconds.unwrap_or(DEFAULT_WAIT), 1..=MAX_WAIT).map(Duration::from_secs)
}

fn no_run(run: RunId) -> impl FnOnce(engine::Error) -> Trouble {
    Trouble::missing(&format!("run {run}"), "run_agent and post_message give the ids of runs")
}

async fn wait(
    asking: &Asking<'_>,
    run: RunId,
    patience: Duration,
    on_disconnect: OnDisconnect,
) -> Result<Value, Trouble> {
    let mut attendance = asking.house.engine.attend(&asking.owner, run, on_disconnect);
    let reporter = Reporter::of(asking, run);
    let followed = async {
        let follow = Follow::begin(asking.house, &asking.owner, run).await?;
        follow.wait(patience, reporter).await
    };
    let followed = tokio::select! {
        followed = followed => followed,
        () = asking.context.ct.cancelled() => return Err(Trouble("the request was cancelled".into())),
        () = asking.house.stopping.cancelled() => {
            attendance.end();
            let why = "the server is stopping; the answer goes on in the room: call wait_for_run when it is back";
            return Err(Trouble(why.into()));
        }
    };
    // Whoever is told something, be it that the store does not answer, has not left.
    attendance.end();
    followed.map(|followed| told(&followed)).map_err(|error| no_run(run)(error.into()))
}

fn told(followed: &Followed) -> Value {
    let Followed { run, answer, open } = followed;
    let (text, cut) = resources::shortened(answer.texts().0);
    let approvals: Vec<Value> = open
        .iter()
        .map(|open| {
            json!({"approval_id": open.approval_id, "tool": open.name, "input": open.input,
                   "is_question": open.is_question, "expires_at": open.expires_at})
        })
        .collect();
    let mut told = json!({"run_id": run.id, "room_id": run.room_id, "status": run.status, "text": text,
                          "approvals": approvals, "usage": run.usage});
    let next = match run.status {
        RunStatus::Failed => None,
        _ if cut => Some("this is the beginning of the answer; all of it is at GET /api/rooms/{room_id}/messages"),
        status if status.is_terminal() => None,
        _ if !open.is_empty() => Some("call answer_approval for each of `approvals`, then wait_for_run"),
        _ => Some("it has not ended; call wait_for_run"),
    };
    if let Some(fields) = told.as_object_mut() {
        if let Some(error) = &run.error {
            fields.insert("error".into(), json!(error));
        }
        if let Some(next) = next {
            fields.insert("next".into(), json!(next));
        }
    }
    told
}

/// Tells the client how the answer grows, and which tools the agent uses.
struct Reporter {
    peer: Peer<RoleServer>,
    run: RunId,
    progress: Option<ProgressToken>,
    logs: bool,
    /// Bytes of the answer that were told.
    told: usize,
    last: Option<Instant>,
}

impl Reporter {
    fn of(asking: &Asking<'_>, run: RunId) -> Self {
        let logs = logging::wants_info(asking.level);
        let progress = asking.context.meta.get_progress_token();
        Self { peer: asking.context.peer.clone(), run, progress, logs, told: 0, last: None }
    }
}

impl Hear for Reporter {
    async fn heard(&mut self, said: &Answer, tools: &[String]) {
        if self.logs {
            for tool in tools {
                let data = json!({"run_id": self.run, "tool": tool, "message": format!("uses {tool}")});
                logging::info(&self.peer, "greenroom.run", data).await;
            }
        }
        let Some(token) = self.progress.clone() else { return };
        if self.last.is_some_and(|last| last.elapsed() < PROGRESS) {
            return;
        }
        let (text, _) = said.texts();
        if text.len() <= self.told {
            return;
        }
        let from = text.floor_char_boundary(self.told.max(text.len().saturating_sub(PROGRESS_TEXT)));
        let mut news = ProgressNotificationParam::new(token, text.chars().count() as f64);
        news.message = Some(text[from..].to_owned());
        (self.told, self.last) = (text.len(), Some(Instant::now()));
        if let Err(error) = self.peer.notify_progress(news).await {
            tracing::debug!(%error, "progress could not be told");
        }
    }
}
