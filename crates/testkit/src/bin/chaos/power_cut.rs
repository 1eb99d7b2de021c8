//! A kill that is also a power cut: with the shim loaded, unsynced writes of the server are undone afterwards. The shim
//! also makes the disk full for a while.
//!
//! The shim (`crates/testkit/shim/forget_unsynced.c`) writes undo logs while the server runs; [`PowerCut::forget`]
//! replays them backwards. [`PowerCut::self_test`] first checks on its own files that this works.

use anyhow::{Context as _, bail, ensure};
use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

const SOURCE: &str = include_str!("../../../shim/forget_unsynced.c");
const MAGIC: &[u8] = b"UNDOLOG1";

pub struct PowerCut {
    pub library: PathBuf,
    /// The folder whose unsynced writes are undone.
    pub folder: PathBuf,
    undo: PathBuf,
    /// The disk is full while this file exists.
    full: PathBuf,
}

/// The writes undone by one power cut.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForgottenWrites {
    /// Files that the shim watched.
    pub files: usize,
    pub write_ahead_logs: usize,
    pub writes: usize,
}

impl PowerCut {
    pub fn prepare(scratch: &Path, folder: &Path) -> anyhow::Result<Self> {
        let source = scratch.join("forget_unsynced.c");
        let library = scratch.join("forget_unsynced.so");
        let undo = scratch.join("undo");
        fs::write(&source, SOURCE)?;
        fs::create_dir_all(&undo)?;
        fs::create_dir_all(folder)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&source).args(["-ldl", "-lpthread"]);
        let status = compiler.status().context("cannot run the C compiler `cc`")?;
        ensure!(status.success(), "the shim did not compile");
        let full = scratch.join("disk-full");
        let cut = Self { library, folder: folder.to_owned(), undo, full };
        cut.self_test(scratch)?;
        Ok(cut)
    }

    /// Variables for the server, in addition to `LD_PRELOAD`. Each sync takes longer by `delay`.
    pub fn environment(&self, delay: Duration) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        vec![
            ("FORGET_DIR".into(), text(&self.folder)),
            ("FORGET_UNDO".into(), text(&self.undo)),
            ("FORGET_FULL".into(), text(&self.full)),
            ("FORGET_SYNC_DELAY_MS".into(), delay.as_millis().to_string()),
        ]
    }

    /// Files of the server cannot grow from now on.
    pub fn fill_disk(&self) -> anyhow::Result<()> {
        fs::write(&self.full, "").context("filling the disk")
    }

    pub fn free_disk(&self) -> anyhow::Result<()> {
        fs::remove_file(&self.full).context("freeing the disk")
    }

    /// Undoes all unsynced writes. The process must be dead.
    pub fn forget(&self) -> anyhow::Result<ForgottenWrites> {
        let mut forgotten = ForgottenWrites::default();
        for entry in fs::read_dir(&self.undo)? {
            let log = entry?.path();
            let (path, changes) = parse(&fs::read(&log)?).with_context(|| format!("{}", log.display()))?;
            forgotten.files += 1;
            forgotten.write_ahead_logs += usize::from(path.to_string_lossy().ends_with("-wal"));
            // A file that was deleted or replaced in the meantime has no writes to undo.
            if identity(&path).as_deref() == log.file_name().and_then(|name| name.to_str()) {
                forgotten.writes += changes.len();
                undo(&path, &changes)?;
            }
            fs::remove_file(&log)?;
        }
        Ok(forgotten)
    }

    /// Runs a probe that writes with and without sync and aborts. Only synced data may remain.
    fn self_test(&self, scratch: &Path) -> anyhow::Result<()> {
        let folder = scratch.join("proof");
        fs::create_dir_all(&folder)?;
        let proof = Self {
            folder: folder.clone(),
            library: self.library.clone(),
            undo: self.undo.clone(),
            full: self.full.clone(),
        };
        let mut probe = Command::new(std::env::current_exe()?);
        probe.arg("--shim-probe").arg(&folder).env("LD_PRELOAD", &self.library).envs(proof.environment(Duration::ZERO));
        let status = probe.stderr(Stdio::null()).status()?;
        ensure!(!status.success(), "the probe should have died");
        let before =
            [fs::read(folder.join("appended"))?, fs::read(folder.join("overwritten"))?, fs::read(folder.join("cut"))?];
        ensure!(
            before == [b"kept lost".to_vec(), b"XXpt".to_vec(), b"ke".to_vec()],
            "the probe did not write: {before:?}"
        );
        let forgotten = proof.forget()?;
        ensure!(
            (4..=5).contains(&forgotten.files),
            "the shim watched {} files, not 4 and a deleted one",
            forgotten.files
        );
        for (name, expected) in [("appended", "kept"), ("overwritten", "kept"), ("cut", "kept"), ("synced", "all kept")]
        {
            let found = fs::read_to_string(folder.join(name))?;
            ensure!(found == expected, "after the power cut {name} holds {found:?}, not {expected:?}");
        }
        Ok(())
    }
}

/// The probe process; see [`PowerCut::self_test`].
pub fn probe(folder: &Path) -> anyhow::Result<()> {
    let begin = |name: &str| -> std::io::Result<File> {
        let mut file = File::create(folder.join(name))?;
        file.write_all(b"kept")?;
        file.sync_all()?;
        Ok(file)
    };
    // Its inode number is reused by the next file, which must not be mistaken for it.
    begin("deleted")?.write_all(b" and gone")?;
    fs::remove_file(folder.join("deleted"))?;
    begin("appended")?.write_all(b" lost")?;
    begin("overwritten")?.write_all_at(b"XX", 0)?;
    begin("cut")?.set_len(2)?;
    let synced = begin("synced")?;
    synced.write_all_at(b"all kept", 0)?;
    synced.sync_data()?;
    std::process::abort()
}

struct UndoRecord {
    offset: u64,
    length_before: u64,
    old: Vec<u8>,
}

fn undo(path: &Path, changes: &[UndoRecord]) -> anyhow::Result<()> {
    let file = File::options().write(true).open(path)?;
    for change in changes.iter().rev() {
        file.write_all_at(&change.old, change.offset)?;
        file.set_len(change.length_before)?;
    }
    Ok(())
}

fn identity(path: &Path) -> Option<String> {
    let status = fs::metadata(path).ok()?;
    Some(format!("{}-{}", status.dev(), status.ino()))
}

fn parse(log: &[u8]) -> anyhow::Result<(PathBuf, Vec<UndoRecord>)> {
    let Some(rest) = log.strip_prefix(MAGIC) else { bail!("not an undo log") };
    let (length, rest) = rest.split_first_chunk::<4>().context("torn header")?;
    let length = usize::try_from(u32::from_ne_bytes(*length))?;
    let (path, mut rest) = rest.split_at_checked(length).context("torn path")?;
    let path = PathBuf::from(std::str::from_utf8(path)?);
    let mut changes = Vec::new();
    // A torn record at the end was being written when the process died: the change it announces never happened.
    while let Some((change, after)) = record(rest) {
        changes.push(change);
        rest = after;
    }
    Ok((path, changes))
}

fn record(bytes: &[u8]) -> Option<(UndoRecord, &[u8])> {
    let (offset, bytes) = bytes.split_first_chunk::<8>()?;
    let (length_before, bytes) = bytes.split_first_chunk::<8>()?;
    let (count, bytes) = bytes.split_first_chunk::<8>()?;
    let (old, after) = bytes.split_at_checked(usize::try_from(u64::from_ne_bytes(*count)).ok()?)?;
    let change = UndoRecord {
        offset: u64::from_ne_bytes(*offset),
        length_before: u64::from_ne_bytes(*length_before),
        old: old.to_vec(),
    };
    Some((change, after))
}

#[cfg(test)]
mod tests {
    use super::{parse, undo};

    fn log(records: &[(u64, u64, &[u8])]) -> Vec<u8> {
        let mut bytes = b"UNDOLOG1".to_vec();
        bytes.extend(4_u32.to_ne_bytes());
        bytes.extend(b"/a/b");
        for (offset, length, old) in records {
            bytes.extend(offset.to_ne_bytes());
            bytes.extend(length.to_ne_bytes());
            bytes.extend((old.len() as u64).to_ne_bytes());
            bytes.extend(*old);
        }
        bytes
    }

    #[test]
    fn changes_are_undone_newest_first() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // "abcdef" → overwrite "bc" with "XY" → cut to 2 → append "zzz"
        std::fs::write(file.path(), "aXzzz").unwrap();
        let (path, changes) = parse(&log(&[(1, 6, b"bc"), (2, 6, b"Ydef"), (2, 2, b"")])).unwrap();
        assert_eq!(path.to_str(), Some("/a/b"));
        undo(file.path(), &changes).unwrap();
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "abcdef");
    }

    #[test]
    fn torn_records_are_ignored() {
        let whole = log(&[(1, 6, b"bc"), (2, 6, b"Ydef")]);
        for cut in 1..28 {
            assert_eq!(parse(&whole[..whole.len() - cut]).unwrap().1.len(), 1, "{cut} bytes missing");
        }
        assert!(parse(b"something else").is_err());
    }
}
