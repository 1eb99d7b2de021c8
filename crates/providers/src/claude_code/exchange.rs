//! One prompt and its answer: forwards events as they arrive, passes approval requests to the room and their answers
//! back, and can be interrupted at every wait.

use super::{
    conversation::{ClaudeConversation, ClaudeConversationError, ClaudeEvent},
    failure::{ClaudeTurnEnd, Finished},
    parse::ClaudeMessageState,
    requests::{ClaudeApprovalRequest, ClaudeHostToolCall, HostToolReply, PermissionReply},
    steering::{ClaudeSteering, SteerReply},
    wire,
};
use crate::{
    ProviderEvent, TurnEvent,
    host_tools::{CallOrigin, HostToolCalls, HostToolEvent},
    turn_port::{PortEvent, TurnPort},
};
use domain::{
    event::Decision,
    ids::{ApprovalId, MessageId},
    run::RunError,
};
use std::{collections::HashMap, future::pending, time::Duration};
use tokio::{
    task::coop::consume_budget,
    time::{Instant, sleep_until},
};
use workbench::process::ProcessSet;

/// How long the program may take to stop after an interrupt.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(3);
/// More than any model requests at once.
const MAX_OPEN_APPROVALS: usize = 256;

/// The outcome of a prompt.
#[derive(Debug)]
pub(super) struct ExchangeOutcome {
    pub ended: ExchangeEnd,
    /// Whether the program added the prompt to its conversation.
    pub prompt_accepted: bool,
    /// Whether the program sent anything at all.
    pub had_output: bool,
    pub stop_requested: bool,
    /// What ran beneath the program when the stop was requested.
    pub running_at_stop: ProcessSet,
}

#[derive(Debug)]
pub(super) enum ExchangeEnd {
    /// The program is idle and can take the next prompt.
    Idle(ClaudeTurnEnd),
    /// The session to resume does not exist.
    SessionNotFound,
    /// The program kept retrying a request that cannot succeed, so it was interrupted.
    Hopeless(RunError),
    /// The program did not stop after an interrupt.
    InterruptIgnored,
    Disconnected(ClaudeConversationError),
}

pub(super) struct ClaudeExchange<'a> {
    conversation: &'a mut ClaudeConversation,
    port: &'a mut TurnPort,
    uuid: String,
    is_resumed: bool,
    approvals: HashMap<ApprovalId, PermissionReply>,
    host_calls: HostToolCalls<HostToolReply>,
    /// The program's process id.
    process: i32,
    running_at_stop: ProcessSet,
    interrupt: Option<PendingInterrupt>,
    hopeless: Option<RunError>,
    steered: ClaudeSteering,
    /// How the program's turns have ended so far: the first failure, else the last end.
    so_far: Option<ClaudeTurnEnd>,
    /// Set when the program is idle again.
    finished: Option<ClaudeTurnEnd>,
    /// Whether the program has started on our message; `None` in versions that do not report it.
    taken: Option<bool>,
    prompt_accepted: bool,
    had_output: bool,
}

/// Why the loop woke up.
enum ExchangeWake {
    FromEngine(PortEvent),
    Output(Result<Vec<ClaudeEvent>, ClaudeConversationError>),
    HostTool(HostToolEvent<HostToolReply>),
    InterruptTimeout,
    SteerTimeout,
}

/// An interrupt request that was sent.
struct PendingInterrupt {
    request: String,
    is_answered: bool,
    deadline: Instant,
}

impl<'a> ClaudeExchange<'a> {
    pub fn new(
        conversation: &'a mut ClaudeConversation,
        port: &'a mut TurnPort,
        is_resumed: bool,
        host_calls: HostToolCalls<HostToolReply>,
        process: i32,
    ) -> Self {
        Self {
            conversation,
            port,
            uuid: MessageId::generate().to_string(),
            is_resumed,
            approvals: HashMap::new(),
            host_calls,
            process,
            running_at_stop: ProcessSet::default(),
            interrupt: None,
            hopeless: None,
            steered: ClaudeSteering::default(),
            so_far: None,
            finished: None,
            taken: None,
            prompt_accepted: false,
            had_output: false,
        }
    }

    pub async fn run(mut self, prompt: &str) -> ExchangeOutcome {
        self.conversation.parser.begin_turn(self.port.keeps_raw());
        self.conversation.send(&wire::user_message(prompt, &self.uuid));
        let ended = self.run_to_end().await;
        self.host_calls.shut_down().await;
        ExchangeOutcome {
            ended,
            prompt_accepted: self.prompt_accepted,
            had_output: self.had_output,
            stop_requested: self.port.stop_requested(),
            running_at_stop: self.running_at_stop,
        }
    }

    async fn run_to_end(&mut self) -> ExchangeEnd {
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            match self.next_wake().await {
                ExchangeWake::FromEngine(event) => self.handle_port_event(event),
                ExchangeWake::Output(Ok(events)) => {
                    // A program with continuous output must not starve other tasks.
                    consume_budget().await;
                    for event in events {
                        self.had_output = true;
                        if let Some(ended) = self.handle_event(event) {
                            return ended;
                        }
                    }
                }
                ExchangeWake::HostTool(HostToolEvent::Report(event)) => self.port.send(event),
                ExchangeWake::HostTool(HostToolEvent::Ended { reply_to, outcome }) => {
                    self.conversation.send_outcome(&reply_to, &outcome);
                }
                ExchangeWake::Output(Err(broken)) => return self.abort(ExchangeEnd::Disconnected(broken)),
                ExchangeWake::InterruptTimeout => return self.abort(ExchangeEnd::InterruptIgnored),
                ExchangeWake::SteerTimeout => self.expire_steering(),
            }
        }
    }

    async fn next_wake(&mut self) -> ExchangeWake {
        let deadline = self.interrupt.as_ref().map(|stop| stop.deadline);
        let steer_deadline = self.steered.next_deadline();
        let may_read = self.port.has_capacity();
        tokio::select! {
            biased;
            event = self.port.next() => ExchangeWake::FromEngine(event),
            event = self.host_calls.next(), if may_read => ExchangeWake::HostTool(event),
            output = self.conversation.next(may_read) => ExchangeWake::Output(output),
            () = reached(deadline) => ExchangeWake::InterruptTimeout,
            () = reached(steer_deadline) => ExchangeWake::SteerTimeout,
        }
    }

    fn ended(&mut self) -> Option<ExchangeEnd> {
        let is_over = self.finished.is_some()
            && self.port.is_flushed()
            // Such as a message that is taken back.
            && self.conversation.is_written()
            // An unanswered interrupt could hit the next prompt.
            && self.interrupt.as_ref().is_none_or(|stop| stop.is_answered);
        if !is_over {
            return None;
        }
        Some(match (self.hopeless.take(), self.finished.take()?) {
            (Some(error), _) => ExchangeEnd::Hopeless(error),
            (None, end) => ExchangeEnd::Idle(end),
        })
    }

    /// Without a result line, the usage seen in the stream is reported.
    fn abort(&mut self, ended: ExchangeEnd) -> ExchangeEnd {
        if self.finished.is_none() {
            self.port.send_all(self.conversation.parser.take_unmetered().map(ProviderEvent::from));
        }
        self.hopeless.take().map_or(ended, ExchangeEnd::Hopeless)
    }

    fn handle_port_event(&mut self, event: PortEvent) {
        match event {
            PortEvent::Stop => {
                self.running_at_stop = ProcessSet::beneath(self.process);
                self.host_calls.stop();
                self.send_interrupt();
            }
            PortEvent::ResolveApproval { approval, decision, input } => {
                if let (Err((decision, input)), Some(to)) =
                    (self.host_calls.answer(approval, decision, input), self.approvals.remove(&approval))
                {
                    self.conversation.send_answer(to, decision, input);
                }
            }
            PortEvent::Steer { message, text, .. } => self.steer(message, &text),
            PortEvent::CommandsEnded | PortEvent::Sent => {}
        }
    }

    /// Adds a message to the turn. A program that does not report what becomes of a message cannot be steered: nobody
    /// would know whether it was answered.
    fn steer(&mut self, message: MessageId, text: &str) {
        if self.taken != Some(true) || self.interrupt.is_some() || self.finished.is_some() {
            return self.port.decline(message);
        }
        let uuid = self.steered.add(message, Instant::now());
        self.conversation.send(&wire::user_message(text, &uuid));
    }

    fn reply_to_steering(&mut self, replies: impl IntoIterator<Item = SteerReply>) {
        for reply in replies {
            match reply {
                SteerReply::Taken(message) => self.port.send(TurnEvent::Steered { message, taken: true }),
                SteerReply::Declined(message) => self.port.decline(message),
            }
        }
    }

    /// Declines messages that the program does not confirm, and takes them back, so that they are not answered twice.
    fn expire_steering(&mut self) {
        for (uuid, message) in self.steered.expire(Instant::now()) {
            self.conversation.send_request(&wire::cancel_message(&uuid));
            self.port.decline(message);
        }
        self.finish_if_all_answered();
    }

    fn send_interrupt(&mut self) {
        if self.interrupt.is_none() && self.finished.is_none() {
            // The interrupt also ends what waits in the program's queue.
            let declined = self.steered.remove_waiting();
            self.reply_to_steering(declined);
            let request = self.conversation.send_request(&wire::interrupt());
            self.interrupt =
                Some(PendingInterrupt { request, is_answered: false, deadline: Instant::now() + INTERRUPT_TIMEOUT });
        }
    }

    fn handle_event(&mut self, event: ClaudeEvent) -> Option<ExchangeEnd> {
        match event {
            ClaudeEvent::Event(event) => self.forward(event),
            ClaudeEvent::Began => self.prompt_accepted |= self.taken != Some(false),
            ClaudeEvent::Message { uuid, state } => {
                if uuid != self.uuid {
                    let reply = self.steered.report(&uuid, state);
                    self.reply_to_steering(reply);
                    self.finish_if_all_answered();
                } else if self.taken != Some(true) {
                    self.taken = Some(state != ClaudeMessageState::Queued);
                }
            }
            ClaudeEvent::ApprovalRequested { request: question, raw } => self.request_approval(question, raw),
            ClaudeEvent::HostToolCalled { call, raw } => self.call_host_tool(call, raw),
            ClaudeEvent::RequestCancelled { id } => {
                self.withdraw_approvals(&id);
            }
            ClaudeEvent::CallCancelled { call } => self.host_calls.cancel(|to| to.call == call),
            ClaudeEvent::Response { id, answer } => {
                if let Some(stop) = self.interrupt.as_mut().filter(|stop| stop.request == id) {
                    // If the interrupt is refused, the deadline ends the turn.
                    stop.is_answered = answer.is_ok();
                    // It came between two messages: the first is answered, the others were removed.
                    self.finish_if_all_answered();
                }
            }
            ClaudeEvent::Hopeless(error) => {
                self.hopeless.get_or_insert(error);
                self.send_interrupt();
            }
            ClaudeEvent::Finished(finished) => return self.finish(finished),
        }
        None
    }

    fn finish(&mut self, finished: Finished) -> Option<ExchangeEnd> {
        let is_ours = finished.messages.contains(&self.uuid)
            || self.steered.contains_any(&finished.messages)
            || (finished.messages.is_empty() && self.taken != Some(false));
        if !is_ours {
            return None;
        }
        if self.is_resumed && !self.prompt_accepted && matches!(finished.end, ClaudeTurnEnd::Failed(_)) {
            return Some(ExchangeEnd::SessionNotFound);
        }
        let confirmed = self.steered.answered(&finished.messages);
        self.reply_to_steering(confirmed);
        if !matches!(self.so_far, Some(ClaudeTurnEnd::Failed(_))) {
            self.so_far = Some(finished.end);
        }
        self.finish_if_all_answered();
        None
    }

    /// The program goes on by itself with the messages that it has confirmed.
    fn finish_if_all_answered(&mut self) {
        if self.steered.is_empty() && self.finished.is_none() {
            self.finished = self.so_far.take();
        }
    }

    fn forward(&mut self, reported: ProviderEvent) {
        let is_speech = matches!(reported.event, TurnEvent::Text { .. } | TurnEvent::Thinking { .. });
        // Output before our message is accepted belongs to another message; text after the interrupt is dropped.
        if self.taken == Some(false) || (is_speech && self.port.stop_requested()) {
            return;
        }
        self.port.send(reported);
    }

    fn request_approval(&mut self, question: ClaudeApprovalRequest, raw: String) {
        let ClaudeApprovalRequest { reply_to: to, name, input, tool_use_id, is_question } = question;
        if self.interrupt.is_some() {
            // The interrupt cancels this request.
            return;
        }
        if self.approvals.len() >= MAX_OPEN_APPROVALS {
            return self.conversation.send_answer(to, Decision::Expired, None);
        }
        let id = ApprovalId::generate();
        self.approvals.insert(id, to);
        let event = TurnEvent::Approval { id, tool_use_id, name, input, is_question };
        self.port.send(ProviderEvent { event, raw: Some(raw) });
    }

    fn call_host_tool(&mut self, call: ClaudeHostToolCall, raw: String) {
        let ClaudeHostToolCall { reply_to, name, arguments, tool_use_id } = call;
        let origin = CallOrigin { tool_use_id, raw: Some(raw) };
        self.host_calls.start(reply_to, origin, name, arguments);
    }

    /// Removes approval requests that the program cancelled, and notifies the room.
    fn withdraw_approvals(&mut self, request: &str) {
        for (id, _) in self.approvals.extract_if(|_, to| to.id == request) {
            self.port.send(TurnEvent::ApprovalWithdrawn { id });
        }
    }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
