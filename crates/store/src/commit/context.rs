//! What a row change must know of its commit.

use super::{ClaimOffer, SeqRef};
use domain::{ids::RoomId, position::Seq, time::Timestamp};

/// A queued run has fence 0; every claim increments it.
pub(crate) const FIRST_FENCE: u64 = 1;

/// The room, seq and time of a row change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeContext {
    pub room: RoomId,
    /// The seq of the commit's first event.
    pub first_seq: Seq,
    pub now: Timestamp,
    /// Whether the claim offer of the commit is granted.
    pub grants_claim: bool,
}

impl ChangeContext {
    pub(crate) fn seq(&self, of: SeqRef) -> Seq {
        match of {
            SeqRef::Known(seq) => seq,
            SeqRef::Event(index) => self.first_seq + index as Seq,
        }
    }

    pub(crate) fn granted_claim<'a>(&self, offer: Option<&'a ClaimOffer>) -> Option<&'a ClaimOffer> {
        offer.filter(|_| self.grants_claim)
    }
}
