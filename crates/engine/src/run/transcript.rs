//! The messages of a room that a provider receives: those that its session has missed, or all of them without a
//! session.

use super::session_marks::SessionMarks;
use crate::{Engine, attachments};
use domain::{
    agent::Agent,
    ids::MessageId,
    message::{Author, Message, Part, ToolCall},
    position::Seq,
    run::RunError,
};
use providers::{HistoryAuthor, HistoryMessage, ResumableSession, TurnHistory};
use store::{ProviderSessionRecord, RunStartState, StoreError, TranscriptRange, queue::Claim};

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

/// What a turn knows of its room.
pub(super) struct TurnKnowledge {
    /// The room's head when this was read: the turn knows the answers that had ended then.
    pub head: Seq,
    pub marks: SessionMarks,
    pub session: Option<ResumableSession>,
}

impl RoomTranscript {
    pub(super) async fn load(&self, provider: &str) -> Result<TurnKnowledge, StoreError> {
        let RunStartState { head, session, .. } =
            self.engine.store().run_start_state(self.claim.room_id, self.agent.id, provider).await?;
        let messages = match &session {
            Some(known) => self.messages(head, Some(known)).await?,
            None => Vec::new(),
        };
        Ok(self.build(head, session, messages))
    }

    /// As `load`, with data that was already read.
    pub(super) fn build(
        &self,
        head: Seq,
        known: Option<ProviderSessionRecord>,
        messages: Vec<Message>,
    ) -> TurnKnowledge {
        let session =
            known.as_ref().map(|known| ResumableSession { id: known.id.clone(), missed: self.to_transcript(messages) });
        TurnKnowledge { head, marks: SessionMarks::new(known), session }
    }

    /// The whole history, as far as the turn knows it.
    pub(super) fn history(self, head: Seq) -> TurnHistory {
        TurnHistory::new(move || {
            let transcript = self.clone();
            async move {
                transcript
                    .messages(head, None)
                    .await
                    .map(|messages| transcript.to_transcript(messages))
                    .map_err(|error| history_error(&error))
            }
        })
    }

    async fn messages(&self, head: Seq, session: Option<&ProviderSessionRecord>) -> Result<Vec<Message>, StoreError> {
        let Claim { owner, room_id, queued_seq, .. } = &self.claim;
        let range = TranscriptRange { posts_before: *queued_seq, answers_until: head };
        self.engine.store().messages_before_run(owner, *room_id, range, session, MAX_TRANSCRIPT_MESSAGES).await
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
        let files = self.engine.attached_files(&message);
        let tools = message.parts.into_iter().filter_map(tool_call).collect();
        HistoryMessage { author: speaker, text, tools, attachments: files }
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
