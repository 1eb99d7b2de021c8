//! What carries messages between the servers of one database. Messages may be lost, repeated or late; `service` does
//! not rely on any of them.

use crate::error::Result;

/// A channel that all servers of the database share, such as PostgreSQL's LISTEN and NOTIFY.
pub(crate) trait Relay: Send + Sync + 'static {
    type Subscription: RelaySubscription;

    /// Sends messages to all servers, including this one.
    fn send(&self, payloads: Vec<String>) -> impl Future<Output = Result<()>> + Send;

    /// Returns once messages that are sent from now on will arrive. Needs a connection of its own.
    fn subscribe(&self) -> impl Future<Output = Result<Self::Subscription>> + Send;

    /// Closes all connections.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// A broken subscription fails once and is then dropped; messages sent meanwhile are lost.
pub(crate) trait RelaySubscription: Send {
    /// Waits for the next message. Cancel safe.
    fn next(&mut self) -> impl Future<Output = Result<String>> + Send;

    /// Fails if the connection is dead: a lost connection can look like one on which nothing is sent.
    fn check(&mut self) -> impl Future<Output = Result<()>> + Send;
}
