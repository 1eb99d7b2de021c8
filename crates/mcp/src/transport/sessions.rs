//! The open sessions. A session belongs to the actor that created it; the id alone gives no access. It ends when
//! its client ends it, when it was idle for too long, when its actor loses access, and when the server stops. It is
//! not idle while one of its streams or calls is open.
//!
//! Streams without a session are registered here too, so that they also end when their actor loses access.

use super::{
    channel::SessionChannel,
    direct::SessionPeer,
    response::{McpResponse, McpResponseBody},
};
use bytes::Bytes;
use domain::{
    actor::{Actor, Credential},
    ids::{RunId, UserId},
    owner::Owner,
};
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

pub struct McpSessions {
    all: Mutex<HashMap<Arc<str>, Arc<McpSession>>>,
    max: usize,
    max_per_principal: usize,
    idle: Duration,
}

pub struct McpSession {
    pub id: Arc<str>,
    pub actor: Actor,
    pub transport: SessionTransport,
    /// Set once the client has sent `notifications/initialized`.
    pub session_peer: OnceLock<SessionPeer>,
    activity: Mutex<SessionActivity>,
    /// Cancelled when the session ends, which ends its streams.
    pub ended: CancellationToken,
    end_reason: OnceLock<&'static str>,
}

/// The transport of a session.
pub enum SessionTransport {
    /// Its channel is kept by the streamable transport under the same id.
    Streamable,
    Sse(SessionChannel),
    /// A single stream without a session.
    StatelessStream,
}

struct SessionActivity {
    open: usize,
    last: Instant,
}

/// The mutexes here guard plain data that no panic can leave inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl McpSessions {
    pub fn new(max: usize, max_per_principal: usize, idle: Duration) -> Self {
        Self { all: Mutex::default(), max, max_per_principal, idle }
    }

    pub fn len(&self) -> usize {
        lock(&self.all).len()
    }

    /// Whether an actor may begin another session, and the session to end first, if any: the one of the same principal
    /// that was unused for the longest. Nobody loses a session to somebody else.
    pub fn admit(&self, actor: &Actor) -> SessionAdmission {
        let all = lock(&self.all);
        let principal = Principal::of(actor);
        let own: Vec<&Arc<McpSession>> =
            all.values().filter(|session| Principal::of(&session.actor) == principal).collect();
        if all.len() < self.max && own.len() < self.max_per_principal {
            return SessionAdmission::Granted;
        }
        let unused = own.into_iter().filter_map(|session| Some((session.unused_since()?, session)));
        match unused.min_by_key(|(since, _)| *since) {
            Some((_, session)) => SessionAdmission::Replaces(Arc::clone(session)),
            None => SessionAdmission::Refused,
        }
    }

    pub fn create(&self, id: Arc<str>, actor: Actor, link: SessionTransport) -> Arc<McpSession> {
        let activity = Mutex::new(SessionActivity { open: 0, last: Instant::now() });
        let over = CancellationToken::new();
        let session = Arc::new(McpSession {
            id,
            actor,
            transport: link,
            session_peer: OnceLock::new(),
            activity,
            ended: over,
            end_reason: OnceLock::new(),
        });
        lock(&self.all).insert(Arc::clone(&session.id), Arc::clone(&session));
        session
    }

    /// Finds a session by id and actor. Sessions of others are not found.
    pub fn find(&self, id: &str, actor: &Actor) -> Option<Arc<McpSession>> {
        let session = lock(&self.all).get(id).cloned()?;
        session.actor.is_same(actor).then_some(session)
    }

    pub fn end(&self, session: &McpSession, why: &'static str) {
        lock(&self.all).remove(&session.id);
        // The first reason wins.
        session.end_reason.get_or_init(|| why);
        session.ended.cancel();
    }

    /// Returns the sessions that have been idle for too long.
    pub fn idle_sessions(&self) -> Vec<Arc<McpSession>> {
        lock(&self.all).values().filter(|session| session.is_idle(self.idle)).cloned().collect()
    }

    pub fn all(&self) -> Vec<Arc<McpSession>> {
        lock(&self.all).values().cloned().collect()
    }

    /// Returns the actors without duplicates.
    pub fn actors(&self) -> Vec<Actor> {
        let mut found: Vec<Actor> = Vec::new();
        for session in lock(&self.all).values() {
            if !found.iter().any(|actor| actor.is_same(&session.actor)) {
                found.push(session.actor.clone());
            }
        }
        found
    }

    /// Frees memory after many sessions have ended.
    pub fn shrink(&self) {
        let mut all = lock(&self.all);
        if all.capacity() > 4 * all.len().max(64) {
            all.shrink_to_fit();
        }
    }
}

/// Whose sessions are counted together: a user, with all tokens, or one process of an agent.
#[derive(PartialEq, Eq)]
struct Principal<'a> {
    workspace: &'a Owner,
    user: Option<UserId>,
    run: Option<RunId>,
}

impl<'a> Principal<'a> {
    fn of(actor: &'a Actor) -> Self {
        let run = match actor.credential {
            Credential::Agent(run) => Some(run),
            _ => None,
        };
        Self { workspace: &actor.workspace, user: actor.user_id(), run }
    }
}

pub enum SessionAdmission {
    Granted,
    /// After this session has ended.
    Replaces(Arc<McpSession>),
    Refused,
}

impl McpSession {
    /// The session is in use while the returned guard lives.
    pub fn hold(self: &Arc<Self>) -> SessionHold {
        lock(&self.activity).open += 1;
        SessionHold(Arc::clone(self))
    }

    pub fn end_reason(&self) -> &'static str {
        self.end_reason.get().copied().unwrap_or("it has ended")
    }

    /// Since when the session was not used; `None` while it is in use.
    fn unused_since(&self) -> Option<Instant> {
        let activity = lock(&self.activity);
        let is_unused = activity.open == 0 && !matches!(self.transport, SessionTransport::StatelessStream);
        is_unused.then_some(activity.last)
    }

    fn is_idle(&self, idle: Duration) -> bool {
        self.unused_since().is_some_and(|since| since.elapsed() >= idle)
    }
}

pub struct SessionHold(Arc<McpSession>);

impl SessionHold {
    pub fn session(&self) -> &Arc<McpSession> {
        &self.0
    }

    /// Wraps a response so that its body keeps the session in use, and ends with the session.
    pub fn wrap(self, response: McpResponse) -> McpResponse {
        response.map(|body| {
            let over = Box::pin(self.0.ended.clone().cancelled_owned());
            HeldBody { body, ended: over, _hold: self }.boxed_unsync()
        })
    }
}

impl Drop for SessionHold {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.activity);
        activity.open = activity.open.saturating_sub(1);
        activity.last = Instant::now();
    }
}

struct HeldBody {
    body: McpResponseBody,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    _hold: SessionHold,
}

impl http_body::Body for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => self.ended.as_mut().poll(cx).map(|()| None),
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
    use super::{McpSessions, SessionAdmission, SessionTransport};
    use domain::{
        actor::{Actor, Credential, User},
        ids::{TokenId, UserId},
        name::Name,
    };
    use std::time::Duration;

    fn actor(token: Option<TokenId>) -> Actor {
        Actor { credential: token.map_or(Credential::LocalKey, Credential::Token), ..Actor::local() }
    }

    #[test]
    fn invariant_15_a_session_is_found_only_by_its_actor() {
        let sessions = McpSessions::new(10, 10, Duration::from_secs(60));
        let (one, other) = (actor(Some(TokenId::generate())), actor(Some(TokenId::generate())));
        let session = sessions.create("id".into(), one.clone(), SessionTransport::Streamable);
        assert!(sessions.find("id", &one).is_some());
        assert!(sessions.find("id", &other).is_none() && sessions.find("id", &actor(None)).is_none());
        sessions.end(&session, "because");
        assert!(sessions.find("id", &one).is_none() && session.ended.is_cancelled());
        sessions.end(&session, "for another reason");
        assert_eq!(session.end_reason(), "because");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_with_open_requests_is_not_idle() {
        let sessions = McpSessions::new(1, 1, Duration::from_secs(60));
        let session = sessions.create("id".into(), actor(None), SessionTransport::Streamable);
        let (first, second) = (session.hold(), session.hold());
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(sessions.idle_sessions().is_empty());
        drop(first);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert!(sessions.idle_sessions().is_empty());
        drop(second);
        assert!(sessions.idle_sessions().is_empty(), "it was in use just now");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(sessions.idle_sessions().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn m7_a_principal_can_only_use_up_its_own_share() {
        let sessions = McpSessions::new(3, 2, Duration::from_secs(60));
        let user = |name: &str| {
            let user = Some(User { id: UserId::generate(), name: Name::parse(name).unwrap() });
            Actor { user, credential: Credential::Token(TokenId::generate()), ..Actor::local() }
        };
        let (ada, bob) = (user("ada"), user("bob"));
        let begin = |id: &str, actor: &Actor| sessions.create(id.into(), actor.clone(), SessionTransport::Streamable);
        let first = begin("1", &ada);
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = begin("2", &Actor { credential: Credential::Token(TokenId::generate()), ..ada.clone() });
        // Another token of the same user has the same share; the idlest session makes room.
        assert!(matches!(sessions.admit(&ada), SessionAdmission::Replaces(idle) if idle.id == first.id));
        let hold = first.hold();
        assert!(matches!(sessions.admit(&ada), SessionAdmission::Replaces(idle) if idle.id == second.id));
        let other_hold = second.hold();
        assert!(matches!(sessions.admit(&ada), SessionAdmission::Refused), "sessions in use are not ended");
        assert!(matches!(sessions.admit(&bob), SessionAdmission::Granted));
        begin("3", &bob);
        assert!(matches!(sessions.admit(&bob), SessionAdmission::Replaces(idle) if &*idle.id == "3"));
        assert!(matches!(sessions.admit(&user("eve")), SessionAdmission::Refused), "nobody else loses a session");
        drop((hold, other_hold));
    }
}
