//! The loop of a running turn: whatever the provider said while the last commit was under way goes into the next one.
//! One commit at a time per run, so order needs no care and a fast provider is slowed to what the disk takes.

use super::{Halt, Ledger, Signals, active::Reply};
use crate::turn::{Effect, Entry, Finish, Input, Machine, Why, coalesce};
use domain::{
    agent::Agent,
    event::{Decision, NewEvent},
    limits::{Limit, Limits},
    message::{Author, Message},
    run::{Receipt, Run, RunError, RunStatus},
    time::Timestamp,
};
use providers::{Kept, Provider, Reported, TurnChannel, TurnCommand, TurnEnd, TurnOutcome, TurnRequest};
use std::{future::pending, sync::Arc, time::Duration};
use store::{
    Error,
    journal::{Change, Ending, SeqOf},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

/// How far a provider may run ahead of the journal.
const EVENTS: usize = 1024;
const COMMANDS: usize = 16;

pub(super) struct Pump {
    pub ledger: Ledger,
    pub machine: Machine,
    pub limits: Limits,
    pub grace: Duration,
    /// Where the answer begins in the journal.
    pub stream_seq: u64,
    pub stream_started_at: Timestamp,
    pub run: Run,
    pub agent: Agent,
}

/// What woke the loop.
enum Wake {
    Said,
    /// The provider has returned; what it said before is still in the channel.
    Returned(TurnOutcome),
    Halted(Halt),
    Replied(Reply),
    ApprovalExpired(domain::ids::ApprovalId),
    OutOfTime(Limit),
    /// It was told to stop and did not.
    OutOfPatience,
}

impl Pump {
    pub(super) async fn run(
        mut self,
        provider: Arc<dyn Provider>,
        request: TurnRequest,
        mut signals: Signals,
    ) -> Result<(), Error> {
        let (events_in, mut events) = mpsc::channel(EVENTS);
        let (commands, commands_out) = mpsc::channel(COMMANDS);
        // Its own task, so that it works on while we wait for the disk. Dropping the set drops the turn, which stops it.
        let mut turn = JoinSet::new();
        turn.spawn(provider.turn(request, TurnChannel { events: events_in, commands: commands_out }));
        let began = Instant::now();
        let mut heard = began;
        let mut told_to_stop: Option<Instant> = None;
        let mut said: Vec<Reported> = Vec::new();
        loop {
            let wake = self.wait(&mut events, &mut said, &mut turn, &mut signals, began, heard, told_to_stop).await;
            let now = Timestamp::now();
            let (mut effects, mut accepted) = (Vec::new(), None);
            for reported in said.drain(..) {
                heard = Instant::now();
                self.machine.on(Input::Provider(reported), now, &mut effects);
            }
            match wake {
                Wake::Said => {}
                Wake::Halted(Halt::LeaseLost) => return Err(Error::Fenced),
                Wake::Halted(Halt::Cancel) => self.machine.on(Input::Stop(Why::Cancelled), now, &mut effects),
                Wake::Halted(Halt::Interrupt(why)) => {
                    self.machine.on(Input::Stop(Why::Interrupted(why)), now, &mut effects);
                }
                Wake::OutOfTime(limit) => self.machine.on(Input::Stop(Why::Limit(limit)), now, &mut effects),
                Wake::Replied(reply) => accepted = self.reply(reply, now, &mut effects),
                Wake::ApprovalExpired(approval) => {
                    let input = Input::Answer { approval, decision: Decision::Expired, input: None };
                    self.machine.on(input, now, &mut effects);
                    heard = Instant::now();
                }
                Wake::OutOfPatience => turn.abort_all(),
                Wake::Returned(mut outcome) => {
                    if let Some(asked) = told_to_stop {
                        outcome.receipt.millis = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
                    }
                    self.machine.on(Input::Ended(outcome), now, &mut effects);
                }
            }
            if self.machine.is_stopping() && told_to_stop.is_none() {
                told_to_stop = Some(Instant::now());
            }
            let finish = self.carry_out(effects, &commands).await?;
            // Only now that it is stored may whoever answered believe that it counts (invariant 1).
            if let Some(accepted) = accepted {
                self.tell(accepted, true);
            }
            if let Some(finish) = finish {
                metrics::counter!("greenroom_runs_ended_total", "status" => finish.as_str()).increment(1);
                return Ok(());
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the loop's own state, borrowed apart so that select can")]
    async fn wait(
        &self,
        events: &mut mpsc::Receiver<Reported>,
        said: &mut Vec<Reported>,
        turn: &mut JoinSet<TurnOutcome>,
        signals: &mut Signals,
        began: Instant,
        heard: Instant,
        told_to_stop: Option<Instant>,
    ) -> Wake {
        let stopping = self.machine.is_stopping();
        let approval = self.machine.approval_deadline();
        let patience = told_to_stop.map(|asked| asked + self.grace);
        tokio::select! {
            biased;
            // A halt is seen at once even while the provider floods.
            Ok(()) = signals.halt.changed() => match *signals.halt.borrow_and_update() {
                Some(halt) => Wake::Halted(halt),
                None => Wake::Said,
            },
            Some(reply) = signals.replies.recv() => Wake::Replied(reply),
            count = events.recv_many(said, EVENTS) => match count {
                // Every sender is gone: the turn has returned or is about to.
                0 => returned(turn.join_next().await),
                _ => Wake::Said,
            },
            () = at(patience) => Wake::OutOfPatience,
            () = sleep_until(began + self.limits.wall), if !stopping => Wake::OutOfTime(Limit::Wall),
            () = sleep_until(heard + self.limits.idle), if !stopping && approval.is_none() => {
                Wake::OutOfTime(Limit::Idle)
            }
            id = expiry(approval), if !stopping => Wake::ApprovalExpired(id),
        }
    }

    /// Takes an answer if it is still wanted, and returns whom to tell once it is stored.
    fn reply(&mut self, reply: Reply, now: Timestamp, effects: &mut Vec<Effect>) -> Option<oneshot::Sender<bool>> {
        let wanted = self.machine.is_waiting_for(reply.approval) && !self.machine.is_stopping();
        let Reply { approval, decision, input, accepted } = reply;
        if !wanted {
            self.tell(accepted, false);
            return None;
        }
        self.machine.on(Input::Answer { approval, decision, input }, now, effects);
        Some(accepted)
    }

    fn tell(&self, accepted: oneshot::Sender<bool>, wanted: bool) {
        if accepted.send(wanted).is_err() {
            tracing::debug!(run = %self.run.id, "whoever answered an approval did not wait to hear of it");
        }
    }

    /// Saves what is to be saved, then tells the provider what it is to be told. Returns the status the run ended with.
    async fn carry_out(
        &self,
        effects: Vec<Effect>,
        commands: &mpsc::Sender<TurnCommand>,
    ) -> Result<Option<RunStatus>, Error> {
        let (mut entries, mut tells, mut statuses, mut session, mut finish) =
            (Vec::new(), Vec::new(), None, None, None);
        for effect in effects {
            match effect {
                Effect::Append(entry) => entries.push(entry),
                Effect::Become(status) => statuses = Some(status),
                Effect::Tell(command) => tells.push(command),
                Effect::KeepSession(id) => session = Some(id),
                Effect::End(end) => finish = Some(end),
            }
        }
        let mut events: Vec<NewEvent> = coalesce(entries).into_iter().map(|entry| self.ledger.event(entry)).collect();
        if let Some(finish) = &finish {
            events.push(self.ledger.event(Entry::new(finish.terminal.clone())));
        }
        if !events.is_empty() || statuses.is_some() || session.is_some() {
            let changes = || {
                let mut changes = Vec::new();
                if let Some(session_id) = &session {
                    changes.push(Change::PutSession {
                        agent_id: self.agent.id,
                        provider: self.agent.spec.provider.clone(),
                        session_id: session_id.clone(),
                    });
                }
                match (&finish, statuses) {
                    (Some(finish), _) => changes.extend(self.closing(finish)),
                    (None, Some(status)) => changes.push(Change::RunStatus { run_id: self.run.id, status }),
                    (None, None) => {}
                }
                changes
            };
            self.ledger.commit(events, changes).await?;
        }
        for command in tells {
            // A provider that does not listen is dropped when patience ends; one that has returned needs no telling.
            if commands.try_send(command).is_err() {
                tracing::debug!(run = %self.run.id, "the provider does not take commands any more");
            }
        }
        Ok(finish.map(|finish| finish.status))
    }

    /// The folded message and the run's row, in the transaction of the terminal event.
    fn closing(&self, finish: &Finish) -> Vec<Change> {
        let answer = self.machine.answer();
        let (text, thinking) = answer.texts();
        let message = Message {
            id: answer.stream_id.unwrap_or_else(|| self.machine.stream_id()),
            room_id: self.run.room_id,
            seq: self.stream_seq,
            author: Author::Agent { id: self.agent.id, name: self.agent.spec.name.clone() },
            run_id: Some(self.run.id),
            status: finish.message,
            text,
            thinking,
            parts: answer.parts.clone(),
            attachments: Vec::new(),
            created_at: self.stream_started_at,
        };
        let stopped = matches!(finish.status, RunStatus::Cancelled | RunStatus::Interrupted);
        let ending = Ending {
            status: finish.status,
            usage: answer.usage,
            cost: answer.cost,
            model: answer.model.clone().or_else(|| self.agent.spec.model.clone()),
            duration_ms: finish.duration_ms,
            error: finish.error.clone(),
            receipt: stopped.then(|| finish.outcome.receipt.clone()),
        };
        vec![
            Change::PutMessage { message, seq: SeqOf::Known(self.stream_seq) },
            Change::EndRun { run_id: self.run.id, ending },
        ]
    }
}

fn returned(joined: Option<Result<TurnOutcome, JoinError>>) -> Wake {
    Wake::Returned(match joined {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) if error.is_panic() => {
            TurnOutcome::of(TurnEnd::Failed(RunError::new("provider_crashed", "the provider's adapter crashed")))
        }
        // Dropped because it did not stop by itself.
        Some(Err(_)) | None => TurnOutcome {
            end: TurnEnd::Stopped,
            receipt: Receipt { signals: vec!["drop".into()], ..Receipt::default() },
            kept: Kept::Nothing,
        },
    })
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}

async fn expiry(approval: Option<(domain::ids::ApprovalId, Timestamp)>) -> domain::ids::ApprovalId {
    match approval {
        Some((id, deadline)) => {
            tokio::time::sleep(deadline.since(Timestamp::now())).await;
            id
        }
        None => pending().await,
    }
}
