//! The entries of one folder.

use rustix::fs::{AtFlags, Dir, FileType, statat};
use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::AsFd, unix::ffi::OsStrExt as _},
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    File,
    Folder,
    Link,
    /// A pipe, a socket or a device.
    Special,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FolderEntry {
    pub name: OsString,
    pub kind: EntryKind,
}

/// The entries of a folder, sorted by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FolderListing {
    pub entries: Vec<FolderEntry>,
    /// Whether the folder has more entries than the limit of the call.
    pub is_truncated: bool,
}

impl EntryKind {
    pub(super) fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

impl FolderListing {
    pub(super) fn read(folder: &impl AsFd, limit: usize) -> io::Result<Self> {
        let mut listing = Self { entries: Vec::new(), is_truncated: false };
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if listing.entries.len() == limit {
                listing.is_truncated = true;
                break;
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type here.
                FileType::Unknown => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(found) => FileType::from_raw_mode(found.st_mode),
                    Err(rustix::io::Errno::NOENT) => continue,
                    Err(error) => return Err(error.into()),
                },
                kind => kind,
            };
            let name = OsStr::from_bytes(name.to_bytes()).to_owned();
            listing.entries.push(FolderEntry { name, kind: EntryKind::of(kind) });
        }
        listing.entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }
}
