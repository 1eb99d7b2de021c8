//! Builds the binary of a release.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::elf;
use super::source::ReleaseSource;
use super::target::DistTarget;
use crate::repository::{BuildProfile, Repository, XtaskResult, variable};
use crate::steps::Steps;

const PROFILE: BuildProfile = BuildProfile::Release;
/// Between the words of `CARGO_ENCODED_RUSTFLAGS`, so that paths may contain spaces.
const SEPARATOR: &str = "\x1f";

/// Exactly the versions of the lock file, and no features: those are for tests.
pub fn build(
    repository: &Repository,
    target: DistTarget,
    source: &ReleaseSource,
    steps: &Steps,
) -> XtaskResult<PathBuf> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", target.triple()]).current_dir(repository.root());
    steps.run(&format!("Adding the Rust target {}", target.triple()), &mut rustup)?;
    let mut build = repository.build(PROFILE, &["greenroom"], &["greenroom"]);
    build.args(["--locked", "--target", target.triple()]);
    build.env("CARGO_ENCODED_RUSTFLAGS", flags(repository.root(), cargo_home().as_deref()));
    source.name_commit(&mut build);
    steps.build(&format!("Building {}", source.version_line()), &mut build)?;
    let binary = repository.binary_in(target.triple(), PROFILE, "greenroom");
    let content = fs::read(&binary).map_err(|error| format!("cannot read {}: {error}", binary.display()))?;
    if target.is_static() && elf::needs_loader(&content)? {
        return Err(format!("{} needs shared libraries; a dependency must have linked one", binary.display()));
    }
    Ok(binary)
}

/// Panic messages contain the paths of sources: without the folders of the build machine, its user's name stays private
/// and every machine builds the same bytes.
fn flags(root: &Path, cargo_home: Option<&Path>) -> OsString {
    let mut flags = OsString::new();
    for (folder, name) in [(Some(root), "/greenroom"), (cargo_home, "/cargo")] {
        if let Some(folder) = folder {
            let separator = if flags.is_empty() { "" } else { SEPARATOR };
            flags.push(format!("{separator}--remap-path-prefix="));
            flags.push(folder);
            flags.push("=");
            flags.push(name);
        }
    }
    flags
}

fn cargo_home() -> Option<PathBuf> {
    let default = || variable("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    variable("CARGO_HOME").map(PathBuf::from).or_else(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_machine_are_replaced() {
        let both = flags(Path::new("/me/my code"), Some(Path::new("/me/.cargo")));
        let expected = "--remap-path-prefix=/me/my code=/greenroom\x1f--remap-path-prefix=/me/.cargo=/cargo";
        assert_eq!(both, expected);
        assert_eq!(flags(Path::new("/src"), None), "--remap-path-prefix=/src=/greenroom");
    }
}
