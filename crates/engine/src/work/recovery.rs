//! Ends runs without a driver: a run whose server died, and a run that was stopped while it was queued.

use crate::{
    Engine,
    run::RunJournal,
    turn::{PendingEvent, TurnEffect, TurnInput, TurnMachine, TurnSettings, TurnStopReason, coalesce},
};
use domain::{
    event::{Event, EventBody, Interruption, NewEvent, RunCancelled, RunInterrupted},
    fold::Answer,
    ids::MessageId,
    message::{Author, Message, MessageStatus},
    name::Name,
    run::{Receipt, Run, RunStatus},
    time::Timestamp,
    usage::Usage,
};
use providers::{TurnEnd, TurnOutcome};
use store::{
    StoreError,
    journal::{Commit, Guard, RowChange, RunEnding, SeqRef, StopRequest},
    queue::Claim,
};

impl Engine {
    /// Folds the run's stored events into a partial answer and ends the run as interrupted. The run is not repeated: it
    /// may have called tools (invariant 12).
    pub(crate) async fn recover_run(&self, claim: &Claim) -> Result<(), StoreError> {
        self.end_without_driver(claim, Interruption::Crash).await
    }

    pub(super) async fn end_without_driver(&self, claim: &Claim, why: Interruption) -> Result<(), StoreError> {
        let run = self.store().run(&claim.owner, claim.run_id).await?;
        let events = self.store().run_events(claim.room_id, claim.run_id, claim.queued_seq).await?;
        let journal = RunJournal::new(self.store().clone(), claim.clone(), run.agent_id);
        let name = match self.store().agent(&claim.owner, run.agent_id).await {
            Ok(agent) => Some(agent.spec.name),
            Err(StoreError::NotFound) => None,
            Err(error) => return Err(error),
        };
        let (new, changes) = build_ending(&journal, &run, &events, name, why)?;
        match journal.commit(new, || changes.clone()).await {
            Ok(_) => {
                tracing::info!(run = %run.id, ?why, "ended a run without a driver");
                metrics::counter!("greenroom_runs_recovered_total").increment(1);
                Ok(())
            }
            // Another worker has already ended it.
            Err(StoreError::Fenced) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends runs that were stopped before a worker claimed them.
    pub(crate) async fn end_stopped_in_queue(&self) -> Result<(), StoreError> {
        for claim in self.store().stopped_before_claim().await? {
            let run = self.store().run(&claim.owner, claim.run_id).await?;
            let duration_ms = millis_since(run.created_at);
            let (usage, receipt) = (Usage::default(), Receipt::default());
            let (status, body): (_, EventBody) = match claim.stop {
                Some(StopRequest::Cancel) | None => (
                    RunStatus::Cancelled,
                    RunCancelled { receipt: receipt.clone(), usage, cost: None, duration_ms }.into(),
                ),
                Some(StopRequest::Interrupt) => {
                    let reason = Interruption::NewMessage;
                    let body = RunInterrupted { reason, receipt: receipt.clone(), usage, cost: None, duration_ms };
                    (RunStatus::Interrupted, body.into())
                }
            };
            let ending =
                RunEnding { status, usage, cost: None, model: None, duration_ms, error: None, receipt: Some(receipt) };
            let commit = Commit {
                room_id: run.room_id,
                guard: Guard::Unclaimed { run_id: run.id },
                events: vec![NewEvent::new(body).of_run(run.id, run.agent_id)],
                changes: vec![RowChange::EndRun { run_id: run.id, ending }],
            };
            match self.store().commit(commit).await {
                Ok(_) | Err(StoreError::Fenced) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn millis_since(start: Timestamp) -> u64 {
    u64::try_from(Timestamp::now().since(start).as_millis()).unwrap_or(u64::MAX)
}

/// The events and changes that end a run without a driver, from its stored events.
fn build_ending(
    journal: &RunJournal,
    run: &Run,
    events: &[Event],
    agent: Option<Name>,
    why: Interruption,
) -> Result<(Vec<NewEvent>, Vec<RowChange>), StoreError> {
    let bodies = events.iter().map(Event::body).collect::<Result<Vec<_>, _>>()?;
    let start = events.iter().zip(&bodies).find_map(|(event, body)| match body {
        EventBody::StreamStart(start) => Some((event, start.stream_id)),
        _ => None,
    });
    let settings = TurnSettings {
        stream_id: start.map_or_else(MessageId::generate, |(_, id)| id),
        limits: domain::limits::Limits::default(),
        tools: domain::agent::ToolPolicy::default(),
        remembered: std::collections::BTreeSet::new(),
        model: run.model.clone(),
        started_at: start.map_or(run.created_at, |(event, _)| event.created_at),
    };
    let mut machine = TurnMachine::from_events(settings, &bodies);
    let (now, mut effects) = (Timestamp::now(), Vec::new());
    machine.handle(TurnInput::Stop(TurnStopReason::Interrupted(why)), now, &mut effects);
    machine.handle(TurnInput::Ended(TurnOutcome::from_end(TurnEnd::Stopped)), now, &mut effects);
    let (mut entries, mut terminal, mut duration_ms) = (Vec::new(), None, 0);
    for effect in effects {
        match effect {
            TurnEffect::Append(entry) => entries.push(entry),
            TurnEffect::Finish(finish) => {
                duration_ms = finish.duration_ms;
                terminal = Some(finish.terminal);
            }
            TurnEffect::SetRunStatus(_)
            | TurnEffect::SendCommand(_)
            | TurnEffect::SaveSession(_)
            | TurnEffect::RememberTool(_)
            | TurnEffect::SteerSettled { .. } => {}
        }
    }
    // The answer had not started: only the run itself has to be closed.
    if start.is_none() {
        entries.clear();
    }
    let mut new: Vec<NewEvent> = coalesce(entries).into_iter().map(|entry| journal.event(entry)).collect();
    new.extend(terminal.map(|body| journal.event(PendingEvent::new(body))));
    let answer = machine.answer();
    let ending = RunEnding {
        status: RunStatus::Interrupted,
        usage: answer.usage,
        cost: answer.cost,
        model: answer.model.clone().or_else(|| run.model.clone()),
        duration_ms,
        error: None,
        receipt: Some(Receipt::default()),
    };
    let mut changes = vec![RowChange::EndRun { run_id: run.id, ending }];
    if let Some((event, stream_id)) = start {
        let message = partial_message(run, event, stream_id, answer, agent)?;
        changes.push(RowChange::PutMessage { message, seq: SeqRef::Known(event.seq) });
    }
    Ok((new, changes))
}

fn partial_message(
    run: &Run,
    start: &Event,
    stream_id: MessageId,
    answer: &Answer,
    agent: Option<Name>,
) -> Result<Message, StoreError> {
    let name = match agent {
        Some(name) => name,
        None => Name::parse("deleted agent").map_err(|error| StoreError::Unreadable(error.to_string()))?,
    };
    let (text, thinking) = answer.texts();
    Ok(Message {
        id: stream_id,
        room_id: run.room_id,
        seq: start.seq,
        author: Author::Agent { id: run.agent_id, name },
        run_id: Some(run.id),
        status: MessageStatus::Partial,
        text,
        thinking,
        parts: answer.parts.clone(),
        attachments: Vec::new(),
        created_at: start.created_at,
    })
}
