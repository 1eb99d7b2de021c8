//! A turn from end to end: a place in the pool, a process that fits, the exchange, and what is left afterwards.

use super::{
    Shared,
    command::Fixed,
    exchange::{Ended, Exchange, Outcome},
    failure::End,
    process::Process,
};
use crate::{
    Kept, Place, Reported, Session, TurnChannel, TurnCommand, TurnEnd, TurnEvent, TurnOutcome, TurnRequest,
    pool::{self, Asked},
    program,
    recap::prompt_with,
};
use domain::{
    ids::{AgentId, RoomId},
    run::{Receipt, RunError},
};
use std::{future::Future, sync::Arc};
use tokio::sync::mpsc::{Receiver, Sender};

/// One writer for each conversation: the program itself does not see to it.
pub(super) type Key = (RoomId, AgentId);
type Entered = pool::Place<Key, Process>;

pub(super) fn key(place: &Place) -> Key {
    (place.room_id, place.agent.id)
}

pub(super) async fn turn(shared: Arc<Shared>, request: TurnRequest, mut channel: TurnChannel) -> TurnOutcome {
    match attempt(&shared, request, &mut channel).await {
        Ok(outcome) | Err(outcome) => outcome,
    }
}

async fn attempt(shared: &Shared, request: TurnRequest, channel: &mut TurnChannel) -> Result<TurnOutcome, TurnOutcome> {
    let fixed = Fixed::of(&request.place, shared.locate().map_err(failed)?);
    let (agent, model) = (request.agent().id, request.agent().spec.model.clone());
    let mut place = enter(shared, &request, channel).await?;
    let mut session = request.session.clone();
    let mut warm = match place.resident().await {
        Some(process) if process.fits(&fixed, session.as_ref().map(|session| session.id.as_str())) => {
            process.wake(model.as_deref()).await
        }
        Some(process) => {
            // Its configuration has changed, or its conversation is another one.
            process.stop().await;
            None
        }
        None => None,
    };
    // Each time round there is less to fall back on: a process that died while idle, then a session that is gone.
    loop {
        let (mut process, is_warm) = match warm.take() {
            Some(process) => (process, true),
            None => {
                shared.crashes.check(&agent).map_err(failed)?;
                let resume = session.as_ref().map(|session| session.id.as_str());
                let start = Process::start(&*shared.launcher, &shared.program, fixed.clone(), model.as_deref(), resume);
                let started = start.await.inspect_err(|error| shared.crashes.failed(&agent, error));
                (started.map_err(failed)?, false)
            }
        };
        let prompt = match prompt(&request, session.as_ref()).await {
            Ok(prompt) => prompt,
            Err(error) => return Err(TurnOutcome { receipt: process.stop().await, ..failed(error) }),
        };
        let is_resuming = process.is_resuming();
        let conversation = process.use_it();
        conversation.policy = request.agent().spec.tools.clone();
        let outcome = Exchange::new(conversation, channel, is_resuming).run(&prompt).await;
        match &outcome.ended {
            Ended::SessionGone if !outcome.told_to_stop => {
                process.stop().await;
                session = None;
                tell(channel, rebuilt()).await?;
            }
            Ended::Broken(_) if is_warm && !outcome.heard && !outcome.told_to_stop => {
                process.stop().await;
            }
            _ => {
                let is_fit = matches!(outcome.ended, Ended::Resting(_));
                let outcome = end(outcome, process, place, channel).await;
                match &outcome.end {
                    _ if is_fit => shared.crashes.succeeded(&agent),
                    TurnEnd::Failed(error) => shared.crashes.failed(&agent, error),
                    TurnEnd::Completed | TurnEnd::Skipped | TurnEnd::Stopped => {}
                }
                return Ok(outcome);
            }
        }
    }
}

async fn prompt(request: &TurnRequest, session: Option<&Session>) -> Result<String, RunError> {
    Ok(match session {
        Some(session) => prompt_with(&session.unheard, &request.prompt),
        None => prompt_with(&request.history.read().await?, &request.prompt),
    })
}

fn rebuilt() -> TurnEvent {
    TurnEvent::Status {
        status: "session_rebuilt".into(),
        message: "Claude Code does not have the earlier conversation any more; it was told again what was said".into(),
    }
}

/// A place of its own, after a wait if need be.
async fn enter(shared: &Shared, request: &TurnRequest, channel: &mut TurnChannel) -> Result<Entered, TurnOutcome> {
    let closed = || failed(RunError::new("server_stopping", "the server is about to stop"));
    match shared.pool.ask(key(&request.place)).ok_or_else(closed)? {
        Asked::Granted(place) => Ok(place),
        Asked::Wait(wait) => {
            if wait.is_full {
                let count = shared.pool.limits().places;
                let message =
                    format!("all {count} Claude Code processes are busy; the answer begins when one of them is free");
                tell(channel, TurnEvent::Waiting { status: "waiting_for_slot".into(), message }).await?;
            }
            unless_stopped(channel, wait.place()).await?.ok_or_else(closed)
        }
    }
}

async fn end(outcome: Outcome, process: Process, place: Entered, channel: &TurnChannel) -> TurnOutcome {
    let Outcome { ended, began, told_to_stop, .. } = outcome;
    let prompt = if began { Kept::Prompt } else { Kept::Nothing };
    let (end, receipt, kept) = match ended {
        Ended::Resting(End::Failed(error)) if !told_to_stop && error.code == "authentication_failed" => {
            // It knows no other login than the one it was started with.
            (TurnEnd::Failed(error), process.stop().await, prompt)
        }
        Ended::Resting(end) => {
            let mut receipt = Receipt::default();
            if process.is_at_rest() {
                // What its tools have left running must not outlive the turn either.
                let strays = process.end_strays();
                receipt.processes = u32::try_from(strays).unwrap_or(u32::MAX);
                if let Some(status) = program::strays_ended(strays)
                    && channel.events.send(status.into()).await.is_err()
                {
                    tracing::debug!(strays, "nobody hears of processes that were ended");
                }
                place.keep(process).await;
            } else {
                // What it started must not outlive the turn.
                receipt = process.stop().await;
            }
            match end {
                _ if told_to_stop => {
                    receipt.signals.insert(0, "interrupt".into());
                    let kept = if matches!(end, End::Failed(_)) { prompt } else { Kept::PromptAndAnswer };
                    (TurnEnd::Stopped, receipt, kept)
                }
                End::Completed => (TurnEnd::Completed, receipt, Kept::PromptAndAnswer),
                End::Interrupted => {
                    let error = RunError::new("program_failed", "Claude Code stopped in the middle of the answer");
                    (TurnEnd::Failed(error), receipt, Kept::PromptAndAnswer)
                }
                End::Failed(error) => (TurnEnd::Failed(error), receipt, prompt),
            }
        }
        Ended::Hopeless(error) => (TurnEnd::Failed(error), process.stop().await, prompt),
        Ended::Stuck => {
            let mut receipt = process.stop().await;
            receipt.signals.insert(0, "interrupt".into());
            (TurnEnd::Stopped, receipt, prompt)
        }
        Ended::SessionGone => (TurnEnd::Stopped, process.stop().await, Kept::Nothing),
        Ended::Broken(broken) => {
            let (error, receipt) = process.failed(broken).await;
            (TurnEnd::Failed(error), receipt, Kept::Nothing)
        }
    };
    TurnOutcome { end: if told_to_stop { TurnEnd::Stopped } else { end }, receipt, kept }
}

fn failed(error: RunError) -> TurnOutcome {
    TurnOutcome::of(TurnEnd::Failed(error))
}

async fn tell(channel: &mut TurnChannel, event: TurnEvent) -> Result<(), TurnOutcome> {
    let TurnChannel { events, commands } = channel;
    tokio::select! {
        biased;
        () = told_to_stop(events, commands) => Err(TurnOutcome::of(TurnEnd::Stopped)),
        sent = events.send(event.into()) => sent.map_err(|_| TurnOutcome::of(TurnEnd::Stopped)),
    }
}

/// `Err` when the word to stop comes first; what was waited for is then dropped. Not for anything that runs a process:
/// that is stopped with proof, after its start.
async fn unless_stopped<T>(channel: &mut TurnChannel, awaited: impl Future<Output = T>) -> Result<T, TurnOutcome> {
    let TurnChannel { events, commands } = channel;
    tokio::select! {
        biased;
        () = told_to_stop(events, commands) => Err(TurnOutcome::of(TurnEnd::Stopped)),
        done = awaited => Ok(done),
    }
}

async fn told_to_stop(events: &Sender<Reported>, commands: &mut Receiver<TurnCommand>) {
    loop {
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(TurnCommand::Interrupt) => return,
                // Nothing was asked yet.
                Some(TurnCommand::Answer { .. } | TurnCommand::Steer { .. }) => {}
                None => return events.closed().await,
            },
            () = events.closed() => return,
        }
    }
}
