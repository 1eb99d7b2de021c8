//! How much is beneath a folder.

use super::RootError;
use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat},
    io::Errno,
};
use std::os::fd::{AsFd, OwnedFd};

/// Each level keeps a folder open. What has more levels counts as full: nothing can be hidden by moving it down.
const MAX_DEPTH: usize = 128;
/// `st_blocks` counts these, whatever the file system uses.
const BLOCK_BYTES: u64 = 512;

/// Files, folders and links, and the disk space that they take.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TreeSize {
    pub bytes: u64,
    pub files: u64,
}

/// Stops counting at `limit` entries. Links are counted and not followed.
pub(super) fn measure(folder: &impl AsFd, limit: u64) -> Result<TreeSize, RootError> {
    let mut size = TreeSize::default();
    add_entries(folder, 0, limit, &mut size)?;
    Ok(size)
}

fn add_entries(folder: &impl AsFd, depth: usize, limit: u64, size: &mut TreeSize) -> Result<(), RootError> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let found = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            // Removed meanwhile.
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        size.files += 1;
        size.bytes = size.bytes.saturating_add(u64::try_from(found.st_blocks).unwrap_or_default() * BLOCK_BYTES);
        if size.files >= limit {
            return Ok(());
        }
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            if depth == MAX_DEPTH {
                size.files = limit;
                return Ok(());
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below: OwnedFd = match openat(folder, name, flags, Mode::empty()) {
                Ok(below) => below,
                // Removed, or replaced by a link, meanwhile; or a folder that its owner has closed.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => continue,
                Err(error) => return Err(error.into()),
            };
            add_entries(&below, depth + 1, limit, size)?;
            if size.files >= limit {
                return Ok(());
            }
        }
    }
    Ok(())
}
