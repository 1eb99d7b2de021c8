//! One writer per room: posts, interrupts, cancels and changes the tape at random, and records acknowledgements. A post whose
//! response was lost is repeated with the same idempotency key until it gets a response.

use crate::{
    ledger::{ChaosRoomKind, RoomLedger},
    random::Random,
    trigger::{KillMoment, KillTrigger},
};
use domain::{room::WhenBusy, tape::TapeChange};
use reqwest::Method;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use testkit::client::{TestClient, TestClientError, TestPost};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const BEFORE_RETRY: Duration = Duration::from_millis(20);
/// More runs would only wait in the queue.
const MAX_OPEN_RUNS: usize = 3;

pub struct ChaosWriter {
    pub api: TestClient,
    pub ledger: Arc<RoomLedger>,
    pub trigger: Arc<KillTrigger>,
    pub random: Random,
    /// When cancelled: no new work, but pending requests are completed.
    pub finish: CancellationToken,
}

impl ChaosWriter {
    pub fn start(self, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let stop = stop.clone();
        tasks.spawn(async move {
            stop.run_until_cancelled(self.write()).await;
        });
    }

    async fn write(mut self) {
        let mut progress = self.ledger.progress();
        while !self.finish.is_cancelled() {
            let has_room = progress.wait_for(|progress| progress.open_runs < MAX_OPEN_RUNS);
            let allowed = self.finish.run_until_cancelled(has_room).await.is_some();
            if !allowed {
                break;
            }
            let has_tape = self.ledger.kind == ChaosRoomKind::InTurn;
            match self.random.between(1, 100) {
                1..=8 => self.cancel().await,
                9..=20 if has_tape => self.pause_for_a_while().await,
                _ => {
                    let post = self.random_post();
                    self.post(post).await;
                }
            }
            // A message that interrupts replaces the plan: give it time to get to its second agent.
            let longest = if has_tape { 400 } else { 60 };
            sleep(Duration::from_millis(self.random.between(0, longest))).await;
        }
        if self.ledger.kind == ChaosRoomKind::InTurn {
            // What is planned would take minutes. This replaces it.
            let idempotency_key = Some(Uuid::new_v4().to_string());
            self.post(TestPost { text: "!count 3".into(), when_busy: Some(WhenBusy::Interrupt), idempotency_key })
                .await;
        }
    }

    /// Pauses the room, posts, changes the plan, lets it make a step, and resumes it. Whatever the server accepts has to
    /// survive its end.
    async fn pause_for_a_while(&mut self) {
        self.command(TapeChange::Paused).await;
        let post = self.random_post();
        self.post(post).await;
        for change in [TapeChange::Skipped, TapeChange::Stepped] {
            if self.random.chance(50) {
                self.command(change).await;
            }
        }
        sleep(Duration::from_millis(self.random.between(0, 150))).await;
        self.command(TapeChange::Resumed).await;
    }

    /// Sends a command to the tape until it is accepted or refused.
    async fn command(&self, change: TapeChange) {
        let command = match change {
            TapeChange::Paused => "pause",
            TapeChange::Resumed => "resume",
            TapeChange::Stepped => "step",
            _ => "skip",
        };
        let path = format!("/api/rooms/{}/tape/{command}", self.ledger.room);
        loop {
            match self.api.send::<Value>(self.api.request(Method::POST, &path).json(&json!({}))).await {
                Ok(_) => return self.ledger.entries().tape_changes.push(change),
                Err(error) if error.is_connection() || error.code() == Some("unavailable") => {
                    sleep(BEFORE_RETRY).await;
                }
                // Nothing is left to skip.
                Err(error) if change == TapeChange::Skipped && error.code() == Some("conflict") => return,
                Err(error) => return self.fault(&error),
            }
        }
    }

    async fn post(&self, post: TestPost) {
        loop {
            match self.api.post_message(self.ledger.room, &post).await {
                Ok(posted) => {
                    self.ledger.record_post(&post.text, &posted);
                    self.trigger.fire(KillMoment::Acknowledged);
                    return;
                }
                Err(error) if error.is_connection() => sleep(BEFORE_RETRY).await,
                Err(error) if error.code() == Some("unavailable") => {
                    self.ledger.entries().refused += 1;
                    sleep(BEFORE_RETRY).await;
                }
                Err(error) if post.when_busy == Some(WhenBusy::Reject) && error.code() == Some("room_busy") => return,
                Err(error) => return self.fault(&error),
            }
        }
    }

    async fn cancel(&mut self) {
        let Some(run) = self.ledger.pick_open_run(self.random.next()) else { return };
        match self.api.cancel_run(run).await {
            Ok(cancelled) if cancelled.status.is_terminal() => {
                self.ledger.entries().ended_by_cancel.push((run, cancelled.status));
            }
            Ok(cancelled) => {
                let status = cancelled.status;
                self.ledger.entries().writer_faults.push(format!("cancel of {run} returned while it is {status}"));
            }
            Err(error) if error.is_connection() => {}
            Err(error) if matches!(error.code(), Some("run_ended" | "unavailable")) => {}
            Err(error) => self.fault(&error),
        }
    }

    fn fault(&self, error: &TestClientError) {
        self.ledger.entries().writer_faults.push(error.to_string());
    }

    fn random_post(&mut self) -> TestPost {
        let text = self.random_directive();
        let when_busy = match self.random.between(1, 10) {
            1..=2 => Some(WhenBusy::Interrupt),
            3 => Some(WhenBusy::Reject),
            4..=5 => Some(WhenBusy::Enqueue),
            6..=7 => Some(WhenBusy::Steer),
            _ => None,
        };
        TestPost { text, when_busy, idempotency_key: Some(Uuid::new_v4().to_string()) }
    }

    /// Mostly long answers, so that a kill interrupts them.
    fn random_directive(&mut self) -> String {
        let random = &mut self.random;
        match random.between(1, 20) {
            1..=8 => format!("!count {} {}", random.between(100, 900), random.between(1, 8)),
            9..=12 => format!("!ask deploy {{\"number\":{}}}", random.next() % 1000),
            13..=14 => format!("!count {} 0", random.between(1, 3000)),
            15..=16 => format!("!think step {} then step {} and be done", random.next() % 100, random.next() % 100),
            17..=18 => format!("!tool look_up {{\"number\":{},\"deep\":{{\"list\":[1,2,3]}}}}", random.next() % 1000),
            19 => format!("!flood {}", random.between(1, 120_000)),
            _ => "!fail overloaded try again later".to_owned(),
        }
    }
}
