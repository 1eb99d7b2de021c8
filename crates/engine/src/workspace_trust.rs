//! Trust in content of a room's folder. Agents can write there, so the content is not used until a person has trusted
//! exactly this version of it: a `.mcp.json`, and the skills of a project.

use crate::{Engine, EngineError};
use domain::{actor::Actor, audit::AuditedObject, hex, ids::RoomId, owner::Owner, time::Timestamp};
use serde::Serialize;
use std::path::{Path, PathBuf};
use store::{StoreError, TrustedContent};

/// What can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustSubject {
    /// The `.mcp.json` of the folder.
    McpFile,
    /// The skills in the folder.
    Skills,
}

impl TrustSubject {
    /// The key under which the store records trust in the content of a folder.
    pub(crate) fn key(self, folder: &Path) -> Vec<u8> {
        let path = match self {
            Self::McpFile => folder.to_owned(),
            // One decision for both folders of skills.
            Self::Skills => folder.join(".agents/skills"),
        };
        PathBuf::into_os_string(path).into_encoded_bytes()
    }

    fn audited(self) -> AuditedObject {
        match self {
            Self::McpFile => AuditedObject::McpFile,
            Self::Skills => AuditedObject::ProjectSkills,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::McpFile => ".mcp.json",
            Self::Skills => "skills",
        }
    }
}

/// Whether content of a room's folder may be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ContentTrust {
    /// The folder has no such content.
    None,
    Untrusted,
    Trusted(Timestamp),
    Unreadable(String),
}

impl ContentTrust {
    /// Of content with this digest.
    pub(crate) fn of(digest: &[u8; 32], trusted: Option<TrustedContent>) -> Self {
        match trusted {
            Some(content) if content.digest == *digest => Self::Trusted(content.trusted_at),
            _ => Self::Untrusted,
        }
    }

    /// As the API shows it: the state, since when it is trusted, and why it cannot be read.
    pub(crate) fn shown(&self) -> (TrustState, Option<Timestamp>, Option<String>) {
        match self {
            Self::None => (TrustState::None, None, None),
            Self::Untrusted => (TrustState::Untrusted, None, None),
            Self::Trusted(at) => (TrustState::Trusted, Some(*at), None),
            Self::Unreadable(why) => (TrustState::Unreadable, None, Some(why.clone())),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// The room's folder has no such content.
    None,
    Untrusted,
    Trusted,
    Unreadable,
}

impl Engine {
    pub(crate) async fn trusted_content(
        &self,
        owner: &Owner,
        folder: &Path,
        subject: TrustSubject,
    ) -> Result<Option<TrustedContent>, StoreError> {
        self.store().trusted_content(owner, &subject.key(folder)).await
    }

    /// Trusts content that a person has seen. `sent` is the digest that they saw: content changed since is not trusted.
    pub(crate) async fn trust_content(
        &self,
        actor: &Actor,
        room: RoomId,
        subject: TrustSubject,
        (state, digest): (&ContentTrust, Option<[u8; 32]>),
        sent: &str,
    ) -> Result<ContentTrust, EngineError> {
        let name = subject.name();
        let refused = |detail: String| EngineError::refused("", detail);
        let seen = match (state, digest) {
            (ContentTrust::Untrusted | ContentTrust::Trusted(_), Some(seen)) => seen,
            (ContentTrust::Unreadable(why), _) => {
                return Err(refused(format!("the {name} in the room's folder cannot be trusted: {why}")));
            }
            _ => return Err(refused(format!("the room's folder has no {name}"))),
        };
        if !hex::encode(&seen).eq_ignore_ascii_case(sent) {
            return Err(EngineError::Conflict(format!(
                "the content of the {name} in the room's folder has changed; review it again and send its new digest"
            )));
        }
        let folder = self.room_folder(&actor.workspace, room).await?;
        let record = self.store().trust_content(actor, room, &subject.key(&folder), &seen, subject.audited()).await?;
        Ok(ContentTrust::Trusted(record.trusted_at))
    }

    pub(crate) async fn distrust_content(
        &self,
        actor: &Actor,
        room: RoomId,
        subject: TrustSubject,
    ) -> Result<(), EngineError> {
        let folder = self.room_folder(&actor.workspace, room).await?;
        Ok(self.store().distrust_content(actor, room, &subject.key(&folder), subject.audited()).await?)
    }

    /// Removes the trust in everything in a folder that is erased.
    pub(crate) async fn forget_trust_in(&self, owner: &Owner, folder: &Path) -> Result<(), StoreError> {
        for subject in [TrustSubject::McpFile, TrustSubject::Skills] {
            self.store().erase_trust(owner, &subject.key(folder)).await?;
        }
        Ok(())
    }
}
