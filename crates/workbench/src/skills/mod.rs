//! Skill folders: written for a run, and copied to where an agent's program looks for them.
//!
//! `write` writes the folders of one run from the database. [`sync_folders`] copies them on: copies carry a marker
//! file; folders without it belong to the user and are left alone. `copy` copies one folder, `archive` packs and
//! unpacks zip archives, `folder` reads a skill from disk, and `diff` compares two texts.

mod archive;
mod copy;
mod diff;
mod folder;
mod write;

pub use archive::{pack, unpack};
pub use diff::unified_diff;
pub use folder::{SkillBundle, SkillBundleError, read_folder};
pub use write::{FilledSkill, remove_folder, remove_older_than, write_skills};

use copy::FolderContents;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    path::{Component, Path, PathBuf},
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
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Copies each skill folder into `into` under its name, and removes other copies that were made for this holder: agents
/// of one room share the folder, and each has its own skills there. Each copy appears, and is replaced, atomically.
/// Blocks.
pub fn sync_folders(skills: &[(String, PathBuf)], into: &Path, holder: &str) -> io::Result<()> {
    let mut wanted = BTreeMap::new();
    for (name, folder) in skills {
        check_name(name)?;
        if wanted.insert(name.as_str(), folder).is_some() {
            return Err(invalid(format!("two skills have the name {name}")));
        }
    }
    // A link in this path could lead out of the agent's workspace (invariant 18).
    for folder in into.ancestors().take(2) {
        if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            return Err(invalid(format!("{} is not a folder, so skills cannot be copied there", folder.display())));
        }
    }
    if wanted.is_empty() && !into.exists() {
        return Ok(());
    }
    fs::create_dir_all(into)?;
    let _lock = lock(into)?;
    for entry in fs::read_dir(into)?.collect::<io::Result<Vec<_>>>()? {
        let name = entry.file_name();
        let is_wanted = name.to_str().is_some_and(|name| wanted.contains_key(name));
        if name.as_encoded_bytes().starts_with(UNFINISHED_PREFIX.as_bytes()) {
            fs::remove_dir_all(entry.path())?;
        } else if !is_wanted && is_held_by(&entry.path(), holder) {
            discard(&entry.path(), into)?;
        }
    }
    for (name, folder) in wanted {
        install(folder, &into.join(name), into, holder).map_err(|error| {
            io::Error::new(error.kind(), format!("could not copy the skill {name} from {}: {error}", folder.display()))
        })?;
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

/// Concurrent copies into one folder would remove each other's unfinished folders.
fn lock(into: &Path) -> io::Result<fs::File> {
    let file = fs::File::open(into)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
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
fn is_ours(folder: &Path) -> bool {
    let is = |path: &Path, kind: fn(&fs::Metadata) -> bool| path.symlink_metadata().is_ok_and(|found| kind(&found));
    is(folder, fs::Metadata::is_dir) && is(&folder.join(MARKER), fs::Metadata::is_file)
}

fn is_held_by(folder: &Path, holder: &str) -> bool {
    let marker = fs::read_to_string(folder.join(MARKER)).unwrap_or_default();
    is_ours(folder) && marker.lines().any(|line| line.strip_prefix(HOLDER_PREFIX) == Some(holder))
}

fn install(from: &Path, at: &Path, into: &Path, holder: &str) -> io::Result<()> {
    let exists = at.symlink_metadata().is_ok();
    if exists && !is_ours(at) {
        tracing::info!(folder = %at.display(), "a folder with this name already exists and is left unchanged");
        return Ok(());
    }
    let contents = FolderContents::of(from)?;
    if exists && FolderContents::of(at).is_ok_and(|there| there.is_copy_of(&contents)) {
        return Ok(());
    }
    let unfinished = unfinished(into);
    fs::create_dir(&unfinished)?;
    let written = contents
        .copy_to(&unfinished)
        .and_then(|()| fs::write(unfinished.join(MARKER), format!("{MARKER_TEXT}{HOLDER_PREFIX}{holder}\n")))
        .and_then(|()| swap(&unfinished, at, exists));
    // The folder now holds the older copy, or an unfinished one.
    let cleaned = match unfinished.exists() {
        true => fs::remove_dir_all(&unfinished),
        false => Ok(()),
    };
    written.and(cleaned)
}

fn swap(new: &Path, at: &Path, exists: bool) -> io::Result<()> {
    if !exists {
        return fs::rename(new, at);
    }
    match renameat_with(CWD, new, CWD, at, RenameFlags::EXCHANGE) {
        // Some file systems cannot exchange folders.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
            discard(at, at.parent().unwrap_or(at))?;
            fs::rename(new, at)
        }
        other => Ok(other?),
    }
}

/// Renames the folder before removal, so that no reader sees half of it.
fn discard(folder: &Path, into: &Path) -> io::Result<()> {
    let hidden = unfinished(into);
    fs::rename(folder, &hidden)?;
    fs::remove_dir_all(hidden)
}

fn unfinished(into: &Path) -> PathBuf {
    into.join(format!("{UNFINISHED_PREFIX}{}", uuid::Uuid::new_v4().simple()))
}

#[cfg(test)]
mod tests;
