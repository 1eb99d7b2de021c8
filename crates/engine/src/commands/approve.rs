//! A person's yes or no to a tool call that waits.

use crate::{Engine, Error};
use domain::{
    event::{Decision, Event, EventBody, EventType},
    ids::{ApprovalId, RunId},
    owner::Owner,
    run::Run,
};
use serde_json::Value;

impl Engine {
    pub async fn approve(
        &self,
        owner: &Owner,
        run: RunId,
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
    ) -> Result<(), Error> {
        let run = self.store().run(owner, run).await?;
        let accepted = match run.status.is_terminal() {
            true => Err(Error::RunEnded),
            false => self.active().answer(run.id, approval, decision, input).await,
        };
        match accepted {
            Ok(true) => Ok(()),
            // Whoever says the same again, because the first answer got lost on the way, has what they wanted.
            Ok(false) | Err(Error::RunEnded) => match self.decided(&run, approval).await? {
                Some(decided) if decided == decision => Ok(()),
                _ if accepted.is_err() => Err(Error::RunEnded),
                Some(_) => Err(Error::Conflict("it was decided otherwise already; see the room's events".into())),
                None => Err(Error::NotFound),
            },
            Err(error) => Err(error),
        }
    }

    /// What the journal says about an approval.
    async fn decided(&self, run: &Run, approval: ApprovalId) -> Result<Option<Decision>, Error> {
        let events = self.store().run_events(run.room_id, run.id, run.queued_seq).await?;
        let resolved = events.iter().filter(|event| event.kind == EventType::ApprovalResolved);
        for body in resolved.map(Event::body) {
            match body.map_err(store::Error::from)? {
                EventBody::ApprovalResolved(e) if e.approval_id == approval => return Ok(Some(e.decision)),
                _ => {}
            }
        }
        Ok(None)
    }
}
