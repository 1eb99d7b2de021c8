//! One prompt and its answer: forwards events as they arrive, passes approval requests to the room and their answers
//! back, and can be interrupted at every wait.

use super::{
    conversation::{ClaudeConversation, ClaudeConversationError, ClaudeEvent},
    failure::{ClaudeTurnEnd, Finished},
    requests::{ClaudeApprovalRequest, ReplyTo},
    wire,
};
use crate::{ProviderEvent, TurnChannel, TurnCommand, TurnEvent};
use domain::{
    event::Decision,
    ids::{ApprovalId, MessageId},
    run::RunError,
};
use std::{
    collections::{HashMap, VecDeque},
    future::pending,
    time::Duration,
};
use tokio::{
    sync::mpsc::error::TrySendError,
    task::coop::consume_budget,
    time::{Instant, sleep_until, timeout_at},
};

/// How long the program may take to stop after an interrupt.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the remaining events may take to send after the program has failed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
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
    channel: &'a mut TurnChannel,
    uuid: String,
    is_resumed: bool,
    /// Events that the receiver had no room for. Nothing is read while there are any, so a slow receiver slows the
    /// program down.
    unsent: VecDeque<ProviderEvent>,
    approvals: HashMap<ApprovalId, ReplyTo>,
    interrupt: Option<PendingInterrupt>,
    hopeless: Option<RunError>,
    finished: Option<ClaudeTurnEnd>,
    /// Whether the program has started on our message; `None` in versions that do not report it.
    taken: Option<bool>,
    prompt_accepted: bool,
    had_output: bool,
    stop_requested: bool,
    commands_ended: bool,
    receiver_closed: bool,
}

/// Why the loop woke up.
enum ExchangeWake {
    Command(Option<TurnCommand>),
    ReceiverClosed,
    /// The receiver has room for more events.
    CapacityAvailable,
    Output(Result<Vec<ClaudeEvent>, ClaudeConversationError>),
    InterruptTimeout,
}

/// An interrupt request that was sent.
struct PendingInterrupt {
    request: String,
    is_answered: bool,
    deadline: Instant,
}

impl<'a> ClaudeExchange<'a> {
    pub fn new(conversation: &'a mut ClaudeConversation, channel: &'a mut TurnChannel, is_resumed: bool) -> Self {
        Self {
            conversation,
            channel,
            uuid: MessageId::generate().to_string(),
            is_resumed,
            unsent: VecDeque::new(),
            approvals: HashMap::new(),
            interrupt: None,
            hopeless: None,
            finished: None,
            taken: None,
            prompt_accepted: false,
            had_output: false,
            stop_requested: false,
            commands_ended: false,
            receiver_closed: false,
        }
    }

    pub async fn run(mut self, prompt: &str) -> ExchangeOutcome {
        self.conversation.parser.begin_turn();
        self.conversation.send(&wire::user_message(prompt, &self.uuid));
        let ended = self.run_to_end().await;
        ExchangeOutcome {
            ended,
            prompt_accepted: self.prompt_accepted,
            had_output: self.had_output,
            stop_requested: self.stop_requested,
        }
    }

    async fn run_to_end(&mut self) -> ExchangeEnd {
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            match self.next_wake().await {
                ExchangeWake::Command(Some(command)) => self.handle_command(command),
                ExchangeWake::Command(None) => self.commands_ended = true,
                ExchangeWake::ReceiverClosed => {
                    self.receiver_closed = true;
                    self.unsent.clear();
                    self.stop();
                }
                ExchangeWake::CapacityAvailable => self.send(),
                ExchangeWake::Output(Ok(heard)) => {
                    // A program with continuous output must not starve other tasks.
                    consume_budget().await;
                    for heard in heard {
                        self.had_output = true;
                        if let Some(ended) = self.handle_event(heard) {
                            return ended;
                        }
                    }
                    self.send();
                }
                ExchangeWake::Output(Err(broken)) => return self.abort(ExchangeEnd::Disconnected(broken)).await,
                ExchangeWake::InterruptTimeout => return self.abort(ExchangeEnd::InterruptIgnored).await,
            }
        }
    }

    async fn next_wake(&mut self) -> ExchangeWake {
        let deadline = self.interrupt.as_ref().map(|stop| stop.deadline);
        tokio::select! {
            biased;
            command = self.channel.commands.recv(), if !self.commands_ended => ExchangeWake::Command(command),
            () = self.channel.events.closed(), if !self.receiver_closed => ExchangeWake::ReceiverClosed,
            _ = self.channel.events.reserve(), if !self.unsent.is_empty() => ExchangeWake::CapacityAvailable,
            heard = self.conversation.next(self.unsent.is_empty()) => ExchangeWake::Output(heard),
            () = reached(deadline) => ExchangeWake::InterruptTimeout,
        }
    }

    fn send(&mut self) {
        while let Some(event) = self.unsent.pop_front() {
            match self.channel.events.try_send(event) {
                Ok(()) => {}
                Err(TrySendError::Full(event)) => return self.unsent.push_front(event),
                Err(TrySendError::Closed(_)) => self.unsent.clear(),
            }
        }
    }

    fn ended(&mut self) -> Option<ExchangeEnd> {
        let is_over = self.finished.is_some()
            && self.unsent.is_empty()
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

    async fn abort(&mut self, ended: ExchangeEnd) -> ExchangeEnd {
        self.flush_with_usage().await;
        self.hopeless.take().map_or(ended, ExchangeEnd::Hopeless)
    }

    /// Sends the remaining events. Without a result line, the usage seen in the stream is reported.
    async fn flush_with_usage(&mut self) {
        if self.finished.is_none() {
            self.unsent.extend(self.conversation.parser.take_unmetered().map(ProviderEvent::from));
        }
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        for event in std::mem::take(&mut self.unsent) {
            if !matches!(timeout_at(deadline, self.channel.events.send(event)).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    fn handle_command(&mut self, command: TurnCommand) {
        match command {
            TurnCommand::Interrupt => self.stop(),
            TurnCommand::Answer { approval, decision, input } => {
                if let Some(to) = self.approvals.remove(&approval) {
                    self.conversation.send_answer(to, decision, input);
                }
            }
            TurnCommand::Steer { message, .. } => {
                self.unsent.push_back(TurnEvent::Steered { message, taken: false }.into());
            }
        }
    }

    fn stop(&mut self) {
        self.stop_requested = true;
        self.send_interrupt();
    }

    fn send_interrupt(&mut self) {
        if self.interrupt.is_none() && self.finished.is_none() {
            let request = self.conversation.send_request(&wire::interrupt());
            self.interrupt =
                Some(PendingInterrupt { request, is_answered: false, deadline: Instant::now() + INTERRUPT_TIMEOUT });
        }
    }

    fn handle_event(&mut self, heard: ClaudeEvent) -> Option<ExchangeEnd> {
        match heard {
            ClaudeEvent::Event(event) => self.forward(event),
            ClaudeEvent::Began => self.prompt_accepted |= self.taken != Some(false),
            ClaudeEvent::Message { uuid, taken } => {
                if uuid == self.uuid && self.taken != Some(true) {
                    self.taken = Some(taken);
                }
            }
            ClaudeEvent::ApprovalRequested { request: question, raw } => self.request_approval(question, raw),
            ClaudeEvent::RequestCancelled { id } => {
                self.withdraw_approvals(|to| matches!(to, ReplyTo::Permission { id: asked, .. } if *asked == id));
            }
            ClaudeEvent::CallCancelled { call } => {
                self.withdraw_approvals(|to| matches!(to, ReplyTo::HostTool { call: asked, .. } if *asked == call));
            }
            ClaudeEvent::Response { id, answer } => {
                if let Some(stop) = self.interrupt.as_mut().filter(|stop| stop.request == id) {
                    // If the interrupt is refused, the deadline ends the turn.
                    stop.is_answered = answer.is_ok();
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
        let is_ours =
            finished.messages.contains(&self.uuid) || (finished.messages.is_empty() && self.taken != Some(false));
        if !is_ours {
            return None;
        }
        if self.is_resumed && !self.prompt_accepted && matches!(finished.end, ClaudeTurnEnd::Failed(_)) {
            return Some(ExchangeEnd::SessionNotFound);
        }
        self.finished = Some(finished.end);
        None
    }

    fn forward(&mut self, reported: ProviderEvent) {
        let is_speech = matches!(reported.event, TurnEvent::Text { .. } | TurnEvent::Thinking { .. });
        // Output before our message is accepted belongs to another message; text after the interrupt is dropped.
        if self.receiver_closed || self.taken == Some(false) || (is_speech && self.stop_requested) {
            return;
        }
        self.unsent.push_back(reported);
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
        self.unsent.push_back(ProviderEvent { event, raw: Some(raw) });
    }

    /// Removes approval requests that the program cancelled, and notifies the room.
    fn withdraw_approvals(&mut self, is_it: impl Fn(&ReplyTo) -> bool) {
        for (id, _) in self.approvals.extract_if(|_, to| is_it(to)) {
            if !self.receiver_closed {
                self.unsent.push_back(TurnEvent::ApprovalWithdrawn { id }.into());
            }
        }
    }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
