//! Packs a folder into a zip archive, while it is being sent. Links and special files are left out.

use super::{ProjectFiles, ProjectFilesError, ProjectPath};
use crate::files::EntryKind;
use std::io::{self, Write};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// Files and folders of one archive.
const MAX_ENTRIES: usize = 100_000;
/// Above this, the format needs larger numbers, which must be known at the start of an entry.
const LARGE_FILE: u64 = 3 << 30;

impl ProjectFiles {
    /// Writes an archive of a folder to `sink`. Fails in the middle if a file cannot be read or there are too many,
    /// which the reader notices: the archive then has no end.
    pub fn pack(&self, path: &ProjectPath, sink: impl Write) -> Result<(), ProjectFilesError> {
        let mut archive = ZipWriter::new_stream(sink);
        let mut folders = vec![path.clone()];
        let mut left = MAX_ENTRIES;
        while let Some(folder) = folders.pop() {
            let listing = self.list(&folder, left + 1)?;
            for entry in listing.entries {
                left = left.checked_sub(1).ok_or(ProjectFilesError::TooManyToPack { limit: MAX_ENTRIES })?;
                // Names that a path cannot have, such as those with a line break, are left out.
                let Ok(entry_path) = folder.join(&entry.name) else { continue };
                match entry.kind {
                    EntryKind::Folder => folders.push(entry_path),
                    EntryKind::File => self.pack_file(path, &entry_path, &mut archive)?,
                    EntryKind::Link | EntryKind::Special => {}
                }
            }
        }
        archive.finish().map_err(io::Error::other)?.into_inner().flush()?;
        Ok(())
    }

    fn pack_file<W: Write + io::Seek>(
        &self,
        top: &ProjectPath,
        path: &ProjectPath,
        archive: &mut ZipWriter<W>,
    ) -> Result<(), ProjectFilesError> {
        let opened = match self.open_file(path) {
            Ok(opened) => opened,
            // Removed or replaced meanwhile.
            Err(ProjectFilesError::NotFound(_) | ProjectFilesError::Link(_) | ProjectFilesError::NotAFile(_)) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .large_file(opened.bytes > LARGE_FILE)
            .unix_permissions(0o644);
        let name = path.as_str().strip_prefix(top.as_str()).unwrap_or(path.as_str()).trim_start_matches('/');
        archive.start_file(name, options).map_err(io::Error::other)?;
        // A file that grows meanwhile is cut off where it ended when it was opened.
        io::copy(&mut io::Read::take(opened.file, opened.bytes), archive)?;
        Ok(())
    }
}
