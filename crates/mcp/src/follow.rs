//! Folds one run until it ends, waits for an approval, or the caller's timeout passes.

use crate::handler::HandlerShared;
use domain::{
    event::{ApprovalRequested, EventBody},
    fold::Answer,
    ids::RunId,
    owner::Owner,
    position::Position,
    run::Run,
};
use engine::{EventReader, EventUpdate};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::time::Instant;

/// Receives the progress of a run, after each batch of events.
pub trait RunListener: Send {
    /// `answer` is the answer so far; `tools` are the names of newly used tools.
    fn on_events(&mut self, answer: &Answer, tools: &[String]) -> impl Future<Output = ()> + Send;
}

/// For callers that only need the outcome.
pub struct NoListener;

impl RunListener for NoListener {
    async fn on_events(&mut self, _: &Answer, _: &[String]) {}
}

pub struct FollowedRun {
    pub run: Run,
    pub answer: Answer,
    /// Tool calls that wait for an approval.
    pub open_approvals: Vec<ApprovalRequested>,
}

pub struct RunFollow {
    shared: Arc<HandlerShared>,
    owner: Owner,
    run: RunId,
    events: EventReader,
    answer: Answer,
    open_approvals: Vec<ApprovalRequested>,
}

impl RunFollow {
    /// Follows the run from its first event.
    pub async fn start(shared: &Arc<HandlerShared>, owner: &Owner, run: RunId) -> Result<Self, store::StoreError> {
        let queries = shared.engine.queries();
        let found = queries.run(owner, run).await?;
        let after = Position { epoch: None, seq: found.queued_seq.saturating_sub(1) };
        let events = queries.room_events(owner, found.room_id, &after).await?.of_run(run);
        let (answer, open) = (Answer::default(), Vec::new());
        Ok(Self { shared: Arc::clone(shared), owner: owner.clone(), run, events, answer, open_approvals: open })
    }

    pub async fn wait(
        mut self,
        max_wait: Duration,
        mut listener: impl RunListener,
    ) -> Result<FollowedRun, store::StoreError> {
        let deadline = Instant::now() + max_wait;
        loop {
            // Nothing happens before an open approval is answered.
            let until = if self.open_approvals.is_empty() { deadline } else { Instant::now() };
            match self.events.next_before(until).await? {
                EventUpdate::Events(frames) => {
                    let mut tools = Vec::new();
                    for body in frames.iter().filter_map(|frame| frame.body()) {
                        self.apply(body, &mut tools);
                    }
                    listener.on_events(&self.answer, &tools).await;
                }
                // Cannot happen: the position was just read from this journal, and large events are read there.
                EventUpdate::Reset { .. } | EventUpdate::Large { .. } => {}
                EventUpdate::CaughtUp | EventUpdate::RunEnded => break,
            }
        }
        let run = self.shared.engine.queries().run(&self.owner, self.run).await?;
        Ok(FollowedRun { run, answer: self.answer, open_approvals: self.open_approvals })
    }

    fn apply(&mut self, body: EventBody, tools: &mut Vec<String>) {
        self.answer.apply(&body);
        match body {
            EventBody::ToolUse(tool) => tools.push(tool.name),
            EventBody::ApprovalResolved(resolved) => {
                self.open_approvals.retain(|open| open.approval_id != resolved.approval_id)
            }
            EventBody::ApprovalRequested(requested) => self.open_approvals.push(requested),
            _ => {}
        }
    }
}
