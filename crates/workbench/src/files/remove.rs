//! Removes an entry with everything in it.

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, openat, unlinkat},
    io::Errno,
    path::Arg,
};
use std::os::fd::{AsFd as _, BorrowedFd};

/// Each level keeps a folder open.
const MAX_DEPTH: usize = 128;

/// Links are removed and not followed.
pub fn remove(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<(), Errno> {
    remove_at_depth(parent, &name.into_c_str()?, 0)
}

fn remove_at_depth(parent: BorrowedFd<'_>, name: &std::ffi::CStr, depth: usize) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match openat(parent, name, flags, Mode::empty()) {
        Ok(folder) => folder,
        // Not a folder, or a link to one.
        Err(Errno::NOTDIR | Errno::LOOP) => return unlinkat(parent, name, AtFlags::empty()),
        Err(error) => return Err(error),
    };
    if depth == MAX_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            match remove_at_depth(folder.as_fd(), entry.file_name(), depth + 1) {
                // Removed by another process.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}
