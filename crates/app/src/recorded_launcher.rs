//! Starts programs as the supervisor does, and records each start in the audit log.

use domain::{
    actor::Credential,
    audit::{AuditAction, AuditedObject, CountedAuthor, CountedEntry},
    owner::Owner,
    permission::Role,
};
use serde_json::json;
use std::path::Path;
use store::Store;
use workbench::process::{LaunchedProcess, Launcher, ProcessFuture, ProcessSpec, ProcessStartError, Supervisor};

#[derive(Clone)]
pub struct RecordedLauncher {
    pub supervisor: Supervisor,
    pub store: Store,
}

impl Launcher for RecordedLauncher {
    fn launch(&self, spec: ProcessSpec) -> ProcessFuture<'_, Result<LaunchedProcess, ProcessStartError>> {
        let entry = entry(&spec.program, &spec.folder);
        Box::pin(async move {
            let launched = self.supervisor.launch(spec).await?;
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
