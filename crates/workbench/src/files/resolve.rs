//! Opens a path beneath a folder: by `openat2`, or one component at a time where the kernel has no `openat2` or a
//! container's filter refuses it.

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, openat, openat2, readlinkat},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::PathBuf,
};

/// As many as Linux follows.
const MAX_LINKS: usize = 40;
/// Links can lead through many more folders than a path may name.
const MAX_OPEN_FOLDERS: usize = 128;

/// Which links are followed on the way to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Links {
    Refused,
    /// Those that stay beneath the folder.
    FollowedBeneath,
}

/// How paths are resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolver {
    Kernel,
    /// What `Kernel` falls back to.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests check both ways on a kernel that has openat2"))]
    Walk,
}

impl Resolver {
    /// A path out of the folder is `XDEV`, a link that is not followed is `LOOP`.
    pub fn open(
        self,
        folder: BorrowedFd<'_>,
        names: &[&OsStr],
        flags: OFlags,
        mode: Mode,
        links: Links,
    ) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        if self == Self::Kernel {
            let path = if names.is_empty() { PathBuf::from(".") } else { names.iter().collect() };
            let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            resolve.set(ResolveFlags::NO_SYMLINKS, links == Links::Refused);
            match openat2(folder, path, flags, mode, resolve) {
                // Old kernels, filters of containers, and a rename elsewhere while the kernel resolved a `..`.
                Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
                opened => return opened,
            }
        }
        walk(folder, names, flags, mode, links)
    }
}

/// Each folder is opened from the one before and never through a link; links are read and resolved here.
fn walk(root: BorrowedFd<'_>, names: &[&OsStr], flags: OFlags, mode: Mode, links: Links) -> Result<OwnedFd, Errno> {
    let mut ahead: Vec<OsString> = names.iter().rev().map(OsString::from).collect();
    // The open folders between the root and the current one. A `..` in a link goes back to one of them, and not to
    // what the folder's parent is by now.
    let mut folders: Vec<OwnedFd> = Vec::new();
    let mut followed = 0;
    loop {
        let at = folders.last().map_or(root, |folder| folder.as_fd());
        let Some(name) = ahead.pop() else { return openat(at, ".", flags, mode) };
        match name.as_bytes() {
            // Only in links. At the end of one, what is before it must be a folder, and was opened as one.
            b"." | b"" => continue,
            b".." => {
                folders.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            _ => {}
        }
        let is_last = ahead.is_empty();
        let step = if is_last { flags } else { OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC };
        let error = match openat(at, &name, step | OFlags::NOFOLLOW, mode) {
            Ok(opened) if is_last => return Ok(opened),
            Ok(_) if folders.len() == MAX_OPEN_FOLDERS => return Err(Errno::NAMETOOLONG),
            Ok(opened) => {
                folders.push(opened);
                continue;
            }
            Err(error) => error,
        };
        // Linux reports a link as either of these, depending on the flags.
        if !matches!(error, Errno::LOOP | Errno::NOTDIR) {
            return Err(error);
        }
        let Ok(target) = readlinkat(at, &name, Vec::new()) else { return Err(error) };
        followed += 1;
        if links == Links::Refused || followed > MAX_LINKS {
            return Err(Errno::LOOP);
        }
        let target = target.into_bytes();
        if target.starts_with(b"/") {
            return Err(Errno::XDEV);
        }
        ahead.extend(target.split(|byte| *byte == b'/').rev().map(|part| OsStr::from_bytes(part).to_owned()));
    }
}
