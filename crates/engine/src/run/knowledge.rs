//! What a provider's own session knows of its room. Pure: what it does not know is told to it with the next prompt.
//!
//! Two marks are enough, because the runs of a room are one after another. A turn is told what people said before it was
//! queued (`heard_seq`) and every answer that had ended when it began (`spoke_seq`); its own answer is next in that row.

use providers::Kept;
use store::ProviderSession;

#[derive(Debug, Clone, Default)]
pub(super) struct Knowledge(Option<ProviderSession>);

impl Knowledge {
    pub(super) fn of(session: Option<ProviderSession>) -> Self {
        Self(session)
    }

    /// The provider says which session it works in. Another than before knows nothing yet; that is to be stored.
    pub(super) fn names(&mut self, id: &str) -> Option<ProviderSession> {
        let named = ProviderSession::new(id);
        if self.0.as_ref().is_some_and(|session| session.id == named.id) {
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
    use providers::Kept;

    fn marks(knowledge: &Knowledge) -> Option<(u64, Option<u64>)> {
        knowledge.0.as_ref().map(|session| (session.heard_seq, session.spoke_seq))
    }

    #[test]
    fn a_new_session_knows_nothing_and_the_same_one_loses_nothing() {
        let mut knowledge = Knowledge::default();
        assert!(knowledge.keeps(Kept::PromptAndAnswer, 5, 7).is_none(), "there is no session");
        assert!(knowledge.names("a").is_some());
        assert_eq!(marks(&knowledge), Some((0, None)));
        knowledge.keeps(Kept::PromptAndAnswer, 5, 7);
        assert!(knowledge.names("a").is_none() && knowledge.names("a\0").is_none());
        assert_eq!(marks(&knowledge), Some((5, Some(7))));
        assert!(knowledge.names("b").is_some());
        assert_eq!(marks(&knowledge), Some((0, None)));
    }

    #[test]
    fn what_is_kept_is_known() {
        for (kept, known) in [
            (Kept::Nothing, (2, Some(4))),
            // It was told the answers before its own.
            (Kept::Prompt, (5, Some(6))),
            (Kept::PromptAndAnswer, (5, Some(7))),
        ] {
            let mut knowledge = Knowledge::default();
            knowledge.names("a");
            knowledge.keeps(Kept::PromptAndAnswer, 2, 4);
            assert_eq!(knowledge.keeps(kept, 5, 7).is_some(), kept != Kept::Nothing);
            assert_eq!(marks(&knowledge), Some(known), "{kept:?}");
        }
    }
}
