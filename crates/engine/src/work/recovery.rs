//! Brings to an end what has no driver: a run whose server died, and a run that was stopped while it still waited.

use crate::{
    Engine,
    run::Ledger,
    turn::{Effect, Entry, Input, Machine, Setting, Why, coalesce},
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
    Error,
    journal::{Change, Commit, Ending, Guard, SeqOf, Stop},
    queue::Claim,
};

impl Engine {
    /// Folds what the journal has of the run, keeps it as a partial answer, and ends the run as interrupted. It is not
    /// run again: it may have called tools (invariant 12).
    pub(crate) async fn recover_run(&self, claim: &Claim) -> Result<(), Error> {
        self.end_without_driver(claim, Interruption::Crash).await
    }

    pub(super) async fn end_without_driver(&self, claim: &Claim, why: Interruption) -> Result<(), Error> {
        let run = self.store().run(&claim.owner, claim.run_id).await?;
        let events = self.store().run_events(claim.room_id, claim.run_id, claim.queued_seq).await?;
        let ledger = Ledger::new(self.store().clone(), claim.clone(), run.agent_id);
        let name = match self.store().agent(&claim.owner, run.agent_id).await {
            Ok(agent) => Some(agent.spec.name),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        let (new, changes) = ending_of(&ledger, &run, &events, name, why)?;
        match ledger.commit(new, || changes.clone()).await {
            Ok(_) => {
                tracing::info!(run = %run.id, ?why, "ended a run that had lost its server");
                metrics::counter!("greenroom_runs_recovered_total").increment(1);
                Ok(())
            }
            // Someone else was quicker.
            Err(Error::Fenced) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends runs that were asked to stop before anyone claimed them.
    pub(crate) async fn end_stopped_in_queue(&self) -> Result<(), Error> {
        for claim in self.store().stopped_in_queue().await? {
            let run = self.store().run(&claim.owner, claim.run_id).await?;
            let duration_ms = millis_since(run.created_at);
            let (usage, receipt) = (Usage::default(), Receipt::default());
            let (status, body): (_, EventBody) = match claim.stop {
                Some(Stop::Cancel) | None => (
                    RunStatus::Cancelled,
                    RunCancelled { receipt: receipt.clone(), usage, cost: None, duration_ms }.into(),
                ),
                Some(Stop::Interrupt) => {
                    let reason = Interruption::NewMessage;
                    let body = RunInterrupted { reason, receipt: receipt.clone(), usage, cost: None, duration_ms };
                    (RunStatus::Interrupted, body.into())
                }
            };
            let ending =
                Ending { status, usage, cost: None, model: None, duration_ms, error: None, receipt: Some(receipt) };
            let commit = Commit {
                room_id: run.room_id,
                guard: Guard::Unclaimed { run_id: run.id },
                events: vec![NewEvent::new(body).of_run(run.id, run.agent_id)],
                changes: vec![Change::EndRun { run_id: run.id, ending }],
            };
            match self.store().commit(commit).await {
                Ok(_) | Err(Error::Fenced) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn millis_since(start: Timestamp) -> u64 {
    u64::try_from(Timestamp::now().since(start).as_millis()).unwrap_or(u64::MAX)
}

/// The events and changes that close a run nobody drives, from what the journal knows of it.
fn ending_of(
    ledger: &Ledger,
    run: &Run,
    events: &[Event],
    agent: Option<Name>,
    why: Interruption,
) -> Result<(Vec<NewEvent>, Vec<Change>), Error> {
    let bodies = events.iter().map(Event::body).collect::<Result<Vec<_>, _>>()?;
    let start = events.iter().zip(&bodies).find_map(|(event, body)| match body {
        EventBody::StreamStart(start) => Some((event, start.stream_id)),
        _ => None,
    });
    let setting = Setting {
        stream_id: start.map_or_else(MessageId::generate, |(_, id)| id),
        limits: domain::limits::Limits::default(),
        tools: domain::agent::ToolPolicy::default(),
        remembered: std::collections::BTreeSet::new(),
        model: run.model.clone(),
        started_at: start.map_or(run.created_at, |(event, _)| event.created_at),
    };
    let mut machine = Machine::resumed(setting, &bodies);
    let (now, mut effects) = (Timestamp::now(), Vec::new());
    machine.on(Input::Stop(Why::Interrupted(why)), now, &mut effects);
    machine.on(Input::Ended(TurnOutcome::of(TurnEnd::Stopped)), now, &mut effects);
    let (mut entries, mut terminal, mut duration_ms) = (Vec::new(), None, 0);
    for effect in effects {
        match effect {
            Effect::Append(entry) => entries.push(entry),
            Effect::End(finish) => {
                duration_ms = finish.duration_ms;
                terminal = Some(finish.terminal);
            }
            Effect::Become(_)
            | Effect::Tell(_)
            | Effect::KeepSession(_)
            | Effect::RememberTool(_)
            | Effect::Steered { .. } => {}
        }
    }
    // It had not begun to answer: there is nothing to close but the run itself.
    if start.is_none() {
        entries.clear();
    }
    let mut new: Vec<NewEvent> = coalesce(entries).into_iter().map(|entry| ledger.event(entry)).collect();
    new.extend(terminal.map(|body| ledger.event(Entry::new(body))));
    let answer = machine.answer();
    let ending = Ending {
        status: RunStatus::Interrupted,
        usage: answer.usage,
        cost: answer.cost,
        model: answer.model.clone().or_else(|| run.model.clone()),
        duration_ms,
        error: None,
        receipt: Some(Receipt::default()),
    };
    let mut changes = vec![Change::EndRun { run_id: run.id, ending }];
    if let Some((event, stream_id)) = start {
        let message = partial(run, event, stream_id, answer, agent)?;
        changes.push(Change::PutMessage { message, seq: SeqOf::Known(event.seq) });
    }
    Ok((new, changes))
}

fn partial(
    run: &Run,
    start: &Event,
    stream_id: MessageId,
    answer: &Answer,
    agent: Option<Name>,
) -> Result<Message, Error> {
    let name = match agent {
        Some(name) => name,
        None => Name::parse("deleted agent").map_err(|error| Error::Unreadable(error.to_string()))?,
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
