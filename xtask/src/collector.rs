//! The OpenTelemetry collector that a test exports traces to: its version, its folder, and its installation.
//!
//! As with the CLIs (`clis.rs`), it is installed once, with pip, into the user's cache and never into the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clis::{self, PinnedPackage, cache, publish, remove, sweep};
use crate::mcp_servers::pip_install;
use crate::repository::XtaskResult;
use crate::steps::Steps;

/// The only place to change the version. It is a collector in Rust; the package has its program.
const ROTEL: PinnedPackage<'_> = PinnedPackage { name: "rotel", version: "0.0.1a15" };

#[derive(Debug, PartialEq, Eq)]
pub struct InstalledCollector {
    program: PathBuf,
}

impl InstalledCollector {
    /// Installs it unless it is installed.
    pub fn install(steps: &Steps) -> XtaskResult<Self> {
        let cache = cache()?;
        let name = format!("collector-{}", ROTEL.version);
        let folder = cache.join(&name);
        if let Ok(found) = Self::find(&folder) {
            return Ok(found);
        }
        steps.log(&format!("installing the collector into {}", folder.display()));
        sweep(&cache)?;
        let fresh = clis::fresh(&cache, &name);
        let installed = pip_install("Installing the collector", &fresh, &[ROTEL], steps)
            .and_then(|()| Self::find(&fresh))
            .and_then(|_| publish(&fresh, &folder));
        if fresh.exists() {
            remove(&fresh)?;
        }
        installed.and_then(|()| Self::find(&folder))
    }

    /// In the variable that `testkit::programs` reads.
    pub fn pass_to(&self, command: &mut Command) {
        command.env("GREENROOM_TEST_COLLECTOR", &self.program);
    }

    /// The folder of the packages is named after the version of Python.
    fn find(folder: &Path) -> XtaskResult<Self> {
        let libraries = clis::folders(&folder.join("lib"));
        let programs = libraries.into_iter().map(|python| python.join("site-packages/rotel/rotel-agent"));
        clis::first_file(programs, &ROTEL, folder).map(|program| Self { program })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_program_is_found_beside_any_python() {
        let folder = std::env::temp_dir().join(format!("xtask-collector-{}", std::process::id()));
        assert!(InstalledCollector::find(&folder).is_err());
        let package = folder.join("lib/python3.13/site-packages/rotel");
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("rotel-agent"), "").unwrap();
        let mut command = Command::new("true");
        InstalledCollector::find(&folder).unwrap().pass_to(&mut command);
        assert_eq!(command.get_envs().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
