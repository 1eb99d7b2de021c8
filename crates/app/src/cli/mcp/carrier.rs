//! Carries messages to the server and brings back what it says. A request gets exactly one answer, whatever happens to
//! the connection, unless the client has cancelled it.

use super::{
    GOODBYE,
    door::{Answer, Body, Door, LONGEST},
    following::Following,
    headers,
    message::{self, Kind, Message, NOT_CARRIED, Request},
    note,
    open::{Open, Requests},
    session::{Session, Sessions},
};
use crate::{
    cli::client::{Error, ORDINARY},
    terminal::sanitise,
};
use bytes::Bytes;
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderValue},
};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// Requests that are with the server at the same time; the others wait for their turn.
const MAX_SENT: usize = 64;

pub struct Carrier {
    pub door: Door,
    pub sessions: Sessions,
    pub requests: Requests,
    wire: Semaphore,
    out: mpsc::Sender<String>,
}

/// Why a request has no answer of the server.
pub struct Failure {
    pub code: i64,
    pub message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { code: NOT_CARRIED, message: error.to_string() }
    }
}

impl Carrier {
    pub fn new(door: Door, out: mpsc::Sender<String>) -> Self {
        let (sessions, requests) = (Sessions::default(), Requests::default());
        Self { door, sessions, requests, wire: Semaphore::new(MAX_SENT), out }
    }

    /// Writes one message on one line. That nobody reads any more is noticed where lines are written.
    pub async fn write(&self, message: &str) {
        self.out.send(sanitise::json(message).into_owned()).await.ok();
    }

    /// Carries a request until it is answered or cancelled.
    pub async fn carry(&self, bytes: Bytes, request: &Request, open: &Open) {
        let carried = open.cancel.run_until_cancelled(self.ask(bytes, request, open)).await;
        self.requests.end(&request.id);
        if let Some(Err(Failure { code, message })) = carried
            && !open.is_given_up()
        {
            if code == NOT_CARRIED {
                // Some clients keep to themselves what they are answered, and show this.
                note(&message);
            }
            self.write(&message::error(&request.id, code, &message)).await;
        }
    }

    /// Carries what has no answer.
    pub async fn tell(&self, message: &Message) {
        let told = match &message.kind {
            Kind::Notification { method, params } if params.version.is_some() => {
                self.door.post(message.bytes.clone(), headers::of(method, params), ORDINARY).await
            }
            _ => self.post_in_session(message.bytes.clone(), ORDINARY).await.map(|(answer, _)| answer),
        };
        match told {
            Ok(answer) if answer.status.is_success() => {}
            Ok(Answer { status, body: Body::Text(text), .. }) => note(&self.door.refusal(status, &text).to_string()),
            Ok(_) => {}
            Err(error) => note(&error.to_string()),
        }
    }

    async fn ask(&self, bytes: Bytes, request: &Request, open: &Open) -> Result<(), Failure> {
        let Ok(_turn) = self.wire.acquire().await else { return Ok(()) };
        open.sent();
        let (answer, session) = if request.is_modern() {
            let headers = headers::of(&request.method, &request.params);
            (self.door.post(bytes.clone(), headers, LONGEST).await?, None)
        } else if request.method == "initialize" {
            (self.door.post(bytes.clone(), HeaderMap::new(), ORDINARY).await?, None)
        } else {
            let (answer, session) = self.post_in_session(bytes.clone(), LONGEST).await?;
            (answer, Some(session))
        };
        open.arrived();
        Following::new(self, bytes, request, open, session).take(answer).await
    }

    /// Sends a message in the client's session. Where the server has forgotten that, it is given it again first.
    async fn post_in_session(&self, bytes: Bytes, deadline: Duration) -> Result<(Answer, Session), Error> {
        let session = self.sessions.current();
        let answer = self.door.post(bytes.clone(), session.headers(), deadline).await?;
        if answer.status != StatusCode::NOT_FOUND || !session.has_id() {
            return Ok((answer, session));
        }
        self.renew(&session).await?;
        let session = self.sessions.current();
        Ok((self.door.post(bytes, session.headers(), deadline).await?, session))
    }

    /// The client and the server have greeted each other.
    pub async fn begin(&self, greeting: &[u8], id: Option<HeaderValue>, result: &str) {
        let before = self.sessions.begin(message::params(greeting), id, result);
        self.end(&before).await;
    }

    /// Ends the session that there is.
    pub async fn leave(&self) {
        self.end(&self.sessions.current()).await;
    }

    async fn end(&self, session: &Session) {
        if session.has_id()
            && let Err(error) = self.door.delete(session.headers(), GOODBYE).await
        {
            note(&format!("a session is left to expire: {error}"));
        }
    }

    /// Greets the server again in the client's name.
    pub async fn renew(&self, gone: &Session) -> Result<(), Error> {
        // What changed while nobody listened was told to nobody.
        for missed in self.sessions.renew(&self.door, gone).await? {
            self.write(&missed.to_string()).await;
        }
        Ok(())
    }
}
