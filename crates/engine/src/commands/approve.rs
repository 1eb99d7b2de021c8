//! Answers to approvals, and the tools that are remembered as allowed.

use crate::{Engine, EngineError, run::AnswerOutcome};
use domain::{
    actor::Actor,
    event::{Decision, Event, EventBody, EventType},
    ids::{AgentId, ApprovalId, RoomId, RunId},
    permission::Permission,
    run::Run,
};
use serde_json::Value;
use store::RememberedTool;

/// A person's answer to an approval.
#[derive(Debug, Clone)]
pub struct ApprovalResponse {
    pub decision: Decision,
    /// Replaces the input of the tool call; for a question, the answer.
    pub input: Option<Value>,
    /// Allow this tool for this agent in this room from now on.
    pub remember: bool,
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
        if remember && decision != Decision::Allow {
            return Err(remember_refused(
                "only allow can be remembered; to always deny a tool, add it to the agent's tools.deny",
            ));
        }
        let run = self.store().run(owner, run).await?;
        let accepted = match run.status.is_terminal() {
            true => Err(EngineError::RunEnded),
            false => self.active_runs().answer_approval(run.id, id, decision, input, remember).await,
        };
        match accepted {
            Ok(AnswerOutcome::Stored) => Ok(()),
            Ok(AnswerOutcome::NotRememberable) => {
                Err(remember_refused("the answer to a question cannot be remembered; omit remember"))
            }
            // A repeated identical answer succeeds: the first response may have been lost.
            Ok(AnswerOutcome::NotPending) | Err(EngineError::RunEnded) => match self.recorded_decision(&run, id).await?
            {
                Some(decided) if decided == (decision, remember) => Ok(()),
                _ if accepted.is_err() => Err(EngineError::RunEnded),
                Some(_) => Err(EngineError::Conflict(
                    "the approval was already decided differently; see the room's events".into(),
                )),
                None => Err(EngineError::NotFound),
            },
            Err(error) => Err(error),
        }
    }

    /// The decision on an approval in the journal, and whether it is remembered.
    async fn recorded_decision(
        &self,
        run: &Run,
        approval: ApprovalId,
    ) -> Result<Option<(Decision, bool)>, EngineError> {
        let events = self.store().run_events(run.room_id, run.id, run.queued_seq).await?;
        let resolved = events.iter().filter(|event| event.kind == EventType::ApprovalResolved);
        for body in resolved.map(Event::body) {
            match body.map_err(store::StoreError::from)? {
                EventBody::ApprovalResolved(e) if e.approval_id == approval => {
                    return Ok(Some((e.decision, e.remember)));
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

    /// The tool needs approval again, also in a run that is in progress on this server.
    pub async fn forget_tool(
        &self,
        actor: &Actor,
        room: RoomId,
        agent: AgentId,
        tool: &str,
    ) -> Result<(), EngineError> {
        let owner = actor.require(Permission::Approve)?;
        self.store().forget_tool(owner, room, agent, tool).await?;
        self.active_runs().forget_tool(room, agent, tool).await;
        Ok(())
    }
}

fn remember_refused(detail: &str) -> EngineError {
    EngineError::Refused { pointer: "/remember", detail: detail.to_owned() }
}
