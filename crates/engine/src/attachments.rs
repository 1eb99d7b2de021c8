//! Delivers attachments to an agent: copies the files into its workspace and adds a line for each to the prompt.
//!
//! An agent may have put anything into its workspace, including links: folders and files are opened one path component
//! at a time beneath the workspace and never through a link (invariant 18). A file that already exists is kept: another
//! agent of the room may have edited it.

use crate::Engine;
use domain::{
    ids::UploadId,
    message::{Attachment, Message},
    owner::Owner,
    run::RunError,
    upload::FOLDER,
};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat};
use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

/// The text of a message for an agent, with a line for each attachment.
pub(crate) fn text_with_attachments(message: &Message) -> String {
    let lines = message
        .attachments
        .iter()
        .filter_map(|attachment| Some(format!("- {} ({})", attachment.path()?, attachment.media_type)));
    let lines: Vec<String> = lines.collect();
    match (message.text.as_str(), lines.as_slice()) {
        (text, []) => text.to_owned(),
        ("", lines) => format!("Attached files:\n{}", lines.join("\n")),
        (text, lines) => format!("{text}\n\nAttached files:\n{}", lines.join("\n")),
    }
}

impl Engine {
    /// Copies a message's attachments into a workspace and returns the text for the agent.
    pub(crate) async fn place_attachments(
        &self,
        owner: &Owner,
        workspace: &Path,
        message: &Message,
    ) -> Result<String, RunError> {
        let mut files = Vec::new();
        for attachment in &message.attachments {
            // Attachments from before uploads existed have a URL and no file.
            let Some(id) = attachment.upload_id() else { continue };
            self.store().upload(owner, id).await.map_err(|error| match error {
                store::StoreError::NotFound => attachment_error(attachment, &"it was deleted; attach it again"),
                error => attachment_error(attachment, &error),
            })?;
            files.push((attachment.clone(), self.upload_file(id), id));
        }
        if !files.is_empty() {
            let workspace = workspace.to_owned();
            let placed = tokio::task::spawn_blocking(move || copy_attachments(&workspace, &files)).await;
            placed.map_err(|error| RunError::new(CODE, error.to_string()))??;
        }
        Ok(text_with_attachments(message))
    }
}

const CODE: &str = "attachment_failed";

fn attachment_error(attachment: &Attachment, why: &dyn std::fmt::Display) -> RunError {
    RunError::new(
        CODE,
        format!("the attachment {:?} could not be handed to the agent: {why}", attachment.name.as_str()),
    )
}

fn copy_attachments(workspace: &Path, files: &[(Attachment, PathBuf, UploadId)]) -> Result<(), RunError> {
    for (attachment, source, id) in files {
        let Some((folder, name)) = attachment.location() else { continue };
        copy_attachment(workspace, &folder, &name, source, *id)
            .map_err(|error| attachment_error(attachment, &error))?;
    }
    Ok(())
}

fn copy_attachment(workspace: &Path, folder: &str, name: &str, source: &Path, id: UploadId) -> io::Result<()> {
    // The workspace itself was set by the operator or created by the server, and may be a link.
    let root = openat(CWD, workspace, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let folder = open_subfolder(&open_subfolder(&root, FOLDER)?, folder)?;
    match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode).is_file() => return Ok(()),
        Ok(_) => {
            return Err(io::Error::other(format!("its path in {FOLDER}/ is taken by something other than a file")));
        }
        Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    // Copied under a temporary name and then renamed: after a crash the next run must not find a truncated file.
    let partial = format!(".{}.partial", id.0.simple());
    match unlinkat(&folder, partial.as_str(), AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(openat(&folder, partial.as_str(), flags, Mode::RUSR | Mode::WUSR)?);
    let copied = File::open(source).and_then(|mut source| io::copy(&mut source, &mut copy));
    let done = copied.and_then(|_| Ok(renameat(&folder, partial.as_str(), &folder, name)?));
    if done.is_err()
        && let Err(error) = unlinkat(&folder, partial.as_str(), AtFlags::empty())
    {
        tracing::debug!(%error, "could not remove a partly copied attachment");
    }
    done
}

/// Opens a direct subfolder, creating it if needed; a link is an error.
fn open_subfolder(parent: &impl AsFd, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP => {
            io::Error::other(format!("{FOLDER}/ in the workspace is not a plain folder; remove what is there"))
        }
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::copy_attachment;
    use domain::ids::UploadId;
    use std::{fs, os::unix::fs::symlink, path::PathBuf};

    struct AttachmentFolders {
        _folder: tempfile::TempDir,
        workspace: PathBuf,
        outside: PathBuf,
        source: PathBuf,
    }

    fn scene() -> AttachmentFolders {
        let folder = tempfile::tempdir().unwrap();
        let [workspace, outside, source] = ["workspace", "outside", "source"].map(|name| folder.path().join(name));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(&source, "content").unwrap();
        AttachmentFolders { _folder: folder, workspace, outside, source }
    }

    #[test]
    fn a_file_is_copied_once_and_later_edits_are_kept() {
        let AttachmentFolders { workspace, source, _folder, .. } = scene();
        let (id, file) = (UploadId::generate(), workspace.join("attachments/abc/a.txt"));
        copy_attachment(&workspace, "abc", "a.txt", &source, id).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
        fs::write(&file, "worked on").unwrap();
        copy_attachment(&workspace, "abc", "a.txt", &source, id).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "worked on");
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
        // A temporary file left by a crashed server is replaced.
        fs::remove_file(&file).unwrap();
        fs::write(workspace.join(format!("attachments/abc/.{}.partial", id.0.simple())), "con").unwrap();
        copy_attachment(&workspace, "abc", "a.txt", &source, id).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
    }

    #[test]
    fn invariant_18_beneath_links_in_the_workspace_are_not_followed() {
        for link in ["attachments", "attachments/abc", "attachments/abc/a.txt"] {
            let AttachmentFolders { workspace, outside, source, _folder } = scene();
            let at = workspace.join(link);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let target = if link.ends_with("txt") { outside.join("target") } else { outside.clone() };
            symlink(&target, &at).unwrap();
            assert!(copy_attachment(&workspace, "abc", "a.txt", &source, UploadId::generate()).is_err(), "{link}");
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{link}");
        }
    }

    #[test]
    fn copying_fails_when_the_path_is_not_a_plain_file() {
        let AttachmentFolders { workspace, source, _folder, .. } = scene();
        fs::create_dir_all(workspace.join("attachments/abc/a.txt")).unwrap();
        assert!(copy_attachment(&workspace, "abc", "a.txt", &source, UploadId::generate()).is_err());
        fs::remove_dir_all(workspace.join("attachments")).unwrap();
        fs::write(workspace.join("attachments"), "").unwrap();
        let error = copy_attachment(&workspace, "abc", "a.txt", &source, UploadId::generate()).unwrap_err().to_string();
        assert!(error.contains("attachments/"), "{error}");
    }
}
