//! A person's yes or no to a tool call that waits, and what of it is remembered.

use crate::{Engine, Error, run::Accepted};
use domain::{
    event::{Decision, Event, EventBody, EventType},
    ids::{AgentId, ApprovalId, RoomId, RunId},
    owner::Owner,
    run::Run,
};
use serde_json::Value;
use store::RememberedTool;

/// What a person says to a tool call that waits.
#[derive(Debug, Clone)]
pub struct Approval {
    pub decision: Decision,
    /// Run it with this input instead; to a question, the answer.
    pub input: Option<Value>,
    /// Allow this tool to this agent in this room from now on.
    pub remember: bool,
}

impl Engine {
    pub async fn approve(&self, owner: &Owner, run: RunId, id: ApprovalId, approval: Approval) -> Result<(), Error> {
        let Approval { decision, input, remember } = approval;
        if remember && decision != Decision::Allow {
            return Err(unfit(
                "only an allow is remembered; to refuse a tool always, name it in the agent's tools.deny",
            ));
        }
        let run = self.store().run(owner, run).await?;
        let accepted = match run.status.is_terminal() {
            true => Err(Error::RunEnded),
            false => self.active().answer(run.id, id, decision, input, remember).await,
        };
        match accepted {
            Ok(Accepted::Yes) => Ok(()),
            Ok(Accepted::Question) => Err(unfit("a question is answered anew every time; leave remember out")),
            // Whoever says the same again, because the first answer got lost on the way, has what they wanted.
            Ok(Accepted::NotWanted) | Err(Error::RunEnded) => match self.decided(&run, id).await? {
                Some(decided) if decided == (decision, remember) => Ok(()),
                _ if accepted.is_err() => Err(Error::RunEnded),
                Some(_) => Err(Error::Conflict("it was decided otherwise already; see the room's events".into())),
                None => Err(Error::NotFound),
            },
            Err(error) => Err(error),
        }
    }

    /// What the journal says about an approval: what was decided, and whether it is remembered.
    async fn decided(&self, run: &Run, approval: ApprovalId) -> Result<Option<(Decision, bool)>, Error> {
        let events = self.store().run_events(run.room_id, run.id, run.queued_seq).await?;
        let resolved = events.iter().filter(|event| event.kind == EventType::ApprovalResolved);
        for body in resolved.map(Event::body) {
            match body.map_err(store::Error::from)? {
                EventBody::ApprovalResolved(e) if e.approval_id == approval => {
                    return Ok(Some((e.decision, e.remember)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The tools that need no asking any more in a room.
    pub async fn remembered_tools(&self, owner: &Owner, room: RoomId) -> Result<Vec<RememberedTool>, Error> {
        Ok(self.store().remembered_tools(owner, room).await?)
    }

    /// From now on it is asked again, also by a run that is under way here.
    pub async fn forget_tool(&self, owner: &Owner, room: RoomId, agent: AgentId, tool: &str) -> Result<(), Error> {
        self.store().forget_tool(owner, room, agent, tool).await?;
        self.active().forget(room, agent, tool).await;
        Ok(())
    }
}

fn unfit(detail: &str) -> Error {
    Error::Refused { pointer: "/remember", detail: detail.to_owned() }
}
