//! The main loop of a turn: events that the provider reports during a commit go into the next one. One commit at a time
//! per run, so events stay in order and a fast provider is slowed to the speed of the disk.

use super::{
    Halt, RunJournal, RunSignals,
    active::{AnswerOutcome, ApprovalAnswer, RunCommand, SteerRequest},
    clocks::TurnClocks,
    session_marks::SessionMarks,
    start::StoredStart,
};
use crate::turn::{PendingEvent, RunFinish, TurnEffect, TurnInput, TurnMachine, TurnStopReason, coalesce};
use domain::{
    agent::Agent,
    event::{Decision, NewEvent},
    ids::{ApprovalId, MessageId},
    limits::{Limit, Limits},
    message::{Author, Message},
    run::{Receipt, Run, RunError, RunStatus},
    time::Timestamp,
};
use providers::{Provider, ProviderEvent, SavedInSession, TurnChannel, TurnCommand, TurnEnd, TurnOutcome, TurnRequest};
use std::{
    future::{pending, ready},
    time::Duration,
};
use store::{
    StoreError,
    journal::{RowChange, RunEnding, SeqRef},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

/// How many events a provider may report before they are stored.
const EVENT_BUFFER: usize = 1024;
/// Enough for an answer to every buffered event, plus the interrupt.
const COMMAND_BUFFER: usize = 2 * EVENT_BUFFER;

pub(super) struct TurnPump {
    pub journal: RunJournal,
    pub machine: TurnMachine,
    pub limits: Limits,
    pub stop_grace: Duration,
    pub started: StoredStart,
    pub run: Run,
    pub agent: Agent,
    /// How much of the room the provider's own session knows.
    pub session_marks: SessionMarks,
    pub steering: SteeredMessages,
}

/// Messages that arrived during the answer.
#[derive(Default)]
pub(super) struct SteeredMessages {
    /// Sent to the provider, which has neither taken nor refused them yet.
    pending: Vec<SteerRequest>,
    /// The seqs of the messages that the provider took.
    taken: Vec<u64>,
}

/// A provider's turn in progress, with its channels.
pub(super) struct RunningTurn {
    /// A task of its own, so that the provider works during commits. Dropping the set stops the turn.
    task: JoinSet<TurnOutcome>,
    events: mpsc::Receiver<ProviderEvent>,
    commands: mpsc::Sender<TurnCommand>,
}

impl RunningTurn {
    pub(super) fn start(provider: &dyn Provider, request: TurnRequest) -> Self {
        let (events_in, events) = mpsc::channel(EVENT_BUFFER);
        let (commands, commands_out) = mpsc::channel(COMMAND_BUFFER);
        let mut task = JoinSet::new();
        task.spawn(provider.turn(request, TurnChannel { events: events_in, commands: commands_out }));
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
    Halted(Halt),
    Command(RunCommand),
    ApprovalExpired(ApprovalId),
    TimeLimit(Limit),
    /// The provider did not stop within the grace period.
    GraceExpired,
}

impl TurnPump {
    pub(super) async fn run(mut self, turn: RunningTurn, mut signals: RunSignals) -> Result<(), StoreError> {
        let RunningTurn { task: mut turn, mut events, commands } = turn;
        let mut clocks = TurnClocks::new(self.limits, Instant::now());
        let mut stop_requested_at: Option<Instant> = None;
        let mut reported_events: Vec<ProviderEvent> = Vec::new();
        loop {
            let wake = self
                .next_wake(&mut events, &mut reported_events, &mut turn, &mut signals, &clocks, stop_requested_at)
                .await;
            let now = Timestamp::now();
            let (mut effects, mut accepted) = (Vec::new(), None);
            for reported in reported_events.drain(..) {
                clocks.on_event(&reported.event, Instant::now());
                self.machine.handle(TurnInput::ProviderReport(reported), now, &mut effects);
            }
            match wake {
                PumpWake::Reported => {}
                PumpWake::Halted(Halt::LeaseLost) => return Err(StoreError::Fenced),
                PumpWake::Halted(Halt::Cancel) => {
                    self.machine.handle(TurnInput::Stop(TurnStopReason::Cancelled), now, &mut effects)
                }
                PumpWake::Halted(Halt::Interrupt(why)) => {
                    self.machine.handle(TurnInput::Stop(TurnStopReason::Interrupted(why)), now, &mut effects);
                }
                PumpWake::TimeLimit(limit) => {
                    self.machine.handle(TurnInput::Stop(TurnStopReason::Limit(limit)), now, &mut effects)
                }
                PumpWake::Command(RunCommand::Answer(reply)) => {
                    accepted = self.handle_answer(reply, now, &mut effects);
                    if accepted.is_some() {
                        clocks.on_answer(Instant::now());
                    }
                }
                PumpWake::Command(RunCommand::Steer(steering)) => self.steer(steering, now, &mut effects),
                PumpWake::Command(RunCommand::ForgetTool { agent, tool }) => {
                    if agent == self.agent.id {
                        self.machine.handle(TurnInput::ForgetTool { tool }, now, &mut effects);
                    }
                }
                PumpWake::ApprovalExpired(approval) => {
                    let (decision, remember) = (Decision::Expired, false);
                    self.machine.handle(
                        TurnInput::Answer { approval, decision, input: None, remember },
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
            let finish = self.apply_effects(effects, &commands).await?;
            // The answer is acknowledged only after it is stored (invariant 1).
            if let Some(accepted) = accepted {
                self.report_outcome(accepted, AnswerOutcome::Stored);
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
        signals: &mut RunSignals,
        clocks: &TurnClocks,
        stop_requested_at: Option<Instant>,
    ) -> PumpWake {
        let stopping = self.machine.is_stopping();
        let approval = self.machine.approval_deadline();
        let grace_end = stop_requested_at.map(|requested_at| requested_at + self.stop_grace);
        let (out_of_time, limit) = clocks.next_deadline(self.machine.has_open_call(), approval.is_some());
        tokio::select! {
            biased;
            // First, so that a flood of events does not delay a halt.
            Ok(()) = signals.halt.changed() => match *signals.halt.borrow_and_update() {
                Some(halt) => PumpWake::Halted(halt),
                None => PumpWake::Reported,
            },
            Some(order) = signals.commands.recv() => PumpWake::Command(order),
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
        }
    }

    /// Applies an answer if its approval is pending. Returns the sender to notify once the answer is stored.
    fn handle_answer(
        &mut self,
        reply: ApprovalAnswer,
        now: Timestamp,
        effects: &mut Vec<TurnEffect>,
    ) -> Option<oneshot::Sender<AnswerOutcome>> {
        let is_pending = self.machine.is_waiting_for(reply.approval) && !self.machine.is_stopping();
        let ApprovalAnswer { approval, decision, input, remember, outcome: accepted } = reply;
        if !is_pending {
            self.report_outcome(accepted, AnswerOutcome::NotPending);
            return None;
        }
        if remember && self.machine.is_question(approval) {
            self.report_outcome(accepted, AnswerOutcome::NotRememberable);
            return None;
        }
        self.machine.handle(TurnInput::Answer { approval, decision, input, remember }, now, effects);
        Some(accepted)
    }

    fn steer(&mut self, steering: SteerRequest, now: Timestamp, effects: &mut Vec<TurnEffect>) {
        // The sender timed out and has queued a run for the message instead.
        if steering.taken.is_closed() {
            return;
        }
        let (message, text) = (steering.message, steering.text.clone());
        self.steering.pending.push(steering);
        self.machine.handle(TurnInput::Steer { message, text }, now, effects);
    }

    /// Reports whether the provider took a message into the answer.
    fn settle_steering(&mut self, message: MessageId, taken: bool) {
        let Some(at) = self.steering.pending.iter().position(|handed| handed.message == message) else { return };
        let steering = self.steering.pending.swap_remove(at);
        if taken {
            self.steering.taken.push(steering.seq);
        }
        if steering.taken.send(taken).is_err() {
            tracing::info!(run = %self.run.id, %message, taken, "the provider settled a steered message too late");
        }
    }

    fn report_outcome(&self, sender: oneshot::Sender<AnswerOutcome>, outcome: AnswerOutcome) {
        if sender.send(outcome).is_err() {
            tracing::debug!(run = %self.run.id, "the sender of an approval answer did not wait for the outcome");
        }
    }

    /// Commits the effects, then sends commands to the provider. Returns the final status if the run has ended.
    async fn apply_effects(
        &mut self,
        effects: Vec<TurnEffect>,
        commands: &mpsc::Sender<TurnCommand>,
    ) -> Result<Option<RunStatus>, StoreError> {
        let (mut entries, mut to_send, mut settled, mut tools) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut statuses, mut session, mut finish) = (None, None, None);
        for effect in effects {
            match effect {
                TurnEffect::Append(entry) => entries.push(entry),
                TurnEffect::SetRunStatus(status) => statuses = Some(status),
                TurnEffect::SendCommand(command) => to_send.push(command),
                TurnEffect::SaveSession(id) => session = self.session_marks.set_session(&id).or(session),
                TurnEffect::RememberTool(tool) => tools.push(tool),
                TurnEffect::SteerSettled { message, taken } => settled.push((message, taken)),
                TurnEffect::Finish(end) => finish = Some(end),
            }
        }
        if let Some(RunFinish { outcome, .. }) = &finish {
            // A steered message is lost with an answer that was cut off: it is sent again rather than never.
            let heard_seq = match outcome.saved {
                SavedInSession::PromptAndAnswer => self.session_heard_seq(&settled).await,
                SavedInSession::Prompt | SavedInSession::Nothing => self.run.queued_seq,
            };
            session = self.session_marks.record_turn(outcome.saved, heard_seq, self.started.stream_seq).or(session);
        }
        let mut events: Vec<NewEvent> = coalesce(entries).into_iter().map(|entry| self.journal.event(entry)).collect();
        if let Some(finish) = &finish {
            events.push(self.journal.event(PendingEvent::new(finish.terminal.clone())));
        }
        if !events.is_empty() || statuses.is_some() || session.is_some() {
            let changes = || {
                let mut changes = Vec::new();
                if let Some(session) = &session {
                    changes.push(RowChange::PutSession {
                        agent_id: self.agent.id,
                        provider: self.agent.spec.provider.clone(),
                        session: session.clone(),
                    });
                }
                for tool in &tools {
                    changes.push(RowChange::RememberTool { agent_id: self.agent.id, tool: tool.clone() });
                }
                match (&finish, statuses) {
                    (Some(finish), _) => changes.extend(self.closing_changes(finish)),
                    (None, Some(status)) => changes.push(RowChange::RunStatus { run_id: self.run.id, status }),
                    (None, None) => {}
                }
                changes
            };
            self.journal.commit(events, changes).await?;
        }
        // Only after the commit (invariant 1).
        for (message, taken) in settled {
            self.settle_steering(message, taken);
        }
        for command in to_send {
            // A provider that does not read commands is dropped after the grace period; one that has returned needs
            // none.
            if let Err(refused) = commands.try_send(command) {
                tracing::debug!(run = %self.run.id, "the provider no longer accepts commands");
                if let TurnCommand::Steer { message, .. } = refused.into_inner() {
                    self.settle_steering(message, false);
                }
            }
        }
        Ok(finish.map(|finish| finish.status))
    }

    /// The seq up to which the session knows people's messages: those before its prompt, and those it took during the
    /// answer, as long as no other message is in between.
    async fn session_heard_seq(&self, settled: &[(MessageId, bool)]) -> u64 {
        let just_taken = |handed: &&SteerRequest| settled.contains(&(handed.message, true));
        let mut taken = self.steering.taken.clone();
        taken.extend(self.steering.pending.iter().filter(just_taken).map(|handed| handed.seq));
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

    /// The changes that store the folded message and end the run, in the transaction of the terminal event.
    fn closing_changes(&self, finish: &RunFinish) -> Vec<RowChange> {
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
            created_at: self.started.started_at,
        };
        let stopped = matches!(finish.status, RunStatus::Cancelled | RunStatus::Interrupted);
        let ending = RunEnding {
            status: finish.status,
            usage: answer.usage,
            cost: answer.cost,
            model: answer.model.clone().or_else(|| self.agent.spec.model.clone()),
            duration_ms: finish.duration_ms,
            error: finish.error.clone(),
            receipt: stopped.then(|| finish.outcome.receipt.clone()),
        };
        vec![
            RowChange::PutMessage { message, seq: SeqRef::Known(self.started.stream_seq) },
            RowChange::EndRun { run_id: self.run.id, ending },
        ]
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
