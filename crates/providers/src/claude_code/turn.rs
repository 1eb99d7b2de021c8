//! Runs a turn: gets a pool slot and a matching process, runs the exchange, and cleans up.

use super::{
    ClaudeShared,
    command::ClaudeLaunchSettings,
    exchange::{ClaudeExchange, ExchangeEnd, ExchangeOutcome},
    failure::ClaudeTurnEnd,
    process::ClaudeProcess,
};
use crate::{
    AgentWorkspace, ProviderEvent, ResumableSession, SavedInSession, TurnChannel, TurnCommand, TurnEnd, TurnEvent,
    TurnOutcome, TurnRequest,
    pool::{self, SlotRequest},
    program,
    recap::prompt_with,
};
use domain::{
    ids::{AgentId, RoomId},
    run::{Receipt, RunError},
};
use std::{future::Future, sync::Arc};
use tokio::sync::mpsc::{Receiver, Sender};

/// Each conversation may have only one writer; the program does not enforce this.
pub(super) type ClaudePoolKey = (RoomId, AgentId);
type ClaudePoolSlot = pool::PoolSlot<ClaudePoolKey, ClaudeProcess>;

pub(super) fn pool_key(workspace: &AgentWorkspace) -> ClaudePoolKey {
    (workspace.room_id, workspace.agent.id)
}

pub(super) async fn turn(shared: Arc<ClaudeShared>, request: TurnRequest, mut channel: TurnChannel) -> TurnOutcome {
    match run_turn(&shared, request, &mut channel).await {
        Ok(outcome) | Err(outcome) => outcome,
    }
}

async fn run_turn(
    shared: &ClaudeShared,
    request: TurnRequest,
    channel: &mut TurnChannel,
) -> Result<TurnOutcome, TurnOutcome> {
    let fixed = ClaudeLaunchSettings::of(&request.workspace, shared.locate().map_err(failed)?);
    let (agent, model) = (request.agent().id, request.agent().spec.model.clone());
    let mut slot = acquire_slot(shared, &request, channel).await?;
    let mut session = request.session.clone();
    let mut warm = match slot.take_process().await {
        Some(process) if process.fits(&fixed, session.as_ref().map(|session| session.id.as_str())) => {
            process.prepare_for_turn(model.as_deref()).await
        }
        Some(process) => {
            // Its settings have changed, or it has another session.
            process.stop().await;
            None
        }
        None => None,
    };
    // Each iteration has one fallback less: first the warm process may be dead, then the session may be missing.
    loop {
        let (mut process, is_warm) = match warm.take() {
            Some(process) => (process, true),
            None => {
                shared.crash_breaker.check(&agent).map_err(failed)?;
                let resume = session.as_ref().map(|session| session.id.as_str());
                let start =
                    ClaudeProcess::start(&*shared.launcher, &shared.program, fixed.clone(), model.as_deref(), resume);
                let started = start.await.inspect_err(|error| shared.crash_breaker.record_failure(&agent, error));
                (started.map_err(failed)?, false)
            }
        };
        let prompt = match prompt(&request, session.as_ref()).await {
            Ok(prompt) => prompt,
            Err(error) => return Err(TurnOutcome { receipt: process.stop().await, ..failed(error) }),
        };
        let is_resuming = process.is_resuming();
        let conversation = process.mark_used();
        conversation.policy = request.agent().spec.tools.clone();
        let outcome = ClaudeExchange::new(conversation, channel, is_resuming).run(&prompt).await;
        match &outcome.ended {
            ExchangeEnd::SessionNotFound if !outcome.stop_requested => {
                process.stop().await;
                session = None;
                send_event(channel, session_rebuilt()).await?;
            }
            ExchangeEnd::Disconnected(_) if is_warm && !outcome.had_output && !outcome.stop_requested => {
                process.stop().await;
            }
            _ => {
                let is_fit = matches!(outcome.ended, ExchangeEnd::Idle(_));
                let outcome = finish(outcome, process, slot, channel).await;
                match &outcome.end {
                    _ if is_fit => shared.crash_breaker.record_success(&agent),
                    TurnEnd::Failed(error) => shared.crash_breaker.record_failure(&agent, error),
                    TurnEnd::Completed | TurnEnd::Skipped | TurnEnd::Stopped => {}
                }
                return Ok(outcome);
            }
        }
    }
}

async fn prompt(request: &TurnRequest, session: Option<&ResumableSession>) -> Result<String, RunError> {
    Ok(match session {
        Some(session) => prompt_with(&session.missed, &request.prompt),
        None => prompt_with(&request.history.read().await?, &request.prompt),
    })
}

fn session_rebuilt() -> TurnEvent {
    TurnEvent::Status {
        status: "session_rebuilt".into(),
        message: "Claude Code no longer has the earlier conversation; a new one was started with the history".into(),
    }
}

/// Gets a pool slot, and waits for one if necessary.
async fn acquire_slot(
    shared: &ClaudeShared,
    request: &TurnRequest,
    channel: &mut TurnChannel,
) -> Result<ClaudePoolSlot, TurnOutcome> {
    let closed = || failed(RunError::new("server_stopping", "the server is shutting down"));
    match shared.pool.acquire(pool_key(&request.workspace)).ok_or_else(closed)? {
        SlotRequest::Granted(slot) => Ok(slot),
        SlotRequest::Queued(wait) => {
            if wait.is_full {
                let count = shared.pool.limits().slots;
                let message = format!("all {count} Claude Code processes are busy; waiting for a free one");
                send_event(channel, TurnEvent::Waiting { status: "waiting_for_slot".into(), message }).await?;
            }
            unless_stopped(channel, wait.slot()).await?.ok_or_else(closed)
        }
    }
}

async fn finish(
    outcome: ExchangeOutcome,
    process: ClaudeProcess,
    slot: ClaudePoolSlot,
    channel: &TurnChannel,
) -> TurnOutcome {
    let ExchangeOutcome { ended, prompt_accepted: began, stop_requested: told_to_stop, .. } = outcome;
    let prompt = if began { SavedInSession::Prompt } else { SavedInSession::Nothing };
    let (end, receipt, kept) = match ended {
        ExchangeEnd::Idle(ClaudeTurnEnd::Failed(error)) if !told_to_stop && error.code == "authentication_failed" => {
            // A running process does not pick up a new login.
            (TurnEnd::Failed(error), process.stop().await, prompt)
        }
        ExchangeEnd::Idle(end) => {
            let mut receipt = Receipt::default();
            if process.is_idle() {
                // Processes that its tools left running must not outlive the turn either.
                let strays = process.end_strays();
                receipt.processes = u32::try_from(strays).unwrap_or(u32::MAX);
                if let Some(status) = program::leftovers_ended(strays)
                    && channel.events.send(status.into()).await.is_err()
                {
                    tracing::debug!(strays, "could not report the killed processes");
                }
                slot.put_back(process).await;
            } else {
                // Its background tasks must not outlive the turn.
                receipt = process.stop().await;
            }
            match end {
                _ if told_to_stop => {
                    receipt.signals.insert(0, "interrupt".into());
                    let kept =
                        if matches!(end, ClaudeTurnEnd::Failed(_)) { prompt } else { SavedInSession::PromptAndAnswer };
                    (TurnEnd::Stopped, receipt, kept)
                }
                ClaudeTurnEnd::Completed => (TurnEnd::Completed, receipt, SavedInSession::PromptAndAnswer),
                ClaudeTurnEnd::Interrupted => {
                    let error = RunError::new("program_failed", "Claude Code stopped in the middle of the answer");
                    (TurnEnd::Failed(error), receipt, SavedInSession::PromptAndAnswer)
                }
                ClaudeTurnEnd::Failed(error) => (TurnEnd::Failed(error), receipt, prompt),
            }
        }
        ExchangeEnd::Hopeless(error) => (TurnEnd::Failed(error), process.stop().await, prompt),
        ExchangeEnd::InterruptIgnored => {
            let mut receipt = process.stop().await;
            receipt.signals.insert(0, "interrupt".into());
            (TurnEnd::Stopped, receipt, prompt)
        }
        ExchangeEnd::SessionNotFound => (TurnEnd::Stopped, process.stop().await, SavedInSession::Nothing),
        ExchangeEnd::Disconnected(broken) => {
            let (error, receipt) = process.into_error(broken).await;
            (TurnEnd::Failed(error), receipt, SavedInSession::Nothing)
        }
    };
    TurnOutcome { end: if told_to_stop { TurnEnd::Stopped } else { end }, receipt, saved: kept }
}

fn failed(error: RunError) -> TurnOutcome {
    TurnOutcome::from_end(TurnEnd::Failed(error))
}

async fn send_event(channel: &mut TurnChannel, event: TurnEvent) -> Result<(), TurnOutcome> {
    let TurnChannel { events, commands } = channel;
    tokio::select! {
        biased;
        () = stop_requested(events, commands) => Err(TurnOutcome::from_end(TurnEnd::Stopped)),
        sent = events.send(event.into()) => sent.map_err(|_| TurnOutcome::from_end(TurnEnd::Stopped)),
    }
}

/// Waits for `awaited`. Returns `Err` and drops it if the turn is stopped first. Not for futures that own a process,
/// because a process must be stopped with a receipt.
async fn unless_stopped<T>(channel: &mut TurnChannel, awaited: impl Future<Output = T>) -> Result<T, TurnOutcome> {
    let TurnChannel { events, commands } = channel;
    tokio::select! {
        biased;
        () = stop_requested(events, commands) => Err(TurnOutcome::from_end(TurnEnd::Stopped)),
        done = awaited => Ok(done),
    }
}

async fn stop_requested(events: &Sender<ProviderEvent>, commands: &mut Receiver<TurnCommand>) {
    loop {
        tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(TurnCommand::Interrupt) => return,
                // There is no open request yet.
                Some(TurnCommand::Answer { .. } | TurnCommand::Steer { .. }) => {}
                None => return events.closed().await,
            },
            () = events.closed() => return,
        }
    }
}
