//! The real MCP servers, MCP clients and conformance suite that some tests drive: their versions, their folder, and
//! their installation.
//!
//! As with the CLIs (`clis.rs`), they are installed once, with npm and pip, into the user's cache and never into the
//! repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clis::{self, PinnedPackage, cache, platform, publish, remove, sweep};
use crate::repository::XtaskResult;
use crate::steps::Steps;

/// The only place to change a version. `docs/mcp.md` says what these are for.
const NODE_VERSION: &str = "22.23.3";
const CONFORMANCE: PinnedPackage =
    PinnedPackage { name: "@modelcontextprotocol/conformance", version: "0.2.0-alpha.12" };
const EVERYTHING: PinnedPackage =
    PinnedPackage { name: "@modelcontextprotocol/server-everything", version: "2026.8.31" };
const FILESYSTEM: PinnedPackage =
    PinnedPackage { name: "@modelcontextprotocol/server-filesystem", version: "2026.8.31" };
const INSPECTOR: PinnedPackage = PinnedPackage { name: "@modelcontextprotocol/inspector", version: "2.12.0" };
/// The TypeScript SDK: version 1 is one package, version 2 several. The benchmark's servers for comparison use them too,
/// with the web server from their documentation.
const LIBRARIES: [PinnedPackage; 5] = [
    PinnedPackage { name: "@modelcontextprotocol/sdk", version: "1.32.2" },
    PinnedPackage { name: "@modelcontextprotocol/client", version: "2.4.0" },
    PinnedPackage { name: "@modelcontextprotocol/server", version: "2.4.0" },
    PinnedPackage { name: "@modelcontextprotocol/node", version: "2.1.2" },
    PinnedPackage { name: "express", version: "5.3.0" },
];
/// With the SDK, which decides the protocol revisions that the servers support.
const PYTHON: [PinnedPackage; 3] = [
    PinnedPackage { name: "mcp", version: "2.3.0" },
    PinnedPackage { name: "mcp-server-time", version: "2026.10.19" },
    PinnedPackage { name: "mcp-server-git", version: "2026.10.19" },
];
/// Version 1 of the SDK; the two cannot share one virtual environment.
const PYTHON1: [PinnedPackage; 1] = [PinnedPackage { name: "mcp", version: "1.30.0" }];

#[derive(Debug, PartialEq, Eq)]
pub struct InstalledMcpServers {
    /// The suite needs version 22, which may be newer than the system's.
    node: PathBuf,
    conformance: PathBuf,
    everything: PathBuf,
    filesystem: PathBuf,
    inspector: PathBuf,
    /// The folder where Node.js finds the SDK.
    modules: PathBuf,
    /// From the virtual environment with the Python servers, which run as its modules.
    python: PathBuf,
    /// From the virtual environment with version 1 of the SDK.
    python1: PathBuf,
}

impl InstalledMcpServers {
    /// Installs them unless they are installed.
    pub fn install(steps: &Steps) -> XtaskResult<Self> {
        let cache = cache()?;
        let folder = cache.join(folder_name());
        if let Ok(found) = Self::find(&folder) {
            return Ok(found);
        }
        steps.log(&format!("installing the MCP servers into {}", folder.display()));
        sweep(&cache)?;
        let fresh = clis::fresh(&cache, &folder_name());
        let installed =
            install_into(&fresh, steps).and_then(|()| Self::find(&fresh)).and_then(|_| publish(&fresh, &folder));
        if fresh.exists() {
            remove(&fresh)?;
        }
        installed.and_then(|()| Self::find(&folder))
    }

    /// In the variables that `testkit::programs` reads.
    pub fn pass_to(&self, command: &mut Command) {
        command.env("GREENROOM_TEST_MCP_NODE", &self.node);
        command.env("GREENROOM_TEST_MCP_CONFORMANCE", &self.conformance);
        command.env("GREENROOM_TEST_MCP_EVERYTHING", &self.everything);
        command.env("GREENROOM_TEST_MCP_FILESYSTEM", &self.filesystem);
        command.env("GREENROOM_TEST_MCP_INSPECTOR", &self.inspector);
        command.env("GREENROOM_TEST_MCP_MODULES", &self.modules);
        command.env("GREENROOM_TEST_MCP_PYTHON", &self.python);
        command.env("GREENROOM_TEST_MCP_PYTHON1", &self.python1);
    }

    fn find(folder: &Path) -> XtaskResult<Self> {
        let file = |path: PathBuf| match path.is_file() {
            true => Ok(path),
            false => Err(format!(
                "{} is missing; remove {} and try again with a network that npm and pip can use",
                path.display(),
                folder.display()
            )),
        };
        let modules = folder.join("node_modules");
        let script = |package: &PinnedPackage| file(modules.join(package.name).join("dist/index.js"));
        for library in LIBRARIES {
            file(modules.join(library.name).join("package.json"))?;
        }
        Ok(Self {
            node: file(modules.join(node_package()?).join("bin/node"))?,
            conformance: script(&CONFORMANCE)?,
            everything: script(&EVERYTHING)?,
            filesystem: script(&FILESYSTEM)?,
            inspector: file(modules.join(INSPECTOR.name).join("clients/launcher/build/index.js"))?,
            python: file(folder.join("venv/bin/python"))?,
            python1: file(folder.join("venv1/bin/python"))?,
            modules,
        })
    }
}

/// The package with the program itself; the one named `node` would download it in an install script.
fn node_package() -> XtaskResult<String> {
    Ok(format!("node-{}", platform(std::env::consts::OS, std::env::consts::ARCH)?))
}

/// Each combination of versions has its own folder.
fn folder_name() -> String {
    let versions: Vec<&str> = from_npm().chain(PYTHON).chain(PYTHON1).map(|package| package.version).collect();
    format!("mcp-{NODE_VERSION}-{}", versions.join("-"))
}

fn from_npm<'a>() -> impl Iterator<Item = PinnedPackage<'a>> {
    [CONFORMANCE, EVERYTHING, FILESYSTEM, INSPECTOR].into_iter().chain(LIBRARIES)
}

fn install_into(folder: &Path, steps: &Steps) -> XtaskResult<()> {
    let node = node_package()?;
    let node = PinnedPackage { name: &node, version: NODE_VERSION };
    let packages: Vec<PinnedPackage<'_>> = from_npm().chain([node]).collect();
    clis::npm_install("Installing the MCP servers", folder, &packages, steps)?;
    let label = "Installing the Python MCP servers";
    pip_install(label, &folder.join("venv"), &PYTHON, steps)?;
    pip_install(label, &folder.join("venv1"), &PYTHON1, steps)
}

/// Installs packages into a virtual environment of their own. It may be renamed: run them as modules, because scripts name
/// their folder.
pub fn pip_install(label: &str, venv: &Path, packages: &[PinnedPackage<'_>], steps: &Steps) -> XtaskResult<()> {
    steps.run(label, Command::new("python3").args(["-m", "venv"]).arg(venv))?;
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    pip.args(packages.iter().map(|package| format!("{}=={}", package.name, package.version)));
    steps.run(label, &mut pip)?;
    fs::metadata(venv).map(drop).map_err(|error| format!("cannot read {}: {error}", venv.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_installation_is_not_found() {
        let folder = std::env::temp_dir().join(format!("xtask-mcp-{}", std::process::id()));
        let node = node_package().unwrap();
        let programs = [
            format!("node_modules/{node}/bin/node"),
            format!("node_modules/{}/dist/index.js", CONFORMANCE.name),
            format!("node_modules/{}/dist/index.js", EVERYTHING.name),
            format!("node_modules/{}/dist/index.js", FILESYSTEM.name),
            format!("node_modules/{}/clients/launcher/build/index.js", INSPECTOR.name),
            "venv/bin/python".to_owned(),
            "venv1/bin/python".to_owned(),
        ];
        let libraries = LIBRARIES.map(|library| format!("node_modules/{}/package.json", library.name));
        for file in programs.iter().chain(&libraries) {
            assert!(InstalledMcpServers::find(&folder).unwrap_err().contains("is missing"));
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = InstalledMcpServers::find(&folder).unwrap();
        assert!(found.python.ends_with("venv/bin/python"));
        let mut command = Command::new("true");
        found.pass_to(&mut command);
        assert_eq!(command.get_envs().count(), programs.len() + 1, "the programs and the folder of the SDK");
        fs::remove_dir_all(&folder).unwrap();
    }
}
