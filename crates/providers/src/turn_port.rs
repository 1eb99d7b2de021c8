//! The provider's end of a turn's channel. Sending never waits: events that the engine has no room for are queued here,
//! so that its commands are received at any time. A provider reads its program or model only while [`TurnPort`] has
//! capacity, so a slow engine slows them down.

use crate::{AttachedFile, ProviderEvent, TurnChannel, TurnCommand, TurnEvent};
use domain::{
    event::Decision,
    ids::{ApprovalId, MessageId},
};
use serde_json::Value;
use std::{collections::VecDeque, future::Future, pin::pin, time::Duration};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

/// With this many events in the queue, nothing more is read, unless the provider needs another limit.
const QUEUE_CAPACITY: usize = 64;
/// How long a stopped turn may take to send its remaining events.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct TurnPort {
    events: mpsc::Sender<ProviderEvent>,
    commands: mpsc::Receiver<TurnCommand>,
    /// Also stops the turn, for a provider whose turn outlives its future.
    abandoned: CancellationToken,
    queue: VecDeque<ProviderEvent>,
    capacity: usize,
    stop_requested: bool,
    commands_ended: bool,
    keeps_raw: bool,
}

#[derive(Debug, PartialEq)]
pub enum PortEvent {
    /// The turn must stop: it was interrupted or abandoned, or the event receiver was dropped. Returned once.
    Stop,
    ResolveApproval {
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
    },
    Steer {
        message: MessageId,
        text: String,
        /// Their paths are in the text.
        attachments: Vec<AttachedFile>,
    },
    /// The command sender was dropped: nobody can answer any more. Returned once.
    CommandsEnded,
    /// The queue was full and has room again, or it was sent to its end.
    Sent,
}

impl TurnPort {
    pub fn new(channel: TurnChannel) -> Self {
        let TurnChannel { events, commands, keeps_raw } = channel;
        Self {
            events,
            commands,
            abandoned: CancellationToken::new(),
            queue: VecDeque::new(),
            capacity: QUEUE_CAPACITY,
            stop_requested: false,
            commands_ended: false,
            keeps_raw,
        }
    }

    /// For a provider whose turns share a program: a turn that does not read on holds up the others.
    pub fn with_capacity(self, capacity: usize) -> Self {
        Self { capacity, ..self }
    }

    /// The turn must also stop when `abandoned` is cancelled.
    pub fn abandoned_by(self, abandoned: CancellationToken) -> Self {
        Self { abandoned, ..self }
    }

    /// Sends the event now, if the engine has room for it, or queues it.
    pub fn send(&mut self, event: impl Into<ProviderEvent>) {
        let event = event.into();
        if !self.queue.is_empty() {
            return self.queue.push_back(event);
        }
        match self.events.try_send(event) {
            Err(TrySendError::Full(event)) => self.queue.push_back(event),
            // Nobody receives it.
            Ok(()) | Err(TrySendError::Closed(_)) => {}
        }
    }

    pub fn keeps_raw(&self) -> bool {
        self.keeps_raw
    }

    /// Adds the provider's message to the first of its events, if the room keeps it for every piece of an answer.
    pub fn keep_raw(&self, events: &mut [ProviderEvent], raw: &str) {
        if let (true, Some(first)) = (self.keeps_raw, events.first_mut()) {
            first.raw.get_or_insert_with(|| raw.to_owned());
        }
    }

    pub fn send_all(&mut self, events: impl IntoIterator<Item = ProviderEvent>) {
        events.into_iter().for_each(|event| self.send(event));
    }

    /// Reports that a steered message is not part of this turn.
    pub fn decline(&mut self, message: MessageId) {
        self.send(TurnEvent::Steered { message, taken: false });
    }

    /// Whether the provider may read more.
    pub fn has_capacity(&self) -> bool {
        self.queue.len() < self.capacity
    }

    /// Whether the engine has received all events, or never will.
    pub fn is_flushed(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn stop_requested(&self) -> bool {
        self.stop_requested
    }

    /// Whether the command sender was dropped.
    pub fn commands_ended(&self) -> bool {
        self.commands_ended
    }

    /// Whether the event receiver was dropped.
    pub fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    /// Returns when the event receiver was dropped.
    pub async fn closed(&self) {
        self.events.closed().await;
    }

    /// Returns the next event, and sends queued events meanwhile. Cancel safe.
    pub async fn next(&mut self) -> PortEvent {
        loop {
            tokio::select! {
                biased;
                command = self.commands.recv(), if !self.commands_ended => match command {
                    Some(command) => {
                        if let Some(event) = event_of(command, &mut self.stop_requested) {
                            return event;
                        }
                    }
                    None => {
                        self.commands_ended = true;
                        return PortEvent::CommandsEnded;
                    }
                },
                () = self.abandoned.cancelled(), if !self.stop_requested => return stop(&mut self.stop_requested),
                permit = self.events.reserve(), if !self.queue.is_empty() => match (permit, self.queue.pop_front()) {
                    (Ok(permit), Some(event)) => {
                        permit.send(event);
                        if self.queue.is_empty() || self.queue.len() + 1 == self.capacity {
                            return PortEvent::Sent;
                        }
                    }
                    (Ok(_), None) => {}
                    (Err(_), _) => {
                        self.queue.clear();
                        return PortEvent::Sent;
                    }
                },
                () = self.events.closed(), if !self.stop_requested => return stop(&mut self.stop_requested),
                // The turn was stopped, and no more commands can arrive.
                else => std::future::pending::<()>().await,
            }
        }
    }

    /// Returns a command that has already arrived.
    pub fn try_next(&mut self) -> Option<PortEvent> {
        while let Ok(command) = self.commands.try_recv() {
            if let Some(event) = event_of(command, &mut self.stop_requested) {
                return Some(event);
            }
        }
        None
    }

    /// Waits for `work` while no prompt is running. Returns `None` and drops it if the turn is stopped first. Not for
    /// futures that own a process, because a process must be stopped with a receipt.
    pub async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                event = self.next() => match event {
                    PortEvent::Stop => return None,
                    PortEvent::Steer { message, .. } => self.decline(message),
                    // No request is open.
                    PortEvent::ResolveApproval { .. } | PortEvent::CommandsEnded | PortEvent::Sent => {}
                },
                done = &mut work => return Some(done),
            }
        }
    }

    /// Sends the remaining events, and declines late steers.
    pub async fn finish(mut self) {
        let mut deadline = Box::pin(sleep(if self.stop_requested { FLUSH_TIMEOUT } else { Duration::MAX }));
        while !self.is_flushed() {
            tokio::select! {
                biased;
                event = self.next() => match event {
                    PortEvent::Steer { message, .. } => self.decline(message),
                    PortEvent::Stop => deadline = Box::pin(sleep(FLUSH_TIMEOUT)),
                    PortEvent::ResolveApproval { .. } | PortEvent::CommandsEnded | PortEvent::Sent => {}
                },
                () = &mut deadline => return,
            }
        }
        // A steer that arrived with the last events would otherwise wait for a reply.
        while let Some(event) = self.try_next() {
            if let PortEvent::Steer { message, .. } = event {
                self.decline(message);
            }
        }
    }
}

/// Returns `None` for a second interrupt.
fn event_of(command: TurnCommand, stop_requested: &mut bool) -> Option<PortEvent> {
    match command {
        TurnCommand::Interrupt if *stop_requested => None,
        TurnCommand::Interrupt => Some(stop(stop_requested)),
        TurnCommand::ResolveApproval { approval, decision, input } => {
            Some(PortEvent::ResolveApproval { approval, decision, input })
        }
        TurnCommand::Steer { message, text, attachments } => Some(PortEvent::Steer { message, text, attachments }),
    }
}

fn stop(stop_requested: &mut bool) -> PortEvent {
    *stop_requested = true;
    PortEvent::Stop
}

#[cfg(test)]
mod tests {
    use super::{PortEvent, QUEUE_CAPACITY, TurnPort};
    use crate::{ProviderEvent, TurnChannel, TurnCommand, TurnEvent};
    use domain::ids::MessageId;
    use std::time::Duration;
    use tokio::{
        sync::mpsc::{self, channel},
        time::{Instant, timeout},
    };
    use tokio_util::sync::CancellationToken;

    type TestPort = (TurnPort, mpsc::Receiver<ProviderEvent>, mpsc::Sender<TurnCommand>);

    fn port(capacity: usize) -> TestPort {
        let ((events, received), (commander, commands)) = (channel(capacity), channel(4));
        (TurnPort::new(TurnChannel { events, commands, keeps_raw: false }), received, commander)
    }

    #[tokio::test]
    async fn a_full_queue_reports_when_it_has_room_again() {
        let (mut port, mut received, _commander) = port(1);
        for _ in 0..QUEUE_CAPACITY + 2 {
            port.send(TurnEvent::ModelCall);
        }
        assert!(!port.has_capacity());
        let listen = async { while received.recv().await.is_some() {} };
        tokio::select! {
            event = port.next() => assert_eq!(event, PortEvent::Sent),
            () = listen => panic!("the channel is open"),
        }
        assert!(port.has_capacity() && !port.is_flushed());
    }

    #[tokio::test]
    async fn events_arrive_in_order_and_the_queue_reports_its_end() {
        let (mut port, mut received, _commander) = port(2);
        for number in 0..5 {
            port.send(TurnEvent::Text { delta: format!("{number}"), item: None });
        }
        let mut text = String::new();
        while !port.is_flushed() {
            tokio::select! {
                event = port.next() => assert_eq!(event, PortEvent::Sent),
                Some(ProviderEvent { event: TurnEvent::Text { delta, .. }, .. }) = received.recv() => text.push_str(&delta),
            }
        }
        drop(port);
        while let Some(ProviderEvent { event: TurnEvent::Text { delta, .. }, .. }) = received.recv().await {
            text.push_str(&delta);
        }
        assert_eq!(text, "01234");
    }

    #[tokio::test]
    async fn a_stop_is_reported_once_whatever_its_causes() {
        let (mut port, received, commander) = port(1);
        commander.send(TurnCommand::Interrupt).await.unwrap();
        commander.send(TurnCommand::Interrupt).await.unwrap();
        assert_eq!(port.next().await, PortEvent::Stop);
        drop((received, commander));
        assert_eq!(port.next().await, PortEvent::CommandsEnded);
        assert!(timeout(Duration::from_millis(20), port.next()).await.is_err());

        let (abandoned, ((events, _received), (_commander, commands))) =
            (CancellationToken::new(), (channel(1), channel(1)));
        let mut port =
            TurnPort::new(TurnChannel { events, commands, keeps_raw: false }).abandoned_by(abandoned.clone());
        abandoned.cancel();
        assert_eq!(port.next().await, PortEvent::Stop);
    }

    #[tokio::test]
    async fn work_ends_with_a_stop_and_steers_before_the_prompt_are_declined() {
        let (mut port, mut received, commander) = port(4);
        assert_eq!(port.unless_stopped(async { 1 }).await, Some(1));
        let message = MessageId::generate();
        commander.send(TurnCommand::Steer { message, text: "also".into(), attachments: Vec::new() }).await.unwrap();
        commander.send(TurnCommand::Interrupt).await.unwrap();
        assert_eq!(port.unless_stopped(std::future::pending::<()>()).await, None);
        assert_eq!(received.recv().await.unwrap().event, TurnEvent::Steered { message, taken: false });
        drop(commander);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_turn_does_not_wait_long_for_a_slow_receiver() {
        let (mut port, _received, commander) = port(1);
        port.send(TurnEvent::ModelCall);
        port.send(TurnEvent::ModelCall);
        commander.send(TurnCommand::Interrupt).await.unwrap();
        assert_eq!(port.next().await, PortEvent::Stop);
        let since = Instant::now();
        port.finish().await;
        assert_eq!(since.elapsed(), super::FLUSH_TIMEOUT);
    }

    #[tokio::test]
    async fn the_end_of_a_turn_declines_a_late_steer() {
        let (port, mut received, commander) = port(4);
        let message = MessageId::generate();
        commander.send(TurnCommand::Steer { message, text: "late".into(), attachments: Vec::new() }).await.unwrap();
        port.finish().await;
        assert_eq!(received.recv().await.unwrap().event, TurnEvent::Steered { message, taken: false });
        assert!(received.recv().await.is_none());
    }
}
