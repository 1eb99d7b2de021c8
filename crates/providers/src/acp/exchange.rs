//! Runs a prompt until its response: handles the agent's updates and requests, the engine's commands, and the questions
//! of its host tools concurrently.

use super::{
    parse::{AcpParser, AcpPermissionRequest},
    process::{AcpProcess, refusal},
    steering::AcpSteering,
};
use crate::{
    ProviderEvent, TurnEvent,
    agent_tokens::AgentTokenTurn,
    host_tools::{self, HostToolDefinition, HostToolSignal, OpenQuestions, UserQuestion, name_over_mcp},
    jsonrpc::{CallError, RpcError, RpcIncoming, RpcPeer},
    turn_port::{PortEvent, TurnPort},
};
use domain::{
    event::Decision,
    ids::{ApprovalId, MessageId},
    mcp::tool_of,
};
use serde_json::{Value, json};
use std::{collections::HashMap, time::Duration};
use tokio::time::{Instant, sleep_until};
use workbench::process::ProcessSet;

/// How long the agent may take to stop after an interrupt.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(3);
/// A call may be announced before its input is complete; after this long without an update, it must have started.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(1);
/// The engine has its own time limits for a turn; this is only an upper bound.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A permission request that waits for an answer.
struct OpenPermission {
    id: Value,
    permission: AcpPermissionRequest,
}

pub struct AcpExchange<'a> {
    pub parser: AcpParser,
    /// When the interrupt was sent.
    pub interrupted: Option<Instant>,
    /// What ran beneath the program at that moment.
    pub running_at_stop: ProcessSet,
    peer: RpcPeer,
    session: String,
    open: HashMap<ApprovalId, OpenPermission>,
    questions: OpenQuestions,
    /// The host tools that the agent is offered.
    host_tools: Vec<HostToolDefinition>,
    port: &'a mut TurnPort,
    /// When the announced calls were last updated.
    announced_at: Instant,
    /// `None`: the agent takes no message during a prompt.
    steering: Option<AcpSteering>,
}

impl<'a> AcpExchange<'a> {
    pub fn new(
        peer: RpcPeer,
        session: String,
        parser: AcpParser,
        host_tools: Vec<HostToolDefinition>,
        can_steer: bool,
        port: &'a mut TurnPort,
    ) -> Self {
        Self {
            parser,
            interrupted: None,
            running_at_stop: ProcessSet::default(),
            peer,
            session,
            open: HashMap::new(),
            questions: OpenQuestions::default(),
            host_tools,
            port,
            announced_at: Instant::now(),
            steering: can_steer.then(AcpSteering::default),
        }
    }

    /// Returns the response to the prompt; `None` if the agent did not stop in time.
    pub async fn run(
        &mut self,
        agent: &mut AcpProcess,
        host_calls: &mut AgentTokenTurn,
        params: Value,
    ) -> Option<Result<Value, CallError>> {
        let peer = self.peer.clone();
        let prompt = peer.request("session/prompt", params, PROMPT_TIMEOUT);
        tokio::pin!(prompt);
        let mut answered = None;
        let answer = loop {
            // A message that the agent has taken belongs to this turn, even if the reply comes after the end.
            let is_settled = self.interrupted.is_some() || self.steering.as_ref().is_none_or(AcpSteering::is_empty);
            if let Some(answer) = answered.take_if(|_| is_settled) {
                break answer;
            }
            let deadline = self.interrupted.map_or_else(Instant::now, |since| since + INTERRUPT_TIMEOUT);
            tokio::select! {
                answer = &mut prompt, if answered.is_none() => answered = Some(answer),
                reply = next_reply(&mut self.steering) => {
                    if let Some((message, taken)) = reply {
                        self.port.send(TurnEvent::Steered { message, taken });
                    }
                }
                Some(message) = agent.incoming.recv(), if self.port.has_capacity() || self.interrupted.is_some() => {
                    self.handle_incoming(message);
                }
                event = self.port.next() => {
                    if event == PortEvent::Stop && self.interrupted.is_none() {
                        self.running_at_stop = ProcessSet::beneath(agent.process_id());
                    }
                    self.handle_port_event(event);
                    if self.interrupted.is_some() {
                        host_calls.cancel();
                    }
                }
                Some(signal) = host_calls.next(), if self.port.has_capacity() => self.handle_host_tool(signal),
                id = self.questions.abandoned() => self.port.send(TurnEvent::ApprovalWithdrawn { id }),
                () = sleep_until(self.announced_at + ANNOUNCE_TIMEOUT), if self.parser.calls.has_announced() => {
                    let begun = self.parser.calls.report_announced();
                    self.port.send_all(begun);
                }
                () = sleep_until(deadline), if self.interrupted.is_some() => return None,
            }
        };
        // Messages that arrived before the response are already in the channel.
        while let Ok(message) = agent.incoming.try_recv() {
            self.handle_incoming(message);
        }
        Some(answer)
    }

    fn handle_incoming(&mut self, message: RpcIncoming) {
        match message {
            RpcIncoming::Notification { method, params, raw } if method == "session/update" => {
                if params["sessionId"].as_str().is_some_and(|session| session != self.session) {
                    return;
                }
                let mut events = self.parser.update(&params, &raw);
                if self.parser.calls.has_announced() {
                    self.announced_at = Instant::now();
                }
                if self.interrupted.is_some() {
                    // Deltas are dropped after an interrupt, to reach the response to the prompt sooner.
                    events.retain(|reported| !is_delta(&reported.event));
                }
                self.port.keep_raw(&mut events, &raw);
                self.port.send_all(events);
            }
            RpcIncoming::Request { id, method, params, raw } if method == "session/request_permission" => {
                self.handle_permission(id, &params, &raw);
            }
            RpcIncoming::Request { id, method, .. } => {
                tracing::debug!(method, "an agent sent an unsupported request");
                self.respond(id, refusal(&method));
            }
            // The end of the connection also fails the prompt request.
            RpcIncoming::Notification { .. } | RpcIncoming::Closed(_) => {}
        }
    }

    fn handle_permission(&mut self, id: Value, params: &Value, raw: &str) {
        let (events, permission) = self.parser.permission(params, raw);
        self.port.send_all(events);
        if self.interrupted.is_some() {
            self.parser.calls.withdrawn(&permission.call);
            return self.respond(id, refusal("session/request_permission"));
        }
        // A host tool that needs consent asks for it itself.
        if let (true, Some(option)) = (is_host_tool(&self.host_tools, &permission.name), &permission.allow_once) {
            return self.respond(id, Ok(selected(option)));
        }
        let approval = ApprovalId::generate();
        let tool_use_id = Some(permission.call.clone()).filter(|call| !call.is_empty());
        let (name, input) = (permission.name.clone(), permission.input.clone());
        let event = TurnEvent::Approval { id: approval, tool_use_id, name, input, is_question: false };
        self.port.send(ProviderEvent { event, raw: Some(raw.to_owned()) });
        self.open.insert(approval, OpenPermission { id, permission });
    }

    fn handle_host_tool(&mut self, signal: HostToolSignal) {
        if self.interrupted.is_some() {
            return;
        }
        let begun = self.parser.calls.report_announced();
        self.port.send_all(begun);
        match signal {
            HostToolSignal::Question(UserQuestion { tool: name, input, is_question, answer }) => {
                let tool_use_id = self.parser.calls.running_call(name_over_mcp(&name)).map(str::to_owned);
                let id = self.questions.add(answer);
                self.port.send(TurnEvent::Approval { id, tool_use_id, name, input, is_question });
            }
            HostToolSignal::FileChanged { path, change } => {
                self.port.send(TurnEvent::FileChanged { path, change: change.to_owned() });
            }
            HostToolSignal::Room(request) => self.port.send(TurnEvent::Room(request)),
            HostToolSignal::Delegated { tool, child } => {
                let tool_use_id = self.parser.calls.running_call(name_over_mcp(&tool)).map(str::to_owned);
                self.port.send(TurnEvent::Delegated { tool_use_id, child });
            }
            HostToolSignal::Progress { tool, text: delta } => {
                if let Some(id) = self.parser.calls.running_call(name_over_mcp(&tool)).map(str::to_owned) {
                    self.port.send(TurnEvent::ToolOutput { id, delta });
                }
            }
        }
    }

    fn handle_port_event(&mut self, event: PortEvent) {
        match event {
            PortEvent::CommandsEnded | PortEvent::Sent => {}
            PortEvent::Stop => self.interrupt(),
            PortEvent::Steer { message, text, .. } => match &mut self.steering {
                Some(steering) if self.interrupted.is_none() => {
                    steering.send(&self.peer, &self.session, message, &text);
                }
                _ => self.port.decline(message),
            },
            PortEvent::ResolveApproval { approval, decision, input } => {
                if let (Err((decision, input)), Some(OpenPermission { id, permission })) =
                    (self.questions.answer(approval, decision, input), self.open.remove(&approval))
                {
                    self.answer(id, &permission, decision, input);
                }
            }
        }
    }

    fn answer(&mut self, id: Value, permission: &AcpPermissionRequest, decision: Decision, input: Option<Value>) {
        let denied = match (decision, &permission.allow_once) {
            (Decision::Allow, _) if input.is_some_and(|input| input != permission.input) => {
                Some("Not run: this agent cannot run a call with changed input. Send it a message instead.")
            }
            (Decision::Allow, Some(option)) => {
                self.respond(id.clone(), Ok(selected(option)));
                None
            }
            (Decision::Allow, None) => Some("Not run: the agent offers no option to allow it once."),
            (Decision::Deny, _) => Some("Not run: it was denied."),
            (Decision::Expired, _) => Some("Not run: no approval arrived in time."),
        };
        let Some(why) = denied else { return };
        let answer = permission.reject_once.as_deref().map(selected);
        self.respond(id, answer.map_or_else(|| refusal("session/request_permission"), Ok));
        let result = self.parser.calls.denied(&permission.call, why);
        self.port.send_all(result.map(ProviderEvent::from));
    }

    fn interrupt(&mut self) {
        if self.interrupted.is_some() {
            return;
        }
        self.interrupted = Some(Instant::now());
        if let Err(error) = self.peer.notify("session/cancel", json!({"sessionId": self.session})) {
            tracing::debug!(%error, "could not send a cancellation to an agent");
        }
        // The protocol requires it, and an agent that waits for an answer would not stop.
        self.questions.clear();
        for OpenPermission { id, permission } in std::mem::take(&mut self.open).into_values() {
            self.parser.calls.withdrawn(&permission.call);
            self.respond(id, refusal("session/request_permission"));
        }
    }

    fn respond(&self, id: Value, answer: Result<Value, RpcError>) {
        if let Err(error) = self.peer.respond(id, answer) {
            tracing::debug!(%error, "could not respond to an agent's request");
        }
    }
}

async fn next_reply(steering: &mut Option<AcpSteering>) -> Option<(MessageId, bool)> {
    match steering {
        Some(steering) => steering.next().await,
        None => std::future::pending().await,
    }
}

fn is_delta(event: &TurnEvent) -> bool {
    matches!(event, TurnEvent::Text { .. } | TurnEvent::Thinking { .. } | TurnEvent::ToolOutput { .. })
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// Whether this is a host tool, in any of the formats in which agents name MCP tools.
fn is_host_tool(host_tools: &[HostToolDefinition], name: &str) -> bool {
    let server = host_tools::SERVER_NAME;
    // Gemini CLI has single underscores.
    let tool = tool_of(server, name).or_else(|| name.strip_prefix("mcp_")?.strip_prefix(server)?.strip_prefix('_'));
    host_tools.iter().any(|known| tool == Some(name_over_mcp(&known.name)))
}
