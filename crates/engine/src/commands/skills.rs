//! Skills: create, change, check, compare. Every change is a new version; runs in progress keep theirs.

use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    permission::Permission,
    skill::{
        FilePath, FindingLevel, ParameterError, ParameterValues, ResolvedParameters, Skill, SkillFile, SkillFinding,
        SkillName, SkillSpec,
        document::{self, Audience},
        fill_placeholders,
    },
};
use store::{IdempotentRequest, SkillChange, SkillFilesChange, SkillVersion};
use workbench::skills::unified_diff;

/// The result of checking a skill.
#[derive(Debug, Clone)]
pub struct CheckedSkill {
    pub skill: Option<SkillSpec>,
    pub findings: Vec<SkillFinding>,
    /// The `SKILL.md` that a run would get with these values.
    pub preview: Option<String>,
}

/// A version with its diff to another one.
#[derive(Debug, Clone)]
pub struct ComparedVersion {
    pub version: SkillVersion,
    pub against: Option<u32>,
    pub diff: String,
}

/// The base version and the note of a change.
#[derive(Debug, Clone, Default)]
pub struct SkillRevision {
    /// The version that the person has seen; if the skill has changed since, the change is a conflict.
    pub base: Option<u32>,
    pub note: Option<String>,
}

const MAX_NOTE: usize = 500;

impl Engine {
    pub async fn create_skill(
        &self,
        actor: &Actor,
        spec: SkillSpec,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        reject_invalid(&spec)?;
        self.check_storage(owner, 0).await?;
        Ok(self.store().create_skill(actor, &spec, SkillFilesChange::All(Vec::new()), None, attempt).await?)
    }

    /// Stores a new version; an identical spec changes nothing.
    pub async fn change_skill(
        &self,
        actor: &Actor,
        current: Skill,
        spec: SkillSpec,
        revision: SkillRevision,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill, EngineError> {
        actor.require(Permission::ManageSkills)?;
        if spec.name != current.spec.name {
            let detail =
                "a skill cannot be renamed, because agents refer to it by name; create another one instead".into();
            return Err(EngineError::Refused { pointer: "/name".into(), detail });
        }
        reject_invalid(&spec)?;
        let base = revision.checked_base(&current)?;
        if spec == current.spec {
            return Ok(current);
        }
        let change =
            SkillChange { base_version: base, spec, files: SkillFilesChange::SameAs(base), note: revision.note };
        Ok(self.store().change_skill(actor, &current.spec.name, change, attempt).await?)
    }

    pub async fn put_skill_file(
        &self,
        actor: &Actor,
        name: &SkillName,
        file: SkillFile,
        revision: SkillRevision,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        self.check_storage(owner, file.content.len() as u64).await?;
        let current = self.store().skill(owner, name).await?;
        let base = revision.checked_base(&current)?;
        let note = revision.note.or_else(|| Some(format!("wrote {}", file.path)));
        let change =
            SkillChange { base_version: base, spec: current.spec, files: SkillFilesChange::Put(base, file), note };
        Ok(self.store().change_skill(actor, name, change, attempt).await?)
    }

    pub async fn remove_skill_file(
        &self,
        actor: &Actor,
        name: &SkillName,
        path: FilePath,
        revision: SkillRevision,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        let current = self.store().skill(owner, name).await?;
        if !current.files.iter().any(|file| file.path == path) {
            return Err(EngineError::NotFound);
        }
        let base = revision.checked_base(&current)?;
        let note = revision.note.or_else(|| Some(format!("removed {path}")));
        let change =
            SkillChange { base_version: base, spec: current.spec, files: SkillFilesChange::Remove(base, path), note };
        Ok(self.store().change_skill(actor, name, change, attempt).await?)
    }

    /// Deletes a skill with its versions, files and training history; its training rooms stay.
    pub async fn delete_skill(
        &self,
        actor: &Actor,
        name: &SkillName,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::ManageSkills)?;
        Ok(self.store().delete_skill(actor, name, attempt).await?)
    }

    /// Restores an old version as a new version.
    pub async fn restore_skill(
        &self,
        actor: &Actor,
        name: &SkillName,
        version: u32,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill, EngineError> {
        let owner = actor.require(Permission::ManageSkills)?;
        let (current, old) =
            tokio::try_join!(self.store().skill(owner, name), self.store().skill_version(owner, name, version))?;
        let note = Some(format!("restored version {version}"));
        let change = SkillChange {
            base_version: current.version,
            spec: old.spec,
            files: SkillFilesChange::SameAs(version),
            note,
        };
        Ok(self.store().change_skill(actor, name, change, attempt).await?)
    }

    /// Returns a version with its diff to another, by default the one before it.
    pub async fn compare_skill(
        &self,
        actor: &Actor,
        name: &SkillName,
        version: u32,
        against: Option<u32>,
    ) -> Result<ComparedVersion, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let store = self.store();
        let this = store.skill_version(owner, name, version).await?;
        let other = match against.or(version.checked_sub(1)) {
            Some(other) => match store.skill_version(owner, name, other).await {
                // The oldest version has none before it.
                Err(store::StoreError::NotFound) if against.is_none() => None,
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
            let (from, to) =
                (former.document(&former.body, Audience::People), spec.document(&spec.body, Audience::People));
            unified_diff(&from, &to, &names.0, &names.1) + &changed_files(&old, &new)
        });
        let diff = compared.await?;
        Ok(ComparedVersion { version: this, against: Some(other.version), diff })
    }

    /// Lists the skills in the data folder with their descriptions.
    pub async fn folder_skills(&self) -> Result<Vec<(String, Option<String>)>, EngineError> {
        let folders = self.config().folders.clone();
        let skills = tokio::task::spawn_blocking(move || folders.skills_with_descriptions());
        Ok(skills.await?)
    }
}

impl SkillRevision {
    fn checked_base(&self, current: &Skill) -> Result<u32, EngineError> {
        if self.note.as_ref().is_some_and(|note| note.chars().count() > MAX_NOTE || note.contains(char::is_control)) {
            return Err(EngineError::Invalid(format!("note: must be one line of at most {MAX_NOTE} characters")));
        }
        match self.base {
            Some(base) if base != current.version => Err(store::StoreError::SkillChanged.into()),
            _ => Ok(current.version),
        }
    }
}

/// Rejects a skill that has an error among its findings.
pub(super) fn reject_invalid(spec: &SkillSpec) -> Result<(), EngineError> {
    let findings = spec.findings();
    match findings.iter().any(|finding| finding.level == FindingLevel::Error) {
        true => Err(EngineError::Findings(findings)),
        false => Ok(()),
    }
}

/// Parses a `SKILL.md` and checks it.
pub fn check_document(text: &str, values: &ParameterValues) -> CheckedSkill {
    let reading = document::parse(text, None);
    with_preview(reading.skill, reading.findings, values)
}

pub fn check_spec(spec: SkillSpec, values: &ParameterValues) -> CheckedSkill {
    let findings = spec.findings();
    with_preview(Some(spec), findings, values)
}

fn with_preview(skill: Option<SkillSpec>, mut findings: Vec<SkillFinding>, values: &ParameterValues) -> CheckedSkill {
    let preview = skill.as_ref().map(|skill| {
        let filled = match skill.resolve_parameters(&[values]) {
            Ok(values) => values,
            Err(error) => {
                if !matches!(error, ParameterError::Missing { .. }) || !values.is_empty() {
                    findings.push(SkillFinding::warning("/values", error.to_string()));
                }
                ResolvedParameters::new()
            }
        };
        skill.document(&fill_placeholders(&skill.body, &filled), Audience::Agents)
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
            Some(before) if before.content == file.content => "changed its executable flag",
            Some(_) => "changed",
        };
        lines.push_str(&format!("file {} {mark} ({} bytes)\n", file.path, file.content.len()));
    }
    for file in old.iter().filter(|file| find(new, &file.path).is_none()) {
        lines.push_str(&format!("file {} removed\n", file.path));
    }
    lines
}
