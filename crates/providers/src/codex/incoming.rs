//! Handles everything that reaches a running turn: messages from Codex and commands from the engine.

use super::{
    parse::{ParsedNotification, text},
    requests::{self, Approval, CodexReplyFormat, CodexRequest},
    thread_settings,
    turn::CodexTurn,
};
use crate::{
    ProviderEvent, TurnEvent,
    host_tools::{CallOrigin, HostToolEvent},
    jsonrpc::{CallError, RpcError, RpcIncoming},
    turn_port::PortEvent,
};
use domain::{
    event::Decision,
    ids::{ApprovalId, MessageId},
    run::RunError,
};
use serde_json::{Value, json};
use std::{future::Future, time::Duration};
use tokio::time::Instant;

const STEER_TIMEOUT: Duration = Duration::from_secs(5);
/// After the turn has ended, a steer response arrives at once or never.
const LATE_STEER_TIMEOUT: Duration = Duration::from_secs(1);
/// More than any turn has open at once.
const MAX_OPEN_REQUESTS: usize = 256;

/// A request of Codex that waits for an answer.
pub struct PendingCodexRequest {
    request: Value,
    input: Value,
    reply: CodexReplyFormat,
}

impl CodexTurn<'_> {
    /// Handles the next message or command.
    pub async fn step(&mut self) {
        // A turn that is stopping must see its end, even if its events are not consumed.
        let may_listen = !self.instance_ended && (self.port.has_capacity() || self.stop_requested_at.is_some());
        tokio::select! {
            event = self.port.next() => self.handle_port_event(event),
            event = self.host_calls.next(), if self.port.has_capacity() => match event {
                HostToolEvent::Report(event) => self.port.send(event),
                HostToolEvent::Ended { reply_to, outcome } => self.respond(reply_to, Ok(requests::tool_result(&outcome))),
            },
            incoming = self.incoming.recv(), if may_listen => self.handle_incoming(incoming),
            Some(steered) = self.steering.join_next(), if !self.steering.is_empty() => {
                if let Ok((message, taken)) = steered {
                    self.port.send(TurnEvent::Steered { message, taken });
                }
            }
        }
    }

    /// Handles messages and commands until `work` is done; `None` if the deadline comes first. Without a deadline, a
    /// turn that is stopping has [`super::stop::INTERRUPT_TIMEOUT`].
    pub async fn during<T>(&mut self, work: impl Future<Output = T>, deadline: Option<Instant>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            let deadline = deadline.or_else(|| Some(self.stop_requested_at? + super::stop::INTERRUPT_TIMEOUT));
            let timed_out = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = self.step() => {}
                () = timed_out => return None,
            }
        }
    }

    fn handle_port_event(&mut self, event: PortEvent) {
        match event {
            PortEvent::Stop => {
                self.stop_requested_at = self.stop_requested_at.or_else(|| Some(Instant::now()));
                self.host_calls.stop();
            }
            PortEvent::ResolveApproval { approval, decision, input } => self.answer(approval, decision, input),
            PortEvent::Steer { message, text, .. } => self.steer(message, &text),
            PortEvent::CommandsEnded | PortEvent::Sent => {}
        }
    }

    fn handle_incoming(&mut self, incoming: Option<RpcIncoming>) {
        match incoming {
            None | Some(RpcIncoming::Closed(_)) => self.instance_ended = true,
            Some(RpcIncoming::Notification { method, params, raw }) => {
                if method == "serverRequest/resolved" {
                    // Answered requests were already removed, so Codex withdrew this one.
                    self.host_calls.cancel(|request| Some(request) == params.get("requestId"));
                    for (id, _) in
                        self.pending_requests.extract_if(|_, asked| Some(&asked.request) == params.get("requestId"))
                    {
                        let event = TurnEvent::ApprovalWithdrawn { id };
                        self.port.send(ProviderEvent { event, raw: Some(raw.clone()) });
                    }
                }
                let ParsedNotification { events, end, hopeless } = self.parser.apply(&method, &params);
                let mut raw = Some(raw);
                for event in events {
                    let is_delta = matches!(
                        event,
                        TurnEvent::Text { .. } | TurnEvent::Thinking { .. } | TurnEvent::ToolOutput { .. }
                    );
                    let raw = if is_delta && !self.port.keeps_raw() { None } else { raw.take() };
                    self.port.send(ProviderEvent { event, raw });
                }
                self.end = self.end.take().or(end);
                self.hopeless = self.hopeless.take().or(hopeless);
            }
            Some(RpcIncoming::Request { id, method, params, raw }) => self.handle_request(id, &method, &params, raw),
        }
    }

    fn handle_request(&mut self, request: Value, method: &str, params: &Value, raw: String) {
        let is_other_turn =
            matches!((text(params, "turnId"), self.parser.turn()), (Some(one), Some(ours)) if one != ours);
        if is_other_turn || self.stop_requested_at.is_some() || self.pending_requests.len() >= MAX_OPEN_REQUESTS {
            return self.respond(request, requests::refusal(method));
        }
        match requests::classify(method, params, &self.parser) {
            CodexRequest::Answered(answer) => self.respond(request, answer),
            CodexRequest::HostTool { call_id, name, arguments } => {
                let origin = CallOrigin { tool_use_id: call_id, raw: Some(raw) };
                self.host_calls.start(request, origin, name, arguments);
            }
            CodexRequest::Approval(Approval { tool_use_id, name, input, reply }) => {
                let id = ApprovalId::generate();
                let (is_question, shown) = (reply.is_question(), input.clone());
                self.pending_requests.insert(id, PendingCodexRequest { request, input, reply });
                let event = TurnEvent::Approval { id, tool_use_id, name, input: shown, is_question };
                self.port.send(ProviderEvent { event, raw: Some(raw) });
            }
        }
    }

    fn answer(&mut self, approval: ApprovalId, decision: Decision, input: Option<Value>) {
        let Err((decision, input)) = self.host_calls.answer(approval, decision, input) else { return };
        // It was withdrawn, or belongs to another turn.
        let Some(PendingCodexRequest { request, input: asked, reply }) = self.pending_requests.remove(&approval) else {
            return;
        };
        let is_changed = !reply.is_question() && input.as_ref().is_some_and(|input| *input != asked);
        if decision == Decision::Allow && is_changed {
            // Codex can only run the call that it asked for, and that call was not allowed.
            let message =
                "Codex cannot run a call with changed input, so it was declined. Send the agent a message instead.";
            self.port.send(TurnEvent::Status { status: "change_not_possible".into(), message: message.into() });
            return self.respond(request, Ok(reply.answer(Decision::Deny, None)));
        }
        self.respond(request, Ok(reply.answer(decision, input.as_ref())));
    }

    fn respond(&mut self, request: Value, answer: Result<Value, RpcError>) {
        match self.instance.peer.respond(request, answer) {
            // The turn also receives the end of the connection.
            Ok(()) | Err(CallError::Closed(_)) => {}
            Err(error) => {
                let error = RunError::new("program_stuck", format!("Could not respond to Codex: {error}."));
                self.hopeless = self.hopeless.take().or(Some(error));
            }
        }
    }

    fn steer(&mut self, message: MessageId, text: &str) {
        let Some(turn) = self.parser.turn().filter(|_| self.end.is_none() && self.stop_requested_at.is_none()) else {
            return self.port.decline(message);
        };
        let params = json!({"threadId": self.thread, "expectedTurnId": turn, "input": thread_settings::input(text)});
        let peer = self.instance.peer.clone();
        self.steering.spawn(async move {
            let steered = peer.request("turn/steer", params, STEER_TIMEOUT).await;
            if let Err(error) = &steered {
                tracing::debug!(%error, "could not steer a Codex turn");
            }
            (message, steered.is_ok())
        });
    }

    /// Reports the results of pending steers before the turn ends.
    pub async fn settle_steering(&mut self) {
        let deadline = Instant::now() + LATE_STEER_TIMEOUT;
        while let Ok(Some(steered)) = tokio::time::timeout_at(deadline, self.steering.join_next()).await {
            if let Ok((message, taken)) = steered {
                self.port.send(TurnEvent::Steered { message, taken });
            }
        }
    }
}
