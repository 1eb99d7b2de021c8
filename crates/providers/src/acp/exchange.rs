//! A prompt and everything that is said until its answer: updates and requests of the agent's, words from the engine,
//! questions of its host tools. Nothing here waits for one of them alone.

use super::{
    agent::{Agent, refuse},
    parse::{Fold, Permission},
    talk::{Heard, Talk},
};
use crate::{
    Reported, TurnCommand, TurnEvent,
    host_tools::{
        self,
        pass::{self, agents_name},
        questions::{Question, Questions},
    },
    jsonrpc::{CallError, Incoming, Peer, RpcError},
};
use domain::{event::Decision, ids::ApprovalId};
use serde_json::{Value, json};
use std::{collections::HashMap, future::poll_fn, task::Poll, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};

/// How long the agent may take to obey an interrupt.
const OBEY: Duration = Duration::from_secs(3);
/// A call is announced before its whole input is known; so long without more of it, it has begun.
const HOLD: Duration = Duration::from_secs(1);
/// The engine has clocks for a turn; this is only so that nothing waits for ever.
const PROMPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Something that waits for an answer.
enum Open {
    Permission { id: Value, permission: Permission },
    Question(oneshot::Sender<(Decision, Option<Value>)>),
}

pub struct Exchange<'a> {
    pub fold: Fold,
    /// Since when it is to stop.
    pub interrupted: Option<Instant>,
    peer: Peer,
    session: String,
    open: HashMap<ApprovalId, Open>,
    talk: &'a mut Talk,
    /// When the calls that were announced last grew.
    held_since: Instant,
}

impl<'a> Exchange<'a> {
    pub fn new(peer: Peer, session: String, fold: Fold, talk: &'a mut Talk) -> Self {
        Self { fold, interrupted: None, peer, session, open: HashMap::new(), talk, held_since: Instant::now() }
    }

    /// The answer to the prompt; `None` when the agent did not stop in time.
    pub async fn listen(
        &mut self,
        agent: &mut Agent,
        mut questions: Questions,
        params: Value,
    ) -> Option<Result<Value, CallError>> {
        let peer = self.peer.clone();
        let prompt = peer.request("session/prompt", params, PROMPT);
        tokio::pin!(prompt);
        let answer = loop {
            let obey = self.interrupted.map_or_else(Instant::now, |since| since + OBEY);
            tokio::select! {
                answer = &mut prompt => break answer,
                Some(said) = agent.incoming.recv(), if self.talk.has_room() || self.interrupted.is_some() => {
                    self.said(said);
                }
                heard = self.talk.next() => self.heard(heard),
                Some(question) = questions.next() => self.question(question),
                approval = given_up(&mut self.open) => {
                    self.open.remove(&approval);
                    self.talk.tell(TurnEvent::Withdrawn { id: approval });
                }
                () = sleep_until(self.held_since + HOLD), if self.fold.calls.holds() => {
                    let begun = self.fold.calls.release();
                    self.talk.tell_all(begun);
                }
                () = sleep_until(obey), if self.interrupted.is_some() => return None,
            }
        };
        // What came before the answer lies in the channel already.
        while let Ok(said) = agent.incoming.try_recv() {
            self.said(said);
        }
        Some(answer)
    }

    fn said(&mut self, said: Incoming) {
        match said {
            Incoming::Notification { method, params, raw } if method == "session/update" => {
                if params["sessionId"].as_str().is_some_and(|session| session != self.session) {
                    return;
                }
                let mut events = self.fold.update(&params, &raw);
                if self.fold.calls.holds() {
                    self.held_since = Instant::now();
                }
                if self.interrupted.is_some() {
                    // Nobody wants it any more, and the answer to the prompt lies behind it.
                    events.retain(|told| !is_delta(&told.event));
                }
                self.talk.tell_all(events);
            }
            Incoming::Request { id, method, params, raw } if method == "session/request_permission" => {
                self.permission(id, &params, &raw);
            }
            Incoming::Request { id, method, .. } => {
                tracing::debug!(method, "an agent asks for what is not offered");
                self.respond(id, refuse(&method));
            }
            // The end shows as the answer to the prompt, too.
            Incoming::Notification { .. } | Incoming::Closed(_) => {}
        }
    }

    fn permission(&mut self, id: Value, params: &Value, raw: &str) {
        let (events, permission) = self.fold.permission(params, raw);
        self.talk.tell_all(events);
        if self.interrupted.is_some() {
            self.fold.calls.withdrawn(&permission.call);
            return self.respond(id, refuse("session/request_permission"));
        }
        // Ours do no harm, and one of them is a question itself: a person would be asked whether to be asked.
        if let (true, Some(option)) = (is_host_tool(&permission.name), &permission.allow_once) {
            return self.respond(id, Ok(selected(option)));
        }
        let approval = ApprovalId::generate();
        let tool_use_id = Some(permission.call.clone()).filter(|call| !call.is_empty());
        let (name, input) = (permission.name.clone(), permission.input.clone());
        let event = TurnEvent::Approval { id: approval, tool_use_id, name, input, is_question: false };
        self.talk.tell(Reported { event, raw: Some(raw.to_owned()) });
        self.open.insert(approval, Open::Permission { id, permission });
    }

    fn question(&mut self, Question { input, answer }: Question) {
        if self.interrupted.is_some() {
            return;
        }
        let begun = self.fold.calls.release();
        self.talk.tell_all(begun);
        let approval = ApprovalId::generate();
        let tool_use_id = self.fold.calls.open(pass::ASK).map(str::to_owned);
        let name = "ask_user".to_owned();
        self.talk.tell(TurnEvent::Approval { id: approval, tool_use_id, name, input, is_question: true });
        self.open.insert(approval, Open::Question(answer));
    }

    fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Room => {}
            Heard::Gone | Heard::Command(TurnCommand::Interrupt) => self.interrupt(),
            Heard::Command(TurnCommand::Steer { message, .. }) => {
                self.talk.tell(TurnEvent::Steered { message, taken: false });
            }
            Heard::Command(TurnCommand::Answer { approval, decision, input }) => match self.open.remove(&approval) {
                Some(Open::Permission { id, permission }) => self.answer(id, &permission, decision, input),
                // An agent that no longer waits for it needs no answer.
                Some(Open::Question(answer)) => drop(answer.send((decision, input))),
                None => {}
            },
        }
    }

    fn answer(&mut self, id: Value, permission: &Permission, decision: Decision, input: Option<Value>) {
        let denied = match (decision, &permission.allow_once) {
            (Decision::Allow, _) if input.is_some_and(|input| input != permission.input) => {
                Some("Not run: this agent cannot be told to run it in another way. Say so in a message instead.")
            }
            (Decision::Allow, Some(option)) => {
                self.respond(id.clone(), Ok(selected(option)));
                None
            }
            (Decision::Allow, None) => Some("Not run: the agent offers no way to allow it only once."),
            (Decision::Deny, _) => Some("Not run: it was not allowed."),
            (Decision::Expired, _) => Some("Not run: nobody allowed it in time."),
        };
        let Some(why) = denied else { return };
        let answer = permission.reject_once.as_deref().map(selected);
        self.respond(id, answer.map_or_else(|| refuse("session/request_permission"), Ok));
        let result = self.fold.calls.denied(&permission.call, why);
        self.talk.tell_all(result.map(Reported::from));
    }

    fn interrupt(&mut self) {
        if self.interrupted.is_some() {
            return;
        }
        self.interrupted = Some(Instant::now());
        if let Err(error) = self.peer.notify("session/cancel", json!({"sessionId": self.session})) {
            tracing::debug!(%error, "an agent cannot be told to stop");
        }
        // The protocol asks for it, and one that waits for an answer would not stop.
        for open in std::mem::take(&mut self.open).into_values() {
            if let Open::Permission { id, permission } = open {
                self.fold.calls.withdrawn(&permission.call);
                self.respond(id, refuse("session/request_permission"));
            }
        }
    }

    fn respond(&self, id: Value, answer: Result<Value, RpcError>) {
        if let Err(error) = self.peer.respond(id, answer) {
            tracing::debug!(%error, "an agent's request cannot be answered");
        }
    }
}

/// Comes back when whoever asked a question of the room no longer waits for the answer, because the agent has given up
/// the call.
async fn given_up(open: &mut HashMap<ApprovalId, Open>) -> ApprovalId {
    poll_fn(|context| {
        for (approval, open) in open.iter_mut() {
            if let Open::Question(answer) = open
                && answer.poll_closed(context).is_ready()
            {
                return Poll::Ready(*approval);
            }
        }
        Poll::Pending
    })
    .await
}

fn is_delta(event: &TurnEvent) -> bool {
    matches!(event, TurnEvent::Text { .. } | TurnEvent::Thinking { .. } | TurnEvent::ToolOutput { .. })
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// The ways in which agents write the name of an MCP server's tool.
fn is_host_tool(name: &str) -> bool {
    let server = host_tools::SERVER;
    host_tools::TOOLS.iter().map(|tool| agents_name(tool.name)).any(|tool| {
        [format!("mcp_{server}_{tool}"), format!("mcp__{server}__{tool}")].iter().any(|known| known == name)
    })
}
