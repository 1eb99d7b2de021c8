//! Runs one turn: gets a pool slot, an agent and a session, sends the prompt, and handles its end.

use super::{
    ending::{self, AcpPromptEnd},
    exchange::AcpExchange,
    folder,
    gemini::WorkspaceOverrides,
    parse::AcpParser,
    preset::HomeLayout,
    process::{AcpLaunchSettings, AcpLauncher, AcpProcess, status},
};
use crate::{
    ProviderEvent, SavedInSession, TurnChannel, TurnEnd, TurnEvent, TurnOutcome, TurnRequest,
    crash_breaker::CrashBreaker,
    jsonrpc::CallError,
    pool::{self, ConversationKey, ProcessPool, SlotRequest},
    program, recap,
    turn_port::TurnPort,
};
use domain::{
    ids::AgentId,
    run::{Receipt, RunError},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;
use workbench::process::ProcessSet;

/// Shared by all turns of a provider.
#[derive(Debug)]
pub struct AcpShared {
    pub launcher: AcpLauncher,
    pub pool: ProcessPool<ConversationKey, AcpProcess>,
    pub crash_breaker: CrashBreaker<AgentId>,
}

pub async fn turn(shared: Arc<AcpShared>, request: TurnRequest, channel: TurnChannel) -> TurnOutcome {
    let mut port = TurnPort::new(channel);
    let outcome = AcpTurn { shared: &shared, request: &request, port: &mut port }.run().await;
    port.finish().await;
    outcome
}

struct AcpTurn<'a> {
    shared: &'a AcpShared,
    request: &'a TurnRequest,
    port: &'a mut TurnPort,
}

impl AcpTurn<'_> {
    async fn run(mut self) -> TurnOutcome {
        let Some(request) = self.shared.pool.acquire(ConversationKey::of(&self.request.workspace)) else {
            return server_stopping();
        };
        let mut slot = match request {
            SlotRequest::Granted(slot) => slot,
            SlotRequest::Queued(wait) => {
                // Otherwise, a spare for this room is being started.
                let is_full = wait.is_full;
                if is_full {
                    let count = self.shared.pool.limits().slots;
                    let message = format!("all {count} {} processes are busy; waiting for a free one", self.name());
                    self.port.send(TurnEvent::Waiting { status: "waiting_for_slot".into(), message });
                }
                let slot = match self.port.unless_stopped(wait.slot()).await {
                    Some(Some(slot)) => slot,
                    Some(None) => return server_stopping(),
                    None => return TurnOutcome::from_end(TurnEnd::Stopped),
                };
                if is_full {
                    // This event restarts the turn's time limits.
                    self.port.send(status("starting", format!("{} is starting", self.name())));
                }
                slot
            }
        };
        let (mut agent, prompt) = match self.acquire_agent(&mut slot).await {
            Ok(ready) => ready,
            Err(outcome) => return outcome,
        };
        let (outcome, running_at_stop) = self.run_prompt(&mut agent, prompt).await;
        if matches!(outcome, PromptOutcome::Disconnected(..) | PromptOutcome::InterruptIgnored(_)) {
            self.discard_broken_session(&mut agent);
        }
        match outcome {
            PromptOutcome::Idle(mut outcome) => {
                self.shared.crash_breaker.record_success(&self.request.workspace.agent.id);
                // Processes that its tools left running must not outlive the turn.
                let strays = agent.end_strays();
                program::leftovers_ended(strays.count()).into_iter().for_each(|status| self.port.send(status));
                outcome.receipt.processes = running_at_stop.ended_soon().await.and(strays).count();
                slot.put_back(agent).await;
                outcome
            }
            PromptOutcome::Disconnected(error, stopped) => {
                let ended = running_at_stop.ended();
                let (error, receipt) = self.shared.launcher.crashed(agent, &error).await;
                let (end, receipt) = match stopped {
                    Some(since) => (TurnEnd::Stopped, after_interrupt(receipt, &ended, since)),
                    None => (self.failed(error), receipt),
                };
                TurnOutcome { end, receipt, saved: SavedInSession::Nothing }
            }
            PromptOutcome::ToolMayRun(outcome, since) => {
                let ended = running_at_stop.ended();
                TurnOutcome { receipt: after_interrupt(agent.stop().await, &ended, since), ..outcome }
            }
            PromptOutcome::InterruptIgnored(since) => {
                let ended = running_at_stop.ended();
                let receipt = after_interrupt(agent.stop().await, &ended, since);
                TurnOutcome { end: TurnEnd::Stopped, receipt, saved: SavedInSession::Nothing }
            }
        }
    }

    fn name(&self) -> &str {
        &self.shared.launcher.preset.name
    }

    /// Returns the idle agent if it matches, or a new one, and the prompt text.
    async fn acquire_agent(
        &mut self,
        slot: &mut pool::PoolSlot<ConversationKey, AcpProcess>,
    ) -> Result<(AcpProcess, String), TurnOutcome> {
        let wanted = self.request.session.as_ref().map(|session| session.id.as_str());
        let stopped = || TurnOutcome::from_end(TurnEnd::Stopped);
        let mut idle = self.port.unless_stopped(slot.take_process()).await.ok_or_else(stopped)?;
        if let Some(agent) = idle.take_if(|agent| !self.fits(agent, wanted)) {
            agent.stop().await;
        }
        let mut agent = match idle {
            Some(agent) => agent,
            None => {
                let allowed = self.shared.crash_breaker.check(&self.request.workspace.agent.id);
                allowed.map_err(|error| TurnOutcome::from_end(TurnEnd::Failed(error)))?;
                let start = self.shared.launcher.start(&self.request.workspace);
                let started = self.port.unless_stopped(start).await.ok_or_else(stopped)?;
                started.map_err(|error| TurnOutcome::from_end(self.failed(error)))?
            }
        };
        if agent.session.is_none() {
            let mut notes = Vec::new();
            let open = self.shared.launcher.open(&mut agent, &self.request.workspace, wanted, &mut notes);
            let opened = self.port.unless_stopped(open).await;
            notes.into_iter().for_each(|note| self.port.send(note));
            match opened {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    let (error, receipt) = self.shared.launcher.open_failed(agent, &error).await;
                    return Err(TurnOutcome { end: self.failed(error), receipt, saved: SavedInSession::Nothing });
                }
                None => {
                    return Err(TurnOutcome {
                        end: TurnEnd::Stopped,
                        receipt: agent.stop().await,
                        saved: SavedInSession::Nothing,
                    });
                }
            }
        }
        let is_resumed = self.report_session(&agent, wanted);
        let prompt = match self.prompt_text(is_resumed).await {
            Ok(prompt) => prompt,
            Err(error) => {
                let (end, receipt) = (TurnEnd::Failed(error), agent.stop().await);
                return Err(TurnOutcome { end, receipt, saved: SavedInSession::Nothing });
            }
        };
        agent.drain_incoming();
        Ok((agent, prompt))
    }

    /// Whether this process can run the turn. A spare has no session yet and can open any.
    fn fits(&self, agent: &AcpProcess, wanted: Option<&str>) -> bool {
        let session = agent.session.as_ref().map(|session| session.id.as_str());
        let (preset, workspace) = (&self.shared.launcher.preset, &self.request.workspace);
        let surroundings = WorkspaceOverrides::of(preset, workspace, &folder::home_of(preset, workspace));
        agent.is_alive()
            && agent.launch_settings == AcpLaunchSettings::new(preset, workspace, surroundings)
            && (session.is_none() || session == wanted)
    }

    /// Records the failure and returns the end of the turn.
    fn failed(&self, error: RunError) -> TurnEnd {
        self.shared.crash_breaker.record_failure(&self.request.workspace.agent.id, &error);
        TurnEnd::Failed(error)
    }

    /// Reports a new session. Returns whether the session is the wanted one, which has the earlier messages.
    fn report_session(&mut self, agent: &AcpProcess, wanted: Option<&str>) -> bool {
        let Some(session) = &agent.session else { return false };
        if wanted == Some(&session.id) {
            return true;
        }
        if wanted.is_some() {
            let message =
                format!("{} no longer has this conversation; a new one was started with the history.", self.name());
            self.port.send(status("session_rebuilt", message));
        }
        self.port.send(TurnEvent::Session { id: session.id.clone() });
        false
    }

    async fn prompt_text(&self, is_resumed: bool) -> Result<String, RunError> {
        let request = self.request;
        if let Some(session) = request.session.as_ref().filter(|_| is_resumed) {
            return Ok(not_a_command(recap::prompt_with(&session.missed, request)));
        }
        let text = recap::prompt_with(&request.history.read().await?, request);
        let instructions = request.agent().spec.system_prompt.as_deref().filter(|text| !text.trim().is_empty());
        Ok(match instructions {
            // Gemini reads them from its own folder.
            Some(_) if self.shared.launcher.preset.home == HomeLayout::Gemini => not_a_command(text),
            Some(instructions) => format!("<instructions>\n{instructions}\n</instructions>\n\n{text}"),
            None => not_a_command(text),
        })
    }

    /// Returns the outcome, and what ran beneath the program when it was interrupted.
    async fn run_prompt(&mut self, agent: &mut AcpProcess, prompt: String) -> (PromptOutcome, ProcessSet) {
        let Some(session) = agent.session.clone() else {
            return (PromptOutcome::InterruptIgnored(Instant::now()), ProcessSet::default());
        };
        self.port.send(TurnEvent::ModelCall);
        let parser = AcpParser::new(self.shared.launcher.preset.naming);
        let host_tools = agent.launch_settings.host_tools.clone();
        let mut exchange = AcpExchange::new(
            agent.peer.clone(),
            session.id.clone(),
            parser,
            host_tools,
            agent.capabilities.is_some_and(|can| can.steer),
            self.port,
        );
        let params = json!({"sessionId": session.id, "prompt": [{"type": "text", "text": prompt}]});
        let mut host_calls = agent.agent_token.begin_turn(&self.request.workspace, self.request.run_id);
        let access = agent.access.clone();
        let model_calls = access.as_ref().map(|access| access.turns().begin(&self.request.meter, None));
        let answer = exchange.run(agent, &mut host_calls, params).await;
        drop(model_calls);
        host_calls.end().await;
        let AcpExchange { mut parser, interrupted, running_at_stop, .. } = exchange;
        self.port.send_all(parser.calls.report_announced());
        tracing::debug!(skipped = ?parser.skipped, "skipped updates of an agent");
        let answer = match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error @ CallError::Refused { .. })) => Err(error),
            Some(Err(error)) => return (PromptOutcome::Disconnected(error, interrupted), running_at_stop),
            None => {
                let since = interrupted.unwrap_or_else(Instant::now);
                return (PromptOutcome::InterruptIgnored(since), running_at_stop);
            }
        };
        if let Ok(result) = &answer {
            let raw = result.to_string();
            for event in ending::usage(result, parser.model.as_deref(), parser.cost, session.cost_so_far) {
                self.port.send(ProviderEvent { event, raw: Some(raw.clone()) });
            }
        }
        if let (Some(session), Some(cost)) = (&mut agent.session, parser.cost) {
            session.cost_so_far = Some(cost);
        }
        let outcome = self.outcome(&answer, &parser, interrupted);
        if outcome.end != TurnEnd::Completed && !parser.calls.is_empty() {
            self.discard_broken_session(agent);
        }
        let outcome = match interrupted {
            Some(since) if parser.calls.is_running() => PromptOutcome::ToolMayRun(outcome, since),
            _ => PromptOutcome::Idle(outcome),
        };
        (outcome, running_at_stop)
    }

    /// Discards the session if the turn may have ended during tool calls and the agent's sessions do not survive that.
    /// The next turn creates a new one.
    fn discard_broken_session(&self, agent: &mut AcpProcess) {
        let preset = &self.shared.launcher.preset;
        if !preset.tool_interrupt_breaks_session {
            return;
        }
        agent.session = None;
        if let Err(error) = folder::forget_session(preset, &self.request.workspace) {
            tracing::warn!(%error, agent = preset.name, "could not remove the record of a broken session");
        }
    }

    fn outcome(
        &mut self,
        answer: &Result<Value, CallError>,
        parser: &AcpParser,
        interrupted: Option<Instant>,
    ) -> TurnOutcome {
        let preset = &self.shared.launcher.preset;
        let mut ending = match answer {
            Ok(result) => ending::from_result(preset, result, parser.engine_error()),
            Err(error) => {
                self.port.send_all(parser.retract_error_text(&error.to_string()).map(ProviderEvent::from));
                let end = TurnEnd::Failed(ending::run_error(preset, error));
                AcpPromptEnd { end, kept: preset.kept_when_failed, status: None }
            }
        };
        if let Some(since) = interrupted {
            // An answer that completed before the interrupt is in the session anyway.
            let kept = if ending.end == TurnEnd::Completed { ending.kept } else { preset.kept_when_stopped };
            let receipt = after_interrupt(Receipt::default(), &ProcessSet::default(), since);
            return TurnOutcome { end: TurnEnd::Stopped, receipt, saved: kept };
        }
        if ending.end == TurnEnd::Stopped {
            // Not interrupted by us: some agents end the turn after a denial.
            let message = format!("{} ended its turn because a call was denied.", preset.name);
            ending = AcpPromptEnd { end: TurnEnd::Completed, status: Some(status("agent_stopped", message)), ..ending };
        }
        if ending.end == TurnEnd::Completed && ending.status.is_none() && !parser.has_output {
            let message = format!("{} ended its turn without any output.", preset.name);
            ending.status = Some(status("empty_answer", message));
        }
        if let Some(status) = ending.status {
            self.port.send(status);
        }
        TurnOutcome { end: ending.end, receipt: Receipt::default(), saved: ending.kept }
    }
}

/// The outcome of a prompt.
enum PromptOutcome {
    /// The agent is idle and ready for the next prompt.
    Idle(TurnOutcome),
    /// The agent has stopped, but a tool may still be running: Codex, for example, leaves commands running.
    ToolMayRun(TurnOutcome, Instant),
    /// The connection failed; with the time of the interrupt, if there was one.
    Disconnected(CallError, Option<Instant>),
    /// The agent did not stop after the interrupt at this time.
    InterruptIgnored(Instant),
}

/// Agents run a message that starts like a command, and their commands can install things, so such messages get a
/// prefix.
fn not_a_command(prompt: String) -> String {
    match prompt.trim_start().starts_with(['/', '$', '!']) {
        true => format!("(A message, not a command:)\n{prompt}"),
        false => prompt,
    }
}

/// Adds the interrupt to the receipt, the processes that it ended, and the time since then.
fn after_interrupt(mut receipt: Receipt, ended: &ProcessSet, since: Instant) -> Receipt {
    receipt.processes = receipt.processes.saturating_add(ended.count());
    receipt.signals.insert(0, "interrupt".into());
    receipt.millis = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    receipt
}

fn server_stopping() -> TurnOutcome {
    TurnOutcome::from_end(TurnEnd::Failed(RunError::new(
        "shutting_down",
        "The server is shutting down; try again when it is back.",
    )))
}
