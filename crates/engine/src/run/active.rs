//! The runs that are on this server now, and how to reach them. A hint, not a truth: the queue in the store is.

use crate::Error;
use domain::{
    event::{Decision, Interruption},
    ids::{ApprovalId, RoomId, RunId},
};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use store::queue::Claim;
use tokio::sync::{mpsc, oneshot, watch};

/// Why a run on this server is told to halt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    Cancel,
    Interrupt(Interruption),
    /// Someone else took the run over: stop working and write nothing more.
    LeaseLost,
}

/// A person's answer to an approval, and where to say whether it was still wanted.
#[derive(Debug)]
pub(crate) struct Reply {
    pub approval: ApprovalId,
    pub decision: Decision,
    pub input: Option<Value>,
    pub accepted: oneshot::Sender<bool>,
}

/// The receiving ends, held by the run.
pub(crate) struct Signals {
    pub halt: watch::Receiver<Option<Halt>>,
    pub replies: mpsc::Receiver<Reply>,
}

struct Handle {
    room_id: RoomId,
    queued_seq: u64,
    halt: watch::Sender<Option<Halt>>,
    replies: mpsc::Sender<Reply>,
}

#[derive(Default)]
pub(crate) struct Active(Mutex<HashMap<RunId, Handle>>);

/// Approvals answered at once; more wait.
const REPLIES: usize = 16;

impl Active {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Handle>> {
        // Plain data that no panic can leave half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, claim: &Claim) -> Signals {
        let (halt, halted) = watch::channel(None);
        let (replies, replied) = mpsc::channel(REPLIES);
        let handle = Handle { room_id: claim.room_id, queued_seq: claim.queued_seq, halt, replies };
        self.runs().insert(claim.run_id, handle);
        Signals { halt: halted, replies: replied }
    }

    pub(crate) fn remove(&self, run: RunId) {
        self.runs().remove(&run);
    }

    pub(crate) fn ids(&self) -> Vec<RunId> {
        self.runs().keys().copied().collect()
    }

    /// The first reason stands, except that a lost lease overrides all.
    pub(crate) fn halt(&self, run: RunId, why: Halt) {
        if let Some(handle) = self.runs().get(&run) {
            tell(handle, why);
        }
    }

    pub(crate) fn halt_room(&self, room: RoomId, before: u64, why: Halt) {
        self.runs().values().filter(|h| h.room_id == room && h.queued_seq < before).for_each(|h| tell(h, why));
    }

    pub(crate) fn halt_all(&self, why: Halt) {
        self.runs().values().for_each(|handle| tell(handle, why));
    }

    /// Hands a person's answer to the run; `Ok(false)` when it does not wait for this approval any more.
    pub(crate) async fn answer(
        &self,
        run: RunId,
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
    ) -> Result<bool, Error> {
        let replies = self.runs().get(&run).map(|handle| handle.replies.clone()).ok_or(Error::RunEnded)?;
        let (accepted, answer) = oneshot::channel();
        let reply = Reply { approval, decision, input, accepted };
        replies.send(reply).await.map_err(|_| Error::RunEnded)?;
        answer.await.map_err(|_| Error::RunEnded)
    }
}

fn tell(handle: &Handle, why: Halt) {
    handle.halt.send_if_modified(|halt| {
        let first = halt.is_none() || (why == Halt::LeaseLost && *halt != Some(Halt::LeaseLost));
        if first {
            *halt = Some(why);
        }
        first
    });
}
