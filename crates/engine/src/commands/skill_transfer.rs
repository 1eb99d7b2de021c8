//! Imports skills from folders and archives, and exports them as archives.

use super::skills::reject_invalid;
use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    permission::Permission,
    skill::{FindingLevel, Skill, SkillName, document},
};
use store::{IdempotentRequest, SkillChange, SkillFilesChange};
use workbench::skills::{SkillBundle, SkillBundleError, pack, read_folder, unpack};

/// Where a skill comes from. Skills in the data folder are trusted: they were put there on the machine itself.
#[derive(Clone, Copy)]
enum SkillOrigin {
    Archive,
    Folder,
}

impl Engine {
    /// Imports an archive. An existing skill of the same name is a conflict; with `replace`, the import is its next
    /// version.
    pub async fn import_skill(
        &self,
        actor: &Actor,
        archive: Vec<u8>,
        replace: bool,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill, EngineError> {
        actor.require(Permission::ManageSkills)?;
        let bundle = run_blocking(move || unpack(&archive)).await?;
        self.import_bundle(actor, bundle, SkillOrigin::Archive, replace, attempt).await
    }

    /// Imports a skill from the data folder.
    pub async fn import_skill_folder(
        &self,
        actor: &Actor,
        name: String,
        replace: bool,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill, EngineError> {
        actor.require(Permission::ManageSkills)?;
        let folders = self.config().folders.clone();
        let bundle = run_blocking(move || match folders.skill_folder(&name) {
            Some(folder) => read_folder(&folder).map(Some),
            None => Ok(None),
        });
        let bundle = bundle.await?.ok_or(EngineError::NotFound)?;
        self.import_bundle(actor, bundle, SkillOrigin::Folder, replace, attempt).await
    }

    /// Accepts what an imported skill asks for: its tools, MCP servers and scripts are on from now on. `version` is the
    /// one that the person has read.
    pub async fn accept_skill(&self, actor: &Actor, name: &SkillName, version: u32) -> Result<Skill, EngineError> {
        actor.require(Permission::ManageSkills)?;
        Ok(self.store().accept_skill(actor, name, version).await?)
    }

    pub async fn export_skill(
        &self,
        actor: &Actor,
        name: &SkillName,
        version: Option<u32>,
    ) -> Result<Vec<u8>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let version = match version {
            Some(version) => version,
            None => self.store().skill(owner, name).await?.version,
        };
        let (skill, files) = tokio::try_join!(
            self.store().skill_version(owner, name, version),
            self.store().skill_files(owner, name, version)
        )?;
        run_blocking(move || {
            let spec = &skill.spec;
            pack(&spec.name, &spec.document(&spec.body, document::Audience::People), &files)
        })
        .await
    }

    async fn import_bundle(
        &self,
        actor: &Actor,
        bundle: SkillBundle,
        from: SkillOrigin,
        replace: bool,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill, EngineError> {
        let owner = &actor.workspace;
        let SkillBundle { folder, document: text, files, .. } = bundle;
        let reading = document::parse(&text, folder.as_deref());
        let spec = match reading.skill {
            Some(spec) if !reading.findings.iter().any(|finding| finding.level == FindingLevel::Error) => spec,
            _ => return Err(EngineError::Findings(reading.findings)),
        };
        reject_invalid(&spec)?;
        self.check_storage(owner, files.iter().map(|file| file.content.len() as u64).sum()).await?;
        // Somebody else wrote the archive: what it asks for is off until a person has accepted it.
        let (files, note) = match from {
            SkillOrigin::Archive => (SkillFilesChange::Imported(files), "imported from an archive"),
            SkillOrigin::Folder => (SkillFilesChange::All(files), "imported from the data folder"),
        };
        let current = match self.store().skill(owner, &spec.name).await {
            Err(store::StoreError::NotFound) => None,
            found => Some(found?),
        };
        match current {
            Some(current) if replace => {
                let name = spec.name.clone();
                let change = SkillChange { base_version: current.version, spec, files, note: Some(note.to_owned()) };
                Ok(self.store().change_skill(actor, &name, change, attempt).await?)
            }
            // The store reports a conflict if the name is taken.
            _ => Ok(self.store().create_skill(actor, &spec, files, Some(note), attempt).await?),
        }
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SkillBundleError> + Send + 'static,
) -> Result<T, EngineError> {
    let done = tokio::task::spawn_blocking(work).await?;
    done.map_err(|SkillBundleError(detail)| EngineError::Refused { pointer: "".into(), detail })
}
