//! Skills that come from a folder or an archive, and go into one.

use super::skills::check;
use crate::{Engine, Error};
use domain::{
    owner::Owner,
    skill::{Level, Skill, SkillName, SkillSpec, document},
};
use serde_json::Value;
use store::{Attempt, FileChange, SkillChange};
use workbench::skills::{Bundle, Refusal, pack, read, unpack};

/// Where a skill comes from. What is in the data folder was put there on the machine itself.
#[derive(Clone, Copy)]
enum Origin {
    Archive,
    Folder,
}

impl Engine {
    /// One of the same name is a conflict, unless it is to be `replace`d: then this is its next version.
    pub async fn import_skill(
        &self,
        owner: &Owner,
        archive: Vec<u8>,
        replace: bool,
        attempt: Option<&Attempt>,
    ) -> Result<Skill, Error> {
        let bundle = on_disk(move || unpack(&archive)).await?;
        self.take(owner, bundle, Origin::Archive, replace, attempt).await
    }

    /// From the data folder.
    pub async fn import_skill_folder(
        &self,
        owner: &Owner,
        name: String,
        replace: bool,
        attempt: Option<&Attempt>,
    ) -> Result<Skill, Error> {
        let folders = self.config().folders.clone();
        let bundle = on_disk(move || match folders.skill(&name) {
            Some(folder) => read(&folder).map(Some),
            None => Ok(None),
        });
        let bundle = bundle.await?.ok_or(Error::NotFound)?;
        self.take(owner, bundle, Origin::Folder, replace, attempt).await
    }

    pub async fn export_skill(&self, owner: &Owner, name: &SkillName, version: Option<u32>) -> Result<Vec<u8>, Error> {
        let version = match version {
            Some(version) => version,
            None => self.store().skill(owner, name).await?.version,
        };
        let (skill, files) = tokio::try_join!(
            self.store().skill_version(owner, name, version),
            self.store().skill_files(owner, name, version)
        )?;
        on_disk(move || {
            let spec = &skill.spec;
            pack(&spec.name, &spec.document(&spec.body, document::For::People), &files)
        })
        .await
    }

    async fn take(
        &self,
        owner: &Owner,
        bundle: Bundle,
        from: Origin,
        replace: bool,
        attempt: Option<&Attempt>,
    ) -> Result<Skill, Error> {
        let Bundle { folder, document: text, files, .. } = bundle;
        let reading = document::parse(&text, folder.as_deref());
        let mut spec = match reading.skill {
            Some(spec) if !reading.findings.iter().any(|finding| finding.level == Level::Error) => spec,
            _ => return Err(Error::Findings(reading.findings)),
        };
        check(&spec)?;
        let note = match from {
            Origin::Archive => {
                switch_off(&mut spec);
                "imported from an archive"
            }
            Origin::Folder => "imported from the data folder",
        };
        let current = match self.store().skill(owner, &spec.name).await {
            Err(store::Error::NotFound) => None,
            found => Some(found?),
        };
        let files = FileChange::All(files);
        match current {
            Some(current) if replace => {
                let name = spec.name.clone();
                let change = SkillChange { base: current.version, spec, files, note: Some(note.to_owned()) };
                Ok(self.store().change_skill(owner, &name, change, attempt).await?)
            }
            // The store says that the name is taken.
            _ => Ok(self.store().create_skill(owner, &spec, files, Some(note), attempt).await?),
        }
    }
}

/// A skill that comes from elsewhere brings no program or address into use by itself: whoever has looked at its servers
/// switches them on.
fn switch_off(spec: &mut SkillSpec) {
    for server in spec.mcp_servers.values_mut() {
        if let Some(entry) = server.as_object_mut() {
            entry.insert("disabled".to_owned(), Value::Bool(true));
        }
    }
}

async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| Error::Unavailable(error.to_string()))?;
    done.map_err(|Refusal(detail)| Error::Refused { pointer: "", detail })
}
