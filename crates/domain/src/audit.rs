//! The audit log: who changed what, by which credential and from where (invariant 22). An entry is stored in the
//! transaction of its change. What may come in floods, such as refused requests, is counted: see [`CountedEntry`].

use crate::{
    actor::{Actor, Credential},
    ids::{RoomId, UserId},
    owner::Owner,
    permission::Role,
};
use serde_json::Value;
use std::net::IpAddr;

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
    /// What else a reader of the log wants to know. Never a secret or the text of a conversation.
    pub detail: Option<Value>,
}

/// An entry of which there may be many at once. Entries of the same kind within a minute are one row with a count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountedEntry {
    /// The operator's, if nobody is known to have caused it.
    pub workspace: Owner,
    pub by: Option<CountedAuthor>,
    pub address: Option<IpAddr>,
    pub action: AuditAction,
    pub object: AuditedObject,
    pub object_id: String,
    pub detail: Option<Value>,
}

/// Who caused a counted entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CountedAuthor {
    pub user_id: Option<UserId>,
    pub role: Role,
    pub credential: Credential,
}

impl CountedAuthor {
    pub fn of(actor: &Actor) -> Self {
        Self { user_id: actor.user_id(), role: actor.role, credential: actor.credential }
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
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
        /// A request was answered with 401 or 403.
        Refuse = "refuse",
        /// A program was started.
        Start = "start",
        /// The object is to be erased at once.
        Purge = "purge",
        /// The server has erased what was deleted.
        Erase = "erase",
    }
}

words! {
    /// The kind of object that it was done to.
    AuditedObject {
        Agent = "agent",
        Approval = "approval",
        BrowserSession = "browser_session",
        Budget = "budget",
        /// A command in the sandbox of a project.
        Command = "command",
        File = "file",
        McpFile = "mcp_file",
        McpServer = "mcp_server",
        McpVariable = "mcp_variable",
        Memory = "memory",
        Message = "message",
        /// A port of a project, opened for a browser.
        Preview = "preview",
        Program = "program",
        Project = "project",
        ProjectSkills = "project_skills",
        Proposal = "proposal",
        Provider = "provider",
        Request = "request",
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
        Self { actor: actor.clone(), action, object, object_id: id.to_string(), room_id: None, detail: None }
    }

    pub fn in_room(self, room: RoomId) -> Self {
        Self { room_id: Some(room), ..self }
    }

    pub fn with_detail(self, detail: Value) -> Self {
        Self { detail: Some(detail), ..self }
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
