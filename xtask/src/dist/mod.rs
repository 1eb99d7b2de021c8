//! `cargo xtask dist`: a release in `target/dist`: a tar.gz and a .deb with the same binary, the systemd unit, and
//! checksums. `--check` tries both on a system that has nothing else.
//!
//! What goes into the packages beside the binary is in `packaging/`. Must not know how the server works. Start at
//! [`command`]; `binary.rs` builds, `archive.rs` and `deb.rs` pack, `check` tries the result.

mod archive;
mod binary;
mod check;
mod checksums;
mod deb;
mod elf;
mod files;
mod programs;
mod source;
mod target;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::prerequisites::{self, C_COMPILER, GIT, NODE};
use crate::progress::TextOutput;
use crate::repository::{Repository, XtaskResult};
use crate::steps::Steps;
use crate::web;
pub use source::ReleaseSource;
use target::DistTarget;

const UNIT: &str = "greenroom.service";

#[derive(Debug, PartialEq, Eq)]
struct DistRequest {
    target: DistTarget,
    is_check: bool,
}

pub fn command(arguments: &[String]) -> XtaskResult<ExitCode> {
    let request = parse(arguments)?;
    let repository = Repository::locate()?;
    let folder = output_folder(&repository);
    if request.is_check {
        return check::command(&repository, &folder, request.target);
    }
    let steps = Steps::open(&repository, "dist", TextOutput::Stderr)?;
    prerequisites::ensure(&[C_COMPILER, GIT, NODE], &steps)?;
    programs::ensure(programs::needed_for(request.target), &steps)?;
    let source = ReleaseSource::read(repository.root())?;
    web::build(&repository, &steps)?;
    let binary = binary::build(&repository, request.target, &source, &steps)?;
    // Emptied, so that the checksums cover one build only.
    files::recreate(&folder)?;
    let packaging = repository.root().join("packaging");
    files::place(&packaging.join(UNIT), &folder.join(UNIT), 0o644)?;
    let archive = archive::pack(&repository, request.target, &source, &binary, &folder, &steps)?;
    let deb = deb::pack(&repository, request.target, &source, &binary, &folder, &steps)?;
    checksums::write(&folder, &[&archive, &deb, UNIT], &steps)?;
    steps.say(&summary(&folder, &binary, &[&archive, &deb]));
    Ok(ExitCode::SUCCESS)
}

fn parse(arguments: &[String]) -> XtaskResult<DistRequest> {
    let mut request = DistRequest { target: DistTarget::Musl, is_check: false };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--check" => request.is_check = true,
            "--target" => {
                request.target = DistTarget::parse(words.next().map_or("", String::as_str))?;
            }
            other => return Err(format!("unknown argument `{other}`; use --target TRIPLE or --check")),
        }
    }
    Ok(request)
}

fn output_folder(repository: &Repository) -> PathBuf {
    repository.logs().with_file_name("dist")
}

fn summary(folder: &Path, binary: &Path, packages: &[&str]) -> String {
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let mut lines = vec![format!("binary: {}", megabytes(size(binary)))];
    lines.extend(packages.iter().map(|name| format!("{name}: {}", megabytes(size(&folder.join(name))))));
    lines.push(format!("All files are in {}. `cargo xtask dist --check` tries them.", folder.display()));
    lines.join("\n")
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> XtaskResult<DistRequest> {
        parse(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn the_static_binary_is_the_default() {
        let request = |target, is_check| Ok(DistRequest { target, is_check });
        assert_eq!(parse_words(&[]), request(DistTarget::Musl, false));
        assert_eq!(parse_words(&["--check"]), request(DistTarget::Musl, true));
        assert_eq!(parse_words(&["--target", "x86_64-unknown-linux-gnu"]), request(DistTarget::Gnu, false));
        assert!(parse_words(&["--target"]).is_err() && parse_words(&["--fast"]).is_err());
        assert!(parse_words(&["--target", "armv7-unknown-linux-gnueabihf"]).is_err());
    }

    #[test]
    fn sizes_are_for_people() {
        assert_eq!(megabytes(12_345_678), "12.3 MB");
        assert_eq!(megabytes(99_999), "0.0 MB");
    }
}
