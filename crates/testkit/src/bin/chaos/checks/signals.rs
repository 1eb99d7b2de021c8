//! Check 13: what was accepted for a run is carried out, however often the server was killed.

use super::RoomRecord;
use crate::{ledger::ChaosRoomKind, report::ChaosCheck};
use domain::{
    event::{Decision, EventBody, EventType},
    ids::{AgentId, ApprovalId, MessageId},
    room::WhenBusy,
};
use std::collections::{BTreeMap, BTreeSet};

/// By agent: how many of its runs took a message into their answer, and how many were queued for it.
type AgentAnswers = BTreeMap<AgentId, (usize, usize)>;

pub fn check(rooms: &[RoomRecord]) -> ChaosCheck {
    let mut check =
        ChaosCheck::new("13 every accepted answer is in the journal, each agent answers a steered message once");
    let (mut answers, mut steered, mut taken) = (0, 0, 0);
    for room in rooms {
        let mut allowed: BTreeSet<ApprovalId> = BTreeSet::new();
        let mut to_steer: BTreeSet<MessageId> = BTreeSet::new();
        let mut answered: BTreeMap<MessageId, AgentAnswers> = BTreeMap::new();
        let kinds = [EventType::MessagePosted, EventType::RunQueued, EventType::Status, EventType::ApprovalResolved];
        for event in room.journal.iter().filter(|event| kinds.contains(&event.kind)) {
            match event.body() {
                Ok(EventBody::MessagePosted(posted)) if posted.when_busy == WhenBusy::Steer => {
                    to_steer.insert(posted.message_id);
                }
                Ok(EventBody::RunQueued(queued)) => {
                    if let Some(agent) = event.agent_id {
                        answered.entry(queued.message_id).or_default().entry(agent).or_default().1 += 1;
                    }
                }
                Ok(EventBody::Status(status)) => {
                    if let (Some(message), Some(agent)) = (status.message_id, event.agent_id) {
                        answered.entry(message).or_default().entry(agent).or_default().0 += 1;
                    }
                }
                Ok(EventBody::ApprovalResolved(resolved)) if resolved.decision == Decision::Allow => {
                    allowed.insert(resolved.approval_id);
                }
                Ok(_) => {}
                Err(error) => check.faults.push(error.to_string()),
            }
        }
        for approval in &room.ledger.entries().allowed {
            answers += 1;
            check
                .expect(allowed.contains(approval), || format!("approval {approval} was accepted and is not resolved"));
        }
        for message in to_steer {
            steered += 1;
            let agents = answered.remove(&message).unwrap_or_default();
            // What waits in a tape is replaced by the next message that interrupts.
            let may_wait = room.ledger.kind == ChaosRoomKind::InTurn;
            check.expect(may_wait || !agents.is_empty(), || format!("message {message} was taken by nobody"));
            for (agent, (took, queued)) in agents {
                taken += took;
                check.expect(took + queued == 1, || {
                    format!("message {message} was taken by {took} runs of {agent}, and {queued} were queued for it")
                });
            }
        }
    }
    check.expect(answers > 0 && steered > 0, || format!("{answers} answers and {steered} messages prove nothing"));
    check.examined = format!("{answers} answers, {steered} messages to steer, {taken} taken");
    check
}
