//! Skills: made, changed, checked, compared. Every change is a new version; runs that have begun keep theirs.

use crate::{Engine, Error};
use domain::{
    owner::Owner,
    skill::{
        FilePath, Finding, Given, Level, Skill, SkillFile, SkillName, SkillSpec, Trouble, Values,
        document::{self, For},
        fill,
    },
};
use store::{Attempt, FileChange, SkillChange, SkillVersion};
use workbench::skills::unified;

/// What a check of a skill came to.
#[derive(Debug, Clone)]
pub struct CheckedSkill {
    pub skill: Option<SkillSpec>,
    pub findings: Vec<Finding>,
    /// The `SKILL.md` that a run would get with these values.
    pub preview: Option<String>,
}

/// A version beside another one.
#[derive(Debug, Clone)]
pub struct ComparedVersion {
    pub version: SkillVersion,
    pub against: Option<u32>,
    pub diff: String,
}

/// What a change is made from, and why.
#[derive(Debug, Clone, Default)]
pub struct Revision {
    /// The version that the person has seen; another one by now is a conflict.
    pub base: Option<u32>,
    pub note: Option<String>,
}

const MAX_NOTE: usize = 500;

impl Engine {
    pub async fn create_skill(
        &self,
        owner: &Owner,
        spec: SkillSpec,
        attempt: Option<&Attempt>,
    ) -> Result<Skill, Error> {
        check(&spec)?;
        Ok(self.store().create_skill(owner, &spec, FileChange::All(Vec::new()), None, attempt).await?)
    }

    /// Where nothing is different, nothing happens.
    pub async fn change_skill(
        &self,
        owner: &Owner,
        current: Skill,
        spec: SkillSpec,
        revision: Revision,
        attempt: Option<&Attempt>,
    ) -> Result<Skill, Error> {
        if spec.name != current.spec.name {
            let detail = "a skill keeps its name, because agents know it by that; make another one instead".into();
            return Err(Error::Refused { pointer: "/name", detail });
        }
        check(&spec)?;
        let base = revision.base(&current)?;
        if spec == current.spec {
            return Ok(current);
        }
        let change = SkillChange { base, spec, files: FileChange::From(base), note: revision.note };
        Ok(self.store().change_skill(owner, &current.spec.name, change, attempt).await?)
    }

    pub async fn put_skill_file(
        &self,
        owner: &Owner,
        name: &SkillName,
        file: SkillFile,
        revision: Revision,
        attempt: Option<&Attempt>,
    ) -> Result<Skill, Error> {
        let current = self.store().skill(owner, name).await?;
        let base = revision.base(&current)?;
        let note = revision.note.or_else(|| Some(format!("wrote {}", file.path)));
        let change = SkillChange { base, spec: current.spec, files: FileChange::Put(base, file), note };
        Ok(self.store().change_skill(owner, name, change, attempt).await?)
    }

    pub async fn remove_skill_file(
        &self,
        owner: &Owner,
        name: &SkillName,
        path: FilePath,
        revision: Revision,
        attempt: Option<&Attempt>,
    ) -> Result<Skill, Error> {
        let current = self.store().skill(owner, name).await?;
        if !current.files.iter().any(|file| file.path == path) {
            return Err(Error::NotFound);
        }
        let base = revision.base(&current)?;
        let note = revision.note.or_else(|| Some(format!("removed {path}")));
        let change = SkillChange { base, spec: current.spec, files: FileChange::Remove(base, path), note };
        Ok(self.store().change_skill(owner, name, change, attempt).await?)
    }

    /// A new version with what an old one had.
    pub async fn restore_skill(
        &self,
        owner: &Owner,
        name: &SkillName,
        version: u32,
        attempt: Option<&Attempt>,
    ) -> Result<Skill, Error> {
        let (current, old) =
            tokio::try_join!(self.store().skill(owner, name), self.store().skill_version(owner, name, version))?;
        let note = Some(format!("restored version {version}"));
        let change = SkillChange { base: current.version, spec: old.spec, files: FileChange::From(version), note };
        Ok(self.store().change_skill(owner, name, change, attempt).await?)
    }

    /// A version and how it differs from another, the one before it unless said otherwise.
    pub async fn compare_skill(
        &self,
        owner: &Owner,
        name: &SkillName,
        version: u32,
        against: Option<u32>,
    ) -> Result<ComparedVersion, Error> {
        let store = self.store();
        let this = store.skill_version(owner, name, version).await?;
        let other = match against.or(version.checked_sub(1)) {
            Some(other) => match store.skill_version(owner, name, other).await {
                // The one before the oldest is asked for by nobody.
                Err(store::Error::NotFound) if against.is_none() => None,
                found => Some(found?),
            },
            None => None,
        };
        let Some(other) = other else {
            return Ok(ComparedVersion { version: this, against: None, diff: String::new() });
        };
        let (new, old) = tokio::try_join!(
            store.skill_files(owner, name, this.version),
            store.skill_files(owner, name, other.version)
        )?;
        let (spec, former) = (this.spec.clone(), other.spec.clone());
        let names = (format!("version {}", other.version), format!("version {}", this.version));
        let compared = tokio::task::spawn_blocking(move || {
            let (from, to) = (former.document(&former.body, For::People), spec.document(&spec.body, For::People));
            unified(&from, &to, &names.0, &names.1) + &changed_files(&old, &new)
        });
        let diff = compared.await.map_err(|error| Error::Unavailable(error.to_string()))?;
        Ok(ComparedVersion { version: this, against: Some(other.version), diff })
    }

    /// The skills that lie in the data folder, with what they say of themselves.
    pub async fn folder_skills(&self) -> Result<Vec<(String, Option<String>)>, Error> {
        let folders = self.config().folders.clone();
        let look = tokio::task::spawn_blocking(move || folders.described_skills());
        look.await.map_err(|error| Error::Unavailable(error.to_string()))
    }
}

impl Revision {
    fn base(&self, current: &Skill) -> Result<u32, Error> {
        if self.note.as_ref().is_some_and(|note| note.chars().count() > MAX_NOTE || note.contains(char::is_control)) {
            return Err(Error::Invalid(format!("note: one line of at most {MAX_NOTE} characters")));
        }
        match self.base {
            Some(base) if base != current.version => Err(store::Error::SkillChanged.into()),
            _ => Ok(current.version),
        }
    }
}

/// A skill with an error is not stored.
pub(super) fn check(spec: &SkillSpec) -> Result<(), Error> {
    let findings = spec.findings();
    match findings.iter().any(|finding| finding.level == Level::Error) {
        true => Err(Error::Findings(findings)),
        false => Ok(()),
    }
}

/// Reads a document and checks it.
pub fn check_document(text: &str, values: &Given) -> CheckedSkill {
    let reading = document::parse(text, None);
    preview(reading.skill, reading.findings, values)
}

pub fn check_spec(spec: SkillSpec, values: &Given) -> CheckedSkill {
    let findings = spec.findings();
    preview(Some(spec), findings, values)
}

fn preview(skill: Option<SkillSpec>, mut findings: Vec<Finding>, values: &Given) -> CheckedSkill {
    let preview = skill.as_ref().map(|skill| {
        let filled = match skill.values(&[values]) {
            Ok(values) => values,
            Err(trouble) => {
                if !matches!(trouble, Trouble::Missing { .. }) || !values.is_empty() {
                    findings.push(Finding::warning("/values", trouble.to_string()));
                }
                Values::new()
            }
        };
        skill.document(&fill(&skill.body, &filled), For::Agents)
    });
    CheckedSkill { skill, findings, preview }
}

fn changed_files(old: &[SkillFile], new: &[SkillFile]) -> String {
    let mut lines = String::new();
    let find = |files: &[SkillFile], path: &FilePath| files.iter().position(|file| file.path == *path);
    for file in new {
        let mark = match find(old, &file.path).map(|at| &old[at]) {
            None => "added",
            Some(before) if before == file => continue,
            Some(before) if before.content == file.content => "changed in whether it may be executed",
            Some(_) => "changed",
        };
        lines.push_str(&format!("file {} {mark} ({} bytes)\n", file.path, file.content.len()));
    }
    for file in old.iter().filter(|file| find(new, &file.path).is_none()) {
        lines.push_str(&format!("file {} removed\n", file.path));
    }
    lines
}
