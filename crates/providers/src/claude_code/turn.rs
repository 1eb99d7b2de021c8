//! Runs a turn: gets a pool slot and a matching process, runs the exchange, and cleans up.

use super::{
    ClaudeShared,
    command::ClaudeLaunchSettings,
    exchange::{ClaudeExchange, ExchangeEnd, ExchangeOutcome},
    failure::ClaudeTurnEnd,
    process::ClaudeProcess,
};
use crate::{
    ResumableSession, SavedInSession, TurnChannel, TurnEnd, TurnEvent, TurnOutcome, TurnRequest,
    host_tools::{HostToolAgent, HostToolCalls},
    pool::{self, ConversationKey, SlotRequest},
    program,
    recap::prompt_with,
    turn_port::TurnPort,
};
use domain::run::{Receipt, RunError};
use std::sync::Arc;

/// Each conversation may have only one writer; the program does not enforce this.
type ClaudePoolSlot = pool::PoolSlot<ConversationKey, ClaudeProcess>;

pub(super) async fn turn(shared: Arc<ClaudeShared>, request: TurnRequest, channel: TurnChannel) -> TurnOutcome {
    let mut port = TurnPort::new(channel);
    let (Ok(outcome) | Err(outcome)) = run_turn(&shared, request, &mut port).await;
    port.finish().await;
    outcome
}

async fn run_turn(
    shared: &ClaudeShared,
    request: TurnRequest,
    port: &mut TurnPort,
) -> Result<TurnOutcome, TurnOutcome> {
    let fixed = ClaudeLaunchSettings::of(&request.workspace, shared.locate().map_err(failed)?);
    let (agent, model) = (request.agent().id, request.agent().spec.model.clone());
    let mut slot = acquire_slot(shared, &request, port).await?;
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
                let start = ClaudeProcess::start(&shared.program, fixed.clone(), model.as_deref(), resume);
                let started = start.await.inspect_err(|error| shared.crash_breaker.record_failure(&agent, error));
                (started.map_err(failed)?, false)
            }
        };
        let prompt = match prompt(&request, session.as_ref()).await {
            Ok(prompt) => prompt,
            Err(error) => return Err(TurnOutcome { receipt: process.stop().await, ..failed(error) }),
        };
        let model_calls = process.begin_turn(&request.meter);
        let (is_resuming, process_id) = (process.is_resuming(), process.process_id());
        let conversation = process.mark_used();
        conversation.policy = request.agent().spec.tools.clone();
        let calling_agent = HostToolAgent::with_program(request.workspace.clone());
        let host_calls = HostToolCalls::new(calling_agent, request.run_id);
        let outcome = ClaudeExchange::new(conversation, port, is_resuming, host_calls, process_id).run(&prompt).await;
        drop(model_calls);
        match &outcome.ended {
            ExchangeEnd::SessionNotFound if !outcome.stop_requested => {
                process.stop().await;
                session = None;
                port.send(session_rebuilt());
            }
            ExchangeEnd::Disconnected(_) if is_warm && !outcome.had_output && !outcome.stop_requested => {
                process.stop().await;
            }
            _ => {
                let is_fit = matches!(outcome.ended, ExchangeEnd::Idle(_));
                let outcome = finish(outcome, process, slot, port).await;
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
        Some(session) => prompt_with(&session.missed, request),
        None => prompt_with(&request.history.read().await?, request),
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
    port: &mut TurnPort,
) -> Result<ClaudePoolSlot, TurnOutcome> {
    let closed = || failed(RunError::new("server_stopping", "the server is shutting down"));
    match shared.pool.acquire(ConversationKey::of(&request.workspace)).ok_or_else(closed)? {
        SlotRequest::Granted(slot) => Ok(slot),
        SlotRequest::Queued(wait) => {
            if wait.is_full {
                let count = shared.pool.limits().slots;
                let message = format!("all {count} Claude Code processes are busy; waiting for a free one");
                port.send(TurnEvent::Waiting { status: "waiting_for_slot".into(), message });
            }
            let stopped = || TurnOutcome::from_end(TurnEnd::Stopped);
            port.unless_stopped(wait.slot()).await.ok_or_else(stopped)?.ok_or_else(closed)
        }
    }
}

async fn finish(
    outcome: ExchangeOutcome,
    process: ClaudeProcess,
    slot: ClaudePoolSlot,
    port: &mut TurnPort,
) -> TurnOutcome {
    let ExchangeOutcome { ended, prompt_accepted: began, stop_requested: told_to_stop, running_at_stop, .. } = outcome;
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
                program::leftovers_ended(strays.count()).into_iter().for_each(|status| port.send(status));
                receipt.processes = running_at_stop.ended_soon().await.and(strays).count();
                slot.put_back(process).await;
            } else {
                // Its background tasks must not outlive the turn.
                receipt = process.stop_after(&running_at_stop).await;
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
            let mut receipt = process.stop_after(&running_at_stop).await;
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
