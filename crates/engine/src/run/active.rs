//! The runs that are on this server now, and how to reach them. A hint, not a truth: the queue in the store is.

use crate::Error;
use domain::{
    event::{Decision, Interruption},
    ids::{AgentId, ApprovalId, MessageId, RoomId, RunId},
    position::Seq,
};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use store::queue::Claim;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

/// Why a run on this server is told to halt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    Cancel,
    Interrupt(Interruption),
    /// Someone else took the run over: stop working and write nothing more.
    LeaseLost,
}

/// What a person wants of a run that goes on.
#[derive(Debug)]
pub(crate) enum Order {
    Answer(Reply),
    Steer(Steering),
    /// The tool is not allowed any more without asking; only for this agent.
    Forget {
        agent: AgentId,
        tool: String,
    },
}

/// A person's answer to an approval, and where to say what became of it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub approval: ApprovalId,
    pub decision: Decision,
    pub input: Option<Value>,
    pub remember: bool,
    pub accepted: oneshot::Sender<Accepted>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It is stored.
    Yes,
    /// It is not waited for, or not any more.
    NotWanted,
    /// A question is answered anew every time: its answer cannot be remembered.
    Question,
}

/// A message for the answer under way, and where to say whether it was taken.
#[derive(Debug)]
pub(crate) struct Steering {
    pub message: MessageId,
    pub seq: Seq,
    pub text: String,
    pub taken: oneshot::Sender<bool>,
}

/// The receiving ends, held by the run.
pub(crate) struct Signals {
    pub halt: watch::Receiver<Option<Halt>>,
    pub orders: mpsc::Receiver<Order>,
}

struct Handle {
    room_id: RoomId,
    queued_seq: u64,
    halt: watch::Sender<Option<Halt>>,
    orders: mpsc::Sender<Order>,
}

#[derive(Default)]
pub(crate) struct Active(Mutex<HashMap<RunId, Handle>>);

/// Orders given at once; more wait.
const ORDERS: usize = 16;
/// How long a provider may take to say whether it takes a message.
const STEER: Duration = Duration::from_secs(10);
/// How long a run may be too busy to hear that a tool is forgotten.
const FORGET: Duration = Duration::from_secs(10);

impl Active {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Handle>> {
        // Plain data that no panic can leave half-changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, claim: &Claim) -> Signals {
        let (halt, halted) = watch::channel(None);
        let (orders, ordered) = mpsc::channel(ORDERS);
        let handle = Handle { room_id: claim.room_id, queued_seq: claim.queued_seq, halt, orders };
        self.runs().insert(claim.run_id, handle);
        Signals { halt: halted, orders: ordered }
    }

    pub(crate) fn has(&self, run: RunId) -> bool {
        self.runs().contains_key(&run)
    }

    pub(crate) fn remove(&self, run: RunId) {
        self.runs().remove(&run);
    }

    pub(crate) fn ids(&self) -> Vec<RunId> {
        self.runs().keys().copied().collect()
    }

    /// The first reason stands, except that a lost lease overrides all.
    /// Whether it is here.
    pub(crate) fn halt(&self, run: RunId, why: Halt) -> bool {
        match self.runs().get(&run) {
            Some(handle) => {
                tell(handle, why);
                true
            }
            None => false,
        }
    }

    pub(crate) fn halt_room(&self, room: RoomId, before: u64, why: Halt) {
        self.runs().values().filter(|h| h.room_id == room && h.queued_seq < before).for_each(|h| tell(h, why));
    }

    pub(crate) fn halt_all(&self, why: Halt) {
        self.runs().values().for_each(|handle| tell(handle, why));
    }

    fn orders(&self, run: RunId) -> Result<mpsc::Sender<Order>, Error> {
        self.runs().get(&run).map(|handle| handle.orders.clone()).ok_or(Error::RunEnded)
    }

    /// Hands a person's answer to the run.
    pub(crate) async fn answer(
        &self,
        run: RunId,
        approval: ApprovalId,
        decision: Decision,
        input: Option<Value>,
        remember: bool,
    ) -> Result<Accepted, Error> {
        let (accepted, answer) = oneshot::channel();
        let reply = Reply { approval, decision, input, remember, accepted };
        self.orders(run)?.send(Order::Answer(reply)).await.map_err(|_| Error::RunEnded)?;
        answer.await.map_err(|_| Error::RunEnded)
    }

    /// Hands a message to the answer under way. A run that has ended, a provider that refuses and one that does not say
    /// are all alike: it was not taken.
    pub(crate) async fn steer(&self, run: RunId, message: MessageId, seq: Seq, text: String) -> bool {
        let Ok(orders) = self.orders(run) else { return false };
        let (taken, answer) = oneshot::channel();
        let asked = async {
            match orders.send(Order::Steer(Steering { message, seq, text, taken })).await {
                Ok(()) => answer.await.unwrap_or(false),
                Err(_) => false,
            }
        };
        timeout(STEER, asked).await.unwrap_or(false)
    }

    /// Tells the runs of a room that a tool of an agent is asked about again.
    pub(crate) async fn forget(&self, room: RoomId, agent: AgentId, tool: &str) {
        let here: Vec<_> = self.runs().values().filter(|h| h.room_id == room).map(|h| h.orders.clone()).collect();
        for orders in here {
            let order = Order::Forget { agent, tool: tool.to_owned() };
            if let Ok(Err(_)) = timeout(FORGET, orders.send(order)).await {
                tracing::debug!(%room, "a run ended before it heard that a tool is forgotten");
            }
        }
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
