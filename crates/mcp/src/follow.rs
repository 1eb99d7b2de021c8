//! Following one run until it ends, waits for a person, or the caller's patience does.

use crate::handler::House;
use domain::{
    event::{ApprovalRequested, EventBody},
    fold::Answer,
    ids::RunId,
    owner::Owner,
    position::Position,
    run::Run,
};
use std::{future::Future, sync::Arc, time::Duration};
use store::journal::{Batch, Bell, Follower};
use tokio::time::{Instant, timeout};

/// The bell of another server's room does not ring here.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a caller hears while the run goes on. Called after each batch of events, in their order.
pub trait Hear: Send {
    /// `said` is the answer so far.
    fn heard(&mut self, said: &Answer, tools: &[String]) -> impl Future<Output = ()> + Send;
}

/// For those who only want the end.
pub struct Nobody;

impl Hear for Nobody {
    async fn heard(&mut self, _: &Answer, _: &[String]) {}
}

pub struct Followed {
    pub run: Run,
    pub answer: Answer,
    /// Tool calls that wait for a person.
    pub open: Vec<ApprovalRequested>,
}

pub struct Follow {
    house: Arc<House>,
    owner: Owner,
    run: RunId,
    follower: Follower,
    answer: Answer,
    open: Vec<ApprovalRequested>,
}

impl Follow {
    /// From its beginning.
    pub async fn begin(house: &Arc<House>, owner: &Owner, run: RunId) -> Result<Self, store::Error> {
        let store = house.engine.store();
        let found = store.run(owner, run).await?;
        let after = Position { epoch: None, seq: found.queued_seq.saturating_sub(1) };
        let follower = store.follow(owner, found.room_id, &after, Arc::new(Bell::default())).await?;
        let (answer, open) = (Answer::default(), Vec::new());
        Ok(Self { house: Arc::clone(house), owner: owner.clone(), run, follower, answer, open })
    }

    pub async fn wait(mut self, patience: Duration, mut hear: impl Hear) -> Result<Followed, store::Error> {
        let deadline = Instant::now() + patience;
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
                    hear.heard(&self.answer, &tools).await;
                    if ended {
                        break;
                    }
                }
                // The position is one of this journal: it was read from it a moment ago.
                Batch::Reset { .. } => {}
                // A person has to say something before anything else happens.
                Batch::CaughtUp if !self.open.is_empty() => break,
                Batch::CaughtUp => {
                    let now = Instant::now();
                    if now >= deadline {
                        break;
                    }
                    let bell = Arc::clone(self.follower.bell());
                    if timeout(LOOK_AGAIN.min(deadline - now), bell.rung()).await.is_err() {
                        self.follower.look_again().await?;
                    }
                }
            }
        }
        let run = self.house.engine.store().run(&self.owner, self.run).await?;
        Ok(Followed { run, answer: self.answer, open: self.open })
    }

    fn apply(&mut self, body: EventBody, tools: &mut Vec<String>) {
        self.answer.apply(&body);
        match body {
            EventBody::ToolUse(tool) => tools.push(tool.name),
            EventBody::ApprovalResolved(resolved) => self.open.retain(|open| open.approval_id != resolved.approval_id),
            EventBody::ApprovalRequested(asked) => self.open.push(asked),
            _ => {}
        }
    }
}
