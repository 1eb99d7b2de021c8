//! What a provider's own session knows of its room. Pure: what it does not know is told to it with the next prompt.
//!
//! Two marks are enough, because the runs of a room are one after another. A turn is told what people said before it was
//! queued (`heard_seq`) and every answer that had ended when it began (`spoke_seq`); its own answer is next in that row.

use domain::message::{Author, Message};
use providers::Kept;
use store::ProviderSession;

#[derive(Debug, Clone, Default)]
pub(super) struct Knowledge(Option<ProviderSession>);

impl Knowledge {
    pub(super) fn of(session: Option<ProviderSession>) -> Self {
        Self(session)
    }

    pub(super) fn session_id(&self) -> Option<&str> {
        self.0.as_ref().map(|session| session.id.as_str())
    }

    pub(super) fn has(&self, message: &Message) -> bool {
        let Some(session) = &self.0 else { return false };
        match message.author {
            Author::Person { .. } => message.seq <= session.heard_seq,
            Author::Agent { .. } => session.spoke_seq.is_some_and(|spoke| message.seq <= spoke),
        }
    }

    /// The provider says which session it works in. Another than before knows nothing yet; that is to be stored.
    pub(super) fn names(&mut self, id: &str) -> Option<ProviderSession> {
        let named = ProviderSession::new(id);
        if self.session_id() == Some(&named.id) {
            return None;
        }
        self.0.insert(named).clone().into()
    }

    /// The turn has ended and its session has kept this much of it. Returns what is to be stored.
    pub(super) fn keeps(&mut self, kept: Kept, heard_seq: u64, stream_seq: u64) -> Option<ProviderSession> {
        let session = self.0.as_mut()?;
        let spoke_seq = match kept {
            Kept::Nothing => return None,
            Kept::Prompt => stream_seq.saturating_sub(1),
            Kept::PromptAndAnswer => stream_seq,
        };
        (session.heard_seq, session.spoke_seq) = (heard_seq, Some(spoke_seq));
        Some(session.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::Knowledge;
    use domain::{
        ids::{AgentId, MessageId, RoomId},
        message::{Author, Message, MessageStatus},
        name::Name,
        time::Timestamp,
    };
    use providers::Kept;

    fn message(seq: u64, by_agent: bool) -> Message {
        let name = Name::parse("someone").unwrap();
        let author = match by_agent {
            true => Author::Agent { id: AgentId::generate(), name },
            false => Author::Person { name },
        };
        Message {
            id: MessageId::generate(),
            room_id: RoomId::generate(),
            seq,
            author,
            run_id: None,
            status: MessageStatus::Complete,
            text: String::new(),
            thinking: String::new(),
            parts: Vec::new(),
            attachments: Vec::new(),
            created_at: Timestamp::from_millis(0),
        }
    }

    /// Which of people's and which of agents' messages with seq 1 to 9 it does not know.
    fn unknown(knowledge: &Knowledge) -> (Vec<u64>, Vec<u64>) {
        let of = |by_agent| (1..10).filter(|&seq| !knowledge.has(&message(seq, by_agent))).collect();
        (of(false), of(true))
    }

    #[test]
    fn a_new_session_knows_nothing_and_the_same_one_loses_nothing() {
        let all: Vec<u64> = (1..10).collect();
        let mut knowledge = Knowledge::default();
        assert!(knowledge.keeps(Kept::PromptAndAnswer, 5, 7).is_none(), "there is no session");
        assert!(knowledge.names("a").is_some());
        assert_eq!(unknown(&knowledge), (all.clone(), all.clone()));
        knowledge.keeps(Kept::PromptAndAnswer, 5, 7);
        assert!(knowledge.names("a").is_none() && knowledge.names("a\0").is_none());
        assert_eq!(unknown(&knowledge), ((6..10).collect(), (8..10).collect()));
        assert!(knowledge.names("b").is_some());
        assert_eq!(unknown(&knowledge), (all.clone(), all));
    }

    #[test]
    fn what_is_kept_is_known() {
        for (kept, people, agents) in [
            (Kept::Nothing, 3..10, 5..10),
            // It was told the answers before its own.
            (Kept::Prompt, 6..10, 7..10),
            (Kept::PromptAndAnswer, 6..10, 8..10),
        ] {
            let mut knowledge = Knowledge::default();
            knowledge.names("a");
            knowledge.keeps(Kept::PromptAndAnswer, 2, 4);
            assert_eq!(knowledge.keeps(kept, 5, 7).is_some(), kept != Kept::Nothing);
            assert_eq!(unknown(&knowledge), (people.collect(), agents.collect()), "{kept:?}");
        }
    }
}
