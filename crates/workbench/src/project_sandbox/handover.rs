//! Gives files that the server has written to the user of the sandbox. Needed if the server is root: its sandboxes then run
//! as a user of their own, and what root writes is private.

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, chownat, open, openat, statat},
    io::Errno,
    process::{Gid, Uid},
};
use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

/// Each level keeps a folder open.
const MAX_DEPTH: usize = 64;
const MAX_ENTRIES: usize = 200_000;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Changes the owner of a folder and of what is beneath it. Links are changed, not followed, even if a folder turns into
/// one at that moment. Blocking.
pub fn hand_over(folder: &Path, user: u32) -> io::Result<()> {
    let folder = open(folder, FOLDER, Mode::empty())?;
    let mut walk = Handover { user, left: MAX_ENTRIES };
    walk.give(folder.as_fd(), c"", AtFlags::EMPTY_PATH)?;
    walk.give_entries(&folder, 0)
}

struct Handover {
    user: u32,
    left: usize,
}

impl Handover {
    fn give(&self, parent: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> io::Result<()> {
        let flags = flags | AtFlags::SYMLINK_NOFOLLOW;
        let found = match statat(parent, name, flags) {
            Ok(found) => found,
            // Removed by a command of the sandbox.
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if found.st_uid == self.user {
            return Ok(());
        }
        match chownat(parent, name, Some(Uid::from_raw(self.user)), Some(Gid::from_raw(self.user)), flags) {
            Err(Errno::NOENT) => Ok(()),
            done => Ok(done?),
        }
    }

    fn give_entries(&mut self, folder: &OwnedFd, depth: usize) -> io::Result<()> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.left = self.left.checked_sub(1).ok_or_else(|| {
                io::Error::other(format!("the folder has more than {MAX_ENTRIES} files; remove some of them"))
            })?;
            self.give(folder.as_fd(), name, AtFlags::empty())?;
            // Some file systems do not say what an entry is.
            if !matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
                continue;
            }
            match openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(below) if depth < MAX_DEPTH => self.give_entries(&below, depth + 1)?,
                // Too deep: only commands of the sandbox create such folders, and these are theirs already.
                Ok(_) => {}
                // A file, a link, or removed meanwhile.
                Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT | Errno::NXIO) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::hand_over;
    use std::{
        fs,
        os::unix::fs::{MetadataExt as _, symlink},
    };

    #[test]
    fn everything_beneath_is_handed_over_and_nothing_outside() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/file"), "").unwrap();
        fs::write(outside.path().join("file"), "").unwrap();
        symlink(outside.path(), folder.path().join("link")).unwrap();
        let before = fs::metadata(outside.path()).unwrap().uid();
        // Only root can give files away; everybody can keep them.
        let user = if before == 0 { 4321 } else { before };
        hand_over(folder.path(), user).unwrap();
        for path in ["", "a", "a/b", "a/b/file", "link"] {
            assert_eq!(fs::symlink_metadata(folder.path().join(path)).unwrap().uid(), user, "{path}");
        }
        for path in [outside.path().to_owned(), outside.path().join("file")] {
            assert_eq!(fs::metadata(&path).unwrap().uid(), before, "{path:?}");
        }
    }
}
