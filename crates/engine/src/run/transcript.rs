//! The messages of a room that a provider receives: those that its session has missed, or all of them without a
//! session.

use super::session_marks::SessionMarks;
use crate::{Engine, attachments};
use domain::{
    agent::Agent,
    ids::MessageId,
    message::{Author, Message, Part, ToolCall},
    run::RunError,
};
use providers::{HistoryAuthor, HistoryMessage, ResumableSession, TurnHistory};
use store::{ProviderSessionRecord, StoreError, queue::Claim};

/// How many messages of a room a provider receives at most.
pub(super) const MAX_TRANSCRIPT_MESSAGES: u32 = 200;

#[derive(Clone)]
pub(super) struct RoomTranscript {
    pub engine: Engine,
    pub claim: Claim,
    pub agent: Agent,
    /// The message that the run answers; it is the prompt, so the transcript leaves it out.
    pub prompt_id: MessageId,
}

impl RoomTranscript {
    pub(super) async fn load_session(
        &self,
        provider: &str,
    ) -> Result<(SessionMarks, Option<ResumableSession>), StoreError> {
        let known = self.engine.store().provider_session(self.claim.room_id, self.agent.id, provider).await?;
        let messages = match &known {
            Some(known) => self.messages(Some(known)).await?,
            None => Vec::new(),
        };
        Ok(self.build_session(known, messages))
    }

    /// As `load_session`, with data that was already read.
    pub(super) fn build_session(
        &self,
        known: Option<ProviderSessionRecord>,
        messages: Vec<Message>,
    ) -> (SessionMarks, Option<ResumableSession>) {
        let session =
            known.as_ref().map(|known| ResumableSession { id: known.id.clone(), missed: self.to_transcript(messages) });
        (SessionMarks::new(known), session)
    }

    pub(super) fn history(self) -> TurnHistory {
        TurnHistory::new(move || {
            let transcript = self.clone();
            async move {
                transcript
                    .messages(None)
                    .await
                    .map(|messages| transcript.to_transcript(messages))
                    .map_err(|error| history_error(&error))
            }
        })
    }

    async fn messages(&self, session: Option<&ProviderSessionRecord>) -> Result<Vec<Message>, StoreError> {
        let Claim { owner, room_id, queued_seq, .. } = &self.claim;
        self.engine.store().messages_before_run(owner, *room_id, *queued_seq, session, MAX_TRANSCRIPT_MESSAGES).await
    }

    fn to_transcript(&self, messages: Vec<Message>) -> Vec<HistoryMessage> {
        let entries =
            messages.into_iter().filter(|message| message.id != self.prompt_id).map(|message| self.to_entry(message));
        // Empty messages without tool calls are left out.
        entries.filter(|entry| !entry.text.is_empty() || !entry.tools.is_empty()).collect()
    }

    fn to_entry(&self, message: Message) -> HistoryMessage {
        let speaker = match &message.author {
            Author::Person { name, .. } => HistoryAuthor::Person(name.to_string()),
            Author::Agent { id, .. } if *id == self.agent.id => HistoryAuthor::ThisAgent,
            Author::Agent { name, .. } => HistoryAuthor::OtherAgent(name.to_string()),
        };
        let text = attachments::text_with_attachments(&message);
        let tools = message.parts.into_iter().filter_map(tool_call).collect();
        HistoryMessage { author: speaker, text, tools }
    }
}

fn tool_call(part: Part) -> Option<ToolCall> {
    match part {
        Part::Tool(call) => Some(call),
        Part::Text { .. } | Part::Thinking { .. } => None,
    }
}

fn history_error(error: &StoreError) -> RunError {
    RunError::new("history_unavailable", format!("the messages of this room could not be read: {error}; try again"))
}
