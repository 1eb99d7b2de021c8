//! Branches a room off at one of its messages: a new room with the same agents, and with copies of the messages up to that
//! one. Nothing runs, and what the answers cost is counted once, in the room where they were written.

use super::{
    post::CommitPrelude,
    rooms::{NewRoom, RoomOrigin, new_room_prelude},
};
use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    event::{MessageCopied, NewEvent},
    ids::{MessageId, RoomId},
    message::{Message, MessageStatus},
    name::{MAX_CHARS, Name},
    permission::Permission,
    room::{ForkedFrom, Room},
};
use store::{
    IdempotentRequest,
    journal::{RowChange, SeqRef},
};

/// The newest messages before the branch that are copied. A page of a history is bounded in bytes too.
const MAX_COPIED_MESSAGES: u32 = 1000;
const NAME_SUFFIX: &str = " (branch)";

#[derive(Debug, Clone)]
pub struct NewFork {
    /// The last message to copy.
    pub message_id: MessageId,
    /// By default the name of the room, marked as a branch.
    pub name: Option<Name>,
}

impl Engine {
    pub async fn fork_room(
        &self,
        actor: &Actor,
        from: RoomId,
        fork: NewFork,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Room, EngineError> {
        let owner = actor.require(Permission::Post)?;
        if let Some(room) = self.earlier_result(actor, attempt).await? {
            return Ok(self.store().room(owner, room.parse().map_err(|_| EngineError::KeyConflict)?).await?);
        }
        let source = self.store().room(owner, from).await?;
        // An answer is a message of the store when it has ended.
        let last = match self.store().message(owner, from, fork.message_id).await {
            Err(store::StoreError::NotFound) => {
                let detail =
                    "message_id: the room has no finished message with this id; wait until the answer has ended";
                return Err(EngineError::refused("/message_id", detail));
            }
            found => found?,
        };
        self.check_room_limit(owner).await?;
        self.check_project_of_room(owner, source.project_id).await?;
        let agents = self.find_agents(owner, &source.agents).await?;
        let history = self.store().history(owner, from, 0, Some(last.seq + 1), MAX_COPIED_MESSAGES).await?;
        let messages: Vec<Message> =
            history.messages.into_iter().filter(|message| message.status != MessageStatus::Streaming).collect();
        let mut policy = source.policy;
        policy.retain_agents(&source.agents);
        let name = fork.name.unwrap_or_else(|| branch_name(source.name));
        let new = NewRoom { name, agents: source.agents, project_id: source.project_id, policy };
        let origin = RoomOrigin::Fork(ForkedFrom { room_id: from, seq: last.seq });
        let (room, mut prelude) = new_room_prelude(actor, new, &agents, origin);
        push_copies(room.id, messages, &mut prelude);
        let bytes: usize = prelude.events.iter().map(NewEvent::stored_bytes).sum();
        self.check_storage(owner, bytes as u64).await?;
        self.store_room(actor, room, prelude, &agents, attempt).await
    }
}

fn branch_name(name: Name) -> Name {
    let kept: String = name.as_str().chars().take(MAX_CHARS - NAME_SUFFIX.len()).collect();
    Name::parse(&format!("{}{NAME_SUFFIX}", kept.trim_end())).unwrap_or(name)
}

/// Adds a copy of each message, with an id of its own: a message belongs to one room.
fn push_copies(room_id: RoomId, messages: Vec<Message>, prelude: &mut CommitPrelude) {
    for original in messages {
        let message = Message { id: MessageId::generate(), room_id, run_id: None, ..original.clone() };
        let seq = SeqRef::Event(prelude.events.len());
        let Message { author, status, parts, attachments, created_at, .. } = original;
        prelude.events.push(NewEvent::new(MessageCopied {
            message_id: message.id,
            author,
            status,
            parts,
            attachments,
            written_at: created_at,
            copy_of: original.id,
        }));
        prelude.changes.push(RowChange::PutMessage { message, seq });
    }
}

#[cfg(test)]
mod tests {
    use super::branch_name;
    use domain::name::{MAX_CHARS, Name};

    #[test]
    fn a_branch_has_the_name_of_its_room_as_far_as_there_is_space() {
        let name = |text: &str| branch_name(Name::parse(text).unwrap()).to_string();
        assert_eq!(name("Parser"), "Parser (branch)");
        let long = name(&"ä".repeat(MAX_CHARS));
        assert_eq!((long.chars().count(), long.ends_with("ä (branch)")), (MAX_CHARS, true));
    }
}
