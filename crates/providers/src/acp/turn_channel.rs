//! The provider's end of a turn's channel. Sending never waits: events that the engine has no room for are queued here,
//! so that its commands can be received at any time.

use crate::{ProviderEvent, TurnChannel, TurnCommand, TurnEvent};
use std::collections::VecDeque;

/// When this many events are queued, the agent is not read any further.
const QUEUE_CAPACITY: usize = 64;

#[derive(Debug)]
pub struct QueuedTurnChannel {
    channel: TurnChannel,
    queue: VecDeque<ProviderEvent>,
    /// The command sender was dropped.
    commands_closed: bool,
    /// The event receiver was dropped.
    receiver_closed: bool,
}

/// An event on the engine's side of the channel.
#[derive(Debug, PartialEq)]
pub enum TurnChannelEvent {
    Command(TurnCommand),
    /// The queue has room again, so the agent can be read.
    CapacityAvailable,
    /// The event receiver was dropped, which means the same as an interrupt. Returned once.
    ReceiverClosed,
}

impl QueuedTurnChannel {
    pub fn new(channel: TurnChannel) -> Self {
        Self { channel, queue: VecDeque::new(), commands_closed: false, receiver_closed: false }
    }

    pub fn send(&mut self, event: impl Into<ProviderEvent>) {
        if !self.receiver_closed {
            self.queue.push_back(event.into());
        }
    }

    pub fn send_all(&mut self, events: impl IntoIterator<Item = ProviderEvent>) {
        events.into_iter().for_each(|event| self.send(event));
    }

    pub fn has_capacity(&self) -> bool {
        self.queue.len() < QUEUE_CAPACITY
    }

    /// Returns the next event, and sends queued events meanwhile. Cancel safe.
    pub async fn next(&mut self) -> TurnChannelEvent {
        loop {
            if self.receiver_closed {
                return std::future::pending().await;
            }
            let TurnChannel { events, commands } = &mut self.channel;
            tokio::select! {
                command = commands.recv(), if !self.commands_closed => match command {
                    Some(command) => return TurnChannelEvent::Command(command),
                    None => self.commands_closed = true,
                },
                permit = events.reserve(), if !self.queue.is_empty() => match (permit, self.queue.pop_front()) {
                    (Ok(permit), Some(event)) => {
                        permit.send(event);
                        if self.queue.len() + 1 == QUEUE_CAPACITY {
                            return TurnChannelEvent::CapacityAvailable;
                        }
                    }
                    _ => break,
                },
                () = events.closed() => break,
            }
        }
        self.receiver_closed = true;
        self.queue.clear();
        TurnChannelEvent::ReceiverClosed
    }

    /// Returns when the turn must stop. Cancel safe.
    pub async fn wait_for_stop(&mut self) {
        loop {
            match self.next().await {
                TurnChannelEvent::ReceiverClosed | TurnChannelEvent::Command(TurnCommand::Interrupt) => return,
                TurnChannelEvent::Command(TurnCommand::Steer { message, .. }) => {
                    self.send(TurnEvent::Steered { message, taken: false });
                }
                // The request is no longer open.
                TurnChannelEvent::CapacityAvailable | TurnChannelEvent::Command(TurnCommand::Answer { .. }) => {}
            }
        }
    }

    /// Sends all queued events. Commands are no longer received.
    pub async fn flush(mut self) {
        while !self.queue.is_empty() && !self.receiver_closed {
            let queued = self.queue.len();
            let next = async {
                match self.channel.events.reserve().await {
                    Ok(permit) => self.queue.pop_front().map(|event| permit.send(event)),
                    Err(_) => None,
                }
            };
            if next.await.is_none() {
                tracing::debug!(queued, "the event receiver was dropped before the end of a turn");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{QUEUE_CAPACITY, QueuedTurnChannel, TurnChannelEvent};
    use crate::{TurnChannel, TurnEvent};
    use tokio::sync::mpsc::channel;

    #[tokio::test]
    async fn reports_when_a_full_queue_has_room_again() {
        let ((events, mut received), (_commander, commands)) = (channel(1), channel(1));
        let mut channel_end = QueuedTurnChannel::new(TurnChannel { events, commands });
        for _ in 0..QUEUE_CAPACITY + 2 {
            channel_end.send(TurnEvent::ModelCall);
        }
        assert!(!channel_end.has_capacity());
        let listen = async { while received.recv().await.is_some() {} };
        tokio::select! {
            event = channel_end.next() => assert_eq!(event, TurnChannelEvent::CapacityAvailable),
            () = listen => panic!("the channel is open"),
        }
        assert!(channel_end.has_capacity());
    }
}
