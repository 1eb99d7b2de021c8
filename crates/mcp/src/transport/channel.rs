//! The message channel of a session: an inbox for the client's messages and an outbox for the server's. Both transports
//! use it.

use super::{
    outbox::{Outbox, OutboxError, OutboxReader, SEND_TIMEOUT},
    rejected::RejectedMessages,
};
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

/// Unread messages from the client.
const INBOX_SIZE: usize = 32;

pub struct SessionChannel {
    inbox: mpsc::Sender<Box<ClientJsonRpcMessage>>,
    pub outbox: Arc<Outbox>,
    /// For the streams of `/sse`.
    pub rejected: RejectedMessages,
}

/// Why a message could not be put into the inbox.
#[derive(Debug)]
pub enum InboxError {
    Ended,
    /// The inbox is full.
    Full,
}

impl SessionChannel {
    pub fn new() -> (Self, ServerTransport) {
        let (inbox, messages) = mpsc::channel(INBOX_SIZE);
        let outbox = Arc::<Outbox>::default();
        let channel = Self { inbox, outbox: Arc::clone(&outbox), rejected: RejectedMessages::default() };
        (channel, ServerTransport::Session { inbox: messages, outbox })
    }

    async fn reserve(&self) -> Result<mpsc::Permit<'_, Box<ClientJsonRpcMessage>>, InboxError> {
        match timeout(SEND_TIMEOUT, self.inbox.reserve()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(InboxError::Ended),
            Err(_) => Err(InboxError::Full),
        }
    }

    pub async fn send(&self, message: ClientJsonRpcMessage) -> Result<(), InboxError> {
        self.reserve().await?.send(Box::new(message));
        Ok(())
    }

    /// Sends a request whose answer gets its own stream.
    async fn call(&self, message: ClientJsonRpcMessage) -> Result<OutboxReader, OutboxError> {
        let ClientJsonRpcMessage::Request(request) = &message else { return Err(OutboxError::UnknownEvent) };
        let (id, token) = (request.id.clone(), request.request.get_meta().get_progress_token());
        // Reserves inbox space first, so that a call that has begun is delivered.
        let permit = self.reserve().await.map_err(OutboxError::from)?;
        let reading = self.outbox.begin_call(id, token)?;
        permit.send(Box::new(message));
        Ok(reading)
    }
}

impl From<InboxError> for OutboxError {
    fn from(error: InboxError) -> Self {
        match error {
            InboxError::Ended => Self::SessionEnded,
            InboxError::Full => Self::ClientNotReading,
        }
    }
}

/// A transport for rmcp. One type for all, because rmcp's service loop is compiled for each.
pub enum ServerTransport {
    /// The server's end of the channel.
    Session { inbox: mpsc::Receiver<Box<ClientJsonRpcMessage>>, outbox: Arc<Outbox> },
    /// Receives nothing and discards what is sent.
    Null,
}

impl Drop for ServerTransport {
    fn drop(&mut self) {
        if let Self::Session { outbox, .. } = self {
            outbox.end();
        }
    }
}

impl Transport<RoleServer> for ServerTransport {
    type Error = OutboxError;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), OutboxError>> + Send + 'static {
        let sent = match self {
            Self::Session { outbox, .. } => Some(outbox.send(message)),
            Self::Null => None,
        };
        async move {
            match sent {
                Some(sent) => sent.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        match self {
            Self::Session { inbox, outbox } => tokio::select! {
                message = inbox.recv() => message.map(|message| *message),
                () = outbox.ended.cancelled() => None,
            },
            Self::Null => std::future::pending().await,
        }
    }

    async fn close(&mut self) -> Result<(), OutboxError> {
        if let Self::Session { inbox, .. } = self {
            inbox.close();
        }
        Ok(())
    }
}

/// The session channels of `/mcp`, as a session manager for rmcp.
#[derive(Default)]
pub struct SessionChannels(Mutex<HashMap<SessionId, Arc<SessionChannel>>>);

impl SessionChannels {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<SessionChannel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, id: &str) -> Option<Arc<SessionChannel>> {
        self.lock().get(id).cloned()
    }

    fn channel(&self, id: &SessionId) -> Result<Arc<SessionChannel>, OutboxError> {
        self.get(id).ok_or(OutboxError::SessionEnded)
    }

    pub fn close(&self, id: &str) {
        let channel = self.lock().remove(id);
        if let Some(channel) = channel {
            channel.outbox.end();
        }
    }

    /// Drops expired data. Call it regularly.
    pub fn tidy(&self) {
        let all: Vec<Arc<SessionChannel>> = self.lock().values().cloned().collect();
        all.iter().for_each(|channel| channel.outbox.drop_expired());
        let mut lines = self.lock();
        if lines.len() * 4 < lines.capacity() {
            lines.shrink_to_fit();
        }
    }
}

impl SessionManager for SessionChannels {
    type Error = OutboxError;
    type Transport = ServerTransport;

    async fn create_session(&self) -> Result<(SessionId, ServerTransport), OutboxError> {
        let id: SessionId = uuid::Uuid::new_v4().to_string().into();
        let (channel, end) = SessionChannel::new();
        self.lock().insert(Arc::clone(&id), Arc::new(channel));
        Ok((id, end))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, OutboxError> {
        let channel = self.channel(id)?;
        let greeting = channel.outbox.initialize_response();
        channel.send(message).await?;
        match timeout(SEND_TIMEOUT, greeting).await {
            Ok(Ok(greeting)) => Ok(greeting),
            _ => Err(OutboxError::SessionEnded),
        }
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, OutboxError> {
        Ok(self.lock().contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), OutboxError> {
        self.close(id);
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, OutboxError> {
        self.channel(id)?.call(message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), OutboxError> {
        let channel = self.channel(id)?;
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(request) = &cancelled.params.request_id
        {
            channel.outbox.cancel_call(request);
        }
        Ok(channel.send(message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, OutboxError> {
        Ok(self.channel(id)?.outbox.resumable_reader())
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, OutboxError> {
        self.channel(id)?.outbox.resume(&last_event_id)
    }
}
