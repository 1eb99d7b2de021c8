//! The skills that a project has in its own folders. Agents can write them; the engine decides whether they may be used.

use super::{
    copy::FolderContents,
    folder::{SkillBundle, SkillBundleError, bundle_of},
    is_ours,
    skill_folder::SkillDigestBuilder,
};
use crate::files::{EntryKind, Root, RootError};
use domain::skill::SKILL_FILE;
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

/// Where programs look for the skills of a project. Of two skills with one name, the first is used.
pub const PROJECT_FOLDERS: [&str; 2] = [".claude/skills", ".agents/skills"];
const MAX_SKILLS: usize = 100;
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// A skill in a folder of the project.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProjectSkill {
    /// The name of its folder.
    pub name: String,
    /// The path of its folder in the project.
    pub path: String,
    /// Its files, or why they cannot be used.
    pub bundle: Result<SkillBundle, SkillBundleError>,
}

/// The skills of a project, by name, and the digest of everything that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProjectSkills {
    pub skills: Vec<ProjectSkill>,
    pub digest: [u8; 32],
}

/// Whether a project has a folder for skills. Blocks.
pub fn has_project_skills(project: &Path) -> bool {
    PROJECT_FOLDERS.iter().any(|folder| project.join(folder).is_dir())
}

/// Reads the skills of a project; `None` if it has none. Copies that we wrote are not its own. Links are not followed
/// (invariant 18). Blocks.
pub fn read_project_skills(project: &Path) -> io::Result<Option<ProjectSkills>> {
    let project = match Root::open(project) {
        Err(error) if error.is_not_found() => return Ok(None),
        project => project?,
    };
    let (mut found, mut bytes) = (BTreeMap::new(), 0);
    for folder in PROJECT_FOLDERS {
        let root = match project.open_folder(folder) {
            Err(RootError::NotAFolder | RootError::Link) => continue,
            Err(error) if error.is_not_found() => continue,
            root => root?,
        };
        let listing = root.list("", 10 * MAX_SKILLS)?;
        for entry in listing.entries.into_iter().filter(|entry| matches!(entry.kind, EntryKind::Folder)) {
            let is_own = root.metadata(Path::new(&entry.name).join(SKILL_FILE)).is_ok() && !is_ours(&root, &entry.name);
            let Some(name) = entry.name.to_str().filter(|_| is_own).map(str::to_owned) else { continue };
            if found.contains_key(&name) {
                continue;
            }
            let contents = FolderContents::of(root.open_folder(&name)?)?;
            bytes += contents.bytes();
            if found.len() == MAX_SKILLS || bytes > MAX_BYTES {
                let message = format!(
                    "the project has more than {MAX_SKILLS} skills, or more than {} MB of them",
                    MAX_BYTES / 1024 / 1024
                );
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
            }
            let path = PathBuf::from(folder).join(&name).to_string_lossy().into_owned();
            found.insert(name.clone(), (path, bundle_of(&contents, Some(name))));
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let mut digest = Sha256::new();
    for (name, (path, bundle)) in &found {
        for text in [name, path] {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        digest.update(content_digest(bundle));
    }
    let skills = found.into_iter().map(|(name, (path, bundle))| ProjectSkill { name, path, bundle });
    Ok(Some(ProjectSkills { skills: skills.collect(), digest: digest.finalize().into() }))
}

/// Of what a run would get: files that are left out do not count.
fn content_digest(bundle: &Result<SkillBundle, SkillBundleError>) -> [u8; 32] {
    let mut digest = SkillDigestBuilder::default();
    match bundle {
        Ok(bundle) => {
            digest.add(Path::new(SKILL_FILE), false, bundle.document.as_bytes());
            for file in &bundle.files {
                digest.add(Path::new(file.path.as_str()), file.executable, &file.content);
            }
        }
        Err(SkillBundleError(why)) => digest.add(Path::new(""), false, why.as_bytes()),
    }
    digest.finish().bytes()
}

#[cfg(test)]
mod tests {
    use super::read_project_skills;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        path::Path,
    };

    fn add(project: &Path, path: &str, body: &str) {
        let folder = project.join(path);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), format!("---\nname: x\ndescription: d\n---\n{body}")).unwrap();
    }

    fn paths(project: &Path) -> Vec<String> {
        let skills = read_project_skills(project).unwrap().map(|found| found.skills).unwrap_or_default();
        skills.into_iter().map(|skill| skill.path).collect()
    }

    #[test]
    fn both_folders_are_read_and_copies_of_ours_are_not() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path();
        assert!(read_project_skills(&project.join("nowhere")).unwrap().is_none());
        assert!(read_project_skills(project).unwrap().is_none());
        add(project, ".agents/skills/test", "one");
        add(project, ".agents/skills/review", "agents");
        add(project, ".claude/skills/review", "claude");
        add(project, ".agents/skills/copied", "ours");
        fs::write(project.join(".agents/skills/copied").join(super::super::MARKER), "").unwrap();
        fs::create_dir_all(project.join(".claude/skills/empty")).unwrap();
        assert_eq!(paths(project), [".claude/skills/review", ".agents/skills/test"]);
    }

    #[test]
    fn every_change_of_what_a_run_gets_changes_the_digest() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path();
        add(project, ".claude/skills/review", "one");
        let digest = || read_project_skills(project).unwrap().unwrap().digest;
        let mut seen = vec![digest()];
        let mut changed = |what: &str| {
            assert!(!seen.contains(&digest()), "{what}");
            seen.push(digest());
        };
        add(project, ".claude/skills/review", "two");
        changed("the document");
        let script = project.join(".claude/skills/review/run.sh");
        fs::write(&script, "true").unwrap();
        changed("another file");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        changed("an executable file");
        add(project, ".agents/skills/test", "");
        changed("another skill");
        fs::rename(project.join(".claude/skills/review"), project.join(".claude/skills/renamed")).unwrap();
        changed("another name");
        assert_eq!(digest(), digest());
    }

    #[test]
    fn invariant_18_links_are_not_followed() {
        let (project, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        add(outside.path(), "skills/secret", "secret");
        fs::create_dir_all(project.path().join(".agents/skills")).unwrap();
        symlink(outside.path().join("skills/secret"), project.path().join(".agents/skills/secret")).unwrap();
        fs::create_dir(project.path().join(".claude")).unwrap();
        symlink(outside.path().join("skills"), project.path().join(".claude/skills")).unwrap();
        assert!(paths(project.path()).is_empty());
        // A link inside of a skill is left out.
        add(project.path(), ".agents/skills/own", "own");
        symlink("/etc/passwd", project.path().join(".agents/skills/own/passwd")).unwrap();
        let found = read_project_skills(project.path()).unwrap().unwrap();
        assert!(found.skills[0].bundle.as_ref().unwrap().files.is_empty());
    }
}
