//! Delivers attachments to an agent: copies the files into its workspace, adds a line for each to the prompt, and tells the
//! provider where they are: one that calls a model API sends their content (`crates/providers/src/direct/attachments.rs`).
//!
//! An agent may have put anything into its workspace, including links, which are refused (invariant 18). A file that
//! already exists is kept: another agent of the room may have edited it.

use crate::Engine;
use domain::{
    message::{Attachment, Message},
    owner::Owner,
    run::RunError,
    upload::FOLDER,
};
use providers::AttachedFile;
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use workbench::files::{Root, RootError};

/// A copy that was begun this long ago was left behind by a server that was killed.
const STALE_AFTER: Duration = Duration::from_secs(3600);
const MAX_ENTRIES: usize = 1000;

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
    /// The files of a message, for providers that send their content.
    pub(crate) fn attached_files(&self, message: &Message) -> Vec<AttachedFile> {
        let file = |attachment: &Attachment| {
            let (id, path) = (attachment.upload_id()?, attachment.path()?);
            Some(AttachedFile { name: attachment.name.to_string(), path, file: self.upload_file(id) })
        };
        message.attachments.iter().filter_map(file).collect()
    }

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
            files.push((attachment.clone(), self.upload_file(id)));
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

fn copy_attachments(workspace: &Path, files: &[(Attachment, PathBuf)]) -> Result<(), RunError> {
    for (attachment, source) in files {
        let Some((folder, name)) = attachment.location() else { continue };
        copy_attachment(workspace, &folder, &name, source).map_err(|error| attachment_error(attachment, &error))?;
    }
    Ok(())
}

fn copy_attachment(workspace: &Path, folder: &str, name: &str, source: &Path) -> io::Result<()> {
    let root = Root::open(workspace)?;
    let folder = Path::new(FOLDER).join(folder);
    root.create_dir_all(&folder, 0o700).map_err(|error| match error {
        RootError::NotAFolder | RootError::Link => {
            io::Error::other(format!("{FOLDER}/ in the workspace is not a plain folder; remove what is there"))
        }
        error => error.into(),
    })?;
    let folder = root.open_folder(folder)?;
    match folder.metadata(name) {
        Ok(found) if found.is_file() => return Ok(()),
        Ok(_) => {
            return Err(io::Error::other(format!("its path in {FOLDER}/ is taken by something other than a file")));
        }
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error.into()),
    }
    folder.remove_old_partials("", STALE_AFTER, MAX_ENTRIES)?;
    // After a crash the next run must not find a truncated file.
    let mut copy = folder.create(name, 0o600)?;
    io::copy(&mut File::open(source)?, &mut copy)?;
    Ok(copy.persist()?)
}

#[cfg(test)]
mod tests {
    use super::{STALE_AFTER, copy_attachment};
    use std::{fs, os::unix::fs::symlink, path::PathBuf, time::SystemTime};

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
        let file = workspace.join("attachments/abc/a.txt");
        copy_attachment(&workspace, "abc", "a.txt", &source).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
        fs::write(&file, "worked on").unwrap();
        copy_attachment(&workspace, "abc", "a.txt", &source).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "worked on");
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
        // A temporary file left by a killed server is removed.
        fs::remove_file(&file).unwrap();
        let left_behind = workspace.join("attachments/abc/.greenroom-partial-1");
        let begun = SystemTime::UNIX_EPOCH + STALE_AFTER;
        fs::File::create(&left_behind).unwrap().set_modified(begun).unwrap();
        copy_attachment(&workspace, "abc", "a.txt", &source).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
        assert!(!left_behind.exists());
    }

    #[test]
    fn invariant_18_beneath_links_in_the_workspace_are_not_followed() {
        for link in ["attachments", "attachments/abc", "attachments/abc/a.txt"] {
            let AttachmentFolders { workspace, outside, source, _folder } = scene();
            let at = workspace.join(link);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let target = if link.ends_with("txt") { outside.join("target") } else { outside.clone() };
            symlink(&target, &at).unwrap();
            assert!(copy_attachment(&workspace, "abc", "a.txt", &source).is_err(), "{link}");
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{link}");
        }
    }

    #[test]
    fn copying_fails_when_the_path_is_not_a_plain_file() {
        let AttachmentFolders { workspace, source, _folder, .. } = scene();
        fs::create_dir_all(workspace.join("attachments/abc/a.txt")).unwrap();
        assert!(copy_attachment(&workspace, "abc", "a.txt", &source).is_err());
        fs::remove_dir_all(workspace.join("attachments")).unwrap();
        fs::write(workspace.join("attachments"), "").unwrap();
        let error = copy_attachment(&workspace, "abc", "a.txt", &source).unwrap_err().to_string();
        assert!(error.contains("attachments/"), "{error}");
    }
}
