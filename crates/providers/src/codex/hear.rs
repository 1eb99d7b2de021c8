//! What reaches a turn while it runs: from Codex, and from the room.

use super::{
    ask::{self, Approval, Ask, Reply},
    parse::{Parsed, text},
    room::Word,
    settings,
    turn::Turn,
};
use crate::{
    TurnCommand, TurnEvent,
    jsonrpc::{CallError, Incoming, RpcError},
};
use domain::{
    event::Decision,
    ids::{ApprovalId, MessageId},
    run::RunError,
    time::Timestamp,
};
use serde_json::{Value, json};
use std::{future::Future, time::Duration};
use tokio::time::Instant;

const STEER: Duration = Duration::from_secs(5);
/// When the turn has ended, whether it took a word is known at once or never.
const STEER_AT_THE_END: Duration = Duration::from_secs(1);
/// More questions at once than any room can answer.
const MAX_ASKS: usize = 256;

/// A question of Codex's that waits for its answer.
pub struct Asked {
    request: Value,
    input: Value,
    reply: Reply,
}

impl Turn<'_> {
    /// Takes in one thing, whatever comes first.
    pub async fn step(&mut self) {
        // A turn that is to stop must hear that it has, even if nobody takes what it says.
        let may_listen = !self.is_lost && (self.room.has_place() || self.stop.is_some());
        tokio::select! {
            word = self.room.next() => self.told(word),
            incoming = self.heard.recv(), if may_listen => self.hear(incoming),
            Some(steered) = self.steering.join_next(), if !self.steering.is_empty() => {
                if let Ok((message, taken)) = steered {
                    self.room.say(TurnEvent::Steered { message, taken });
                }
            }
        }
    }

    /// Takes in what comes until `work` is done; `None` if the deadline is first. Before a turn that was told to stop
    /// has a deadline of its own, this one is [`super::stop::INTERRUPT`].
    pub async fn during<T>(&mut self, work: impl Future<Output = T>, deadline: Option<Instant>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            let deadline = deadline.or_else(|| Some(self.stop? + super::stop::INTERRUPT));
            let too_late = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = self.step() => {}
                () = too_late => return None,
            }
        }
    }

    fn told(&mut self, word: Word) {
        match word {
            Word::Stop => self.stop = self.stop.or_else(|| Some(Instant::now())),
            Word::Answer(TurnCommand::Answer { approval, decision, input }) => self.answer(approval, decision, input),
            Word::Steer { message, text } => self.steer(message, &text),
            Word::Answer(_) | Word::Place | Word::Said => {}
        }
    }

    fn hear(&mut self, incoming: Option<Incoming>) {
        match incoming {
            None | Some(Incoming::Closed(_)) => self.is_lost = true,
            Some(Incoming::Notification { method, params, raw }) => {
                if method == "serverRequest/resolved" {
                    // What was answered is no longer among them: this one is withdrawn.
                    for (id, _) in self.asks.extract_if(|_, asked| Some(&asked.request) == params.get("requestId")) {
                        self.room.report(TurnEvent::Withdrawn { id }, Some(raw.clone()));
                    }
                }
                let Parsed { events, end, hopeless } = self.parser.apply(&method, &params);
                let mut raw = Some(raw);
                for event in events {
                    let is_delta = matches!(
                        event,
                        TurnEvent::Text { .. } | TurnEvent::Thinking { .. } | TurnEvent::ToolOutput { .. }
                    );
                    let raw = if is_delta { None } else { raw.take() };
                    self.room.report(event, raw);
                }
                self.end = self.end.take().or(end);
                self.hopeless = self.hopeless.take().or(hopeless);
            }
            Some(Incoming::Request { id, method, params, raw }) => self.asked(id, &method, &params, raw),
        }
    }

    fn asked(&mut self, request: Value, method: &str, params: &Value, raw: String) {
        let is_other_turn =
            matches!((text(params, "turnId"), self.parser.turn()), (Some(one), Some(ours)) if one != ours);
        if is_other_turn || self.stop.is_some() || self.asks.len() >= MAX_ASKS {
            return self.respond(request, ask::refusal(method));
        }
        match ask::ask(method, params, &self.parser, Timestamp::now()) {
            Ask::Answered(answer) => self.respond(request, answer),
            Ask::Approval(Approval { tool_use_id, name, input, reply }) => {
                let id = ApprovalId::generate();
                let (is_question, shown) = (reply.is_question(), input.clone());
                self.asks.insert(id, Asked { request, input, reply });
                self.room.report(TurnEvent::Approval { id, tool_use_id, name, input: shown, is_question }, Some(raw));
            }
        }
    }

    fn answer(&mut self, approval: ApprovalId, decision: Decision, input: Option<Value>) {
        // It was withdrawn, or it is another turn's.
        let Some(Asked { request, input: asked, reply }) = self.asks.remove(&approval) else { return };
        let is_changed = !reply.is_question() && input.as_ref().is_some_and(|input| *input != asked);
        if decision == Decision::Allow && is_changed {
            // Codex runs what it asked for or nothing, and what it asked for is not what was allowed.
            let message =
                "Codex cannot run a changed call, so it was declined. Tell the agent in a message what to do instead.";
            self.room.say(TurnEvent::Status { status: "change_not_possible".into(), message: message.into() });
            return self.respond(request, Ok(reply.answer(Decision::Deny, None)));
        }
        self.respond(request, Ok(reply.answer(decision, input.as_ref())));
    }

    fn respond(&mut self, request: Value, answer: Result<Value, RpcError>) {
        match self.instance.peer.respond(request, answer) {
            // Nobody is there any more: the turn hears of that by itself.
            Ok(()) | Err(CallError::Closed(_)) => {}
            Err(error) => {
                let error = RunError::new("program_stuck", format!("Codex cannot be answered: {error}."));
                self.hopeless = self.hopeless.take().or(Some(error));
            }
        }
    }

    fn steer(&mut self, message: MessageId, text: &str) {
        let Some(turn) = self.parser.turn().filter(|_| self.end.is_none() && self.stop.is_none()) else {
            return self.room.say(TurnEvent::Steered { message, taken: false });
        };
        let params = json!({"threadId": self.thread, "expectedTurnId": turn, "input": settings::input(text)});
        let peer = self.instance.peer.clone();
        self.steering.spawn(async move {
            let steered = peer.request("turn/steer", params, STEER).await;
            if let Err(error) = &steered {
                tracing::debug!(%error, "a turn of Codex could not be steered");
            }
            (message, steered.is_ok())
        });
    }

    /// Whoever spoke into the answer is told, before the turn is over, whether it was heard.
    pub async fn settle_steering(&mut self) {
        let deadline = Instant::now() + STEER_AT_THE_END;
        while let Ok(Some(steered)) = tokio::time::timeout_at(deadline, self.steering.join_next()).await {
            if let Ok((message, taken)) = steered {
                self.room.say(TurnEvent::Steered { message, taken });
            }
        }
    }
}
