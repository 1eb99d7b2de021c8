//! How far the agents of a room have come with a person's message: what the next round depends on.

use domain::{
    ids::{AgentId, MessageId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

/// Part of the stored state of a tape: fields may be added, never renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub message_id: MessageId,
    pub seed: u32,
    /// The agents that the message was for; empty if it was for all.
    #[serde(default)]
    pub audience: Vec<AgentId>,
    /// When a person posted it.
    #[serde(default)]
    pub asked_at: Timestamp,
    /// The rounds that began when no person had spoken for a while.
    #[serde(default)]
    pub unattended_rounds: u32,
    /// The follow-up rounds so far.
    #[serde(default)]
    pub round: u32,
    /// The runs that were queued for the message.
    #[serde(default)]
    pub runs: u32,
    /// The agents that have said something in this round that the others react to.
    #[serde(default)]
    pub heard: Vec<AgentId>,
    /// The agents that were named by others in this round.
    #[serde(default)]
    pub named: Vec<AgentId>,
    /// Whether anything was said since the last cell was queued.
    #[serde(default)]
    pub was_heard: bool,
    #[serde(default)]
    pub had_last_words: bool,
    /// No more rounds: all have skipped, a cap is reached, or an agent has ended the round.
    #[serde(default)]
    pub is_over: bool,
}

impl Progress {
    pub(super) fn new(message_id: MessageId, seed: u32, audience: Vec<AgentId>, asked_at: Timestamp) -> Self {
        Self {
            message_id,
            seed,
            audience,
            asked_at,
            unattended_rounds: 0,
            round: 0,
            runs: 0,
            heard: Vec::new(),
            named: Vec::new(),
            // The person's message.
            was_heard: true,
            had_last_words: false,
            is_over: false,
        }
    }

    pub(super) fn next_round(&mut self) {
        self.round += 1;
        self.heard.clear();
        self.named.clear();
    }
}
