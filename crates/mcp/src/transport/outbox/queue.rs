//! What was said on one stream: what waits to be read, and the last of what was. Messages are numbered as they are read, so an
//! event's number says how many came before it.

use super::Trouble;
use crate::logging;
use rmcp::{
    model::{ServerJsonRpcMessage, ServerNotification},
    transport::streamable_http_server::session::ServerSseMessage,
};
use std::{collections::VecDeque, io, sync::Arc, task::Waker};

/// What is kept of what was read.
const READ: usize = 16;
const READ_BYTES: usize = 256 * 1024;
/// Log messages that wait while nobody reads.
const LOGS: usize = 16;
/// Beyond that, the oldest reader ends.
const READERS: usize = 32;

pub struct Said {
    message: Arc<ServerJsonRpcMessage>,
    bytes: usize,
}

impl Said {
    pub fn new(message: ServerJsonRpcMessage) -> Result<Self, Trouble> {
        let mut counted = Counted(0);
        serde_json::to_writer(&mut counted, &message).map_err(Trouble::Unwritable)?;
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

    /// Whoever hears this has no use for `other` any more.
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

struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
pub struct Queue {
    unread: VecDeque<Said>,
    unread_bytes: usize,
    /// The last of them is the one that was taken last.
    read: VecDeque<Said>,
    read_bytes: usize,
    /// How many were taken.
    taken: u64,
    /// How many nobody read in time.
    left_out: u64,
    /// The newest is the last.
    readers: Vec<Reader>,
    next_reader: u64,
}

struct Reader {
    number: u64,
    waker: Option<Waker>,
}

impl Reader {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Queue {
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

    pub fn put(&mut self, said: Said) {
        if let Some(old) = self.unread.iter().position(|old| said.replaces(old)) {
            self.remove(old);
        }
        if said.is_log() && !self.has_reader() {
            let logs = || self.unread.iter().enumerate().filter(|(_, said)| said.is_log());
            if logs().count() >= LOGS
                && let Some((oldest, _)) = logs().next()
            {
                self.remove(oldest);
                self.left_out += 1;
            }
        }
        self.unread_bytes += said.bytes;
        self.unread.push_back(said);
        if let Some(newest) = self.readers.last_mut() {
            newest.wake();
        }
    }

    fn remove(&mut self, index: usize) {
        if let Some(removed) = self.unread.remove(index) {
            self.unread_bytes -= removed.bytes;
        }
    }

    /// With its number.
    pub fn take(&mut self, reader: u64) -> Option<(u64, &Said)> {
        if self.readers.last()?.number != reader {
            return None;
        }
        let said = self.unread.pop_front()?;
        self.unread_bytes -= said.bytes;
        self.read_bytes += said.bytes;
        self.read.push_back(said);
        self.taken += 1;
        while self.read.len() > 1 && (self.read.len() > READ || self.read_bytes > READ_BYTES) {
            self.read_bytes -= self.read.pop_front().map_or(0, |oldest| oldest.bytes);
        }
        Some((self.taken, self.read.back()?))
    }

    /// What was read after the one with this number, as far as it is kept; `None` if there was no such one.
    pub fn after(&mut self, last: u64) -> Option<impl Iterator<Item = (u64, &Said)>> {
        let missed = self.taken.checked_sub(last)?;
        let kept = missed.min(self.read.len() as u64);
        self.left_out += missed - kept;
        let first = self.taken - kept + 1;
        Some((first..).zip(self.read.iter().skip(self.read.len() - kept as usize)))
    }

    /// That something was left out, once. It has no number: who has it has nothing that could be asked for again.
    pub fn notice(&mut self) -> Option<ServerSseMessage> {
        let count = std::mem::take(&mut self.left_out);
        (count > 0).then(|| ServerSseMessage::from_message(logging::left_out(count)))
    }

    pub fn attach(&mut self) -> u64 {
        let number = self.next_reader;
        self.next_reader += 1;
        self.readers.push(Reader { number, waker: None });
        if self.readers.len() > READERS {
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

    #[cfg(feature = "conformance")]
    pub fn detach_all(&mut self) {
        self.wake_all();
        self.readers.clear();
    }

    pub fn wake_all(&mut self) {
        self.readers.iter_mut().for_each(Reader::wake);
    }

    /// `false` if it is no reader any more.
    pub fn wait(&mut self, reader: u64, waker: &Waker) -> bool {
        let waiting = self.readers.iter_mut().find(|other| other.number == reader);
        waiting.map(|waiting| waiting.waker = Some(waker.clone())).is_some()
    }
}
