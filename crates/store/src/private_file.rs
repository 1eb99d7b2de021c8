//! Files and folders that only the user of the server may read, whatever the process's umask is.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;

/// Options whose new files are private.
pub(crate) fn options() -> OpenOptions {
    let mut options = File::options();
    options.mode(FILE);
    options
}

/// Creates an empty file, unless it exists.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    match options().write(true).create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates a folder and the missing ones above it.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    // The folder of a relative file name is empty: it exists.
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Makes an existing file private.
pub(crate) fn restrict(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(FILE))
}
