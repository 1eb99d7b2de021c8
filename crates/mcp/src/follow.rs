//! Follows one run until it ends, waits for an approval, or the caller's timeout passes.

use crate::handler::HandlerShared;
use domain::{
    event::{ApprovalRequested, EventBody},
    fold::Answer,
    ids::RunId,
    owner::Owner,
    position::Position,
    run::Run,
};
use std::{future::Future, sync::Arc, time::Duration};
use store::{
    journal::{Batch, Follower},
    notify::Notifier,
};
use tokio::time::{Instant, timeout};

/// Commits by other servers cause no local notification, so the store is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

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
    follower: Follower,
    answer: Answer,
    open_approvals: Vec<ApprovalRequested>,
}

impl RunFollow {
    /// Follows the run from its first event.
    pub async fn start(shared: &Arc<HandlerShared>, owner: &Owner, run: RunId) -> Result<Self, store::StoreError> {
        let queries = shared.engine.queries();
        let found = queries.run(owner, run).await?;
        let after = Position { epoch: None, seq: found.queued_seq.saturating_sub(1) };
        let follower = queries.follow(owner, found.room_id, &after, Arc::new(Notifier::default())).await?;
        let (answer, open) = (Answer::default(), Vec::new());
        Ok(Self { shared: Arc::clone(shared), owner: owner.clone(), run, follower, answer, open_approvals: open })
    }

    pub async fn wait(
        mut self,
        max_wait: Duration,
        mut listener: impl RunListener,
    ) -> Result<FollowedRun, store::StoreError> {
        let deadline = Instant::now() + max_wait;
        loop {
            match self.follower.next().await? {
                Batch::Frames(frames) => {
                    let (run, mut tools, mut ended) = (Some(self.run), Vec::new(), false);
                    for frame in frames.iter().filter(|frame| frame.run_id == run) {
                        if let Some(body) = frame.body() {
                            self.apply(body, &mut tools);
                        }
                        ended |= frame.kind.ends_a_run();
                    }
                    listener.on_events(&self.answer, &tools).await;
                    if ended {
                        break;
                    }
                }
                // Cannot happen: the position was just read from this journal.
                Batch::Reset { .. } => {}
                // Nothing happens before the approval is answered.
                Batch::CaughtUp if !self.open_approvals.is_empty() => break,
                Batch::CaughtUp => {
                    let now = Instant::now();
                    if now >= deadline {
                        break;
                    }
                    let bell = Arc::clone(self.follower.notifier());
                    if timeout(POLL_INTERVAL.min(deadline - now), bell.notified()).await.is_err() {
                        self.follower.refresh().await?;
                    }
                }
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
