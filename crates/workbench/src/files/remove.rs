//! Removes an entry with everything in it.

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, RenameFlags, openat, renameat_with, unlinkat},
    io::Errno,
    path::Arg,
};
use std::{
    ffi::CStr,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

/// Each level keeps a folder open. A folder that is deeper is moved up first.
const MAX_DEPTH: usize = 128;
/// How often a free name for such a folder is looked for.
const MAX_NAMES: u32 = 1000;

/// Links are removed and not followed.
pub fn remove(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<(), Errno> {
    let name = &*name.into_c_str()?;
    let Some(top) = open_folder(parent, name)? else { return unlinkat(parent, name, AtFlags::empty()) };
    let mut lifted = LiftedFolders { top: top.as_fd(), names: 0 };
    loop {
        let before = lifted.names;
        lifted.empty(top.as_fd(), 1)?;
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) if lifted.names > before => {}
            removed => return removed,
        }
    }
}

/// `None` if it is not a folder, or a link to one.
fn open_folder(parent: BorrowedFd<'_>, name: &CStr) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Folders that were too deep, and are in the top folder now.
struct LiftedFolders<'a> {
    top: BorrowedFd<'a>,
    /// How many names were given.
    names: u64,
}

impl LiftedFolders<'_> {
    fn empty(&mut self, folder: BorrowedFd<'_>, depth: usize) -> Result<(), Errno> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                match self.remove(folder, entry.file_name(), depth) {
                    // Removed by another process.
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn remove(&mut self, parent: BorrowedFd<'_>, name: &CStr, depth: usize) -> Result<(), Errno> {
        let Some(folder) = open_folder(parent, name)? else { return unlinkat(parent, name, AtFlags::empty()) };
        if depth == MAX_DEPTH {
            return self.lift(parent, name);
        }
        self.empty(folder.as_fd(), depth + 1)?;
        unlinkat(parent, name, AtFlags::REMOVEDIR)
    }

    fn lift(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        for _ in 0..MAX_NAMES {
            self.names += 1;
            match renameat_with(parent, name, self.top, format!("lifted-{}", self.names), RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                lifted => return lifted,
            }
        }
        Err(Errno::EXIST)
    }
}
