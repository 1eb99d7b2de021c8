//! Reads the audit log: who did what, by which credential and from where.

use crate::{Engine, EngineError};
use domain::{actor::Actor, permission::Permission};
use store::{AuditFilter, AuditRecord};

impl Engine {
    /// Returns entries of the actor's workspace, newest first.
    pub async fn audit_log(&self, actor: &Actor, filter: &AuditFilter) -> Result<Vec<AuditRecord>, EngineError> {
        let owner = actor.require(Permission::ReadAudit)?;
        Ok(self.store().filtered_audit_log(Some(owner), filter).await?)
    }

    /// Returns entries of all workspaces, newest first.
    pub async fn whole_audit_log(&self, actor: &Actor, filter: &AuditFilter) -> Result<Vec<AuditRecord>, EngineError> {
        actor.require(Permission::Operate)?;
        Ok(self.store().filtered_audit_log(None, filter).await?)
    }
}
