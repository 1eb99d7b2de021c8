//! `cargo xtask dist --check`: tries the packages in `target/dist` on a new Debian that has nothing else: no compiler,
//! no Rust, no Node.js, no certificates. Each package has to install, serve within ten seconds, and stop.
//!
//! The Debian is a folder; programs run in it by chroot, in namespaces of their own, so that nothing stays mounted and
//! no process is left however the check ends. Start at [`command`]; `clean_root.rs` has the folder, `server.rs` the
//! server in it.

mod clean_root;
mod http;
mod mirror;
mod package;
mod report;
mod server;

use std::path::Path;
use std::process::ExitCode;

use super::source::ReleaseSource;
use super::target::DistTarget;
use super::{checksums, programs};
use crate::clis;
use crate::prerequisites::is_root;
use crate::progress::TextOutput;
use crate::repository::{Repository, XtaskResult};
use crate::steps::Steps;
use package::TriedPackage;
use report::CheckReport;

const PROGRAMS: &[programs::PackagedProgram] =
    &[("debootstrap", "debootstrap"), ("unshare", "util-linux"), ("setpriv", "util-linux")];

pub fn command(repository: &Repository, folder: &Path, target: DistTarget) -> XtaskResult<ExitCode> {
    if !is_root() {
        return Err("--check runs the packages by chroot, which needs root".to_owned());
    }
    let version = ReleaseSource::read(repository.root())?.version;
    let packages = [TriedPackage::archive(folder, target, &version), TriedPackage::deb(folder, target, &version)];
    if let Some(missing) = packages.iter().find(|package| !package.file.is_file()) {
        return Err(format!("{} does not exist; run `cargo xtask dist` first", missing.file.display()));
    }
    let steps = Steps::open(repository, "dist-check", TextOutput::Stdout)?;
    programs::ensure(PROGRAMS, &steps)?;
    let debian = clean_root::cached(&steps)?;
    let copies = folder.with_file_name("dist-check");
    clis::sweep(&copies)?;
    let mut report = CheckReport::new(&steps);
    report.add("checksums", checksums::verify(folder, &steps));
    for package in &packages {
        package.check(&debian, &copies, &version, &mut report)?;
    }
    let totals = report.finish();
    Ok(if totals.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
