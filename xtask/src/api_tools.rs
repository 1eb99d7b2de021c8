//! The linter, the client generators and the request generator of the stage `api`: their versions, their folder, and their
//! installation.
//!
//! As with the CLIs (`clis.rs`), they are installed once, with npm and pip, into the user's cache and never into the
//! repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clis::{self, PinnedPackage, cache, publish, remove, sweep};
use crate::mcp_servers::pip_install;
use crate::repository::XtaskResult;
use crate::steps::Steps;

const LABEL: &str = "Installing the tools for the API";

/// The only place to change a version. `crates/testkit/tests/api` says what these are for.
const NPM: [PinnedPackage<'static>; 5] = [
    PinnedPackage { name: "@redocly/cli", version: "2.77.0" },
    PinnedPackage { name: "openapi-typescript", version: "7.13.0" },
    PinnedPackage { name: "openapi-fetch", version: "0.17.0" },
    PinnedPackage { name: "typescript", version: "5.9.3" },
    PinnedPackage { name: "@types/node", version: "22.20.5" },
];
const PYTHON: [PinnedPackage<'static>; 4] = [
    PinnedPackage { name: "schemathesis", version: "4.32.5" },
    PinnedPackage { name: "openapi-python-client", version: "0.29.1" },
    PinnedPackage { name: "httpx-sse", version: "0.4.3" },
    PinnedPackage { name: "mypy", version: "2.4.1" },
];

#[derive(Debug, PartialEq, Eq)]
pub struct InstalledApiTools {
    /// The folder where Node.js finds the packages.
    modules: PathBuf,
    /// From the virtual environment with the Python packages, which run as its modules.
    python: PathBuf,
}

impl InstalledApiTools {
    /// Installs them unless they are installed.
    pub fn install(steps: &Steps) -> XtaskResult<Self> {
        let (cache, name) = (cache()?, folder_name());
        let folder = cache.join(&name);
        if let Ok(found) = Self::find(&folder) {
            return Ok(found);
        }
        steps.log(&format!("installing the tools for the API into {}", folder.display()));
        sweep(&cache)?;
        let fresh = clis::fresh(&cache, &name);
        let installed = clis::npm_install(LABEL, &fresh, &NPM, steps)
            .and_then(|()| pip_install(LABEL, &fresh.join("venv"), &PYTHON, steps))
            .and_then(|()| Self::find(&fresh))
            .and_then(|_| publish(&fresh, &folder));
        if fresh.exists() {
            remove(&fresh)?;
        }
        installed.and_then(|()| Self::find(&folder))
    }

    /// In the variables that `testkit::programs` reads.
    pub fn pass_to(&self, command: &mut Command) {
        command.env("GREENROOM_TEST_API_MODULES", &self.modules);
        command.env("GREENROOM_TEST_API_PYTHON", &self.python);
    }

    fn find(folder: &Path) -> XtaskResult<Self> {
        let (modules, python) = (folder.join("node_modules"), folder.join("venv/bin/python"));
        let packages = NPM.map(|package| modules.join(package.name).join("package.json"));
        let missing = packages.iter().chain([&python]).find(|file| !file.is_file()).cloned();
        match missing {
            None => Ok(Self { modules, python }),
            Some(missing) => Err(format!(
                "{} is missing; remove {} and try again with a network that npm and pip can use",
                missing.display(),
                folder.display()
            )),
        }
    }
}

/// Each combination of versions has its own folder.
fn folder_name() -> String {
    let versions: Vec<&str> = NPM.iter().chain(&PYTHON).map(|package| package.version).collect();
    format!("api-{}", versions.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_incomplete_installation_is_not_found() {
        let folder = std::env::temp_dir().join(format!("xtask-api-{}", std::process::id()));
        let packages = NPM.map(|package| format!("node_modules/{}/package.json", package.name));
        for file in packages.iter().map(String::as_str).chain(["venv/bin/python"]) {
            assert!(InstalledApiTools::find(&folder).unwrap_err().contains("is missing"));
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert!(InstalledApiTools::find(&folder).unwrap().python.ends_with("venv/bin/python"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
