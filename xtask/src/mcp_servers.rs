//! The real MCP servers and clients and the conformance suite that some tests drive: which versions,
//! where they are kept, how they come there.
//!
//! As with the CLIs (`clis.rs`): installed once, with npm and pip from wherever those are
//! configured to look, into the user's cache and never into the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clis::{self, Package, cache, platform, publish, remove, sweep};
use crate::workspace::{Outcome, succeed};

/// The one place to change a version. `docs/mcp.md` tells what these are for.
const NODE_VERSION: &str = "22.23.3";
const CONFORMANCE: Package = Package { name: "@modelcontextprotocol/conformance", version: "0.2.0-alpha.12" };
const EVERYTHING: Package = Package { name: "@modelcontextprotocol/server-everything", version: "2026.8.31" };
const FILESYSTEM: Package = Package { name: "@modelcontextprotocol/server-filesystem", version: "2026.8.31" };
const INSPECTOR: Package = Package { name: "@modelcontextprotocol/inspector", version: "2.12.0" };
/// The TypeScript libraries: the first generation in one package, the second in several. What the
/// benchmark compares with is made from them too, with a web server as their documents use it.
const LIBRARIES: [Package; 5] = [
    Package { name: "@modelcontextprotocol/sdk", version: "1.32.2" },
    Package { name: "@modelcontextprotocol/client", version: "2.4.0" },
    Package { name: "@modelcontextprotocol/server", version: "2.4.0" },
    Package { name: "@modelcontextprotocol/node", version: "2.1.2" },
    Package { name: "express", version: "5.3.0" },
];
/// With the library that decides which revisions of the protocol they speak.
const PYTHON: [Package; 3] = [
    Package { name: "mcp", version: "2.3.0" },
    Package { name: "mcp-server-time", version: "2026.10.19" },
    Package { name: "mcp-server-git", version: "2026.10.19" },
];
/// The library's first generation; the two do not fit into one environment.
const PYTHON1: [Package; 1] = [Package { name: "mcp", version: "1.30.0" }];

#[derive(Debug, PartialEq, Eq)]
pub struct McpServers {
    /// Newer than the system's may be: the suite wants 22.
    node: PathBuf,
    conformance: PathBuf,
    everything: PathBuf,
    filesystem: PathBuf,
    inspector: PathBuf,
    /// The folder where Node finds the libraries.
    modules: PathBuf,
    /// Of the environment that the Python servers are in; they are run as its modules.
    python: PathBuf,
    /// Of the environment with the library's first generation.
    python1: PathBuf,
}

impl McpServers {
    /// Installs them if they are not there yet.
    pub fn install() -> Outcome<Self> {
        let cache = cache()?;
        let folder = cache.join(folder_name());
        if let Ok(found) = Self::find(&folder) {
            return Ok(found);
        }
        println!("installing MCP servers into {}", folder.display());
        sweep(&cache)?;
        let fresh = clis::fresh(&cache, &folder_name());
        let installed = install_into(&fresh).and_then(|()| Self::find(&fresh)).and_then(|_| publish(&fresh, &folder));
        if fresh.exists() {
            remove(&fresh)?;
        }
        installed.and_then(|()| Self::find(&folder))
    }

    /// By the names that `testkit::programs` knows.
    pub fn hand_to(&self, command: &mut Command) {
        command.env("GREENROOM_TEST_MCP_NODE", &self.node);
        command.env("GREENROOM_TEST_MCP_CONFORMANCE", &self.conformance);
        command.env("GREENROOM_TEST_MCP_EVERYTHING", &self.everything);
        command.env("GREENROOM_TEST_MCP_FILESYSTEM", &self.filesystem);
        command.env("GREENROOM_TEST_MCP_INSPECTOR", &self.inspector);
        command.env("GREENROOM_TEST_MCP_MODULES", &self.modules);
        command.env("GREENROOM_TEST_MCP_PYTHON", &self.python);
        command.env("GREENROOM_TEST_MCP_PYTHON1", &self.python1);
    }

    fn find(folder: &Path) -> Outcome<Self> {
        let file = |path: PathBuf| match path.is_file() {
            true => Ok(path),
            false => Err(format!(
                "{} is not there; remove {} and try again, with a network that npm and pip can use",
                path.display(),
                folder.display()
            )),
        };
        let modules = folder.join("node_modules");
        let script = |package: &Package| file(modules.join(package.name).join("dist/index.js"));
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

/// The package that carries the program itself; the one named `node` would fetch it in a script.
fn node_package() -> Outcome<String> {
    Ok(format!("node-{}", platform(std::env::consts::OS, std::env::consts::ARCH)?))
}

/// Another version is another folder.
fn folder_name() -> String {
    let versions: Vec<&str> = of_npm().chain(PYTHON).chain(PYTHON1).map(|package| package.version).collect();
    format!("mcp-{NODE_VERSION}-{}", versions.join("-"))
}

fn of_npm<'a>() -> impl Iterator<Item = Package<'a>> {
    [CONFORMANCE, EVERYTHING, FILESYSTEM, INSPECTOR].into_iter().chain(LIBRARIES)
}

fn install_into(folder: &Path) -> Outcome<()> {
    let node = node_package()?;
    let node = Package { name: &node, version: NODE_VERSION };
    let packages: Vec<Package<'_>> = of_npm().chain([node]).collect();
    clis::npm_install(folder, &packages)?;
    pip_install(&folder.join("venv"), &PYTHON)?;
    pip_install(&folder.join("venv1"), &PYTHON1)
}

fn pip_install(venv: &Path, packages: &[Package<'_>]) -> Outcome<()> {
    succeed(Command::new("python3").args(["-m", "venv"]).arg(venv))?;
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    pip.args(packages.iter().map(|package| format!("{}=={}", package.name, package.version)));
    succeed(&mut pip)?;
    fs::metadata(venv).map(drop).map_err(|error| format!("cannot read {}: {error}", venv.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_or_none() {
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
            assert!(McpServers::find(&folder).unwrap_err().contains("is not there"));
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = McpServers::find(&folder).unwrap();
        assert!(found.python.ends_with("venv/bin/python"));
        let mut command = Command::new("true");
        found.hand_to(&mut command);
        assert_eq!(command.get_envs().count(), programs.len() + 1, "and the folder of the libraries");
        fs::remove_dir_all(&folder).unwrap();
    }
}
