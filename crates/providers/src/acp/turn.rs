//! One turn: a place in the pool, an agent, a session, a prompt, and what becomes of it.

use super::{
    agent::{Agent, MadeFor, Maker, status},
    ending::{self, Ending},
    exchange::Exchange,
    folder,
    gemini::Surroundings,
    parse::Fold,
    preset::Home,
    talk::Talk,
};
use crate::{
    Kept, Reported, TurnChannel, TurnEnd, TurnEvent, TurnOutcome, TurnRequest,
    crashes::Crashes,
    jsonrpc::CallError,
    pool::{self, Asked, Pool},
    program, recap,
};
use domain::{
    ids::{AgentId, RoomId},
    run::{Receipt, RunError},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

pub type Key = (RoomId, AgentId);

/// What all turns of a provider share.
#[derive(Debug)]
pub struct Shared {
    pub maker: Maker,
    pub pool: Pool<Key, Agent>,
    pub crashes: Crashes<AgentId>,
}

pub fn key(place: &crate::Place) -> Key {
    (place.room_id, place.agent.id)
}

pub async fn turn(shared: Arc<Shared>, request: TurnRequest, channel: TurnChannel) -> TurnOutcome {
    let mut talk = Talk::new(channel);
    let outcome = Turn { shared: &shared, request: &request, talk: &mut talk }.run().await;
    talk.finish().await;
    outcome
}

struct Turn<'a> {
    shared: &'a Shared,
    request: &'a TurnRequest,
    talk: &'a mut Talk,
}

impl Turn<'_> {
    async fn run(mut self) -> TurnOutcome {
        let Some(asked) = self.shared.pool.ask(key(&self.request.place)) else { return closing() };
        let mut place = match asked {
            Asked::Granted(place) => place,
            Asked::Wait(wait) => {
                // Otherwise it is being made ready for this very room.
                let is_full = wait.is_full;
                if is_full {
                    let count = self.shared.pool.limits().places;
                    let message = format!(
                        "all {count} processes of {} are busy; the answer begins when one of them is free",
                        self.name()
                    );
                    self.talk.tell(TurnEvent::Waiting { status: "waiting_for_slot".into(), message });
                }
                let place = tokio::select! {
                    place = wait.place() => match place {
                        Some(place) => place,
                        None => return closing(),
                    },
                    () = self.talk.stopped() => return TurnOutcome::of(TurnEnd::Stopped),
                };
                if is_full {
                    // The clocks run again.
                    self.talk.tell(status("starting", format!("{} starts", self.name())));
                }
                place
            }
        };
        let (mut agent, prompt) = match self.agent(&mut place).await {
            Ok(ready) => ready,
            Err(outcome) => return outcome,
        };
        let driven = self.drive(&mut agent, prompt).await;
        if matches!(driven, Driven::Dead(..) | Driven::Stuck(_)) {
            self.spoiled(&mut agent);
        }
        match driven {
            Driven::Parked(mut outcome) => {
                self.shared.crashes.succeeded(&self.request.place.agent.id);
                // What its tools have left running must not outlive the turn.
                let strays = agent.end_strays();
                outcome.receipt.processes = u32::try_from(strays).unwrap_or(u32::MAX);
                program::strays_ended(strays).into_iter().for_each(|status| self.talk.tell(status));
                place.keep(agent).await;
                outcome
            }
            Driven::Dead(error, stopped) => {
                let (error, receipt) = self.shared.maker.crashed(agent, &error).await;
                let (end, receipt) = match stopped {
                    Some(since) => (TurnEnd::Stopped, after_interrupt(receipt, since)),
                    None => (self.failed(error), receipt),
                };
                TurnOutcome { end, receipt, kept: Kept::Nothing }
            }
            Driven::Doubtful(outcome, since) => {
                TurnOutcome { receipt: after_interrupt(agent.stop().await, since), ..outcome }
            }
            Driven::Stuck(since) => {
                let receipt = after_interrupt(agent.stop().await, since);
                TurnOutcome { end: TurnEnd::Stopped, receipt, kept: Kept::Nothing }
            }
        }
    }

    fn name(&self) -> &str {
        &self.shared.maker.preset.name
    }

    /// The agent that was kept, if it is the right one, else a new one; and what to say to it.
    async fn agent(&mut self, place: &mut pool::Place<Key, Agent>) -> Result<(Agent, String), TurnOutcome> {
        let wanted = self.request.session.as_ref().map(|session| session.id.as_str());
        let mut kept = tokio::select! {
            kept = place.resident() => kept,
            () = self.talk.stopped() => return Err(TurnOutcome::of(TurnEnd::Stopped)),
        };
        if let Some(agent) = kept.take_if(|agent| !self.fits(agent, wanted)) {
            agent.stop().await;
        }
        let mut agent = match kept {
            Some(agent) => agent,
            None => {
                let resting = self.shared.crashes.check(&self.request.place.agent.id);
                resting.map_err(|error| TurnOutcome::of(TurnEnd::Failed(error)))?;
                tokio::select! {
                    started = self.shared.maker.start(&self.request.place) => {
                        started.map_err(|error| TurnOutcome::of(self.failed(error)))?
                    }
                    () = self.talk.stopped() => return Err(TurnOutcome::of(TurnEnd::Stopped)),
                }
            }
        };
        if agent.session.is_none() {
            let mut notes = Vec::new();
            let opened = tokio::select! {
                opened = self.shared.maker.open(&mut agent, &self.request.place, wanted, &mut notes) => Some(opened),
                () = self.talk.stopped() => None,
            };
            notes.into_iter().for_each(|note| self.talk.tell(note));
            match opened {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    let (error, receipt) = self.shared.maker.not_opened(agent, &error).await;
                    return Err(TurnOutcome { end: self.failed(error), receipt, kept: Kept::Nothing });
                }
                None => {
                    return Err(TurnOutcome {
                        end: TurnEnd::Stopped,
                        receipt: agent.stop().await,
                        kept: Kept::Nothing,
                    });
                }
            }
        }
        let is_resumed = self.greet(&agent, wanted);
        let prompt = match self.prompt(is_resumed).await {
            Ok(prompt) => prompt,
            Err(error) => {
                let (end, receipt) = (TurnEnd::Failed(error), agent.stop().await);
                return Err(TurnOutcome { end, receipt, kept: Kept::Nothing });
            }
        };
        agent.catch_up();
        Ok((agent, prompt))
    }

    /// Whether this process can take the turn. One without a session was made ready ahead and takes any.
    fn fits(&self, agent: &Agent, wanted: Option<&str>) -> bool {
        let session = agent.session.as_ref().map(|session| session.id.as_str());
        let (preset, place) = (&self.shared.maker.preset, &self.request.place);
        let surroundings = Surroundings::of(preset, place, &folder::home_of(preset, place));
        agent.is_alive()
            && agent.made_for == MadeFor::new(preset, place, surroundings)
            && (session.is_none() || session == wanted)
    }

    /// The end of a turn whose program is of no more use.
    fn failed(&self, error: RunError) -> TurnEnd {
        self.shared.crashes.failed(&self.request.place.agent.id, &error);
        TurnEnd::Failed(error)
    }

    /// Tells of the session, if it is news; returns whether the agent knows what was said before.
    fn greet(&mut self, agent: &Agent, wanted: Option<&str>) -> bool {
        let Some(session) = &agent.session else { return false };
        if wanted == Some(&session.id) {
            return true;
        }
        if wanted.is_some() {
            let message =
                format!("{} no longer has its own memory of this room; it was told what was said.", self.name());
            self.talk.tell(status("session_rebuilt", message));
        }
        self.talk.tell(TurnEvent::Session { id: session.id.clone() });
        false
    }

    async fn prompt(&self, is_resumed: bool) -> Result<String, RunError> {
        let request = self.request;
        if let Some(session) = request.session.as_ref().filter(|_| is_resumed) {
            return Ok(plain(recap::prompt_with(&session.unheard, &request.prompt)));
        }
        let told = recap::prompt_with(&request.history.read().await?, &request.prompt);
        let instructions = request.agent().spec.system_prompt.as_deref().filter(|text| !text.trim().is_empty());
        Ok(match instructions {
            // It reads them from its own folder.
            Some(_) if self.shared.maker.preset.home == Home::Gemini => plain(told),
            Some(instructions) => format!("<instructions>\n{instructions}\n</instructions>\n\n{told}"),
            None => plain(told),
        })
    }

    async fn drive(&mut self, agent: &mut Agent, prompt: String) -> Driven {
        let Some(session) = agent.session.clone() else { return Driven::Stuck(Instant::now()) };
        self.talk.tell(TurnEvent::ModelCall);
        let fold = Fold::new(self.shared.maker.preset.naming);
        let mut exchange = Exchange::new(agent.peer.clone(), session.id.clone(), fold, self.talk);
        let params = json!({"sessionId": session.id, "prompt": [{"type": "text", "text": prompt}]});
        let questions = agent.pass.begin();
        let answer = exchange.listen(agent, questions, params).await;
        let Exchange { mut fold, interrupted, .. } = exchange;
        self.talk.tell_all(fold.calls.release());
        tracing::debug!(skipped = ?fold.skipped, "what an agent said besides");
        let answer = match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error @ CallError::Refused { .. })) => Err(error),
            Some(Err(error)) => return Driven::Dead(error, interrupted),
            None => return Driven::Stuck(interrupted.unwrap_or_else(Instant::now)),
        };
        if let Ok(result) = &answer {
            let raw = result.to_string();
            for event in ending::usage(result, fold.model.as_deref(), fold.cost, session.spent) {
                self.talk.tell(Reported { event, raw: Some(raw.clone()) });
            }
        }
        if let (Some(session), Some(cost)) = (&mut agent.session, fold.cost) {
            session.spent = Some(cost);
        }
        let outcome = self.ended(&answer, &fold, interrupted);
        if outcome.end != TurnEnd::Completed && !fold.calls.is_empty() {
            self.spoiled(agent);
        }
        match interrupted {
            Some(since) if fold.calls.is_running() => Driven::Doubtful(outcome, since),
            _ => Driven::Parked(outcome),
        }
    }

    /// The turn ended among tool calls, or may have. With some agents the session is of no use then; the next turn makes
    /// a new one.
    fn spoiled(&self, agent: &mut Agent) {
        let preset = &self.shared.maker.preset;
        if !preset.spoiled_by_tools {
            return;
        }
        agent.session = None;
        if let Err(error) = folder::forget_session(preset, &self.request.place) {
            tracing::warn!(%error, agent = preset.name, "a session that is of no use is not forgotten");
        }
    }

    fn ended(&mut self, answer: &Result<Value, CallError>, fold: &Fold, interrupted: Option<Instant>) -> TurnOutcome {
        let preset = &self.shared.maker.preset;
        let mut ending = match answer {
            Ok(result) => ending::of_result(preset, result, fold.broken()),
            Err(error) => {
                self.talk.tell_all(fold.said_as_text(&error.to_string()).map(Reported::from));
                let end = TurnEnd::Failed(ending::of_error(preset, error));
                Ending { end, kept: preset.kept_when_failed, status: None }
            }
        };
        if let Some(since) = interrupted {
            // An answer that was whole before the interrupt was heard is in the session all the same.
            let kept = if ending.end == TurnEnd::Completed { ending.kept } else { preset.kept_when_stopped };
            let receipt = after_interrupt(Receipt::default(), since);
            return TurnOutcome { end: TurnEnd::Stopped, receipt, kept };
        }
        if ending.end == TurnEnd::Stopped {
            // Nobody told it to; some take a no as the end of everything.
            let message = format!("{} ended its turn by itself, because something was not allowed.", preset.name);
            ending = Ending { end: TurnEnd::Completed, status: Some(status("agent_stopped", message)), ..ending };
        }
        if ending.end == TurnEnd::Completed && ending.status.is_none() && !fold.spoke {
            let message = format!("{} ended its turn without a word.", preset.name);
            ending.status = Some(status("empty_answer", message));
        }
        if let Some(status) = ending.status {
            self.talk.tell(status);
        }
        TurnOutcome { end: ending.end, receipt: Receipt::default(), kept: ending.kept }
    }
}

/// What became of a prompt.
enum Driven {
    /// The agent is ready for the next one.
    Parked(TurnOutcome),
    /// The agent says that it has stopped, but not that its tool has: codex, for one, leaves commands running.
    Doubtful(TurnOutcome, Instant),
    /// The agent is gone, or as good as; since when it was to stop, if it was.
    Dead(CallError, Option<Instant>),
    /// The agent did not obey since then.
    Stuck(Instant),
}

/// Agents take a message that begins like a command as one, and theirs can install things: what people say is words.
fn plain(prompt: String) -> String {
    match prompt.trim_start().starts_with(['/', '$', '!']) {
        true => format!("(A message, not a command:)\n{prompt}"),
        false => prompt,
    }
}

/// What it took to stop, beginning with the agent's own way.
fn after_interrupt(mut receipt: Receipt, since: Instant) -> Receipt {
    receipt.signals.insert(0, "interrupt".into());
    receipt.millis = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    receipt
}

fn closing() -> TurnOutcome {
    TurnOutcome::of(TurnEnd::Failed(RunError::new(
        "shutting_down",
        "The server is stopping; ask again when it is back.",
    )))
}
