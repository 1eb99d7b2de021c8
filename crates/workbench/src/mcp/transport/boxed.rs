//! One type for all transports: rmcp's client is generic over its transport, so with one type its code is compiled once.

use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use std::error::Error;

pub struct BoxedTransport(Box<dyn AnyTransport>);

/// The error of any transport. The original is its source, so a search through the causes finds it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BoxedTransportError(#[source] Box<dyn Error + Send + Sync>);

impl BoxedTransport {
    pub fn new(transport: impl Transport<RoleClient> + 'static) -> Self {
        Self(Box::new(transport))
    }
}

/// The object-safe form of [`Transport`].
trait AnyTransport: Send {
    fn send(&mut self, message: ClientJsonRpcMessage) -> BoxFuture<'static, Result<(), BoxedTransportError>>;
    fn receive(&mut self) -> BoxFuture<'_, Option<ServerJsonRpcMessage>>;
    fn close(&mut self) -> BoxFuture<'_, Result<(), BoxedTransportError>>;
}

impl<T: Transport<RoleClient>> AnyTransport for T {
    fn send(&mut self, message: ClientJsonRpcMessage) -> BoxFuture<'static, Result<(), BoxedTransportError>> {
        let sent = Transport::send(self, message);
        Box::pin(async move { sent.await.map_err(|error| BoxedTransportError(Box::new(error))) })
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<ServerJsonRpcMessage>> {
        Box::pin(Transport::receive(self))
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), BoxedTransportError>> {
        Box::pin(async move { Transport::close(self).await.map_err(|error| BoxedTransportError(Box::new(error))) })
    }
}

impl Transport<RoleClient> for BoxedTransport {
    type Error = BoxedTransportError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), BoxedTransportError>> + Send + 'static {
        AnyTransport::send(&mut *self.0, message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<ServerJsonRpcMessage>> + Send {
        AnyTransport::receive(&mut *self.0)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), BoxedTransportError>> + Send {
        AnyTransport::close(&mut *self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::BoxedTransport;
    use crate::mcp::open::{error_chain, known_failure};
    use rmcp::{
        RoleClient,
        model::{ClientJsonRpcMessage, ClientRequest, PingRequest, RequestId, ServerJsonRpcMessage},
        transport::{Transport, streamable_http_client::AuthRequiredError},
    };

    /// Fails like a server that requires a login.
    struct Unauthorized;

    impl Transport<RoleClient> for Unauthorized {
        type Error = AuthRequiredError;

        fn send(
            &mut self,
            _: ClientJsonRpcMessage,
        ) -> impl Future<Output = Result<(), AuthRequiredError>> + Send + 'static {
            std::future::ready(Err(AuthRequiredError::new("Bearer realm=x".to_owned())))
        }

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            None
        }

        async fn close(&mut self) -> Result<(), AuthRequiredError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn the_cause_of_an_error_is_found_behind_the_box() {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let mut transport = BoxedTransport::new(Unauthorized);
        let sent = transport.send(ClientJsonRpcMessage::request(ping, RequestId::Number(1))).await;
        let error = sent.unwrap_err();
        let failure = known_failure(&error).unwrap();
        assert!(failure.to_string().starts_with("requires a login"), "{failure}");
        let original = AuthRequiredError::new("Bearer realm=x".to_owned());
        assert_eq!(error_chain(&error), error_chain(&original), "the box adds no words");
    }
}
