//! The main loop of a turn: events that the provider reports during a commit go into the next one. One commit at a time
//! per run, so events stay in order and a fast provider is slowed to the speed of the disk.

use super::{
    ActiveRun, RunEnd, RunJournal, RunStop, RunsAbove, SettledSignals, StoredStart,
    clocks::TurnClocks,
    session_marks::SessionMarks,
    signals::{RunRequest, SignalInbox},
};
use crate::{
    traces::{self, RunTrace},
    turn::{PendingEvent, RunFinish, TurnEffect, TurnInput, TurnMachine, TurnStopReason, coalesce},
};
use domain::{
    agent::Agent,
    budget::BudgetSubjects,
    event::{Decision, NewEvent},
    fold::Answer,
    ids::{AgentId, ApprovalId, MessageId, RoomId, SignalId, UserId},
    limits::{Limit, Limits},
    message::Author,
    run::{Receipt, Run, RunError, RunStatus},
    signal::SignalOutcome,
    time::Timestamp,
};
use providers::{
    Provider, ProviderEvent, SavedInSession, TurnChannel, TurnCommand, TurnEnd, TurnOutcome, TurnRequest,
    gateway::RunMeter,
};
use std::{
    future::{pending, ready},
    time::Duration,
};
use store::{StoreError, journal::RowChange};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

/// How many events a provider may report before they are stored.
const EVENT_BUFFER: usize = 1024;
/// Enough for an answer to every buffered event, plus the interrupt.
const COMMAND_BUFFER: usize = 2 * EVENT_BUFFER;
/// How long a provider may take to accept or refuse a message.
const STEER_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct TurnPump {
    pub journal: RunJournal,
    pub machine: TurnMachine,
    pub limits: Limits,
    pub stop_grace: Duration,
    pub started: StoredStart,
    /// The room's head when the messages for the turn were read.
    pub known_seq: u64,
    pub run: Run,
    pub agent: Agent,
    /// The author of the message that the run, or the first of its tree, answers.
    pub user: Option<UserId>,
    pub above: RunsAbove,
    /// How much of the room the provider's own session knows.
    pub session_marks: SessionMarks,
    /// What the run was given; stored with its first events.
    pub given: Option<RowChange>,
    pub steering: SteeredMessages,
    pub inbox: SignalInbox,
    /// What the agent's program does at the model gateway.
    pub meter: RunMeter,
    /// `None` if the run is not traced.
    pub trace: Option<RunTrace>,
}

/// Messages that arrived during the answer.
#[derive(Default)]
pub(super) struct SteeredMessages {
    /// Sent to the provider, which has neither taken nor refused them yet.
    pending: Vec<SteeredMessage>,
    /// The seqs of the messages that the provider took.
    taken: Vec<u64>,
}

struct SteeredMessage {
    signal: SignalId,
    message: MessageId,
    seq: u64,
    deadline: Instant,
}

/// A provider's turn in progress, with its channels.
pub(super) struct RunningTurn {
    /// A task of its own, so that the provider works during commits. Dropping the set stops the turn.
    task: JoinSet<TurnOutcome>,
    events: mpsc::Receiver<ProviderEvent>,
    commands: mpsc::Sender<TurnCommand>,
}

impl RunningTurn {
    pub(super) fn start(provider: &dyn Provider, request: TurnRequest, keeps_raw: bool) -> Self {
        let (events_in, events) = mpsc::channel(EVENT_BUFFER);
        let (commands, commands_out) = mpsc::channel(COMMAND_BUFFER);
        let mut task = JoinSet::new();
        task.spawn(provider.turn(request, TurnChannel { events: events_in, commands: commands_out, keeps_raw }));
        Self { task, events, commands }
    }

    /// A turn that fails at once, for a run whose provider cannot be called.
    pub(super) fn failed(error: RunError) -> Self {
        let (_, events) = mpsc::channel(1);
        let (commands, _) = mpsc::channel(1);
        let mut task = JoinSet::new();
        task.spawn(ready(TurnOutcome::from_end(TurnEnd::Failed(error))));
        Self { task, events, commands }
    }
}

/// Why the loop woke up.
enum PumpWake {
    Reported,
    /// The provider has returned, and the channel is empty.
    Returned(TurnOutcome),
    StopRequested(RunStop),
    /// There are signals in the store.
    Signaled,
    /// The agent's program has used something at the model gateway, or was refused there.
    Metered,
    ApprovalExpired(ApprovalId),
    SteerExpired(MessageId),
    TimeLimit(Limit),
    /// The provider did not stop within the grace period.
    GraceExpired,
}

impl TurnPump {
    pub(super) async fn run(mut self, turn: RunningTurn, mut active: ActiveRun) -> Result<(), StoreError> {
        let RunningTurn { task: mut turn, mut events, commands } = turn;
        let mut clocks = TurnClocks::new(self.limits, Instant::now());
        let mut stop_requested_at: Option<Instant> = None;
        let mut reported_events: Vec<ProviderEvent> = Vec::new();
        loop {
            let wake = self
                .next_wake(&mut events, &mut reported_events, &mut turn, &mut active, &clocks, stop_requested_at)
                .await;
            let now = Timestamp::now();
            let (mut effects, mut settled) = (Vec::new(), SettledSignals::default());
            let mut metered = None;
            for reported in reported_events.drain(..) {
                clocks.on_event(&reported.event, Instant::now());
                if let Some(trace) = &mut self.trace {
                    trace.on_event(&reported.event, now);
                }
                self.machine.handle(TurnInput::ProviderReport(reported), now, &mut effects);
            }
            match wake {
                PumpWake::Reported => {}
                PumpWake::Metered => {
                    let calls = self.meter.read();
                    metered = Some(calls.version);
                    let input = TurnInput::Metered { usage: calls.usage, is_refused: calls.is_refused };
                    self.machine.handle(input, now, &mut effects);
                }
                PumpWake::StopRequested(RunStop::LeaseLost) => return Err(StoreError::Fenced),
                PumpWake::StopRequested(RunStop::Cancel) => {
                    self.machine.handle(TurnInput::Stop(TurnStopReason::Cancelled), now, &mut effects)
                }
                PumpWake::StopRequested(RunStop::Interrupt(why)) => {
                    self.machine.handle(TurnInput::Stop(TurnStopReason::Interrupted(why)), now, &mut effects);
                }
                PumpWake::TimeLimit(limit) => {
                    self.machine.handle(TurnInput::Stop(TurnStopReason::Limit(limit)), now, &mut effects)
                }
                PumpWake::Signaled => {
                    for (signal, request) in self.inbox.read_new().await {
                        let answers = matches!(request, RunRequest::AnswerApproval { .. });
                        let carried_out = self.carry_out(signal, request, now, &mut effects, &mut settled);
                        if answers && carried_out {
                            clocks.on_answer(Instant::now());
                        }
                    }
                }
                PumpWake::SteerExpired(message) => {
                    self.machine.handle(TurnInput::SteerRefused { message }, now, &mut effects);
                }
                PumpWake::ApprovalExpired(approval) => {
                    let (decision, remember) = (Decision::Expired, None);
                    self.machine.handle(
                        TurnInput::ApprovalDecided { approval, decision, input: None, remember, author: None },
                        now,
                        &mut effects,
                    );
                    clocks.on_answer(Instant::now());
                }
                PumpWake::GraceExpired => turn.abort_all(),
                PumpWake::Returned(mut outcome) => {
                    if let Some(requested_at) = stop_requested_at {
                        outcome.receipt.millis = u64::try_from(requested_at.elapsed().as_millis()).unwrap_or(u64::MAX);
                    }
                    self.machine.handle(TurnInput::Ended(outcome), now, &mut effects);
                }
            }
            if self.machine.is_stopping() && stop_requested_at.is_none() {
                stop_requested_at = Some(Instant::now());
            }
            let has_usage = effects.iter().any(TurnEffect::reports_usage);
            let mut finish = self.apply_effects(effects, settled, &commands).await?;
            // What the model call has cost is stored, or known, now.
            let is_spent = (has_usage || metered.is_some()) && finish.is_none() && self.is_over_budget().await;
            if is_spent {
                let mut effects = Vec::new();
                self.machine.handle(TurnInput::BudgetUsedUp, now, &mut effects);
                if self.machine.is_stopping() && stop_requested_at.is_none() {
                    stop_requested_at = Some(Instant::now());
                }
                finish = self.apply_effects(effects, SettledSignals::default(), &commands).await?;
            }
            // After the commands: a refused program must not end its turn before it is told to stop.
            if let Some(version) = metered {
                self.meter.settle(version, is_spent);
            }
            if let Some(finish) = finish {
                metrics::counter!("greenroom_runs_ended_total", "status" => finish.as_str()).increment(1);
                return Ok(());
            }
        }
    }

    async fn next_wake(
        &self,
        events: &mut mpsc::Receiver<ProviderEvent>,
        reported_events: &mut Vec<ProviderEvent>,
        turn: &mut JoinSet<TurnOutcome>,
        active: &mut ActiveRun,
        clocks: &TurnClocks,
        stop_requested_at: Option<Instant>,
    ) -> PumpWake {
        let stopping = self.machine.is_stopping();
        let approval = self.machine.approval_deadline();
        let grace_end = stop_requested_at.map(|requested_at| requested_at + self.stop_grace);
        let (out_of_time, limit) = clocks.next_deadline(self.machine.has_open_call(), approval.is_some());
        tokio::select! {
            biased;
            // First, so that a flood of events does not delay a stop.
            Ok(()) = active.stop.changed() => match *active.stop.borrow_and_update() {
                Some(stop) => PumpWake::StopRequested(stop),
                None => PumpWake::Reported,
            },
            () = active.signals.notified() => PumpWake::Signaled,
            () = self.meter.changed() => PumpWake::Metered,
            // The grace period and the wall limit also come before events. The silence limits come after: a pending
            // event ends the silence.
            () = sleep_until_some(grace_end) => PumpWake::GraceExpired,
            () = sleep_until(out_of_time), if !stopping && limit == Limit::Wall => PumpWake::TimeLimit(limit),
            count = events.recv_many(reported_events, EVENT_BUFFER) => match count {
                // All senders are dropped: the turn has returned or is about to.
                0 => turn_returned(turn.join_next().await),
                _ => PumpWake::Reported,
            },
            () = sleep_until(out_of_time), if !stopping => PumpWake::TimeLimit(limit),
            id = approval_expiry(approval), if !stopping => PumpWake::ApprovalExpired(id),
            message = steer_expiry(self.steering.pending.first()) => PumpWake::SteerExpired(message),
        }
    }

    /// Passes a signal to the machine. Returns false if it does not apply to the run as it is now.
    fn carry_out(
        &mut self,
        signal: SignalId,
        request: RunRequest,
        now: Timestamp,
        effects: &mut Vec<TurnEffect>,
        settled: &mut SettledSignals,
    ) -> bool {
        let outcome = match request {
            RunRequest::AnswerApproval { approval, decision, input, remember, author } => {
                if !self.machine.is_waiting_for(approval) || self.machine.is_stopping() {
                    SignalOutcome::NotPending
                } else if remember.is_some_and(|scope| !self.machine.can_remember(approval, scope)) {
                    SignalOutcome::NotRememberable
                } else {
                    let answer = TurnInput::ApprovalDecided { approval, decision, input, remember, author };
                    self.machine.handle(answer, now, effects);
                    SignalOutcome::CarriedOut
                }
            }
            RunRequest::ForgetTool { tool } => {
                self.machine.handle(TurnInput::ForgetTool { tool }, now, effects);
                SignalOutcome::CarriedOut
            }
            RunRequest::Steer { message, text: Some(text), attachments } => {
                let deadline = Instant::now() + STEER_TIMEOUT;
                let (message, seq) = (message.id, message.seq);
                self.steering.pending.push(SteeredMessage { signal, message, seq, deadline });
                self.machine.handle(TurnInput::Steer { message, text, attachments }, now, effects);
                // Settled when the provider has replied.
                return true;
            }
            RunRequest::Steer { message, text: None, .. } => {
                settled.redirect(&self.journal, signal, message.id);
                return false;
            }
        };
        settled.settle(signal, outcome);
        outcome == SignalOutcome::CarriedOut
    }

    /// Settles the signal of a message that the provider took or refused.
    fn settle_steering(&mut self, message: MessageId, taken: bool, settled: &mut SettledSignals) {
        let Some(at) = self.steering.pending.iter().position(|handed| handed.message == message) else { return };
        let SteeredMessage { signal, seq, .. } = self.steering.pending.remove(at);
        if taken {
            self.steering.taken.push(seq);
            settled.settle(signal, SignalOutcome::CarriedOut);
        } else {
            settled.redirect(&self.journal, signal, message);
        }
    }

    /// Commits the effects, then sends commands to the provider. Returns the final status if the run has ended.
    async fn apply_effects(
        &mut self,
        mut effects: Vec<TurnEffect>,
        mut settled: SettledSignals,
        commands: &mpsc::Sender<TurnCommand>,
    ) -> Result<Option<RunStatus>, StoreError> {
        loop {
            self.trace_effects(&effects);
            let (finish, to_send) = self.commit_effects(effects, &mut settled).await?;
            self.inbox.settled(&settled);
            self.trace.iter_mut().for_each(traces::record_all);
            if finish.is_some() {
                self.count_usage();
                return Ok(finish);
            }
            (effects, settled) = (Vec::new(), SettledSignals::default());
            // Only after the commit (invariant 1).
            for command in to_send {
                // A provider that does not read commands is dropped after the grace period; one that has returned
                // needs none.
                if let Err(refused) = commands.try_send(command) {
                    tracing::debug!(run = %self.run.id, "the provider no longer accepts commands");
                    if let TurnCommand::Steer { message, .. } = refused.into_inner() {
                        self.machine.handle(TurnInput::SteerRefused { message }, Timestamp::now(), &mut effects);
                    }
                }
            }
            if effects.is_empty() {
                return Ok(None);
            }
        }
    }

    fn trace_effects(&mut self, effects: &[TurnEffect]) {
        let Some(trace) = &mut self.trace else { return };
        let now = Timestamp::now();
        for effect in effects {
            match effect {
                TurnEffect::SendCommand(command) => trace.on_command(command, now),
                TurnEffect::Finish(finish) => {
                    trace.link(traces::request_of(self.run.id));
                    trace.end(finish.status, finish.error.as_ref(), self.machine.answer(), now);
                }
                _ => {}
            }
        }
    }

    /// The labels are bounded: a server has a handful of providers.
    fn count_usage(&self) {
        let Answer { usage, cost, .. } = self.machine.answer();
        let provider = &self.agent.spec.provider;
        for (kind, tokens) in [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache_read", usage.cache_read_tokens),
            ("cache_write", usage.cache_write_tokens),
        ] {
            metrics::counter!("greenroom_tokens_total", "provider" => provider.clone(), "kind" => kind)
                .increment(tokens);
        }
        let nanos = cost.map_or(0, |cost| u64::try_from(cost.as_nanos()).unwrap_or(0));
        metrics::counter!("greenroom_cost_nanodollars_total", "provider" => provider.clone()).increment(nanos);
    }

    async fn commit_effects(
        &mut self,
        effects: Vec<TurnEffect>,
        settled: &mut SettledSignals,
    ) -> Result<(Option<RunStatus>, Vec<TurnCommand>), StoreError> {
        let (mut entries, mut to_send, mut rules) = (Vec::new(), Vec::new(), Vec::new());
        let (mut status, mut session, mut finish) = (None, None, None);
        for effect in effects {
            match effect {
                TurnEffect::Append(entry) => entries.push(entry),
                TurnEffect::SetRunStatus(changed) => status = Some(changed),
                TurnEffect::SendCommand(command) => to_send.push(command),
                TurnEffect::SaveSession(id) => session = self.session_marks.set_session(&id).or(session),
                TurnEffect::Remember(rule) => rules.push(rule),
                TurnEffect::SteerSettled { message, taken } => self.settle_steering(message, taken, settled),
                TurnEffect::Finish(end) => finish = Some(end),
            }
        }
        if let Some(RunFinish { outcome, .. }) = &finish {
            // A steered message is lost with an answer that was cut off: it is sent again rather than never.
            let heard_seq = match outcome.saved {
                SavedInSession::PromptAndAnswer => self.session_heard_seq().await,
                SavedInSession::Prompt | SavedInSession::Nothing => self.run.queued_seq,
            };
            session = self
                .session_marks
                .record_turn(outcome.saved, heard_seq, self.known_seq, self.started.stream_seq)
                .or(session);
        }
        let mut changes = Vec::new();
        if let Some(session) = session {
            let (agent_id, provider) = (self.agent.id, self.agent.spec.provider.clone());
            changes.push(RowChange::PutSession { agent_id, provider, session });
        }
        changes.extend(rules.into_iter().map(|rule| RowChange::RememberTool { agent_id: self.agent.id, rule }));
        if entries.iter().any(PendingEvent::reports_usage) {
            let Answer { usage, cost, .. } = self.machine.answer();
            changes.push(RowChange::MeterRun { run_id: self.run.id, usage: *usage, cost: *cost });
        }
        let mut events: Vec<NewEvent> = coalesce(entries).into_iter().map(|entry| self.journal.event(entry)).collect();
        if !events.is_empty() || finish.is_some() {
            changes.extend(self.given.take());
        }
        if let Some(finish) = finish {
            let (status, author) =
                (finish.status, Author::Agent { id: self.agent.id, name: self.agent.spec.name.clone() });
            let end = RunEnd::new(&self.journal, &self.run, &self.machine, finish, Some((self.started, author)));
            self.journal.end(RunEnd { events, changes, signals: std::mem::take(settled), ..end }).await?;
            return Ok((Some(status), to_send));
        }
        if let Some(status) = status {
            changes.push(RowChange::RunStatus { run_id: self.run.id, status });
        }
        if !events.is_empty() || !changes.is_empty() || !settled.is_empty() {
            changes.extend(settled.changes(&self.journal, events.len()));
            events.extend(settled.events());
            self.journal.commit(events, || changes.clone()).await?;
        }
        Ok((None, to_send))
    }

    /// Returns whether a budget that counts this run is used up. If that cannot be read now, the run goes on.
    async fn is_over_budget(&self) -> bool {
        let agents: Vec<AgentId> = [self.agent.id].into_iter().chain(self.above.agents()).collect();
        let rooms: Vec<RoomId> = [self.run.room_id].into_iter().chain(self.above.rooms()).collect();
        let subjects = BudgetSubjects { user: self.user, agents: &agents, rooms: &rooms };
        let unstored = self.machine.unreported_cost();
        match self.journal.used_up_budget(subjects, self.run.created_at, unstored).await {
            Ok(used_up) => used_up.is_some(),
            Err(error) => {
                tracing::warn!(run = %self.run.id, %error, "cannot read the budgets of a run");
                false
            }
        }
    }

    /// The seq up to which the session knows people's messages: those before its prompt, and those it took during the
    /// answer, as long as no other message is in between.
    async fn session_heard_seq(&self) -> u64 {
        let taken = &self.steering.taken;
        let Some(&last) = taken.iter().max() else { return self.run.queued_seq };
        match self.journal.person_messages_between(self.run.queued_seq, last).await {
            Ok(seqs) => seqs.into_iter().take_while(|seq| taken.contains(seq)).last().unwrap_or(self.run.queued_seq),
            Err(error) => {
                // Some messages will be sent again, which is better than never.
                tracing::warn!(run = %self.run.id, %error, "cannot look up the messages posted during the turn");
                self.run.queued_seq
            }
        }
    }
}

fn turn_returned(joined: Option<Result<TurnOutcome, JoinError>>) -> PumpWake {
    PumpWake::Returned(match joined {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) if error.is_panic() => {
            TurnOutcome::from_end(TurnEnd::Failed(RunError::new("provider_crashed", "the provider's adapter panicked")))
        }
        // Dropped because it did not stop within the grace period.
        Some(Err(_)) | None => TurnOutcome {
            end: TurnEnd::Stopped,
            receipt: Receipt { signals: vec!["drop".into()], ..Receipt::default() },
            saved: SavedInSession::Nothing,
        },
    })
}

async fn sleep_until_some(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}

async fn approval_expiry(approval: Option<(ApprovalId, Timestamp)>) -> ApprovalId {
    match approval {
        Some((id, deadline)) => {
            tokio::time::sleep(deadline.since(Timestamp::now())).await;
            id
        }
        None => pending().await,
    }
}

/// The pending messages are in the order of their deadlines.
async fn steer_expiry(first: Option<&SteeredMessage>) -> MessageId {
    match first {
        Some(handed) => {
            sleep_until(handed.deadline).await;
            handed.message
        }
        None => pending().await,
    }
}
