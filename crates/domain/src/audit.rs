//! The audit log: who changed what, by which credential (invariant 22). An entry is stored in the transaction of its
//! change.

use crate::{actor::Actor, ids::RoomId};

/// One change by an actor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    pub actor: Actor,
    pub action: AuditAction,
    pub object: AuditedObject,
    /// The id of the object, or its name if it has no id.
    pub object_id: String,
    /// The room of the object, if it belongs to one.
    pub room_id: Option<RoomId>,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $($variant,)*
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The stored word; it is never renamed.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

words! {
    /// What was done.
    AuditAction {
        Create = "create",
        Update = "update",
        Delete = "delete",
        Post = "post",
        Cancel = "cancel",
        Approve = "approve",
        Forget = "forget",
        Trust = "trust",
        Distrust = "distrust",
        Rate = "rate",
        Propose = "propose",
        Accept = "accept",
        Reject = "reject",
        Revoke = "revoke",
        SignIn = "sign_in",
        SignOut = "sign_out",
    }
}

words! {
    /// The kind of object that it was done to.
    AuditedObject {
        Agent = "agent",
        Approval = "approval",
        BrowserSession = "browser_session",
        Budget = "budget",
        McpFile = "mcp_file",
        McpServer = "mcp_server",
        Memory = "memory",
        Message = "message",
        Proposal = "proposal",
        Room = "room",
        Run = "run",
        Skill = "skill",
        Token = "token",
        Tool = "tool",
        Upload = "upload",
        User = "user",
    }
}

impl AuditEntry {
    pub fn new(actor: &Actor, action: AuditAction, object: AuditedObject, id: impl ToString) -> Self {
        Self { actor: actor.clone(), action, object, object_id: id.to_string(), room_id: None }
    }

    pub fn in_room(self, room: RoomId) -> Self {
        Self { room_id: Some(room), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditAction, AuditedObject};
    use std::collections::BTreeSet;

    #[test]
    fn words_are_unique() {
        let actions: BTreeSet<&str> = AuditAction::ALL.iter().map(|action| action.as_str()).collect();
        let objects: BTreeSet<&str> = AuditedObject::ALL.iter().map(|object| object.as_str()).collect();
        assert_eq!((actions.len(), objects.len()), (AuditAction::ALL.len(), AuditedObject::ALL.len()));
    }
}
