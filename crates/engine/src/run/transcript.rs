//! The messages of a room that a provider receives: those that its session has missed, or all of them without a
//! session.

use super::session_marks::SessionMarks;
use crate::{Engine, attachments};
use domain::{
    ids::{AgentId, MessageId},
    message::{Author, Message, MessageStatus, Part, ToolCall},
    position::Seq,
    run::RunError,
};
use providers::{HistoryAuthor, HistoryMessage, ResumableSession, TurnHistory};
use serde::{Deserialize, Serialize};
use store::{ProviderSessionRecord, RunStartState, StoreError, TranscriptRange, queue::Claim};

/// How many messages of a room a provider receives at most.
pub(super) const MAX_TRANSCRIPT_MESSAGES: u32 = 200;

/// Follows an answer that was interrupted.
const CUT_OFF: &str = "\n[The answer was cut off here.]";

#[derive(Clone)]
pub(super) struct RoomTranscript {
    pub engine: Engine,
    pub claim: Claim,
    pub agent_id: AgentId,
    pub question: AskedQuestion,
}

/// The message that a run answers, and how the run reads its room. Stored with the run, so that its context can be read
/// back: fields may be added, never renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AskedQuestion {
    pub message_id: MessageId,
    pub seq: Seq,
    /// Whether other agents are in the room.
    pub in_company: bool,
    /// The agent has answered the message before: it reacts to what was said since.
    pub reacts: bool,
    /// The agents whose words are for people only.
    pub unheard: Vec<AgentId>,
}

/// What a turn knows of its room.
pub(super) struct TurnKnowledge {
    /// The room's head when this was read: the turn knows the answers that had ended then.
    pub head: Seq,
    pub marks: SessionMarks,
    pub session: Option<ResumableSession>,
    /// What was said after the message that the run answers.
    pub later: Vec<HistoryMessage>,
}

impl RoomTranscript {
    pub(super) async fn load(&self, provider: &str) -> Result<TurnKnowledge, StoreError> {
        let RunStartState { head, session, .. } =
            self.engine.store().run_start_state(self.claim.room_id, self.agent_id, provider).await?;
        let messages = self.unknown_messages(head, session.as_ref()).await?;
        Ok(self.build(head, session, messages))
    }

    /// The messages that the session does not know. Without one those after the question: the provider reads the others
    /// itself if it needs them.
    pub(super) async fn unknown_messages(
        &self,
        head: Seq,
        session: Option<&ProviderSessionRecord>,
    ) -> Result<Vec<Message>, StoreError> {
        let asked = self.question.seq;
        match session {
            Some(known) => self.messages(head, Some(known)).await,
            None if self.splits() => {
                let knows_the_rest = ProviderSessionRecord {
                    heard_seq: asked,
                    spoke_seq: Some(asked),
                    ..ProviderSessionRecord::new("")
                };
                let messages = self.messages(head, Some(&knows_the_rest)).await?;
                Ok(messages.into_iter().filter(|message| message.seq > asked).collect())
            }
            None => Ok(Vec::new()),
        }
    }

    /// Whether the question stands between what was said before it and after it.
    fn splits(&self) -> bool {
        self.question.in_company && !self.question.reacts
    }

    /// As `load`, with data that was already read.
    pub(super) fn build(
        &self,
        head: Seq,
        known: Option<ProviderSessionRecord>,
        messages: Vec<Message>,
    ) -> TurnKnowledge {
        let is_later = |message: &Message| self.splits() && message.seq > self.question.seq;
        let (later, before): (Vec<Message>, Vec<Message>) = messages.into_iter().partition(is_later);
        let later = self.to_transcript(later);
        let session =
            known.as_ref().map(|known| ResumableSession { id: known.id.clone(), missed: self.to_transcript(before) });
        TurnKnowledge { head, marks: SessionMarks::new(known), session, later }
    }

    /// The whole history before the question, as far as the turn knows it.
    pub(super) fn history(self, head: Seq) -> TurnHistory {
        TurnHistory::new(move || {
            let transcript = self.clone();
            async move { transcript.whole_history(head).await.map_err(|error| history_error(&error)) }
        })
    }

    pub(super) async fn whole_history(&self, head: Seq) -> Result<Vec<HistoryMessage>, StoreError> {
        let mut messages = self.messages(head, None).await?;
        if self.splits() {
            messages.retain(|message| message.seq < self.question.seq);
        }
        Ok(self.to_transcript(messages))
    }

    async fn messages(&self, head: Seq, session: Option<&ProviderSessionRecord>) -> Result<Vec<Message>, StoreError> {
        let Claim { owner, room_id, .. } = &self.claim;
        let range = TranscriptRange { posts_before: self.claim.posts_before(), answers_until: head };
        self.engine.store().messages_before_run(owner, *room_id, range, session, MAX_TRANSCRIPT_MESSAGES).await
    }

    fn to_transcript(&self, messages: Vec<Message>) -> Vec<HistoryMessage> {
        let AskedQuestion { message_id, reacts, unheard, .. } = &self.question;
        let is_read = |message: &Message| match &message.author {
            Author::Agent { id, .. } => !unheard.contains(id),
            // The question is the prompt, unless it was answered before.
            Author::Person { .. } => *reacts || message.id != *message_id,
        };
        let entries = messages.into_iter().filter(is_read).map(|message| self.to_entry(message));
        // Empty messages without tool calls are left out.
        entries.filter(|entry| !entry.text.is_empty() || !entry.tools.is_empty()).collect()
    }

    fn to_entry(&self, message: Message) -> HistoryMessage {
        let speaker = match &message.author {
            Author::Person { name, .. } => HistoryAuthor::Person(name.to_string()),
            Author::Agent { id, .. } if *id == self.agent_id => HistoryAuthor::ThisAgent,
            Author::Agent { name, .. } => HistoryAuthor::OtherAgent(name.to_string()),
        };
        let mut text = attachments::text_with_attachments(&message);
        if self.question.in_company && message.status == MessageStatus::Partial && !text.is_empty() {
            text.push_str(CUT_OFF);
        }
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
