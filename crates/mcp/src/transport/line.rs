//! What a session's client says on its way in, and what the server says on its way out. The same for both transports; how it
//! is carried is their business.

use super::outbox::{Outbox, PATIENCE, Reading, Trouble};
use futures_util::Stream;
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ClientNotification, GetMeta as _, ServerJsonRpcMessage},
    transport::{
        Transport,
        streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager},
    },
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{sync::mpsc, time::timeout};

/// What the client said and nobody has read yet.
const INBOX: usize = 32;

pub struct Line {
    inbox: mpsc::Sender<Box<ClientJsonRpcMessage>>,
    pub outbox: Arc<Outbox>,
}

/// Why something could not be said to the server.
#[derive(Debug)]
pub enum Unsaid {
    Over,
    /// More is under way than can be taken.
    Full,
}

impl Line {
    pub fn new() -> (Self, ServerEnd) {
        let (inbox, messages) = mpsc::channel(INBOX);
        let outbox = Arc::<Outbox>::default();
        (Self { inbox, outbox: Arc::clone(&outbox) }, ServerEnd { inbox: messages, outbox })
    }

    async fn room(&self) -> Result<mpsc::Permit<'_, Box<ClientJsonRpcMessage>>, Unsaid> {
        match timeout(PATIENCE, self.inbox.reserve()).await {
            Ok(Ok(room)) => Ok(room),
            Ok(Err(_)) => Err(Unsaid::Over),
            Err(_) => Err(Unsaid::Full),
        }
    }

    pub async fn say(&self, message: ClientJsonRpcMessage) -> Result<(), Unsaid> {
        self.room().await?.send(Box::new(message));
        Ok(())
    }

    /// A message whose answer goes out on a stream of its own.
    async fn call(&self, message: ClientJsonRpcMessage) -> Result<Reading, Trouble> {
        let ClientJsonRpcMessage::Request(request) = &message else { return Err(Trouble::UnknownEvent) };
        let (id, token) = (request.id.clone(), request.request.get_meta().get_progress_token());
        // First the room: a call that has begun is sure to be heard of.
        let room = self.room().await.map_err(Trouble::from)?;
        let reading = self.outbox.begin(id, token)?;
        room.send(Box::new(message));
        Ok(reading)
    }
}

impl From<Unsaid> for Trouble {
    fn from(unsaid: Unsaid) -> Self {
        match unsaid {
            Unsaid::Over => Self::Over,
            Unsaid::Full => Self::Stuck,
        }
    }
}

/// The server's end, for the library.
pub struct ServerEnd {
    inbox: mpsc::Receiver<Box<ClientJsonRpcMessage>>,
    outbox: Arc<Outbox>,
}

impl Drop for ServerEnd {
    fn drop(&mut self) {
        self.outbox.end();
    }
}

impl Transport<RoleServer> for ServerEnd {
    type Error = Trouble;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Trouble>> + Send + 'static {
        self.outbox.say(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        tokio::select! {
            message = self.inbox.recv() => message.map(|message| *message),
            () = self.outbox.over.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), Trouble> {
        self.inbox.close();
        Ok(())
    }
}

/// The sessions of `/mcp`, for the library.
#[derive(Default)]
pub struct Lines(Mutex<HashMap<SessionId, Arc<Line>>>);

impl Lines {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Line>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, id: &str) -> Option<Arc<Line>> {
        self.lock().get(id).cloned()
    }

    fn line(&self, id: &SessionId) -> Result<Arc<Line>, Trouble> {
        self.get(id).ok_or(Trouble::Over)
    }

    pub fn close(&self, id: &str) {
        let line = self.lock().remove(id);
        if let Some(line) = line {
            line.outbox.end();
        }
    }

    /// To be called now and then.
    pub fn tidy(&self) {
        let all: Vec<Arc<Line>> = self.lock().values().cloned().collect();
        all.iter().for_each(|line| line.outbox.tidy());
        let mut lines = self.lock();
        if lines.len() * 4 < lines.capacity() {
            lines.shrink_to_fit();
        }
    }
}

impl SessionManager for Lines {
    type Error = Trouble;
    type Transport = ServerEnd;

    async fn create_session(&self) -> Result<(SessionId, ServerEnd), Trouble> {
        let id: SessionId = uuid::Uuid::new_v4().to_string().into();
        let (line, end) = Line::new();
        self.lock().insert(Arc::clone(&id), Arc::new(line));
        Ok((id, end))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Trouble> {
        let line = self.line(id)?;
        let greeting = line.outbox.greeting();
        line.say(message).await?;
        match timeout(PATIENCE, greeting).await {
            Ok(Ok(greeting)) => Ok(greeting),
            _ => Err(Trouble::Over),
        }
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Trouble> {
        Ok(self.lock().contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Trouble> {
        self.close(id);
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Trouble> {
        self.line(id)?.call(message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Trouble> {
        let line = self.line(id)?;
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(request) = &cancelled.params.request_id
        {
            line.outbox.cancelled(request);
        }
        Ok(line.say(message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Trouble> {
        Ok(self.line(id)?.outbox.read_resumably())
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Trouble> {
        self.line(id)?.outbox.resume(&last_event_id)
    }
}
