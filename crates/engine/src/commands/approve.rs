//! Answers to approvals, and the tools that are remembered as allowed.

use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    approval::{DecisionAuthor, RememberScope},
    audit::{AuditAction, AuditEntry, AuditedObject},
    event::{Decision, Event, EventBody, EventType},
    ids::{AgentId, ApprovalId, RoomId, RunId},
    permission::Permission,
    run::{Run, RunStatus},
    signal::{SignalBody, SignalOutcome},
};
use serde_json::{Value, json};
use std::time::Duration;
use store::RememberedTool;

/// How long to wait until the server that holds the run has carried out an answer. It stays stored.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait until a run in progress asks for a tool again.
const FORGET_TIMEOUT: Duration = Duration::from_secs(10);

/// A person's answer to an approval.
#[derive(Debug, Clone)]
pub struct ApprovalResponse {
    pub decision: Decision,
    /// Replaces the input of the tool call; for a question, the answer.
    pub input: Option<Value>,
    /// Allow such calls for this agent in this room from now on.
    pub remember: Option<RememberScope>,
}

impl Engine {
    pub async fn approve(
        &self,
        actor: &Actor,
        run: RunId,
        id: ApprovalId,
        approval: ApprovalResponse,
    ) -> Result<(), EngineError> {
        let owner = actor.require(Permission::Approve)?;
        let ApprovalResponse { decision, input, remember } = approval;
        if remember.is_some() && decision != Decision::Allow {
            return Err(remember_refused(
                "only allow can be remembered; to always deny a tool, add it to the agent's tools.deny",
            ));
        }
        let run = self.store().run(owner, run).await?;
        let outcome = match run.status {
            status if status.is_terminal() => SignalOutcome::RunEnded,
            // It has not asked for anything yet.
            RunStatus::Queued => return Err(EngineError::NotFound),
            _ => {
                let entry = AuditEntry::new(actor, AuditAction::Approve, AuditedObject::Approval, id)
                    .with_detail(json!({"decision": decision, "remember": remember}));
                let answer = SignalBody::AnswerApproval {
                    approval_id: id,
                    decision,
                    input: input.clone(),
                    remember: remember.is_some(),
                    scope: remember,
                    user_id: actor.user_id(),
                    author: Some(DecisionAuthor::new(actor)),
                };
                self.answer(&run, answer, entry.in_room(run.room_id)).await?
            }
        };
        match outcome {
            SignalOutcome::CarriedOut => Ok(()),
            SignalOutcome::NotRememberable => Err(remember_refused(match remember {
                Some(RememberScope::Tool) | None => "the answer to a question cannot be remembered; omit remember",
                Some(RememberScope::Pattern) => "this call has no pattern; remember exact or tool, or omit remember",
                Some(RememberScope::Exact) => {
                    "this input cannot be remembered: it answers a question, or is too long; omit remember"
                }
            })),
            // A repeated identical answer succeeds: the first response may have been lost.
            SignalOutcome::NotPending | SignalOutcome::Queued | SignalOutcome::RunEnded => {
                match self.recorded_decision(&run, id).await? {
                    // The tool runs with one input: another one was not what ran.
                    Some(decided) if decided == (decision, remember, input.clone()) => Ok(()),
                    _ if outcome == SignalOutcome::RunEnded => Err(EngineError::RunEnded),
                    Some(_) => Err(EngineError::Conflict(
                        "the approval was already decided differently; see the room's events".into(),
                    )),
                    None => Err(EngineError::NotFound),
                }
            }
        }
    }

    async fn answer(&self, run: &Run, answer: SignalBody, entry: AuditEntry) -> Result<SignalOutcome, EngineError> {
        let signal = match self.send_signal(run.room_id, run.id, answer, Some(entry)).await {
            Err(EngineError::RunEnded) => return Ok(SignalOutcome::RunEnded),
            sent => sent?,
        };
        self.wait_for_outcome(&signal, ANSWER_TIMEOUT).await?.ok_or_else(|| {
            EngineError::Unavailable(format!(
                "the answer is stored, but the server that holds the run has not carried it out within {} s",
                ANSWER_TIMEOUT.as_secs()
            ))
        })
    }

    /// The decision on an approval in the journal, what is remembered, and the changed input.
    async fn recorded_decision(
        &self,
        run: &Run,
        approval: ApprovalId,
    ) -> Result<Option<(Decision, Option<RememberScope>, Option<Value>)>, EngineError> {
        let events = self.store().run_events(run.room_id, run.id, run.queued_seq).await?;
        let resolved = events.iter().filter(|event| event.kind == EventType::ApprovalResolved);
        for body in resolved.map(Event::body) {
            match body.map_err(store::StoreError::from)? {
                EventBody::ApprovalResolved(e) if e.approval_id == approval => {
                    let remembered = e.remember.then(|| e.scope.unwrap_or(RememberScope::Tool));
                    return Ok(Some((e.decision, remembered, e.input)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Lists the tools that are allowed for good in a room.
    pub async fn remembered_tools(&self, actor: &Actor, room: RoomId) -> Result<Vec<RememberedTool>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        Ok(self.store().remembered_tools(owner, room).await?)
    }

    /// The tool needs approval again, also in a run that is in progress.
    pub async fn forget_tool(
        &self,
        actor: &Actor,
        room: RoomId,
        agent: AgentId,
        tool: &str,
    ) -> Result<(), EngineError> {
        let owner = actor.require(Permission::Approve)?;
        self.store().forget_tool(actor, room, agent, tool).await?;
        // A run that is claimed from now on reads the tools without this one.
        let held = self.store().held_runs(owner, room).await?;
        for (run, _) in held.into_iter().filter(|(_, of)| *of == agent) {
            match self.send_signal(room, run, SignalBody::ForgetTool { tool: tool.to_owned() }, None).await {
                Ok(signal) => drop(self.wait_for_outcome(&signal, FORGET_TIMEOUT).await?),
                Err(EngineError::RunEnded) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn remember_refused(detail: &str) -> EngineError {
    EngineError::Refused { pointer: "/remember".into(), detail: detail.to_owned() }
}
