//! Skill folders: written for a run, and copied to where an agent's program looks for them.
//!
//! `write` writes the folders of one run from the database. [`sync_folders`] copies them on: copies carry a marker
//! file; folders without it belong to the user and are left alone. `copy` copies one folder, `archive` packs and
//! unpacks zip archives, `folder` reads a skill from disk, `project` those of a project's own folders, `skill_folder` identifies its content by a digest, and
//! `diff` compares two texts.

mod archive;
mod copy;
mod diff;
mod folder;
mod project;
mod skill_folder;
mod write;

pub use archive::{pack, unpack};
pub use diff::unified_diff;
pub use folder::{SkillBundle, SkillBundleError, read_folder};
pub use project::{ProjectSkill, ProjectSkills, has_project_skills, read_project_skills};
pub use skill_folder::{SkillDigest, SkillFolder};
pub use write::{FilledSkill, remove_folder, remove_older_than, write_skills};

use crate::files::{Root, RootError};
use copy::FolderContents;
use domain::hex;
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs, io,
    path::{Component, Path},
    thread,
    time::{Duration, Instant},
};

/// A marker file in every folder that we wrote.
const MARKER: &str = ".greenroom";
const MARKER_TEXT: &str = "Copied here by Greenroom; changes are overwritten. Remove this file to keep the folder.\n";
/// In the marker file, precedes the name of the agent for which the folder was copied.
const HOLDER_PREFIX: &str = "For: ";
/// Prefix of folders that are being written or removed. No skill name begins with a dot.
const UNFINISHED_PREFIX: &str = ".greenroom-unfinished-";
/// More entries than this in the folder of an agent's skills are an error.
const MAX_COPIES: usize = 10_000;
const MAX_MARKER_BYTES: u64 = 4096;
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Copies each skill folder into the folder `into` of a workspace under its name, and removes other copies that were
/// made for this holder: agents of one room share the folder, and so do rooms that share a workspace. A copy that others
/// hold too is never changed: if the skill has another content, the holder gets a copy with a name of its own. Each copy
/// appears, and is replaced, atomically. Links in the workspace are not followed (invariant 18). Blocks.
pub fn sync_folders(skills: &[SkillFolder], workspace: &Path, into: &str, holder: &str) -> io::Result<()> {
    let mut wanted = BTreeMap::new();
    for skill in skills {
        let name = skill.name.as_str();
        check_name(name)?;
        if wanted.insert(name, skill).is_some() {
            return Err(invalid(format!("two skills have the name {name}")));
        }
    }
    let workspace = match Root::open(workspace) {
        Err(error) if error.is_not_found() && wanted.is_empty() => return Ok(()),
        workspace => workspace?,
    };
    if wanted.is_empty() && workspace.metadata(into).is_err_and(|error| error.is_not_found()) {
        return Ok(());
    }
    workspace.create_dir_all(into, 0o777).map_err(|error| match error {
        RootError::Link | RootError::NotAFolder => {
            invalid(format!("{into} in the workspace is not a folder, so skills cannot be copied there"))
        }
        error => error.into(),
    })?;
    let into = workspace.open_folder(into)?;
    lock(&into)?;
    let listing = into.list("", MAX_COPIES)?;
    if listing.is_truncated {
        return Err(invalid(format!("the folder for skills in the workspace has more than {MAX_COPIES} entries")));
    }
    let names: Vec<OsString> = listing.entries.into_iter().map(|entry| entry.name).collect();
    let (unfinished, present): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| name.as_encoded_bytes().starts_with(UNFINISHED_PREFIX.as_bytes()));
    for name in unfinished {
        into.remove(name)?;
    }
    let mut kept = BTreeSet::new();
    for (name, skill) in wanted {
        let installed = install(skill, &into, holder).map_err(|error| {
            let from = skill.path.display();
            io::Error::new(error.kind(), format!("could not copy the skill {name} from {from}: {error}"))
        })?;
        kept.insert(OsString::from(installed));
    }
    for name in present.iter().filter(|name| !kept.contains(*name)) {
        release(&into, name, holder)?;
    }
    Ok(())
}

/// A skill name must be one path component and not hidden.
fn check_name(name: &str) -> io::Result<()> {
    let mut parts = Path::new(name).components();
    let is_plain =
        matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == OsStr::new(name));
    match is_plain && !name.starts_with('.') && name.len() <= 128 && !name.contains(char::is_control) {
        true => Ok(()),
        false => Err(invalid(format!("{name:?} cannot be the name of a skill: it must be a valid folder name"))),
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Takes the lock of a folder: concurrent copies into it would remove each other's unfinished folders.
fn lock(into: &Root) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match into.try_lock() {
            Ok(()) => return Ok(()),
            Err(fs::TryLockError::Error(error)) => return Err(error),
            Err(fs::TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another process is copying skills to the same folder",
                ));
            }
            Err(fs::TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Returns whether we wrote this folder. A link to such a folder does not count.
fn is_ours(into: &Root, name: &OsStr) -> bool {
    into.metadata(Path::new(name).join(MARKER)).is_ok_and(|found| found.is_file())
}

/// For whom a copy was made; empty if we did not make it.
fn holders(into: &Root, name: &OsStr) -> Vec<String> {
    let marker = into.read(Path::new(name).join(MARKER), MAX_MARKER_BYTES).unwrap_or_default();
    let marker = String::from_utf8_lossy(&marker);
    marker.lines().filter_map(|line| line.strip_prefix(HOLDER_PREFIX)).map(str::to_owned).collect()
}

/// Whether a line of the marker file names this holder. Earlier versions wrote only the agent's id, which the name of a
/// holder begins with.
fn is_holder(line: &str, holder: &str) -> bool {
    holder.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Removes a copy that is no longer needed by this holder, or only the holder's name, if others need it.
fn release(into: &Root, name: &OsStr, holder: &str) -> io::Result<()> {
    let (ours, others): (Vec<_>, Vec<_>) = holders(into, name).into_iter().partition(|line| is_holder(line, holder));
    match (ours.is_empty(), others.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => discard(into, name),
        (false, false) => write_marker(&into.open_folder(name)?, &others),
    }
}

/// Returns the name of the holder's copy.
fn install(skill: &SkillFolder, into: &Root, holder: &str) -> io::Result<String> {
    let name = skill.name.clone();
    if exists(into, OsStr::new(&name))? && !is_ours(into, OsStr::new(&name)) {
        tracing::info!(name, "a skill folder with this name already exists and is left unchanged");
        return Ok(name);
    }
    let copied = |name: &str| FolderContents::of(into.open_folder(name)?)?.digest();
    let mut held_by = holders(into, OsStr::new(&name));
    let is_held = held_by.iter().any(|line| is_holder(line, holder));
    if copied(&name).is_ok_and(|digest| digest == skill.digest) {
        if !is_held {
            held_by.push(holder.to_owned());
            write_marker(&into.open_folder(&name)?, &held_by)?;
        }
        return Ok(name);
    }
    let is_shared = held_by.iter().any(|line| !is_holder(line, holder));
    let at = if is_shared { own_name(&name, holder) } else { name };
    if is_shared && copied(&at).is_ok_and(|digest| digest == skill.digest) {
        return Ok(at);
    }
    let contents = FolderContents::of(Root::open_following_links(&skill.path)?)?;
    let temporary = temporary_folder_name();
    into.create_dir_all(&temporary, 0o777)?;
    let written = fill(&into.open_folder(&temporary)?, &contents, holder).and_then(|()| swap(into, &temporary, &at));
    // The folder now holds the older copy, or an unfinished one.
    written.and(remove_if_exists(into, &temporary))?;
    Ok(at)
}

/// The name of a copy that only this holder has.
fn own_name(name: &str, holder: &str) -> String {
    let digest = hex::encode(&Sha256::digest(holder));
    format!("{name}.{}", digest.get(..8).unwrap_or(&digest))
}

fn fill(folder: &Root, contents: &FolderContents, holder: &str) -> io::Result<()> {
    contents.copy_to(folder)?;
    write_marker(folder, &[holder.to_owned()])
}

fn write_marker(folder: &Root, holders: &[String]) -> io::Result<()> {
    let mut marker = MARKER_TEXT.to_owned();
    holders.iter().for_each(|holder| marker.push_str(&format!("{HOLDER_PREFIX}{holder}\n")));
    Ok(folder.write(MARKER, 0o644, marker.as_bytes())?)
}

/// Gives the folder `new` the name `at`. If there was one of that name, it now has the name `new`, or is removed.
fn swap(parent: &Root, new: &str, at: &str) -> io::Result<()> {
    if !exists(parent, OsStr::new(at))? {
        return Ok(parent.rename(new, at)?);
    }
    match parent.exchange(new, at) {
        Err(RootError::Io(error)) if error.kind() == io::ErrorKind::Unsupported => {
            discard(parent, OsStr::new(at))?;
            Ok(parent.rename(new, at)?)
        }
        done => Ok(done?),
    }
}

fn exists(parent: &Root, name: &OsStr) -> io::Result<bool> {
    match parent.metadata(name) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Renames the folder before removal, so that no reader sees half of it.
fn discard(into: &Root, name: &OsStr) -> io::Result<()> {
    let hidden = temporary_folder_name();
    into.rename(name, &hidden)?;
    Ok(into.remove(hidden)?)
}

fn remove_if_exists(parent: &Root, name: &str) -> io::Result<()> {
    match parent.remove(name) {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(()),
    }
}

fn temporary_folder_name() -> String {
    format!("{UNFINISHED_PREFIX}{}", uuid::Uuid::new_v4().simple())
}

#[cfg(test)]
mod tests;
