//! The loop of a running turn: whatever the provider said while the last commit was under way goes into the next one.
//! One commit at a time per run, so order needs no care and a fast provider is slowed to what the disk takes.

use super::{
    Halt, Ledger, Signals,
    active::{Accepted, Order, Reply, Steering},
    clocks::Clocks,
    knowledge::Knowledge,
    start::Started,
};
use crate::turn::{Effect, Entry, Finish, Input, Machine, Why, coalesce};
use domain::{
    agent::Agent,
    event::{Decision, NewEvent},
    ids::{ApprovalId, MessageId},
    limits::{Limit, Limits},
    message::{Author, Message},
    run::{Receipt, Run, RunError, RunStatus},
    time::Timestamp,
};
use providers::{Kept, Provider, Reported, TurnChannel, TurnCommand, TurnEnd, TurnOutcome, TurnRequest};
use std::{
    future::{pending, ready},
    time::Duration,
};
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
/// More than what a provider says at once can make us answer, with the word to stop.
const COMMANDS: usize = 2 * EVENTS;

pub(super) struct Pump {
    pub ledger: Ledger,
    pub machine: Machine,
    pub limits: Limits,
    pub grace: Duration,
    pub started: Started,
    pub run: Run,
    pub agent: Agent,
    /// What the provider's own session knows of the room.
    pub knowledge: Knowledge,
    pub messages: Messages,
}

/// Messages that came while the answer was under way.
#[derive(Default)]
pub(super) struct Messages {
    /// Handed to the provider, which has not said yet whether it takes them.
    handed: Vec<Steering>,
    /// The seqs of those that it took.
    taken: Vec<u64>,
}

/// A provider at work, and the lines to it.
pub(super) struct Turn {
    /// Its own task, so that it works on while we wait for the disk. Dropping the set drops the turn, which stops it.
    task: JoinSet<TurnOutcome>,
    events: mpsc::Receiver<Reported>,
    commands: mpsc::Sender<TurnCommand>,
}

impl Turn {
    pub(super) fn begin(provider: &dyn Provider, request: TurnRequest) -> Self {
        let (events_in, events) = mpsc::channel(EVENTS);
        let (commands, commands_out) = mpsc::channel(COMMANDS);
        let mut task = JoinSet::new();
        task.spawn(provider.turn(request, TurnChannel { events: events_in, commands: commands_out }));
        Self { task, events, commands }
    }

    /// Of a run that cannot even be asked.
    pub(super) fn failed(error: RunError) -> Self {
        let (_, events) = mpsc::channel(1);
        let (commands, _) = mpsc::channel(1);
        let mut task = JoinSet::new();
        task.spawn(ready(TurnOutcome::of(TurnEnd::Failed(error))));
        Self { task, events, commands }
    }
}

/// What woke the loop.
enum Wake {
    Said,
    /// The provider has returned; what it said before is still in the channel.
    Returned(TurnOutcome),
    Halted(Halt),
    Ordered(Order),
    ApprovalExpired(ApprovalId),
    OutOfTime(Limit),
    /// It was told to stop and did not.
    OutOfPatience,
}

impl Pump {
    pub(super) async fn run(mut self, turn: Turn, mut signals: Signals) -> Result<(), Error> {
        let Turn { task: mut turn, mut events, commands } = turn;
        let mut clocks = Clocks::new(self.limits, Instant::now());
        let mut told_to_stop: Option<Instant> = None;
        let mut said: Vec<Reported> = Vec::new();
        loop {
            let wake = self.wait(&mut events, &mut said, &mut turn, &mut signals, &clocks, told_to_stop).await;
            let now = Timestamp::now();
            let (mut effects, mut accepted) = (Vec::new(), None);
            for reported in said.drain(..) {
                clocks.heard(&reported.event, Instant::now());
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
                Wake::Ordered(Order::Answer(reply)) => {
                    accepted = self.reply(reply, now, &mut effects);
                    if accepted.is_some() {
                        clocks.answered(Instant::now());
                    }
                }
                Wake::Ordered(Order::Steer(steering)) => self.steer(steering, now, &mut effects),
                Wake::Ordered(Order::Forget { agent, tool }) => {
                    if agent == self.agent.id {
                        self.machine.on(Input::Forget { tool }, now, &mut effects);
                    }
                }
                Wake::ApprovalExpired(approval) => {
                    let (decision, remember) = (Decision::Expired, false);
                    self.machine.on(Input::Answer { approval, decision, input: None, remember }, now, &mut effects);
                    clocks.answered(Instant::now());
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
                self.tell(accepted, Accepted::Yes);
            }
            if let Some(finish) = finish {
                metrics::counter!("greenroom_runs_ended_total", "status" => finish.as_str()).increment(1);
                return Ok(());
            }
        }
    }

    async fn wait(
        &self,
        events: &mut mpsc::Receiver<Reported>,
        said: &mut Vec<Reported>,
        turn: &mut JoinSet<TurnOutcome>,
        signals: &mut Signals,
        clocks: &Clocks,
        told_to_stop: Option<Instant>,
    ) -> Wake {
        let stopping = self.machine.is_stopping();
        let approval = self.machine.approval_deadline();
        let patience = told_to_stop.map(|asked| asked + self.grace);
        let (out_of_time, limit) = clocks.next(self.machine.has_open_call(), approval.is_some());
        tokio::select! {
            biased;
            // A halt is seen at once even while the provider floods.
            Ok(()) = signals.halt.changed() => match *signals.halt.borrow_and_update() {
                Some(halt) => Wake::Halted(halt),
                None => Wake::Said,
            },
            Some(order) = signals.orders.recv() => Wake::Ordered(order),
            // Nor does a flood hold up the end of patience and of all the time there is. Silence is another matter: what
            // has come meanwhile ends it.
            () = at(patience) => Wake::OutOfPatience,
            () = sleep_until(out_of_time), if !stopping && limit == Limit::Wall => Wake::OutOfTime(limit),
            count = events.recv_many(said, EVENTS) => match count {
                // Every sender is gone: the turn has returned or is about to.
                0 => returned(turn.join_next().await),
                _ => Wake::Said,
            },
            () = sleep_until(out_of_time), if !stopping => Wake::OutOfTime(limit),
            id = expiry(approval), if !stopping => Wake::ApprovalExpired(id),
        }
    }

    /// Takes an answer if it is still wanted, and returns whom to tell once it is stored.
    fn reply(&mut self, reply: Reply, now: Timestamp, effects: &mut Vec<Effect>) -> Option<oneshot::Sender<Accepted>> {
        let wanted = self.machine.is_waiting_for(reply.approval) && !self.machine.is_stopping();
        let Reply { approval, decision, input, remember, accepted } = reply;
        if !wanted {
            self.tell(accepted, Accepted::NotWanted);
            return None;
        }
        if remember && self.machine.is_question(approval) {
            self.tell(accepted, Accepted::Question);
            return None;
        }
        self.machine.on(Input::Answer { approval, decision, input, remember }, now, effects);
        Some(accepted)
    }

    fn steer(&mut self, steering: Steering, now: Timestamp, effects: &mut Vec<Effect>) {
        // Whoever gave up waiting has found another way to have the message answered.
        if steering.taken.is_closed() {
            return;
        }
        let (message, text) = (steering.message, steering.text.clone());
        self.messages.handed.push(steering);
        self.machine.on(Input::Steer { message, text }, now, effects);
    }

    /// Says what became of a message for the answer under way.
    fn settle(&mut self, message: MessageId, taken: bool) {
        let Some(at) = self.messages.handed.iter().position(|handed| handed.message == message) else { return };
        let steering = self.messages.handed.swap_remove(at);
        if taken {
            self.messages.taken.push(steering.seq);
        }
        if steering.taken.send(taken).is_err() {
            tracing::info!(run = %self.run.id, %message, taken, "the provider answered too late for a new message");
        }
    }

    fn tell(&self, accepted: oneshot::Sender<Accepted>, what: Accepted) {
        if accepted.send(what).is_err() {
            tracing::debug!(run = %self.run.id, "whoever answered an approval did not wait to hear of it");
        }
    }

    /// Saves what is to be saved, then tells the provider what it is to be told. Returns the status the run ended with.
    async fn carry_out(
        &mut self,
        effects: Vec<Effect>,
        commands: &mpsc::Sender<TurnCommand>,
    ) -> Result<Option<RunStatus>, Error> {
        let (mut entries, mut tells, mut settled, mut tools) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut statuses, mut session, mut finish) = (None, None, None);
        for effect in effects {
            match effect {
                Effect::Append(entry) => entries.push(entry),
                Effect::Become(status) => statuses = Some(status),
                Effect::Tell(command) => tells.push(command),
                Effect::KeepSession(id) => session = self.knowledge.names(&id).or(session),
                Effect::RememberTool(tool) => tools.push(tool),
                Effect::Steered { message, taken } => settled.push((message, taken)),
                Effect::End(end) => finish = Some(end),
            }
        }
        if let Some(Finish { outcome, .. }) = &finish {
            // What was handed over in the middle of an answer is lost with an answer that was cut off. Better told twice.
            let heard_seq = match outcome.kept {
                Kept::PromptAndAnswer => self.heard_seq(&settled).await,
                Kept::Prompt | Kept::Nothing => self.run.queued_seq,
            };
            session = self.knowledge.keeps(outcome.kept, heard_seq, self.started.stream_seq).or(session);
        }
        let mut events: Vec<NewEvent> = coalesce(entries).into_iter().map(|entry| self.ledger.event(entry)).collect();
        if let Some(finish) = &finish {
            events.push(self.ledger.event(Entry::new(finish.terminal.clone())));
        }
        if !events.is_empty() || statuses.is_some() || session.is_some() {
            let changes = || {
                let mut changes = Vec::new();
                if let Some(session) = &session {
                    changes.push(Change::PutSession {
                        agent_id: self.agent.id,
                        provider: self.agent.spec.provider.clone(),
                        session: session.clone(),
                    });
                }
                for tool in &tools {
                    changes.push(Change::RememberTool { agent_id: self.agent.id, tool: tool.clone() });
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
        // Only now that it is stored (invariant 1).
        for (message, taken) in settled {
            self.settle(message, taken);
        }
        for command in tells {
            // A provider that does not listen is dropped when patience ends; one that has returned needs no telling.
            if let Err(refused) = commands.try_send(command) {
                tracing::debug!(run = %self.run.id, "the provider does not take commands any more");
                if let TurnCommand::Steer { message, .. } = refused.into_inner() {
                    self.settle(message, false);
                }
            }
        }
        Ok(finish.map(|finish| finish.status))
    }

    /// Up to where this turn has heard people: those before its prompt, and those it took while it answered, as far as
    /// nobody else spoke in between.
    async fn heard_seq(&self, settled: &[(MessageId, bool)]) -> u64 {
        let just_taken = |handed: &&Steering| settled.contains(&(handed.message, true));
        let mut taken = self.messages.taken.clone();
        taken.extend(self.messages.handed.iter().filter(just_taken).map(|handed| handed.seq));
        let Some(&last) = taken.iter().max() else { return self.run.queued_seq };
        match self.ledger.people_between(self.run.queued_seq, last).await {
            Ok(seqs) => seqs.into_iter().take_while(|seq| taken.contains(seq)).last().unwrap_or(self.run.queued_seq),
            Err(error) => {
                // It will be told once more what it knows, which is better than never.
                tracing::warn!(run = %self.run.id, %error, "cannot look up what was said meanwhile");
                self.run.queued_seq
            }
        }
    }

    /// The folded message and the run's row, in the transaction of the terminal event.
    fn closing(&self, finish: &Finish) -> Vec<Change> {
        let answer = self.machine.answer();
        let (text, thinking) = answer.texts();
        let message = Message {
            id: answer.stream_id.unwrap_or_else(|| self.machine.stream_id()),
            room_id: self.run.room_id,
            seq: self.started.stream_seq,
            author: Author::Agent { id: self.agent.id, name: self.agent.spec.name.clone() },
            run_id: Some(self.run.id),
            status: finish.message,
            text,
            thinking,
            parts: answer.parts.clone(),
            attachments: Vec::new(),
            created_at: self.started.at,
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
            Change::PutMessage { message, seq: SeqOf::Known(self.started.stream_seq) },
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

async fn expiry(approval: Option<(ApprovalId, Timestamp)>) -> ApprovalId {
    match approval {
        Some((id, deadline)) => {
            tokio::time::sleep(deadline.since(Timestamp::now())).await;
            id
        }
        None => pending().await,
    }
}
