//! Folders and files to pack, with exact permissions whatever the umask is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::repository::XtaskResult;

/// Removes the folder with all that is in it, and creates it again.
pub fn recreate(folder: &Path) -> XtaskResult<()> {
    if folder.exists() {
        remove(folder)?;
    }
    create_folder(folder)
}

pub fn remove(folder: &Path) -> XtaskResult<()> {
    fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))
}

/// Copies a file, and creates the folders above it with the usual permissions.
pub fn place(source: &Path, destination: &Path, mode: u32) -> XtaskResult<()> {
    let content = fs::read(source).map_err(|error| format!("cannot read {}: {error}", source.display()))?;
    write(destination, &content, mode)
}

pub fn write(path: &Path, content: &[u8], mode: u32) -> XtaskResult<()> {
    path.parent().map_or(Ok(()), create_folder)?;
    fs::write(path, content)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn create_folder(folder: &Path) -> XtaskResult<()> {
    if folder.is_dir() {
        return Ok(());
    }
    folder.parent().map_or(Ok(()), create_folder)?;
    match fs::create_dir(folder) {
        Err(_) if folder.is_dir() => Ok(()),
        created => created
            .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o755)))
            .map_err(|error| format!("cannot create {}: {error}", folder.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_their_new_folders_have_the_given_permissions() {
        let folder = std::env::temp_dir().join(format!("xtask-files-{}", std::process::id()));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        recreate(&folder).unwrap();
        write(&folder.join("usr/bin/program"), b"1", 0o755).unwrap();
        place(&folder.join("usr/bin/program"), &folder.join("usr/share/copy"), 0o644).unwrap();
        assert_eq!(mode(&folder.join("usr/bin/program")), 0o755);
        assert_eq!(mode(&folder.join("usr/share/copy")), 0o644);
        assert_eq!(mode(&folder.join("usr/share")), 0o755);
        recreate(&folder).unwrap();
        assert!(!folder.join("usr").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
