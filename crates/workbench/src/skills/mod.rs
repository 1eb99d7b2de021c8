//! Skill folders: written for a run, and copied to where a program looks for them.
//!
//! `write` makes the folders of one run from what the database holds. [`sync`] copies folders on: what is copied carries a
//! marker; folders without it are somebody's own and are left alone; `copy` does one folder. `archive` packs a skill into
//! a zip and takes one apart, `folder` reads one from disk, and `diff` tells two texts apart.

mod archive;
mod copy;
mod diff;
mod folder;
mod write;

pub use archive::{pack, unpack};
pub use diff::unified;
pub use folder::{Bundle, Refusal, read};
pub use write::{Filled, clear, clear_older, write};

use copy::Contents;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    path::{Component, Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// In every folder that we wrote.
const MARKER: &str = ".greenroom";
const MARKER_TEXT: &str = "Copied here by Greenroom; changes are overwritten. Remove this file to keep the folder.\n";
/// Before the name of whom it was copied for.
const HOLDER: &str = "For: ";
/// Of what is being written or thrown away. No skill is called so: its name begins with a dot.
const UNFINISHED: &str = ".greenroom-unfinished-";
const LOCKED: Duration = Duration::from_secs(10);

/// Makes `into` hold a copy of each skill folder under its name, and no other copy that was made for this holder before:
/// agents of one room share a folder, and each has its own skills there. Each appears, and is replaced, as a whole.
/// Blocks.
pub fn sync(skills: &[(String, PathBuf)], into: &Path, holder: &str) -> io::Result<()> {
    let mut wanted = BTreeMap::new();
    for (name, folder) in skills {
        check(name)?;
        if wanted.insert(name.as_str(), folder).is_some() {
            return Err(invalid(format!("there are two skills called {name}")));
        }
    }
    // A link on the way would lead out of the folder that the agent works in (invariant 18).
    for folder in into.ancestors().take(2) {
        if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            return Err(invalid(format!("{} is not a folder; skills cannot be copied there", folder.display())));
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
        if name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
            fs::remove_dir_all(entry.path())?;
        } else if !is_wanted && is_held_by(&entry.path(), holder) {
            discard(&entry.path(), into)?;
        }
    }
    for (name, folder) in wanted {
        place(folder, &into.join(name), into, holder).map_err(|error| {
            io::Error::new(error.kind(), format!("the skill {name} in {} cannot be copied: {error}", folder.display()))
        })?;
    }
    Ok(())
}

/// One path component that is not hidden.
fn check(name: &str) -> io::Result<()> {
    let mut parts = Path::new(name).components();
    let is_plain =
        matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == OsStr::new(name));
    match is_plain && !name.starts_with('.') && name.len() <= 128 && !name.contains(char::is_control) {
        true => Ok(()),
        false => Err(invalid(format!("{name:?} cannot be the name of a skill: it becomes the name of a folder"))),
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Two that copy to the same place at once would throw away each other's unfinished work.
fn lock(into: &Path) -> io::Result<fs::File> {
    let file = fs::File::open(into)?;
    let deadline = Instant::now() + LOCKED;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::Error(error)) => return Err(error),
            Err(fs::TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "skills are being copied by another process"));
            }
            Err(fs::TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// A link to such a folder is not one.
fn is_ours(folder: &Path) -> bool {
    let is = |path: &Path, kind: fn(&fs::Metadata) -> bool| path.symlink_metadata().is_ok_and(|found| kind(&found));
    is(folder, fs::Metadata::is_dir) && is(&folder.join(MARKER), fs::Metadata::is_file)
}

fn is_held_by(folder: &Path, holder: &str) -> bool {
    let marker = fs::read_to_string(folder.join(MARKER)).unwrap_or_default();
    is_ours(folder) && marker.lines().any(|line| line.strip_prefix(HOLDER) == Some(holder))
}

fn place(from: &Path, at: &Path, into: &Path, holder: &str) -> io::Result<()> {
    let exists = at.symlink_metadata().is_ok();
    if exists && !is_ours(at) {
        tracing::info!(folder = %at.display(), "a folder of that name is there already; it is used as it is");
        return Ok(());
    }
    let contents = Contents::of(from)?;
    if exists && Contents::of(at).is_ok_and(|there| there.is_copy_of(&contents)) {
        return Ok(());
    }
    let unfinished = unfinished(into);
    fs::create_dir(&unfinished)?;
    let written = contents
        .copy_to(&unfinished)
        .and_then(|()| fs::write(unfinished.join(MARKER), format!("{MARKER_TEXT}{HOLDER}{holder}\n")))
        .and_then(|()| swap(&unfinished, at, exists));
    // What it holds now is the older copy, or what could not be finished.
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
        // Some file systems cannot.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
            discard(at, at.parent().unwrap_or(at))?;
            fs::rename(new, at)
        }
        other => Ok(other?),
    }
}

/// Out of sight first, so that nobody sees half of it.
fn discard(folder: &Path, into: &Path) -> io::Result<()> {
    let hidden = unfinished(into);
    fs::rename(folder, &hidden)?;
    fs::remove_dir_all(hidden)
}

fn unfinished(into: &Path) -> PathBuf {
    into.join(format!("{UNFINISHED}{}", uuid::Uuid::new_v4().simple()))
}

#[cfg(test)]
mod tests;
