//! One request whose answer has begun to come. A stream that breaks before the answer was in it is asked for again, where
//! the protocol has a way to.

use super::{
    carrier::{Carrier, Failure},
    door::{Answer, Body, LONGEST, Stream},
    headers,
    message::{Request, Told},
    note,
    open::Open,
    session::Session,
};
use crate::cli::client::Error;
use bytes::Bytes;
use reqwest::{StatusCode, header::HeaderValue};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;
use workbench::events::Event;

/// In a row, after pauses that grow up to the longest.
const MAX_ATTEMPTS: u32 = 20;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const UNKNOWN_FATE: &str = "before the answer came; what was asked for may happen all the same";

pub struct Following<'a> {
    carrier: &'a Carrier,
    bytes: Bytes,
    request: &'a Request,
    open: &'a Open,
    /// The one it was asked in.
    session: Option<Session>,
    /// What the server gave with the head of its answer.
    given: Option<HeaderValue>,
    last_event: Option<String>,
    /// To get a broken stream back, since something last came.
    attempts: u32,
    is_repeated: bool,
}

enum Taken {
    More,
    /// Nothing more comes here, and it was not the answer.
    Over,
    Answer,
}

impl<'a> Following<'a> {
    pub fn new(
        carrier: &'a Carrier,
        bytes: Bytes,
        request: &'a Request,
        open: &'a Open,
        session: Option<Session>,
    ) -> Self {
        let (given, last_event) = (None, None);
        Self { carrier, bytes, request, open, session, given, last_event, attempts: 0, is_repeated: false }
    }

    pub async fn take(mut self, answer: Answer) -> Result<(), Failure> {
        self.given = answer.session;
        match answer.body {
            Body::Stream(stream) => self.take_stream(stream).await,
            Body::Text(text) => self.take_text(answer.status, &text).await,
        }
    }

    async fn take_text(&self, status: StatusCode, text: &str) -> Result<(), Failure> {
        match Told::parse(text) {
            Some(told) if self.is_answered_by(&told) => {
                self.deliver(&told, text).await;
                Ok(())
            }
            // A refusal that names no request.
            Some(Told { error: Some(refusal), .. }) => Err(Failure { code: refusal.code, message: refusal.message }),
            _ => Err(self.carrier.door.refusal(status, text).into()),
        }
    }

    async fn take_stream(&mut self, mut stream: Stream) -> Result<(), Failure> {
        loop {
            match stream.next().await {
                Ok(Some(event)) => match self.take_event(event).await {
                    Taken::More => {}
                    Taken::Over => stream = self.again().await?,
                    Taken::Answer => return Ok(()),
                },
                Ok(None) => stream = self.again().await?,
                Err(error) => {
                    note(&error.to_string());
                    stream = self.again().await?;
                }
            }
        }
    }

    async fn take_event(&mut self, event: Event) -> Taken {
        self.last_event = event.id.or_else(|| self.last_event.take());
        // Events without data only say where a stream can be taken up again.
        let Some(told) = Told::parse(&event.data) else { return Taken::More };
        if self.is_answered_by(&told) {
            // A subscription that the client has not ended was ended by a server that goes away.
            if self.request.is_subscription() && told.result.is_some() {
                return Taken::Over;
            }
            self.deliver(&told, &event.data).await;
            return Taken::Answer;
        }
        if told.method.as_deref() == Some(ACKNOWLEDGED) && self.is_repeated {
            for missed in missed(&event.data) {
                self.carrier.write(&missed.to_string()).await;
            }
        } else {
            self.attempts = 0;
            self.carrier.write(&event.data).await;
        }
        Taken::More
    }

    fn is_answered_by(&self, told: &Told) -> bool {
        told.answers.as_ref() == Some(&self.request.id)
    }

    async fn deliver(&self, told: &Told, text: &str) {
        if let Some(result) = &told.result
            && !self.request.is_modern()
        {
            match self.request.method.as_str() {
                "initialize" => self.carrier.begin(&self.bytes, self.given.clone(), result).await,
                _ => self.carrier.sessions.remember(self.request, &self.bytes),
            }
        }
        self.carrier.write(text).await;
    }

    /// What comes after the end of a stream that ended too early.
    async fn again(&mut self) -> Result<Stream, Failure> {
        let door = &self.carrier.door;
        loop {
            let session = self.session.as_ref().filter(|session| session.has_id() && self.last_event.is_some());
            let has_a_way = session.is_some() || self.request.is_subscription();
            if self.open.is_given_up() || !has_a_way || self.attempts == MAX_ATTEMPTS {
                return Err(Error::lost(door.server(), UNKNOWN_FATE).into());
            }
            sleep((FIRST_PAUSE * 2_u32.pow(self.attempts.min(10))).min(LONGEST_PAUSE)).await;
            self.attempts += 1;
            let answer = if let Some(session) = session {
                door.listen(session.headers_after(self.last_event.as_deref())).await
            } else {
                self.is_repeated = true;
                let headers = headers::of(&self.request.method, &self.request.params);
                door.post(self.bytes.clone(), headers, LONGEST).await
            };
            match answer {
                Ok(Answer { body: Body::Stream(stream), .. }) => return Ok(stream),
                Ok(Answer { status, .. }) if status.is_server_error() => {}
                Ok(Answer { status: StatusCode::NOT_FOUND, .. }) if self.session.is_some() => {
                    return Err(Error::lost(door.server(), UNKNOWN_FATE).into());
                }
                Ok(Answer { status, body: Body::Text(text), .. }) => return Err(door.refusal(status, &text).into()),
                Err(error) if error.passes() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What changed while nobody listened was told to nobody: all that a subscription is for, as its acknowledgement says it.
fn missed(acknowledgement: &str) -> Vec<Value> {
    let told: Value = serde_json::from_str(acknowledgement).unwrap_or_default();
    let (meta, wanted) = (&told["params"]["_meta"], &told["params"]["notifications"]);
    let notification = |method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    };
    let lists =
        [("toolsListChanged", "tools"), ("promptsListChanged", "prompts"), ("resourcesListChanged", "resources")];
    let lists = lists.iter().filter(|(flag, _)| wanted[flag] == true);
    let lists = lists.map(|(_, list)| notification(&format!("notifications/{list}/list_changed"), json!({})));
    let uris = wanted["resourceSubscriptions"].as_array().into_iter().flatten();
    lists.chain(uris.map(|uri| notification("notifications/resources/updated", json!({"uri": uri})))).collect()
}

#[cfg(test)]
mod tests {
    use super::missed;
    use serde_json::json;

    #[test]
    fn after_a_gap_everything_that_is_followed_may_have_changed() {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": "7"});
        let wanted = json!({"toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["x://1"]});
        let acknowledgement = json!({"params": {"_meta": meta, "notifications": wanted}}).to_string();
        assert_eq!(
            missed(&acknowledgement),
            [
                json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}),
                json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "x://1", "_meta": meta}}),
            ]
        );
        assert!(missed("{}").is_empty() && missed("7").is_empty());
    }
}
