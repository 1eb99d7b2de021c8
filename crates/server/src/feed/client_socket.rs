//! The WebSocket of one client: the upgrade of its request, and messages in both directions. A large message is sent in
//! fragments, because the buffer of a connection grows to the largest frame and never shrinks.

use crate::error::Problem;
use axum::{
    body::Body,
    extract::FromRequestParts,
    http::{Request, request::Parts},
    response::Response,
};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        handshake::server::create_response,
        protocol::{
            CloseFrame, Role, WebSocketConfig,
            frame::{
                Frame,
                coding::{CloseCode, Data, OpCode},
            },
        },
    },
};

/// Requests of a client are small.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// Small buffers: the defaults use 134 KiB for every idle reader.
const READ_BUFFER_BYTES: usize = 2 * 1024;
const WRITE_BUFFER_BYTES: usize = 4 * 1024;
/// The largest part of a message that is sent in one frame.
const FRAGMENT_BYTES: usize = 16 * 1024;

/// A request that asks for a WebSocket.
pub struct SocketUpgrade {
    response: Response,
    upgrade: OnUpgrade,
}

pub struct ClientSocket(WebSocketStream<TokioIo<Upgraded>>);

impl<S: Sync> FromRequestParts<S> for SocketUpgrade {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let needed = |why: &dyn std::fmt::Display| Problem::invalid(format!("This endpoint needs a WebSocket: {why}."));
        let mut request = Request::new(());
        *request.method_mut() = parts.method.clone();
        *request.version_mut() = parts.version;
        *request.headers_mut() = parts.headers.clone();
        let response = create_response(&request).map_err(|error| needed(&error))?;
        let upgrade = parts.extensions.remove::<OnUpgrade>();
        let upgrade = upgrade.ok_or_else(|| needed(&"the connection cannot be upgraded"))?;
        Ok(Self { response: response.map(|()| Body::empty()), upgrade })
    }
}

impl SocketUpgrade {
    /// Answers the request, and serves the connection when that was sent.
    #[expect(
        clippy::disallowed_methods,
        reason = "the stream holds its connection's permit, for which the accept loop waits"
    )]
    pub fn serve<F: Future<Output = ()> + Send + 'static>(
        self,
        serve: impl FnOnce(ClientSocket) -> F + Send + 'static,
    ) -> Response {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(WRITE_BUFFER_BYTES)
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        tokio::spawn(async move {
            match self.upgrade.await {
                Ok(stream) => {
                    let stream = TokioIo::new(stream);
                    serve(ClientSocket(WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await))
                        .await;
                }
                Err(error) => tracing::debug!(%error, "a client disconnected before its WebSocket was open"),
            }
        });
        self.response
    }
}

impl ClientSocket {
    /// The next message of the client; `None` if it disconnected.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        self.0.next().await
    }

    /// Writes a text, which may stay in the buffer until [`Self::flush`].
    pub async fn feed(&mut self, text: Bytes) -> Result<(), Error> {
        if text.len() <= FRAGMENT_BYTES {
            return self.0.feed(Message::Text(Utf8Bytes::try_from(text)?)).await;
        }
        // Boxed, because few messages are large, and an idle connection would hold space for it.
        Box::pin(self.send_fragments([text])).await
    }

    /// Writes an event, like a text.
    pub async fn feed_event(&mut self, event: &store::journal::Frame) -> Result<(), Error> {
        match event.len() <= FRAGMENT_BYTES {
            true => self.feed(event.websocket().clone()).await,
            false => Box::pin(self.send_fragments(event.websocket_parts())).await,
        }
    }

    /// Sends one text, whose parts may be large.
    async fn send_fragments<const N: usize>(&mut self, parts: [Bytes; N]) -> Result<(), Error> {
        let mut data = Data::Text;
        for (number, mut part) in parts.into_iter().enumerate() {
            while !part.is_empty() {
                let fragment = part.split_to(part.len().min(FRAGMENT_BYTES));
                let is_last = part.is_empty() && number + 1 == N;
                self.0.send(Message::Frame(Frame::message(fragment, OpCode::Data(data), is_last))).await?;
                data = Data::Continue;
            }
        }
        Ok(())
    }

    pub async fn send(&mut self, text: Bytes) -> Result<(), Error> {
        self.feed(text).await?;
        self.flush().await
    }

    pub async fn flush(&mut self) -> Result<(), Error> {
        self.0.flush().await
    }

    pub async fn ping(&mut self) -> Result<(), Error> {
        self.0.feed(Message::Ping(Bytes::new())).await
    }

    pub async fn close(&mut self, code: CloseCode, reason: &'static str) -> Result<(), Error> {
        self.0.send(Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }))).await
    }
}
