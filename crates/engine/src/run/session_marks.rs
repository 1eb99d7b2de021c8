//! How much of its room a provider's own session knows. Pure: missed messages are sent with the next prompt.
//!
//! A turn receives the messages of people from before it was queued (`heard_seq`), and the answers that had ended when
//! they were read for it (`spoke_seq`): another agent may answer at the same time. Its own answer (`answer_seq`) is known
//! too, although it ends later.

use providers::SavedInSession;
use store::ProviderSessionRecord;

#[derive(Debug, Clone, Default)]
pub(super) struct SessionMarks(Option<ProviderSessionRecord>);

impl SessionMarks {
    pub(super) fn new(session: Option<ProviderSessionRecord>) -> Self {
        Self(session)
    }

    /// The session before the turn.
    pub(super) fn record(&self) -> Option<&ProviderSessionRecord> {
        self.0.as_ref()
    }

    /// Sets the session that the provider works in. A new session knows nothing yet; returns it if it has to be stored.
    pub(super) fn set_session(&mut self, id: &str) -> Option<ProviderSessionRecord> {
        let named = ProviderSessionRecord::new(id);
        if self.0.as_ref().is_some_and(|session| session.id == named.id) {
            return None;
        }
        self.0.insert(named).clone().into()
    }

    /// Records how much of an ended turn its session has kept. Returns the session if it has to be stored.
    pub(super) fn record_turn(
        &mut self,
        kept: SavedInSession,
        heard_seq: u64,
        spoke_seq: u64,
        stream_seq: u64,
    ) -> Option<ProviderSessionRecord> {
        let session = self.0.as_mut()?;
        session.answer_seq = match kept {
            SavedInSession::Nothing => return None,
            SavedInSession::Prompt => None,
            SavedInSession::PromptAndAnswer => Some(stream_seq),
        };
        (session.heard_seq, session.spoke_seq) = (heard_seq, Some(spoke_seq));
        Some(session.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::SessionMarks;
    use providers::SavedInSession;

    fn seqs(marks: &SessionMarks) -> Option<(u64, Option<u64>, Option<u64>)> {
        marks.0.as_ref().map(|session| (session.heard_seq, session.spoke_seq, session.answer_seq))
    }

    #[test]
    fn a_new_session_has_no_marks_and_the_same_session_keeps_them() {
        let mut marks = SessionMarks::default();
        assert!(marks.record_turn(SavedInSession::PromptAndAnswer, 5, 4, 7).is_none(), "no session");
        assert!(marks.set_session("a").is_some());
        assert_eq!(seqs(&marks), Some((0, None, None)));
        marks.record_turn(SavedInSession::PromptAndAnswer, 5, 4, 7);
        assert!(marks.set_session("a").is_none() && marks.set_session("a\0").is_none());
        assert_eq!(seqs(&marks), Some((5, Some(4), Some(7))));
        assert!(marks.set_session("b").is_some());
        assert_eq!(seqs(&marks), Some((0, None, None)));
    }

    #[test]
    fn marks_advance_by_what_the_session_kept() {
        for (kept, known) in [
            (SavedInSession::Nothing, (2, Some(1), Some(4))),
            // It received the answers before its own.
            (SavedInSession::Prompt, (6, Some(5), None)),
            (SavedInSession::PromptAndAnswer, (6, Some(5), Some(8))),
        ] {
            let mut marks = SessionMarks::default();
            marks.set_session("a");
            marks.record_turn(SavedInSession::PromptAndAnswer, 2, 1, 4);
            assert_eq!(marks.record_turn(kept, 6, 5, 8).is_some(), kept != SavedInSession::Nothing);
            assert_eq!(seqs(&marks), Some(known), "{kept:?}");
        }
    }
}
