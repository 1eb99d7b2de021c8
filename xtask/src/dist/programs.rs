//! Programs that only `dist` needs. Like `prerequisites`, installed by apt where that is possible; otherwise the error is
//! the command to run.

use std::process::Command;

use super::target::DistTarget;
use crate::prerequisites::is_root;
use crate::repository::{XtaskResult, find_in_path};
use crate::steps::Steps;

/// A program and the Debian package that contains it.
pub type PackagedProgram = (&'static str, &'static str);

const PACKING: &[PackagedProgram] = &[("dpkg-deb", "dpkg"), ("tar", "tar"), ("gzip", "gzip"), ("xz", "xz-utils")];
/// The musl build compiles C as well: SQLite, the allocator and the cryptography.
const PACKING_STATIC: &[PackagedProgram] =
    &[("musl-gcc", "musl-tools"), ("dpkg-deb", "dpkg"), ("tar", "tar"), ("gzip", "gzip"), ("xz", "xz-utils")];

pub fn needed_for(target: DistTarget) -> &'static [PackagedProgram] {
    match target {
        DistTarget::Musl => PACKING_STATIC,
        DistTarget::Gnu => PACKING,
    }
}

pub fn ensure(needed: &[PackagedProgram], steps: &Steps) -> XtaskResult<()> {
    let packages = missing(needed, |program| find_in_path(program).is_some());
    if packages.is_empty() {
        return Ok(());
    }
    if find_in_path("apt-get").is_none() || !is_root() {
        return Err(advice(&packages));
    }
    steps.run("Updating the list of packages", apt_get().arg("update"))?;
    let label = format!("Installing {}", packages.join(", "));
    steps.run(&label, apt_get().args(["install", "-y", "--no-install-recommends"]).args(&packages))
}

fn missing(needed: &[PackagedProgram], is_present: impl Fn(&str) -> bool) -> Vec<&'static str> {
    needed.iter().filter(|(program, _)| !is_present(program)).map(|(_, package)| *package).collect()
}

fn advice(packages: &[&str]) -> String {
    format!(
        "missing packages: {0}. Run this and try again:\n    \
         sudo apt-get update && sudo apt-get install -y --no-install-recommends {0}",
        packages.join(" ")
    )
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        let has_all_but = |absent: &'static str| move |program: &str| program != absent;
        assert_eq!(missing(PACKING_STATIC, has_all_but("musl-gcc")), ["musl-tools"]);
        assert!(missing(needed_for(DistTarget::Gnu), has_all_but("musl-gcc")).is_empty());
        assert!(advice(&["musl-tools", "dpkg"]).ends_with("--no-install-recommends musl-tools dpkg"));
    }
}
