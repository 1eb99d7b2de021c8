//! One prompt and what comes of it: words pass on as they come, questions go to the room and their answers back, and
//! wherever it waits it also listens for the word to stop.

use super::{
    asks::{Question, ReplyTo},
    conversation::{Broken, Conversation, Heard},
    failure::{End, Finished},
    wire,
};
use crate::{Reported, TurnChannel, TurnCommand, TurnEvent};
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

/// How long the program may take to stop when it is asked to.
const INTERRUPT: Duration = Duration::from_secs(3);
/// How long what is left to say may take to be taken, when the program is of no more use.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// No model calls so many tools at once.
const MAX_OPEN_QUESTIONS: usize = 256;

/// What came of a prompt.
#[derive(Debug)]
pub(super) struct Outcome {
    pub ended: Ended,
    /// Whether the program took the prompt into its conversation.
    pub began: bool,
    /// Whether anything at all was heard.
    pub heard: bool,
    pub told_to_stop: bool,
}

#[derive(Debug)]
pub(super) enum Ended {
    /// The program is at rest and can take the next prompt.
    Resting(End),
    /// The conversation that was to be resumed is not there.
    SessionGone,
    /// It would try on and on without hope; it was told to stop.
    Hopeless(RunError),
    /// It was told to stop and did not.
    Stuck,
    Broken(Broken),
}

pub(super) struct Exchange<'a> {
    conversation: &'a mut Conversation,
    channel: &'a mut TurnChannel,
    uuid: String,
    is_resumed: bool,
    /// Parsed, but not taken yet. Nothing more is read while there are such, so a slow reader slows the program down.
    unsent: VecDeque<Reported>,
    questions: HashMap<ApprovalId, ReplyTo>,
    stop: Option<Stop>,
    hopeless: Option<RunError>,
    finished: Option<End>,
    /// `None` in versions that do not say which message they answer.
    taken: Option<bool>,
    began: bool,
    heard: bool,
    told_to_stop: bool,
    commands_ended: bool,
    nobody_listens: bool,
}

/// What woke the loop.
enum Wake {
    Command(Option<TurnCommand>),
    NobodyListens,
    /// There is room for what was not taken yet.
    Room,
    Heard(Result<Vec<Heard>, Broken>),
    OutOfPatience,
}

/// An interrupt that was sent.
struct Stop {
    request: String,
    is_answered: bool,
    deadline: Instant,
}

impl<'a> Exchange<'a> {
    pub fn new(conversation: &'a mut Conversation, channel: &'a mut TurnChannel, is_resumed: bool) -> Self {
        Self {
            conversation,
            channel,
            uuid: MessageId::generate().to_string(),
            is_resumed,
            unsent: VecDeque::new(),
            questions: HashMap::new(),
            stop: None,
            hopeless: None,
            finished: None,
            taken: None,
            began: false,
            heard: false,
            told_to_stop: false,
            commands_ended: false,
            nobody_listens: false,
        }
    }

    pub async fn run(mut self, prompt: &str) -> Outcome {
        self.conversation.parser.begin();
        self.conversation.say(&wire::user(prompt, &self.uuid));
        let ended = self.until_the_end().await;
        Outcome { ended, began: self.began, heard: self.heard, told_to_stop: self.told_to_stop }
    }

    async fn until_the_end(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            match self.wait().await {
                Wake::Command(Some(command)) => self.obey(command),
                Wake::Command(None) => self.commands_ended = true,
                Wake::NobodyListens => {
                    self.nobody_listens = true;
                    self.unsent.clear();
                    self.stop();
                }
                Wake::Room => self.send(),
                Wake::Heard(Ok(heard)) => {
                    // A program that never pauses must not keep its thread from others.
                    consume_budget().await;
                    for heard in heard {
                        self.heard = true;
                        if let Some(gone) = self.hear(heard) {
                            return gone;
                        }
                    }
                    self.send();
                }
                Wake::Heard(Err(broken)) => return self.given_up(Ended::Broken(broken)).await,
                Wake::OutOfPatience => return self.given_up(Ended::Stuck).await,
            }
        }
    }

    async fn wait(&mut self) -> Wake {
        let deadline = self.stop.as_ref().map(|stop| stop.deadline);
        tokio::select! {
            biased;
            command = self.channel.commands.recv(), if !self.commands_ended => Wake::Command(command),
            () = self.channel.events.closed(), if !self.nobody_listens => Wake::NobodyListens,
            _ = self.channel.events.reserve(), if !self.unsent.is_empty() => Wake::Room,
            heard = self.conversation.next(self.unsent.is_empty()) => Wake::Heard(heard),
            () = at(deadline) => Wake::OutOfPatience,
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

    fn ended(&mut self) -> Option<Ended> {
        let is_over = self.finished.is_some()
            && self.unsent.is_empty()
            // An interrupt that is still on its way would hit the next prompt.
            && self.stop.as_ref().is_none_or(|stop| stop.is_answered);
        if !is_over {
            return None;
        }
        Some(match (self.hopeless.take(), self.finished.take()?) {
            (Some(error), _) => Ended::Hopeless(error),
            (None, end) => Ended::Resting(end),
        })
    }

    async fn given_up(&mut self, ended: Ended) -> Ended {
        self.meter_the_rest().await;
        self.hopeless.take().map_or(ended, Ended::Hopeless)
    }

    /// Without a result, what the stream told is all there is.
    async fn meter_the_rest(&mut self) {
        if self.finished.is_none() {
            self.unsent.extend(self.conversation.parser.unmetered().map(Reported::from));
        }
        let deadline = Instant::now() + LAST_WORDS;
        for event in std::mem::take(&mut self.unsent) {
            if !matches!(timeout_at(deadline, self.channel.events.send(event)).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    fn obey(&mut self, command: TurnCommand) {
        match command {
            TurnCommand::Interrupt => self.stop(),
            TurnCommand::Answer { approval, decision, input } => {
                if let Some(to) = self.questions.remove(&approval) {
                    self.conversation.answer(to, decision, input);
                }
            }
            TurnCommand::Steer { message, .. } => {
                self.unsent.push_back(TurnEvent::Steered { message, taken: false }.into());
            }
        }
    }

    fn stop(&mut self) {
        self.told_to_stop = true;
        self.interrupt();
    }

    fn interrupt(&mut self) {
        if self.stop.is_none() && self.finished.is_none() {
            let request = self.conversation.request(&wire::interrupt());
            self.stop = Some(Stop { request, is_answered: false, deadline: Instant::now() + INTERRUPT });
        }
    }

    fn hear(&mut self, heard: Heard) -> Option<Ended> {
        match heard {
            Heard::Event(event) => self.pass_on(event),
            Heard::Began => self.began |= self.taken != Some(false),
            Heard::Message { uuid, taken } => {
                if uuid == self.uuid && self.taken != Some(true) {
                    self.taken = Some(taken);
                }
            }
            Heard::Question { question, raw } => self.ask(question, raw),
            Heard::Withdrawn { id } => {
                self.withdraw(|to| matches!(to, ReplyTo::Permission { id: asked, .. } if *asked == id));
            }
            Heard::CallCancelled { call } => {
                self.withdraw(|to| matches!(to, ReplyTo::HostTool { call: asked, .. } if *asked == call));
            }
            Heard::Answered { id, answer } => {
                if let Some(stop) = self.stop.as_mut().filter(|stop| stop.request == id) {
                    // A no means that it cannot be interrupted: then the deadline ends it.
                    stop.is_answered = answer.is_ok();
                }
            }
            Heard::Hopeless(error) => {
                self.hopeless.get_or_insert(error);
                self.interrupt();
            }
            Heard::Finished(finished) => return self.finish(finished),
        }
        None
    }

    fn finish(&mut self, finished: Finished) -> Option<Ended> {
        let is_ours =
            finished.messages.contains(&self.uuid) || (finished.messages.is_empty() && self.taken != Some(false));
        if !is_ours {
            return None;
        }
        if self.is_resumed && !self.began && matches!(finished.end, End::Failed(_)) {
            return Some(Ended::SessionGone);
        }
        self.finished = Some(finished.end);
        None
    }

    fn pass_on(&mut self, reported: Reported) {
        let is_speech = matches!(reported.event, TurnEvent::Text { .. } | TurnEvent::Thinking { .. });
        // What is said before our message is taken is not said to us; what is said after the stop does not count.
        if self.nobody_listens || self.taken == Some(false) || (is_speech && self.told_to_stop) {
            return;
        }
        self.unsent.push_back(reported);
    }

    fn ask(&mut self, question: Question, raw: String) {
        let Question { to, name, input, tool_use_id, is_question } = question;
        if self.stop.is_some() {
            // The interrupt withdraws it.
            return;
        }
        if self.questions.len() >= MAX_OPEN_QUESTIONS {
            return self.conversation.answer(to, Decision::Expired, None);
        }
        let id = ApprovalId::generate();
        self.questions.insert(id, to);
        let event = TurnEvent::Approval { id, tool_use_id, name, input, is_question };
        self.unsent.push_back(Reported { event, raw: Some(raw) });
    }

    /// Forgets what the program no longer asks, and tells the room, which would wait for an answer to it.
    fn withdraw(&mut self, is_it: impl Fn(&ReplyTo) -> bool) {
        for (id, _) in self.questions.extract_if(|_, to| is_it(to)) {
            if !self.nobody_listens {
                self.unsent.push_back(TurnEvent::Withdrawn { id }.into());
            }
        }
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
