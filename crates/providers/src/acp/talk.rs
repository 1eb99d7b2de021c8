//! The provider's end of a turn's channel. Telling never waits: what the engine has no room for yet stands in line here,
//! so that a word from the engine is heard at any time.

use crate::{Reported, TurnChannel, TurnCommand, TurnEvent};
use std::collections::VecDeque;

/// When so much stands in line, the agent is not read any further.
const ROOM: usize = 64;

#[derive(Debug)]
pub struct Talk {
    channel: TurnChannel,
    line: VecDeque<Reported>,
    /// Nobody can command any more.
    is_mute: bool,
    /// Nobody listens any more.
    is_gone: bool,
}

/// A word from the engine.
#[derive(Debug, PartialEq)]
pub enum Heard {
    Command(TurnCommand),
    /// There is room in the line again: the agent may be read on.
    Room,
    /// Nobody listens any more, which means the same as an interrupt. Said once.
    Gone,
}

impl Talk {
    pub fn new(channel: TurnChannel) -> Self {
        Self { channel, line: VecDeque::new(), is_mute: false, is_gone: false }
    }

    pub fn tell(&mut self, event: impl Into<Reported>) {
        if !self.is_gone {
            self.line.push_back(event.into());
        }
    }

    pub fn tell_all(&mut self, events: impl IntoIterator<Item = Reported>) {
        events.into_iter().for_each(|event| self.tell(event));
    }

    pub fn has_room(&self) -> bool {
        self.line.len() < ROOM
    }

    /// The next word from the engine; what stands in line is told meanwhile. Cancel safe.
    pub async fn next(&mut self) -> Heard {
        loop {
            if self.is_gone {
                return std::future::pending().await;
            }
            let TurnChannel { events, commands } = &mut self.channel;
            tokio::select! {
                command = commands.recv(), if !self.is_mute => match command {
                    Some(command) => return Heard::Command(command),
                    None => self.is_mute = true,
                },
                permit = events.reserve(), if !self.line.is_empty() => match (permit, self.line.pop_front()) {
                    (Ok(permit), Some(event)) => {
                        permit.send(event);
                        if self.line.len() + 1 == ROOM {
                            return Heard::Room;
                        }
                    }
                    _ => break,
                },
                () = events.closed() => break,
            }
        }
        self.is_gone = true;
        self.line.clear();
        Heard::Gone
    }

    /// Returns when the turn is to stop. Cancel safe.
    pub async fn stopped(&mut self) {
        loop {
            match self.next().await {
                Heard::Gone | Heard::Command(TurnCommand::Interrupt) => return,
                Heard::Command(TurnCommand::Steer { message, .. }) => {
                    self.tell(TurnEvent::Steered { message, taken: false });
                }
                // Of something that is no longer open.
                Heard::Room | Heard::Command(TurnCommand::Answer { .. }) => {}
            }
        }
    }

    /// Returns when everything is told. It is too late for words from the engine.
    pub async fn finish(mut self) {
        while !self.line.is_empty() && !self.is_gone {
            let line = self.line.len();
            let next = async {
                match self.channel.events.reserve().await {
                    Ok(permit) => self.line.pop_front().map(|event| permit.send(event)),
                    Err(_) => None,
                }
            };
            if next.await.is_none() {
                tracing::debug!(line, "nobody listens to the end of a turn");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Heard, ROOM, Talk};
    use crate::{TurnChannel, TurnEvent};
    use tokio::sync::mpsc::channel;

    #[tokio::test]
    async fn whoever_waits_for_room_in_a_full_line_is_told_of_it() {
        let ((events, mut told), (_commander, commands)) = (channel(1), channel(1));
        let mut talk = Talk::new(TurnChannel { events, commands });
        for _ in 0..ROOM + 2 {
            talk.tell(TurnEvent::ModelCall);
        }
        assert!(!talk.has_room());
        let listen = async { while told.recv().await.is_some() {} };
        tokio::select! {
            heard = talk.next() => assert_eq!(heard, Heard::Room),
            () = listen => panic!("the channel is open"),
        }
        assert!(talk.has_room());
    }
}
