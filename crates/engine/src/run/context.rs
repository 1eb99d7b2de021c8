//! The context of a run, to be read back: what the agent was told, and which messages it received. The prompts and the marks are
//! stored with the run; the messages are read again from the room, by the same code.

use super::transcript::{AskedQuestion, RoomTranscript, TurnKnowledge};
use crate::{Engine, EngineError};
use domain::{actor::Actor, ids::RunId, permission::Permission, position::Seq};
use providers::{HistoryAuthor, HistoryMessage};
use serde::{Deserialize, Serialize};
use store::{ProviderSessionRecord, StoreError, journal::RowChange, queue::Claim};

/// What a run was given. The names are stored: fields may be added, never renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GivenContext {
    pub provider: String,
    pub model: Option<String>,
    pub system_prompt: Option<String>,
    pub prompt: String,
    pub asked_by: String,
    pub question: AskedQuestion,
    /// The room's head when the messages were read.
    pub known_seq: Seq,
    /// The run reads the posts before this seq.
    pub queued_seq: Seq,
    pub session: Option<GivenSession>,
}

/// How much a session knew before the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GivenSession {
    id: String,
    heard_seq: Seq,
    spoke_seq: Option<Seq>,
    answer_seq: Option<Seq>,
}

impl GivenSession {
    pub(super) fn of(session: &ProviderSessionRecord) -> Self {
        let ProviderSessionRecord { id, heard_seq, spoke_seq, answer_seq } = session.clone();
        Self { id, heard_seq, spoke_seq, answer_seq }
    }

    fn record(self) -> ProviderSessionRecord {
        let Self { id, heard_seq, spoke_seq, answer_seq } = self;
        ProviderSessionRecord { id, heard_seq, spoke_seq, answer_seq }
    }
}

impl GivenContext {
    pub(super) fn stored_for(&self, run_id: RunId) -> Result<RowChange, StoreError> {
        Ok(RowChange::PutRunContext { run_id, context: serde_json::to_string(self)? })
    }
}

/// The context of a run.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = RunContext)]
pub struct RunContextView {
    pub provider: String,
    pub model: Option<String>,
    /// The agent's own instructions, with what the room adds to them.
    pub system_prompt: Option<String>,
    /// The provider session that was continued; it has the earlier messages.
    pub session_id: Option<String>,
    /// The messages before the prompt that were sent with it: all of them, or those that the session did not know.
    pub before: Vec<ContextMessage>,
    /// The message that the run answers, or the request to speak again.
    pub prompt: ContextMessage,
    /// What was said after the prompt and before the turn.
    pub after: Vec<ContextMessage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ContextMessage {
    /// The name of who said it; `null` for the agent itself.
    pub by: Option<String>,
    pub text: String,
}

impl From<HistoryMessage> for ContextMessage {
    fn from(message: HistoryMessage) -> Self {
        let by = match message.author {
            HistoryAuthor::ThisAgent => None,
            HistoryAuthor::Person(name) | HistoryAuthor::OtherAgent(name) => Some(name),
        };
        Self { by, text: message.text }
    }
}

impl Engine {
    /// The context that a run was given. Not found before its first output, and for runs of earlier versions.
    pub async fn run_context(&self, actor: &Actor, run: RunId) -> Result<RunContextView, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let run = self.store().run(owner, run).await?;
        let given = self.store().run_context(run.id).await?.ok_or(EngineError::NotFound)?;
        let given: GivenContext = serde_json::from_str(&given).map_err(StoreError::from)?;
        let claim = Claim {
            run_id: run.id,
            room_id: run.room_id,
            owner: owner.clone(),
            queued_seq: given.queued_seq,
            cell: given.queued_seq,
            fence: 0,
            stop: None,
        };
        let transcript =
            RoomTranscript { engine: self.clone(), claim, agent_id: run.agent_id, question: given.question };
        let session = given.session.map(GivenSession::record);
        let messages = transcript.unknown_messages(given.known_seq, session.as_ref()).await?;
        let TurnKnowledge { session, later, .. } = transcript.build(given.known_seq, session, messages);
        let (session_id, before) = match session {
            Some(session) => (Some(session.id), session.missed),
            None => (None, transcript.whole_history(given.known_seq).await?),
        };
        Ok(RunContextView {
            provider: given.provider,
            model: given.model,
            system_prompt: given.system_prompt,
            session_id,
            before: before.into_iter().map(ContextMessage::from).collect(),
            prompt: ContextMessage { by: Some(given.asked_by), text: given.prompt },
            after: later.into_iter().map(ContextMessage::from).collect(),
        })
    }
}
