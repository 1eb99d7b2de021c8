//! What an agent is told of its room: what its session does not know yet, and all of it for one that has none.

use super::knowledge::Knowledge;
use crate::{Engine, attachments};
use domain::{
    agent::Agent,
    ids::MessageId,
    message::{Author, Message, Part, ToolCall},
    run::RunError,
};
use providers::{History, Session, Speaker, Spoken};
use store::{Error, ProviderSession, queue::Claim};

/// How much of a room an agent is told when it is asked.
pub(super) const MESSAGES: u32 = 200;

#[derive(Clone)]
pub(super) struct Told {
    pub engine: Engine,
    pub claim: Claim,
    pub agent: Agent,
    /// Told as such, and so left out of what was said before.
    pub prompt: MessageId,
}

impl Told {
    pub(super) async fn to_its_session(&self, provider: &str) -> Result<(Knowledge, Option<Session>), Error> {
        let known = self.engine.store().provider_session(self.claim.room_id, self.agent.id, provider).await?;
        let said = match &known {
            Some(known) => self.said(Some(known)).await?,
            None => Vec::new(),
        };
        Ok(self.of_what_was_said(known, said))
    }

    /// The same, where it is known already.
    pub(super) fn of_what_was_said(
        &self,
        known: Option<ProviderSession>,
        said: Vec<Message>,
    ) -> (Knowledge, Option<Session>) {
        let session = known.as_ref().map(|known| Session { id: known.id.clone(), unheard: self.spoken(said) });
        (Knowledge::of(known), session)
    }

    pub(super) fn history(self) -> History {
        History::new(move || {
            let told = self.clone();
            async move { told.said(None).await.map(|said| told.spoken(said)).map_err(|error| unread(&error)) }
        })
    }

    async fn said(&self, session: Option<&ProviderSession>) -> Result<Vec<Message>, Error> {
        let Claim { owner, room_id, queued_seq, .. } = &self.claim;
        self.engine.store().said_before(owner, *room_id, *queued_seq, session, MESSAGES).await
    }

    fn spoken(&self, said: Vec<Message>) -> Vec<Spoken> {
        let told = said.into_iter().filter(|message| message.id != self.prompt).map(|message| self.one(message));
        // Whoever neither said nor did anything needs no telling.
        told.filter(|spoken| !spoken.text.is_empty() || !spoken.tools.is_empty()).collect()
    }

    fn one(&self, message: Message) -> Spoken {
        let speaker = match &message.author {
            Author::Person { name } => Speaker::Person(name.to_string()),
            Author::Agent { id, .. } if *id == self.agent.id => Speaker::Itself,
            Author::Agent { name, .. } => Speaker::OtherAgent(name.to_string()),
        };
        let text = attachments::told(&message);
        let tools = message.parts.into_iter().filter_map(tool).collect();
        Spoken { speaker, text, tools }
    }
}

fn tool(part: Part) -> Option<ToolCall> {
    match part {
        Part::Tool(call) => Some(call),
        Part::Text { .. } | Part::Thinking { .. } => None,
    }
}

fn unread(error: &Error) -> RunError {
    RunError::new("history_unavailable", format!("what was said in this room could not be read: {error}; try again"))
}
