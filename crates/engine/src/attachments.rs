//! Attachments on their way to an agent: the files in its workplace, and a line for each where it is told the message.
//!
//! An agent may have put anything into its workplace, links among it: folders and files are opened one step at a time
//! beneath the workplace and never through a link (invariant 18). What is there already stays: another agent of the room may
//! have worked on it.

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

/// What an agent is told of a message: its words, and a line for each attachment.
pub(crate) fn told(message: &Message) -> String {
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
    /// Puts a message's attachments into a workplace and says what its reader is told.
    pub(crate) async fn hand_over(
        &self,
        owner: &Owner,
        workplace: &Path,
        message: &Message,
    ) -> Result<String, RunError> {
        let mut files = Vec::new();
        for attachment in &message.attachments {
            // Those of before there were uploads name an address and no file.
            let Some(id) = attachment.upload() else { continue };
            self.store().upload(owner, id).await.map_err(|error| match error {
                store::Error::NotFound => failed(attachment, &"it was deleted; attach it again"),
                error => failed(attachment, &error),
            })?;
            files.push((attachment.clone(), self.upload_file(id), id));
        }
        if !files.is_empty() {
            let workplace = workplace.to_owned();
            let placed = tokio::task::spawn_blocking(move || place_all(&workplace, &files)).await;
            placed.map_err(|error| RunError::new(CODE, error.to_string()))??;
        }
        Ok(told(message))
    }
}

const CODE: &str = "attachment_failed";

fn failed(attachment: &Attachment, why: &dyn std::fmt::Display) -> RunError {
    RunError::new(
        CODE,
        format!("the attachment {:?} could not be handed to the agent: {why}", attachment.name.as_str()),
    )
}

fn place_all(workplace: &Path, files: &[(Attachment, PathBuf, UploadId)]) -> Result<(), RunError> {
    for (attachment, source, id) in files {
        let Some((folder, name)) = attachment.place() else { continue };
        place(workplace, &folder, &name, source, *id).map_err(|error| failed(attachment, &error))?;
    }
    Ok(())
}

fn place(workplace: &Path, folder: &str, name: &str, source: &Path, id: UploadId) -> io::Result<()> {
    // The workplace itself is the operator's or ours, and may be a link.
    let root = openat(CWD, workplace, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let folder = beneath(&beneath(&root, FOLDER)?, folder)?;
    match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode).is_file() => return Ok(()),
        Ok(_) => return Err(io::Error::other(format!("something that is no file is in its place in {FOLDER}/"))),
        Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    // Whole or not at all: a server may die in the middle, and the next run would take a half for the file.
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
        tracing::debug!(%error, "half of an attachment stays in a workplace");
    }
    done
}

/// A folder right beneath another, made if it is not there; a link is none.
fn beneath(parent: &impl AsFd, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP => {
            io::Error::other(format!("{FOLDER}/ in the workplace is not a plain folder; remove what is in its place"))
        }
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::place;
    use domain::ids::UploadId;
    use std::{fs, os::unix::fs::symlink, path::PathBuf};

    struct Scene {
        _folder: tempfile::TempDir,
        workplace: PathBuf,
        outside: PathBuf,
        source: PathBuf,
    }

    fn scene() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let [workplace, outside, source] = ["workplace", "outside", "source"].map(|name| folder.path().join(name));
        fs::create_dir(&workplace).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(&source, "content").unwrap();
        Scene { _folder: folder, workplace, outside, source }
    }

    #[test]
    fn a_file_is_placed_once_and_what_an_agent_made_of_it_stays() {
        let Scene { workplace, source, _folder, .. } = scene();
        let (id, file) = (UploadId::generate(), workplace.join("attachments/abc/a.txt"));
        place(&workplace, "abc", "a.txt", &source, id).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
        fs::write(&file, "worked on").unwrap();
        place(&workplace, "abc", "a.txt", &source, id).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "worked on");
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
        // A half that a dead server left is no file.
        fs::remove_file(&file).unwrap();
        fs::write(workplace.join(format!("attachments/abc/.{}.partial", id.0.simple())), "con").unwrap();
        place(&workplace, "abc", "a.txt", &source, id).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "content");
    }

    #[test]
    fn invariant_18_beneath_no_link_of_an_agent_leads_out() {
        for link in ["attachments", "attachments/abc", "attachments/abc/a.txt"] {
            let Scene { workplace, outside, source, _folder } = scene();
            let at = workplace.join(link);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            let target = if link.ends_with("txt") { outside.join("target") } else { outside.clone() };
            symlink(&target, &at).unwrap();
            assert!(place(&workplace, "abc", "a.txt", &source, UploadId::generate()).is_err(), "{link}");
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{link}");
        }
    }

    #[test]
    fn what_is_no_file_in_its_place_is_told() {
        let Scene { workplace, source, _folder, .. } = scene();
        fs::create_dir_all(workplace.join("attachments/abc/a.txt")).unwrap();
        assert!(place(&workplace, "abc", "a.txt", &source, UploadId::generate()).is_err());
        fs::remove_dir_all(workplace.join("attachments")).unwrap();
        fs::write(workplace.join("attachments"), "").unwrap();
        let error = place(&workplace, "abc", "a.txt", &source, UploadId::generate()).unwrap_err().to_string();
        assert!(error.contains("attachments/"), "{error}");
    }
}
