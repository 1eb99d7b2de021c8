//! A person's yes or no to a tool call that waits.

use crate::{Engine, Error};
use domain::{
    event::Decision,
    ids::{ApprovalId, RunId},
    owner::Owner,
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
        if run.status.is_terminal() {
            return Err(Error::RunEnded);
        }
        if self.active().answer(run.id, approval, decision, input).await? { Ok(()) } else { Err(Error::NotFound) }
    }
}
