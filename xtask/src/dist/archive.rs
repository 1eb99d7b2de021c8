//! Packs the tar.gz: the binary and what belongs to it, without a folder, so that `./greenroom` works where it was
//! unpacked. The same files give the same bytes.

use std::path::Path;
use std::process::Command;

use super::source::ReleaseSource;
use super::target::DistTarget;
use super::{UNIT, files};
use crate::repository::{Repository, XtaskResult};
use crate::steps::Steps;

/// In the order of the archive.
const NAMES: [&str; 4] = ["LICENSE", "README.md", "greenroom", UNIT];

/// Returns the name of the file.
pub fn pack(
    repository: &Repository,
    target: DistTarget,
    source: &ReleaseSource,
    binary: &Path,
    folder: &Path,
    steps: &Steps,
) -> XtaskResult<String> {
    let (root, staging) = (repository.root(), folder.with_file_name("dist-archive"));
    files::recreate(&staging)?;
    files::place(binary, &staging.join("greenroom"), 0o755)?;
    files::place(&root.join("packaging").join(UNIT), &staging.join(UNIT), 0o644)?;
    for document in ["LICENSE", "README.md"] {
        files::place(&root.join(document), &staging.join(document), 0o644)?;
    }
    let name = target.archive_name(&source.version);
    steps.run("Packing the archive", &mut tar(&staging, source.timestamp, &folder.join(&name)))?;
    files::remove(&staging)?;
    Ok(name)
}

fn tar(staging: &Path, timestamp: u64, archive: &Path) -> Command {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{timestamp}"));
    // Without the name and the time that gzip would store.
    tar.arg("--use-compress-program=gzip -n -9");
    tar.arg("--file").arg(archive).arg("--directory").arg(staging).args(NAMES);
    tar
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let folder = std::env::temp_dir().join(format!("xtask-archive-{}", std::process::id()));
        let pack = |staging: &str, reversed: bool| {
            let staging = folder.join(staging);
            let mut names = NAMES;
            if reversed {
                names.reverse();
            }
            for (index, name) in names.iter().enumerate() {
                files::write(&staging.join(name), name.as_bytes(), 0o644).unwrap();
                let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000 * index as u64);
                fs::File::options().write(true).open(staging.join(name)).unwrap().set_modified(time).unwrap();
            }
            let archive = staging.with_extension("tar.gz");
            assert!(tar(&staging, 1_700_000_000, &archive).status().unwrap().success());
            archive
        };
        let (first, second) = (pack("first", false), pack("second", true));
        assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
        let listed = Command::new("tar").arg("--list").arg("--file").arg(&first).output().unwrap();
        assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().collect::<Vec<_>>(), NAMES);
        fs::remove_dir_all(&folder).unwrap();
    }
}
