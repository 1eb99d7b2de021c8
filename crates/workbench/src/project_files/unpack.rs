//! Unpacks a zip or tar archive into a folder. Nothing in an archive is trusted: names, kinds, counts and sizes are checked while
//! it is unpacked into a hidden folder, and only then do its files get their places.

use super::{ProjectFileWriter, ProjectFiles, ProjectFilesError, ProjectPath, zip_count};
use crate::files::{EntryKind, partial_name};
use flate2::read::MultiGzDecoder;
use std::{
    cell::Cell,
    collections::HashSet,
    fs::File,
    io::{self, BufReader, Read, Seek as _, SeekFrom},
    rc::Rc,
    sync::Arc,
};
use zip::ZipArchive;

/// Entries of one archive.
const MAX_ENTRIES: usize = 100_000;
/// An archive that becomes larger than [`RATIO_EXEMPT_BYTES`] may become this many times larger than it is.
const MAX_RATIO: u64 = 200;
const RATIO_EXEMPT_BYTES: u64 = 64 << 20;
/// What may be read of a tar between the contents of two files: its long names and attributes.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// Names of skipped entries that are reported.
const MAX_REPORTED: usize = 100;
const PIECE_BYTES: usize = 64 << 10;
const STAGING_MODE: u32 = 0o700;

/// What was unpacked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UnpackedFiles {
    pub files: Vec<UnpackedFile>,
    /// The names of the first links, devices and pipes, which are left out.
    pub skipped: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnpackedFile {
    pub path: ProjectPath,
    pub bytes: u64,
    pub is_new: bool,
}

impl ProjectFiles {
    /// Starts to receive an archive, which itself never appears in the folder.
    pub fn receive_archive(&self) -> Result<ProjectFileWriter<'_>, ProjectFilesError> {
        self.create(&ProjectPath::parse(&format!(".{}", uuid::Uuid::new_v4().simple()))?)
    }

    /// Unpacks an archive that was received. A failure leaves nothing, unless something else changes the folder at the
    /// moment when the files get their places.
    pub fn unpack(
        &self,
        archive: &ProjectFileWriter<'_>,
        folder: &ProjectPath,
    ) -> Result<UnpackedFiles, ProjectFilesError> {
        let mut file = archive.reader()?;
        let name = partial_name();
        self.root.create_dir_all(&name, STAGING_MODE)?;
        let staged = self.root.open_folder(&name).map_err(ProjectFilesError::from).and_then(|root| {
            let inside = Self { root, quota: Arc::clone(&self.quota), limits: self.limits };
            let mut unpacker = Unpacker::new(&inside, file.metadata()?.len());
            match kind_of(&mut file)? {
                ArchiveKind::Zip => unpacker.unpack_zip(file)?,
                ArchiveKind::Tar => unpacker.unpack_tar(BufReader::new(file))?,
                ArchiveKind::TarGz => unpacker.unpack_tar(MultiGzDecoder::new(BufReader::new(file)))?,
            }
            let skipped = std::mem::take(&mut unpacker.skipped);
            Ok(UnpackedFiles { files: self.place(&inside, &name, folder)?, skipped })
        });
        // Also after success: its folders are left.
        if let Err(error) = self.root.remove(&name) {
            tracing::debug!(%error, "could not remove the folder of an archive");
        }
        self.quota.forget();
        staged
    }

    /// Moves the files to their places. What cannot be moved is found before the first one is.
    fn place(
        &self,
        inside: &Self,
        staging: &str,
        folder: &ProjectPath,
    ) -> Result<Vec<UnpackedFile>, ProjectFilesError> {
        let mut found: Vec<(ProjectPath, ProjectPath, u64)> = Vec::new();
        let mut folders = vec![ProjectPath::folder()];
        let mut created = vec![folder.clone()];
        while let Some(from) = folders.pop() {
            for entry in inside.list(&from, MAX_ENTRIES)?.entries {
                let path = from.join(&entry.name)?;
                let to = folder.join(path.as_str())?;
                match entry.kind {
                    EntryKind::Folder => {
                        folders.push(path);
                        created.push(to);
                    }
                    EntryKind::File => found.push((path, to, entry.bytes)),
                    // Nothing else was unpacked; a command that reaches into the folder gets nothing placed.
                    EntryKind::Link | EntryKind::Special => {}
                }
            }
        }
        let mut is_new = Vec::with_capacity(found.len());
        for (_, to, _) in &found {
            is_new.push(match self.metadata(to) {
                Ok(at) if at.is_dir() => return Err(ProjectFilesError::Exists(to.clone())),
                Ok(_) => false,
                Err(ProjectFilesError::NotFound(_)) => true,
                Err(error) => return Err(error),
            });
        }
        for path in &created {
            self.create_folders(path)?;
        }
        let mut placed = Vec::with_capacity(found.len());
        for ((path, to, bytes), is_new) in found.into_iter().zip(is_new) {
            let from = format!("{staging}/{}", path.as_str());
            self.root.rename(from, &to).map_err(|error| ProjectFilesError::at(&to, error))?;
            placed.push(UnpackedFile { path: to, bytes, is_new });
        }
        Ok(placed)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ArchiveKind {
    Zip,
    Tar,
    TarGz,
}

/// By the first bytes: names lie.
fn kind_of(file: &mut File) -> Result<ArchiveKind, ProjectFilesError> {
    let mut start = Vec::new();
    (&mut *file).take(512).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    match start.as_slice() {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Ok(ArchiveKind::Zip),
        [0x1f, 0x8b, ..] => Ok(ArchiveKind::TarGz),
        tar if tar.get(257..262) == Some(b"ustar") => Ok(ArchiveKind::Tar),
        _ => Err(refused("it is not a .zip, .tar or .tar.gz archive")),
    }
}

fn refused(why: impl Into<String>) -> ProjectFilesError {
    ProjectFilesError::Archive(why.into())
}

struct Unpacker<'a> {
    files: &'a ProjectFiles,
    seen: HashSet<ProjectPath>,
    entries: usize,
    left: u64,
    skipped: Vec<String>,
}

impl<'a> Unpacker<'a> {
    fn new(files: &'a ProjectFiles, archive_bytes: u64) -> Self {
        let left = RATIO_EXEMPT_BYTES.max(archive_bytes.saturating_mul(MAX_RATIO));
        Self { files, seen: HashSet::new(), entries: 0, left, skipped: Vec::new() }
    }

    fn unpack_zip(&mut self, mut file: File) -> Result<(), ProjectFilesError> {
        // The index of the archive is read into memory.
        if zip_count::entries(&mut file)?.is_none_or(|entries| entries > MAX_ENTRIES as u64) {
            return Err(refused(format!("it is damaged, or has more than {MAX_ENTRIES} entries")));
        }
        let damaged = |error: zip::result::ZipError| refused(format!("it is damaged: {error}"));
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
        for index in 0..archive.len() {
            let mut entry = archive.by_index(index).map_err(damaged)?;
            let name = entry.name().map_err(damaged)?.into_owned();
            let is_file = !entry.is_dir() && !entry.is_symlink() && entry.unix_mode().is_none_or(is_regular);
            let path = self.next(&name)?;
            if entry.is_dir() {
                self.create_folder(&path)?;
            } else if is_file {
                self.write(&path, &mut entry, || {})?;
            } else {
                self.skip(name);
            }
        }
        Ok(())
    }

    fn unpack_tar(&mut self, reader: impl Read) -> Result<(), ProjectFilesError> {
        let damaged = |error: io::Error| refused(format!("it is damaged: {error}"));
        let ahead = Rc::new(Cell::new(0));
        let mut archive = tar::Archive::new(HeaderLimit { reader, ahead: Rc::clone(&ahead) });
        for entry in archive.entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            ahead.set(0);
            let kind = entry.header().entry_type();
            if kind.is_pax_global_extensions() {
                continue;
            }
            let name = String::from_utf8(entry.path_bytes().into_owned())
                .map_err(|_| refused("an entry has a name that is not UTF-8"))?;
            let path = self.next(&name)?;
            if kind.is_dir() {
                self.create_folder(&path)?;
            } else if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() {
                self.write(&path, &mut entry, || ahead.set(0))?;
            } else {
                self.skip(name);
            }
        }
        Ok(())
    }

    /// Counts an entry and checks its name.
    fn next(&mut self, name: &str) -> Result<ProjectPath, ProjectFilesError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(refused(format!("it has more than {MAX_ENTRIES} entries")));
        }
        let shown = || name.chars().take(100).collect::<String>();
        if name.starts_with('/') {
            return Err(refused(format!("{:?} does not stay in the folder", shown())));
        }
        ProjectPath::parse(name).map_err(|_| refused(format!("{:?} is not a name that a file can have here", shown())))
    }

    fn create_folder(&mut self, path: &ProjectPath) -> Result<(), ProjectFilesError> {
        self.files.create_folders(path)
    }

    fn write(
        &mut self,
        path: &ProjectPath,
        content: &mut impl Read,
        mut after_piece: impl FnMut(),
    ) -> Result<(), ProjectFilesError> {
        if !self.seen.insert(path.clone()) {
            return Err(refused(format!("{path} is in it twice")));
        }
        let mut file = self.files.create(path).map_err(|error| match error {
            ProjectFilesError::Exists(_) | ProjectFilesError::NotAFolder(_) => {
                refused(format!("{path} is a file and a folder in it"))
            }
            other => other,
        })?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let length = match content.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(refused(format!("{path} is damaged: {error}"))),
            };
            after_piece();
            self.left = self
                .left
                .checked_sub(length as u64)
                .ok_or_else(|| refused(format!("it becomes more than {MAX_RATIO} times larger than it is")))?;
            file.write(&piece[..length])?;
        }
        file.finish()?;
        Ok(())
    }

    fn skip(&mut self, name: String) {
        if self.skipped.len() < MAX_REPORTED {
            self.skipped.push(name.chars().take(200).collect());
        }
    }
}

/// Whether a mode of a zip is that of a file; many have none.
fn is_regular(mode: u32) -> bool {
    matches!(mode & 0o170_000, 0 | 0o100_000)
}

/// Limits what a tar makes its reader keep in memory.
struct HeaderLimit<R> {
    reader: R,
    ahead: Rc<Cell<u64>>,
}

impl<R: Read> Read for HeaderLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ahead.get() > MAX_HEADER_BYTES {
            return Err(io::Error::other("its headers are too long"));
        }
        let length = self.reader.read(buffer)?;
        self.ahead.set(self.ahead.get() + length as u64);
        Ok(length)
    }
}
