//! Who has a session, and for how long. A session belongs to the principal that began it, and to nobody else: an id alone opens
//! nothing. It ends when its client says so, when it has been idle for long, when its principal is no longer welcome, and when
//! the server stops. It is not idle while a stream or a call of it is open.
//!
//! Streams without a session are kept here too, so that they end with their principal's welcome like all others.

use super::{
    direct::Desk,
    line::Line,
    reply::{Body, Reply},
};
use bytes::Bytes;
use domain::owner::Principal;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

pub struct Sessions {
    all: Mutex<HashMap<Arc<str>, Arc<Session>>>,
    max: usize,
    idle: Duration,
}

pub struct Session {
    pub id: Arc<str>,
    pub principal: Principal,
    pub link: Link,
    /// From the moment that its client says it is initialized.
    pub desk: OnceLock<Desk>,
    activity: Mutex<Activity>,
    /// Cancelled when it ends; what is open of it ends then.
    pub over: CancellationToken,
    why: OnceLock<&'static str>,
}

/// What is behind a session.
pub enum Link {
    /// Kept by the streamable transport under the same id.
    Streamable,
    Sse(Line),
    /// One stream, and no session.
    Stream,
}

struct Activity {
    open: usize,
    last: Instant,
}

/// A mutex here guards plain data that no panic can leave half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub fn new(max: usize, idle: Duration) -> Self {
        Self { all: Mutex::default(), max, idle }
    }

    pub fn len(&self) -> usize {
        lock(&self.all).len()
    }

    pub fn is_full(&self) -> bool {
        self.len() >= self.max
    }

    pub fn begin(&self, id: Arc<str>, principal: Principal, link: Link) -> Arc<Session> {
        let activity = Mutex::new(Activity { open: 0, last: Instant::now() });
        let over = CancellationToken::new();
        let session =
            Arc::new(Session { id, principal, link, desk: OnceLock::new(), activity, over, why: OnceLock::new() });
        lock(&self.all).insert(Arc::clone(&session.id), Arc::clone(&session));
        session
    }

    /// Somebody else's is not found, whoever knows its id.
    pub fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = lock(&self.all).get(id).cloned()?;
        (session.principal == *principal).then_some(session)
    }

    pub fn end(&self, session: &Session, why: &'static str) {
        lock(&self.all).remove(&session.id);
        // The first reason stands.
        session.why.get_or_init(|| why);
        session.over.cancel();
    }

    /// Those that nobody has used for long.
    pub fn stale(&self) -> Vec<Arc<Session>> {
        lock(&self.all).values().filter(|session| session.is_stale(self.idle)).cloned().collect()
    }

    pub fn all(&self) -> Vec<Arc<Session>> {
        lock(&self.all).values().cloned().collect()
    }

    /// Each once.
    pub fn principals(&self) -> Vec<Principal> {
        let mut found: Vec<Principal> = Vec::new();
        for session in lock(&self.all).values() {
            if !found.contains(&session.principal) {
                found.push(session.principal.clone());
            }
        }
        found
    }

    /// Gives back what a crowd that left had needed.
    pub fn shrink(&self) {
        let mut all = lock(&self.all);
        if all.capacity() > 4 * all.len().max(64) {
            all.shrink_to_fit();
        }
    }
}

impl Session {
    /// As long as this is held, the session is in use.
    pub fn hold(self: &Arc<Self>) -> Hold {
        lock(&self.activity).open += 1;
        Hold(Arc::clone(self))
    }

    pub fn why(&self) -> &'static str {
        self.why.get().copied().unwrap_or("it has ended")
    }

    fn is_stale(&self, idle: Duration) -> bool {
        let activity = lock(&self.activity);
        activity.open == 0 && activity.last.elapsed() >= idle && !matches!(self.link, Link::Stream)
    }
}

pub struct Hold(Arc<Session>);

impl Hold {
    pub fn session(&self) -> &Arc<Session> {
        &self.0
    }

    /// The reply's body keeps the session in use, and ends with it.
    pub fn over(self, reply: Reply) -> Reply {
        reply.map(|body| {
            let over = Box::pin(self.0.over.clone().cancelled_owned());
            Held { body, over, _hold: self }.boxed_unsync()
        })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.activity);
        activity.open = activity.open.saturating_sub(1);
        activity.last = Instant::now();
    }
}

struct Held {
    body: Body,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
    _hold: Hold,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => self.over.as_mut().poll(cx).map(|()| None),
            ready => ready,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::{Link, Sessions};
    use domain::{
        ids::TokenId,
        owner::{Owner, Principal},
    };
    use std::time::Duration;

    fn someone(token: Option<TokenId>) -> Principal {
        Principal { owner: Owner::local(), token, visit: None }
    }

    #[test]
    fn invariant_15_a_session_is_found_by_who_began_it_and_by_nobody_else() {
        let sessions = Sessions::new(10, Duration::from_secs(60));
        let (one, other) = (someone(Some(TokenId::generate())), someone(Some(TokenId::generate())));
        let session = sessions.begin("id".into(), one.clone(), Link::Streamable);
        assert!(sessions.find("id", &one).is_some());
        assert!(sessions.find("id", &other).is_none() && sessions.find("id", &someone(None)).is_none());
        sessions.end(&session, "because");
        assert!(sessions.find("id", &one).is_none() && session.over.is_cancelled());
        sessions.end(&session, "for another reason");
        assert_eq!(session.why(), "because");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_open_is_not_idle() {
        let sessions = Sessions::new(1, Duration::from_secs(60));
        let session = sessions.begin("id".into(), someone(None), Link::Streamable);
        assert!(sessions.is_full());
        let (first, second) = (session.hold(), session.hold());
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(sessions.stale().is_empty());
        drop(first);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(sessions.stale().is_empty());
        drop(second);
        assert!(sessions.stale().is_empty(), "it was in use just now");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(sessions.stale().len(), 1);
    }
}
