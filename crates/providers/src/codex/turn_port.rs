//! The turn's connection to the engine: queues outgoing events, and receives commands at any time.

use crate::{ProviderEvent, TurnChannel, TurnCommand, TurnEvent};
use domain::ids::MessageId;
use std::{collections::VecDeque, future::Future, time::Duration};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Maximum number of queued events; above this, the turn does not read from its program.
const QUEUE_CAPACITY: usize = 1024;
/// How long a stopped turn may take to send its remaining events.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

pub struct TurnPort {
    events: mpsc::Sender<ProviderEvent>,
    commands: mpsc::Receiver<TurnCommand>,
    /// Cancelled when the turn's future is dropped or the server shuts down.
    abandoned: CancellationToken,
    queue: VecDeque<ProviderEvent>,
    stop_requested: bool,
    commands_ended: bool,
    finishing: bool,
}

#[derive(Debug, PartialEq)]
pub enum PortEvent {
    /// The turn must stop: it was interrupted, or the event receiver is closed. Sent once.
    Stop,
    Answer(TurnCommand),
    Steer {
        message: MessageId,
        text: String,
    },
    /// The queue has room again, so the program can be read.
    CapacityAvailable,
    /// All events have been sent.
    Flushed,
}

impl TurnPort {
    pub fn new(channel: TurnChannel, abandoned: CancellationToken) -> Self {
        Self {
            events: channel.events,
            commands: channel.commands,
            abandoned,
            queue: VecDeque::new(),
            stop_requested: false,
            commands_ended: false,
            finishing: false,
        }
    }

    pub fn send(&mut self, event: TurnEvent) {
        self.send_with_raw(event, None);
    }

    pub fn send_with_raw(&mut self, event: TurnEvent, raw: Option<String>) {
        self.queue.push_back(ProviderEvent { event, raw });
    }

    /// Whether the queue has room for more events.
    pub fn has_capacity(&self) -> bool {
        self.queue.len() < QUEUE_CAPACITY
    }

    /// Returns the next event for the turn, and sends queued events meanwhile. Cancel safe.
    pub async fn next(&mut self) -> PortEvent {
        loop {
            tokio::select! {
                biased;
                command = self.commands.recv(), if !self.commands_ended => match command {
                    Some(TurnCommand::Interrupt) => {
                        if !std::mem::replace(&mut self.stop_requested, true) {
                            return PortEvent::Stop;
                        }
                    }
                    Some(TurnCommand::Steer { message, text }) => return PortEvent::Steer { message, text },
                    Some(answer @ TurnCommand::Answer { .. }) => return PortEvent::Answer(answer),
                    None => self.commands_ended = true,
                },
                () = self.abandoned.cancelled(), if !self.stop_requested => {
                    self.stop_requested = true;
                    return PortEvent::Stop;
                }
                permit = self.events.reserve(), if !self.queue.is_empty() => match (permit, self.queue.pop_front()) {
                    (Ok(permit), Some(reported)) => {
                        permit.send(reported);
                        if self.queue.len() + 1 == QUEUE_CAPACITY {
                            return PortEvent::CapacityAvailable;
                        }
                    }
                    (Err(_), _) => self.queue.clear(),
                    (Ok(_), None) => {}
                },
                () = self.events.closed(), if !self.stop_requested => {
                    self.stop_requested = true;
                    return PortEvent::Stop;
                }
                () = std::future::ready(()), if self.finishing && self.queue.is_empty() => return PortEvent::Flushed,
                // The turn was stopped, and no more commands can arrive.
                else => std::future::pending::<()>().await,
            }
        }
    }

    /// Waits for `work` before the turn has started; `None` if the turn is stopped first.
    pub async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                event = self.next() => match event {
                    PortEvent::Stop => return None,
                    PortEvent::Steer { message, .. } => self.send(TurnEvent::Steered { message, taken: false }),
                    PortEvent::Answer(_) | PortEvent::CapacityAvailable | PortEvent::Flushed => {}
                },
                done = &mut work => return Some(done),
            }
        }
    }

    /// Sends the remaining events, and declines late steers.
    pub async fn finish(mut self) {
        self.finishing = true;
        let mut deadline =
            Box::pin(tokio::time::sleep(if self.stop_requested { FLUSH_TIMEOUT } else { Duration::MAX }));
        loop {
            tokio::select! {
                biased;
                event = self.next() => match event {
                    PortEvent::Flushed => return,
                    PortEvent::Steer { message, .. } => self.send(TurnEvent::Steered { message, taken: false }),
                    PortEvent::Stop => deadline = Box::pin(tokio::time::sleep(FLUSH_TIMEOUT)),
                    PortEvent::Answer(_) | PortEvent::CapacityAvailable => {}
                },
                () = &mut deadline => return,
            }
        }
    }
}
