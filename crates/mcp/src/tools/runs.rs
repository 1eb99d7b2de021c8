//! The tools for runs: run an agent, wait, cancel, list and answer approvals.

use super::{
    arguments::{McpToolError, check_range, find_agent, parse_id},
    definitions::{DEFAULT_WAIT, MAX_WAIT},
};
use crate::{
    follow::{FollowedRun, RunFollow, RunListener},
    handler::McpRequestContext,
    logging, resources,
};
use domain::{
    approval::RememberChoice,
    event::Decision,
    fold::Answer,
    ids::{ApprovalId, RoomId, RunId},
    run::RunStatus,
};
use engine::commands::{ApprovalResponse, ExecuteRequest, OnDisconnect};
use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// The minimum interval between progress notifications; a model produces text faster than people read.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
const MAX_PROGRESS_CHARS: usize = 2_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAgentArguments {
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

pub async fn run_agent(ctx: &McpRequestContext<'_>, args: RunAgentArguments) -> Result<Value, McpToolError> {
    let (engine, actor) = (&ctx.shared.engine, &ctx.actor);
    let max_wait = wait_time(args.wait_seconds)?;
    let conversation: Option<RoomId> = args.room.as_deref().map(|room| parse_id("room", room)).transpose()?;
    let agents = ctx.agents().await?;
    let agent = find_agent(&agents, &args.agent)?.id;
    let execute = ExecuteRequest { message: args.message, conversation, when_busy: None, caller: ctx.calling_agent() };
    let posted = engine.execute(actor, agent, execute, None).await;
    let posted = posted.map_err(match conversation {
        Some(room) => {
            McpToolError::not_found(&format!("room {room}"), "leave it out to create a new one, or call list_rooms")
        }
        None => McpToolError::not_found("such agent any more", "call list_agents"),
    })?;
    let Some(run) = posted.runs.first() else {
        return Err(McpToolError("the message was stored, but no agent answers it".into()));
    };
    let max_wait = if args.wait.unwrap_or(true) { max_wait } else { Duration::ZERO };
    wait_and_report(ctx, run.id, max_wait, args.on_disconnect).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitForRunArguments {
    run_id: String,
    #[serde(default)]
    wait_seconds: Option<u64>,
}

pub async fn wait_for_run(ctx: &McpRequestContext<'_>, args: WaitForRunArguments) -> Result<Value, McpToolError> {
    let run = parse_id("run_id", &args.run_id)?;
    wait_and_report(ctx, run, wait_time(args.wait_seconds)?, OnDisconnect::Continue).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRunArguments {
    run_id: String,
}

pub async fn cancel_run(ctx: &McpRequestContext<'_>, args: CancelRunArguments) -> Result<Value, McpToolError> {
    let run: RunId = parse_id("run_id", &args.run_id)?;
    let stopped = ctx.shared.engine.cancel_run(&ctx.actor, run).await.map_err(run_not_found(run))?;
    Ok(json!({"run_id": stopped.id, "status": stopped.status, "receipt": stopped.receipt}))
}

/// The oldest ones; more are listed when these are answered.
const MAX_APPROVALS: u32 = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListApprovalsArguments {}

pub async fn list_approvals(
    ctx: &McpRequestContext<'_>,
    ListApprovalsArguments {}: ListApprovalsArguments,
) -> Result<Value, McpToolError> {
    let page = ctx.shared.engine.queries().waiting_approvals(&ctx.actor.workspace, None, MAX_APPROVALS).await?;
    let approvals: Vec<Value> = page
        .approvals
        .iter()
        .map(|approval| {
            let asked = &approval.requested;
            json!({"approval_id": asked.approval_id, "run_id": approval.run_id, "room_id": approval.room_id,
                   "agent_id": approval.agent_id, "tool": asked.name, "input": asked.input,
                   "is_question": asked.is_question, "expires_at": asked.expires_at})
        })
        .collect();
    Ok(json!({"approvals": approvals}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerApprovalArguments {
    run_id: String,
    approval_id: String,
    decision: ApprovalDecision,
    #[serde(default)]
    input: Option<Map<String, Value>>,
    #[serde(default)]
    remember: RememberChoice,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ApprovalDecision {
    Allow,
    Deny,
}

pub async fn answer_approval(
    ctx: &McpRequestContext<'_>,
    args: AnswerApprovalArguments,
) -> Result<Value, McpToolError> {
    let (engine, actor) = (&ctx.shared.engine, &ctx.actor);
    let run: RunId = parse_id("run_id", &args.run_id)?;
    let approval: ApprovalId = parse_id("approval_id", &args.approval_id)?;
    let decision = match args.decision {
        ApprovalDecision::Allow => Decision::Allow,
        ApprovalDecision::Deny => Decision::Deny,
    };
    let answer = ApprovalResponse { decision, input: args.input.map(Value::Object), remember: args.remember.scope() };
    let what = format!("open approval {approval} of run {run}");
    let answered = engine.approve(actor, run, approval, answer).await;
    answered.map_err(McpToolError::not_found(&what, "wait_for_run shows the open approvals"))?;
    let status = engine.queries().run(&actor.workspace, run).await?.status;
    Ok(json!({"run_id": run, "status": status, "next": "call wait_for_run for the rest of the answer"}))
}

fn wait_time(seconds: Option<u64>) -> Result<Duration, McpToolError> {
    check_range("wait_seconds", seconds.unwrap_or(DEFAULT_WAIT), 1..=MAX_WAIT).map(Duration::from_secs)
}

fn run_not_found(run: RunId) -> impl FnOnce(engine::EngineError) -> McpToolError {
    McpToolError::not_found(&format!("run {run}"), "run_agent and post_message return the ids of runs")
}

async fn wait_and_report(
    ctx: &McpRequestContext<'_>,
    run: RunId,
    max_wait: Duration,
    on_disconnect: OnDisconnect,
) -> Result<Value, McpToolError> {
    let mut guard = ctx.shared.engine.cancel_on_disconnect(&ctx.actor, run, on_disconnect);
    let reporter = ProgressReporter::of(ctx, run);
    let followed = async {
        let follow = RunFollow::start(ctx.shared, &ctx.actor.workspace, run).await?;
        follow.wait(max_wait, reporter).await
    };
    let followed = tokio::select! {
        followed = followed => followed,
        () = ctx.context.ct.cancelled() => return Err(McpToolError("the request was cancelled".into())),
        () = ctx.shared.stopping.cancelled() => {
            guard.disarm();
            let why = "the server is stopping; the run continues: call wait_for_run when the server is back";
            return Err(McpToolError(why.into()));
        }
    };
    // A caller that gets any answer, even a store error, has not disconnected.
    guard.disarm();
    followed.map(|followed| run_json(&followed)).map_err(|error| run_not_found(run)(error.into()))
}

fn run_json(followed: &FollowedRun) -> Value {
    let FollowedRun { run, answer, open_approvals: open } = followed;
    let (text, cut) = resources::truncated(answer.texts().0);
    let approvals: Vec<Value> = open
        .iter()
        .map(|open| {
            json!({"approval_id": open.approval_id, "tool": open.name, "input": open.input,
                   "is_question": open.is_question, "expires_at": open.expires_at})
        })
        .collect();
    let mut result = json!({"run_id": run.id, "room_id": run.room_id, "status": run.status, "text": text,
                          "approvals": approvals, "usage": run.usage});
    let next = match run.status {
        RunStatus::Failed => None,
        _ if cut => Some("the answer is truncated; GET /api/rooms/{room_id}/messages returns all of it"),
        status if status.is_terminal() => None,
        _ if !open.is_empty() => Some("call answer_approval for each of `approvals`, then wait_for_run"),
        _ => Some("it has not ended; call wait_for_run"),
    };
    if let Some(fields) = result.as_object_mut() {
        if let Some(error) = &run.error {
            fields.insert("error".into(), json!(error));
        }
        if let Some(next) = next {
            fields.insert("next".into(), json!(next));
        }
    }
    result
}

/// Reports the growing answer and the tools that the agent uses to the client.
struct ProgressReporter {
    peer: Peer<RoleServer>,
    run: RunId,
    progress: Option<ProgressToken>,
    logs: bool,
    /// How many bytes of the answer were reported.
    reported_bytes: usize,
    last: Option<Instant>,
}

impl ProgressReporter {
    fn of(ctx: &McpRequestContext<'_>, run: RunId) -> Self {
        let logs = logging::wants_info(ctx.level);
        let progress = ctx.context.meta.get_progress_token();
        Self { peer: ctx.context.peer.clone(), run, progress, logs, reported_bytes: 0, last: None }
    }
}

impl RunListener for ProgressReporter {
    async fn on_events(&mut self, answer: &Answer, tools: &[String]) {
        if self.logs {
            for tool in tools {
                let data = json!({"run_id": self.run, "tool": tool, "message": format!("uses {tool}")});
                logging::info(&self.peer, "greenroom.run", data).await;
            }
        }
        let Some(token) = self.progress.clone() else { return };
        if self.last.is_some_and(|last| last.elapsed() < PROGRESS_INTERVAL) {
            return;
        }
        let (text, _) = answer.texts();
        if text.len() <= self.reported_bytes {
            return;
        }
        let from = text.floor_char_boundary(self.reported_bytes.max(text.len().saturating_sub(MAX_PROGRESS_CHARS)));
        let mut notification = ProgressNotificationParam::new(token, text.chars().count() as f64);
        notification.message = Some(text[from..].to_owned());
        (self.reported_bytes, self.last) = (text.len(), Some(Instant::now()));
        if let Err(error) = self.peer.notify_progress(notification).await {
            tracing::debug!(%error, "could not send progress");
        }
    }
}
