//! The messages of one stream: unread ones, and the last ones that were read. Messages are numbered when they are read,
//! so an event's number says how many came before it.

use super::OutboxError;
use crate::logging;
use rmcp::{
    model::{ServerJsonRpcMessage, ServerNotification},
    transport::streamable_http_server::session::ServerSseMessage,
};
use std::{collections::VecDeque, io, sync::Arc, task::Waker};

/// Messages kept after they were read.
const MAX_READ: usize = 16;
const MAX_READ_BYTES: usize = 256 * 1024;
/// Unread log messages kept while there is no reader.
const MAX_UNREAD_LOGS: usize = 16;
/// With more readers, the oldest one ends.
const MAX_READERS: usize = 32;

pub struct OutboxMessage {
    message: Arc<ServerJsonRpcMessage>,
    bytes: usize,
}

impl OutboxMessage {
    pub fn new(message: ServerJsonRpcMessage) -> Result<Self, OutboxError> {
        let mut counted = ByteCounter(0);
        serde_json::to_writer(&mut counted, &message).map_err(OutboxError::Serialize)?;
        Ok(Self { message: Arc::new(message), bytes: counted.0 })
    }

    pub fn message(&self) -> &ServerJsonRpcMessage {
        &self.message
    }

    pub fn into_message(self) -> ServerJsonRpcMessage {
        Arc::unwrap_or_clone(self.message)
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn event(&self, id: String) -> ServerSseMessage {
        let mut event = ServerSseMessage::default();
        event.event_id = Some(id);
        event.message = Some(Arc::clone(&self.message));
        event
    }

    pub fn is_log(&self) -> bool {
        matches!(self.notification(), Some(ServerNotification::LoggingMessageNotification(_)))
    }

    fn notification(&self) -> Option<&ServerNotification> {
        match &*self.message {
            ServerJsonRpcMessage::Notification(notification) => Some(&notification.notification),
            _ => None,
        }
    }

    /// Returns whether this message makes `other` obsolete.
    fn replaces(&self, other: &Self) -> bool {
        use ServerNotification as N;
        let (Some(new), Some(old)) = (self.notification(), other.notification()) else { return false };
        match (new, old) {
            (N::ToolListChangedNotification(_), N::ToolListChangedNotification(_))
            | (N::PromptListChangedNotification(_), N::PromptListChangedNotification(_))
            | (N::ResourceListChangedNotification(_), N::ResourceListChangedNotification(_)) => true,
            (N::ResourceUpdatedNotification(new), N::ResourceUpdatedNotification(old)) => {
                new.params.uri == old.params.uri
            }
            (N::ProgressNotification(new), N::ProgressNotification(old)) => {
                new.params.progress_token == old.params.progress_token
            }
            _ => false,
        }
    }
}

struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
pub struct MessageQueue {
    unread: VecDeque<OutboxMessage>,
    unread_bytes: usize,
    /// The last entry was taken last.
    read: VecDeque<OutboxMessage>,
    read_bytes: usize,
    /// How many messages were taken.
    taken: u64,
    /// How many messages were dropped unread.
    left_out: u64,
    /// The newest reader is the last.
    readers: Vec<QueueReader>,
    next_reader: u64,
}

struct QueueReader {
    number: u64,
    waker: Option<Waker>,
}

impl QueueReader {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl MessageQueue {
    pub fn unread(&self) -> usize {
        self.unread.len()
    }

    pub fn unread_bytes(&self) -> usize {
        self.unread_bytes
    }

    pub fn bytes(&self) -> usize {
        self.unread_bytes + self.read_bytes
    }

    pub fn taken(&self) -> u64 {
        self.taken
    }

    pub fn has_reader(&self) -> bool {
        !self.readers.is_empty()
    }

    pub fn put(&mut self, queued: OutboxMessage) {
        if let Some(old) = self.unread.iter().position(|old| queued.replaces(old)) {
            self.remove(old);
        }
        if queued.is_log() && !self.has_reader() {
            let logs = || self.unread.iter().enumerate().filter(|(_, queued)| queued.is_log());
            if logs().count() >= MAX_UNREAD_LOGS
                && let Some((oldest, _)) = logs().next()
            {
                self.remove(oldest);
                self.left_out += 1;
            }
        }
        self.unread_bytes += queued.bytes;
        self.unread.push_back(queued);
        if let Some(newest) = self.readers.last_mut() {
            newest.wake();
        }
    }

    fn remove(&mut self, index: usize) {
        if let Some(removed) = self.unread.remove(index) {
            self.unread_bytes -= removed.bytes;
        }
    }

    /// Takes the next message with its number, if `reader` is the newest.
    pub fn take(&mut self, reader: u64) -> Option<(u64, &OutboxMessage)> {
        if self.readers.last()?.number != reader {
            return None;
        }
        let queued = self.unread.pop_front()?;
        self.unread_bytes -= queued.bytes;
        self.read_bytes += queued.bytes;
        self.read.push_back(queued);
        self.taken += 1;
        while self.read.len() > 1 && (self.read.len() > MAX_READ || self.read_bytes > MAX_READ_BYTES) {
            self.read_bytes -= self.read.pop_front().map_or(0, |oldest| oldest.bytes);
        }
        Some((self.taken, self.read.back()?))
    }

    /// Returns the kept messages after this number, or `None` if the number was never used.
    pub fn after(&mut self, last: u64) -> Option<impl Iterator<Item = (u64, &OutboxMessage)>> {
        let missed = self.taken.checked_sub(last)?;
        let kept = missed.min(self.read.len() as u64);
        self.left_out += missed - kept;
        let first = self.taken - kept + 1;
        Some((first..).zip(self.read.iter().skip(self.read.len() - kept as usize)))
    }

    /// Returns a notice if messages were dropped, once. It has no number, because a client cannot resume from it.
    pub fn left_out_notice(&mut self) -> Option<ServerSseMessage> {
        let count = std::mem::take(&mut self.left_out);
        (count > 0).then(|| ServerSseMessage::from_message(logging::left_out_notice(count)))
    }

    pub fn attach(&mut self) -> u64 {
        let number = self.next_reader;
        self.next_reader += 1;
        self.readers.push(QueueReader { number, waker: None });
        if self.readers.len() > MAX_READERS {
            self.readers.remove(0).wake();
        }
        number
    }

    pub fn detach(&mut self, reader: u64) {
        self.readers.retain(|other| other.number != reader);
        if let Some(newest) = self.readers.last_mut() {
            newest.wake();
        }
    }

    #[cfg(feature = "test-hooks")]
    pub fn detach_all(&mut self) {
        self.wake_all();
        self.readers.clear();
    }

    pub fn wake_all(&mut self) {
        self.readers.iter_mut().for_each(QueueReader::wake);
    }

    /// Returns `false` if the reader was removed.
    pub fn wait(&mut self, reader: u64, waker: &Waker) -> bool {
        let waiting = self.readers.iter_mut().find(|other| other.number == reader);
        waiting.map(|waiting| waiting.waker = Some(waker.clone())).is_some()
    }
}
