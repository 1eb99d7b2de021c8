//! Starts programs, inside and outside of sandboxes, and records each start in the audit log.

use domain::{
    actor::Credential,
    audit::{AuditAction, AuditedObject, CountedAuthor, CountedEntry},
    owner::Owner,
    permission::Role,
};
use serde_json::json;
use std::{path::Path, sync::Arc};
use store::Store;
use workbench::process::{LaunchedProcess, Launcher, ProcessFuture, ProcessSpec, ProcessStartError};

#[derive(Clone)]
pub struct RecordedLauncher {
    pub launcher: Arc<dyn Launcher>,
    pub store: Store,
}

impl Launcher for RecordedLauncher {
    fn launch(&self, spec: ProcessSpec) -> ProcessFuture<'_, Result<LaunchedProcess, ProcessStartError>> {
        let folder = spec.sandbox.as_ref().map_or(&spec.folder, |sandbox| &sandbox.workspace);
        let entry = entry(&spec.program, folder);
        Box::pin(async move {
            let launched = self.launcher.launch(spec).await?;
            self.store.count_audit(entry);
            Ok(launched)
        })
    }
}

/// Without arguments and environment, which hold secrets. The folder tells the room or the agent.
fn entry(program: &Path, folder: &Path) -> CountedEntry {
    let author = CountedAuthor { user_id: None, role: Role::Owner, credential: Credential::System };
    CountedEntry {
        workspace: Owner::local(),
        by: Some(author),
        address: None,
        action: AuditAction::Start,
        object: AuditedObject::Program,
        object_id: program.display().to_string(),
        detail: Some(json!({"folder": folder.display().to_string()})),
    }
}
