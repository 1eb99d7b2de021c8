//! The stream of a session for what belongs to no request: updates, changed lists, what the server asks the client. It is
//! kept open, and taken up again where it broke.

use super::{
    carrier::Carrier,
    door::{Answer, Body, Stream},
    message::Told,
    note,
};
use crate::cli::client::Error;
use reqwest::StatusCode;
use std::time::Duration;
use tokio::time::sleep;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Carrier {
    /// Returns only when the server has no such stream.
    pub async fn listen(&self) {
        let mut session = self.sessions.current();
        let mut place = Place::default();
        let mut pause = FIRST_PAUSE;
        let mut is_told = false;
        while session.has_id() {
            let trouble = match self.door.listen(session.headers_after(place.last.as_deref())).await {
                Ok(Answer { body: Body::Stream(stream), .. }) => {
                    (pause, is_told) = (FIRST_PAUSE, false);
                    self.pump(stream, &mut place).await
                }
                Ok(Answer { status: StatusCode::METHOD_NOT_ALLOWED, .. }) => return,
                Ok(Answer { status: StatusCode::NOT_FOUND, .. }) => self.renew(&session).await.err(),
                Ok(Answer { status, body: Body::Text(text), .. }) => Some(self.door.refusal(status, &text)),
                Err(error) => Some(error),
            };
            // An outage is told once, however long it lasts.
            if let Some(trouble) = trouble.filter(|_| !std::mem::replace(&mut is_told, true)) {
                note(&format!("not listening: {trouble}"));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            let current = self.sessions.current();
            if current.generation() != session.generation() {
                place = Place::default();
            }
            session = current;
        }
    }

    async fn pump(&self, mut stream: Stream, place: &mut Place) -> Option<Error> {
        loop {
            let event = match stream.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return None,
                Err(error) => return Some(error),
            };
            let is_message = Told::parse(&event.data).is_some();
            if place.is_new(event.id, is_message) && is_message {
                self.write(&event.data).await;
            }
        }
    }
}

/// How far a stream was read.
#[derive(Default)]
struct Place {
    last: Option<String>,
    /// Of the last event that held a message: servers give it once more to whoever resumes after it.
    delivered: Option<String>,
}

impl Place {
    fn is_new(&mut self, id: Option<String>, is_message: bool) -> bool {
        let Some(id) = id else { return true };
        let is_new = self.delivered.as_ref() != Some(&id);
        if is_message {
            self.delivered = Some(id.clone());
        }
        self.last = Some(id);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn an_event_that_is_given_once_more_is_not_new() {
        let mut place = Place::default();
        let id = |id: &str| Some(id.to_owned());
        // Without a message: it only says where to resume, and the first message may have the same id.
        assert!(place.is_new(id("0"), false));
        assert!(place.is_new(id("0"), true));
        assert!(!place.is_new(id("0"), true));
        assert!(place.is_new(id("1"), true));
        assert!(place.is_new(None, true) && place.is_new(None, true));
        assert_eq!(place.last.as_deref(), Some("1"));
    }
}
