//! Connects this server's hub with the other servers: sends its outbox, receives their messages, and polls while these
//! may be missing.

use super::{
    list_states::ListStates,
    outbox::PendingTopics,
    payload::Payload,
    relay::{Relay, RelaySubscription},
};
use crate::{StoreError, error::Result, open::Store};
use std::{convert::Infallible, time::Duration};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The pause between two messages: changes that come meanwhile are sent together.
const SEND_INTERVAL: Duration = Duration::from_millis(5);
/// How often everything is polled while the subscription is broken.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often a subscription without messages is checked. The heads of rooms are polled as often, because a server that
/// was killed may have sent nothing after its last commit.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The timeout of one message, one check, one poll and one attempt to connect.
const TIMEOUT: Duration = Duration::from_secs(3);
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(5);

pub(crate) struct NotifyService<R: Relay> {
    store: Store,
    relay: R,
    first_subscription: Option<R::Subscription>,
    /// Identifies this server in its own messages.
    node: Uuid,
}

impl<R: Relay> NotifyService<R> {
    /// Tries to subscribe before anything is watched, so that nothing can be missed.
    pub(crate) async fn start(store: Store, relay: R) -> Self {
        let first_subscription = match in_time(relay.subscribe()).await {
            Ok(subscription) => Some(subscription),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot subscribe to the notifications of other servers yet; polling"
                );
                None
            }
        };
        Self { store, relay, first_subscription, node: Uuid::new_v4() }
    }

    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        let subscription = self.first_subscription.take();
        tokio::join!(self.send_all(&cancel), self.receive_all(subscription, &cancel));
        if timeout(TIMEOUT, self.relay.close()).await.is_err() {
            tracing::debug!("the connections for notifications did not close in time");
        }
    }

    /// Sends the outbox until cancelled; what was added before is still sent.
    async fn send_all(&self, cancel: &CancellationToken) {
        let Some(outbox) = self.store.notify_hub().outbox() else { return };
        let mut retry = FIRST_RETRY;
        while !cancel.is_cancelled() {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = outbox.added() => {}
            }
            let (pending, next) = (outbox.take(), Instant::now() + SEND_INTERVAL);
            if pending.is_empty() {
                continue;
            }
            match self.send(&pending).await {
                Ok(()) => {
                    retry = FIRST_RETRY;
                    sleep_until(next).await;
                }
                Err(error) => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "could not notify the other servers; retrying"
                    );
                    outbox.put_back(&pending);
                    tokio::select! {
                        () = cancel.cancelled() => {}
                        () = sleep(retry) => {}
                    }
                    retry = (retry * 2).min(LAST_RETRY);
                }
            }
        }
    }

    async fn send(&self, pending: &PendingTopics) -> Result<()> {
        in_time(self.relay.send(Payload::write(self.node, pending)?)).await
    }

    async fn receive_all(&self, first: Option<R::Subscription>, cancel: &CancellationToken) {
        let forever = async {
            let mut next = first;
            loop {
                let subscription = match next.take() {
                    Some(subscription) => subscription,
                    None => self.subscribe_while_polling().await,
                };
                report_connected(true);
                let Err(error) = self.receive(subscription).await;
                report_connected(false);
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "lost the notifications of other servers; polling until they are back"
                );
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = forever => {}
        }
    }

    /// Polls until there is a subscription, and once after it: messages before it were lost.
    async fn subscribe_while_polling(&self) -> R::Subscription {
        let mut lists = ListStates::default();
        let subscription = tokio::select! {
            subscription = self.subscribe() => subscription,
            never = self.poll_repeatedly(&mut lists) => match never {},
        };
        self.poll(&mut lists).await;
        subscription
    }

    async fn subscribe(&self) -> R::Subscription {
        let mut retry = FIRST_RETRY;
        loop {
            match in_time(self.relay.subscribe()).await {
                Ok(subscription) => return subscription,
                Err(error) => tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "could not subscribe to notifications; retrying"
                ),
            }
            sleep(retry).await;
            retry = (retry * 2).min(LAST_RETRY);
        }
    }

    async fn poll_repeatedly(&self, lists: &mut ListStates) -> Infallible {
        loop {
            self.poll(lists).await;
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn poll(&self, lists: &mut ListStates) {
        if let Err(error) = in_time(self.store.poll_everything(lists)).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "could not poll for changes of other servers; retrying"
            );
        }
    }

    /// Delivers messages until the subscription breaks.
    async fn receive(&self, mut subscription: R::Subscription) -> Result<Infallible> {
        let mut check = Instant::now() + CHECK_INTERVAL;
        loop {
            let message = tokio::select! {
                message = subscription.next() => message?,
                () = sleep_until(check) => {
                    in_time(subscription.check()).await?;
                    if let Err(error) = in_time(self.store.poll_heads()).await {
                        tracing::debug!(error = &error as &dyn std::error::Error, "could not poll the heads of rooms; retrying");
                    }
                    check = Instant::now() + CHECK_INTERVAL;
                    continue;
                }
            };
            self.deliver(&message).await;
        }
    }

    async fn deliver(&self, message: &str) {
        match serde_json::from_str::<Payload>(message) {
            Ok(payload) if payload.node == self.node => {}
            Ok(Payload { topics, everything: false, .. }) => {
                topics.iter().for_each(|topic| self.store.notify_hub().deliver(topic));
            }
            Ok(_) => self.poll(&mut ListStates::default()).await,
            // A newer server may know other topics.
            Err(error) => {
                tracing::debug!(%error, "could not read a notification of another server");
                self.poll(&mut ListStates::default()).await;
            }
        }
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let late = |_| StoreError::unavailable(format!("no reply within {} s", TIMEOUT.as_secs()));
    timeout(TIMEOUT, work).await.map_err(late)?
}

fn report_connected(is_connected: bool) {
    metrics::gauge!("greenroom_notifications_connected").set(if is_connected { 1.0 } else { 0.0 });
}
