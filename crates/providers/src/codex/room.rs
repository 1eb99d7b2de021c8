//! The turn's side towards the room: events go out as fast as they are taken, commands come in all the while.

use crate::{Reported, TurnChannel, TurnCommand, TurnEvent};
use domain::ids::MessageId;
use std::{collections::VecDeque, future::Future, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// So much may wait to be taken before the turn stops to listen to its program.
const WAITING: usize = 1024;
/// What is left to say when a turn was told to stop.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub struct Room {
    events: mpsc::Sender<Reported>,
    commands: mpsc::Receiver<TurnCommand>,
    /// Nobody waits for the turn any more, or the server stops.
    given_up: CancellationToken,
    waiting: VecDeque<Reported>,
    told_to_stop: bool,
    commands_ended: bool,
    finishing: bool,
}

#[derive(Debug, PartialEq)]
pub enum Word {
    /// Said once: told to, or nobody listens.
    Stop,
    Answer(TurnCommand),
    Steer {
        message: MessageId,
        text: String,
    },
    /// There is a place again: the program may be listened to.
    Place,
    /// Everything has been sent, and nothing more comes.
    Said,
}

impl Room {
    pub fn new(channel: TurnChannel, given_up: CancellationToken) -> Self {
        Self {
            events: channel.events,
            commands: channel.commands,
            given_up,
            waiting: VecDeque::new(),
            told_to_stop: false,
            commands_ended: false,
            finishing: false,
        }
    }

    pub fn say(&mut self, event: TurnEvent) {
        self.report(event, None);
    }

    pub fn report(&mut self, event: TurnEvent, raw: Option<String>) {
        self.waiting.push_back(Reported { event, raw });
    }

    /// Whether there is a place for more to be said.
    pub fn has_place(&self) -> bool {
        self.waiting.len() < WAITING
    }

    /// The next word for the turn; meanwhile what waits is sent. Cancel safe.
    pub async fn next(&mut self) -> Word {
        loop {
            tokio::select! {
                biased;
                command = self.commands.recv(), if !self.commands_ended => match command {
                    Some(TurnCommand::Interrupt) => {
                        if !std::mem::replace(&mut self.told_to_stop, true) {
                            return Word::Stop;
                        }
                    }
                    Some(TurnCommand::Steer { message, text }) => return Word::Steer { message, text },
                    Some(answer @ TurnCommand::Answer { .. }) => return Word::Answer(answer),
                    None => self.commands_ended = true,
                },
                () = self.given_up.cancelled(), if !self.told_to_stop => {
                    self.told_to_stop = true;
                    return Word::Stop;
                }
                permit = self.events.reserve(), if !self.waiting.is_empty() => match (permit, self.waiting.pop_front()) {
                    (Ok(permit), Some(reported)) => {
                        permit.send(reported);
                        if self.waiting.len() + 1 == WAITING {
                            return Word::Place;
                        }
                    }
                    (Err(_), _) => self.waiting.clear(),
                    (Ok(_), None) => {}
                },
                () = self.events.closed(), if !self.told_to_stop => {
                    self.told_to_stop = true;
                    return Word::Stop;
                }
                () = std::future::ready(()), if self.finishing && self.waiting.is_empty() => return Word::Said,
                // Told to stop, and nobody is there to say more.
                else => std::future::pending::<()>().await,
            }
        }
    }

    /// Waits for something else, with nothing to be answered or steered yet; `None` when told to stop before.
    pub async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                word = self.next() => match word {
                    Word::Stop => return None,
                    Word::Steer { message, .. } => self.say(TurnEvent::Steered { message, taken: false }),
                    Word::Answer(_) | Word::Place | Word::Said => {}
                },
                done = &mut work => return Some(done),
            }
        }
    }

    /// Sends what is left; whoever still speaks to the turn learns that it is over.
    pub async fn finish(mut self) {
        self.finishing = true;
        let mut deadline = Box::pin(tokio::time::sleep(if self.told_to_stop { LAST_WORDS } else { Duration::MAX }));
        loop {
            tokio::select! {
                biased;
                word = self.next() => match word {
                    Word::Said => return,
                    Word::Steer { message, .. } => self.say(TurnEvent::Steered { message, taken: false }),
                    Word::Stop => deadline = Box::pin(tokio::time::sleep(LAST_WORDS)),
                    Word::Answer(_) | Word::Place => {}
                },
                () = &mut deadline => return,
            }
        }
    }
}
