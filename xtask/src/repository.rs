//! The repository: its root, its build folder, and how cargo is called from inside a cargo command.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The error is a sentence for the person at the terminal: what happened and what to do.
pub type XtaskResult<T> = Result<T, String>;

/// Switches for tests that no release has: planted bugs and the MCP conformance fixture. Each is off until an
/// environment variable turns it on.
pub const TEST_HOOKS: &str = "test-hooks";

pub struct Repository {
    root: PathBuf,
    target: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuildProfile {
    Debug,
    Release,
}

impl BuildProfile {
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Debug => &[],
            Self::Release => &["--release"],
        }
    }

    pub fn folder(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "release",
        }
    }
}

impl Repository {
    pub fn locate() -> XtaskResult<Self> {
        let root = find_root()?;
        let target = root.join(variable("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
        Ok(Self { root, target })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where logs go.
    pub fn logs(&self) -> PathBuf {
        self.target.join("xtask")
    }

    pub fn binary(&self, profile: BuildProfile, name: &str) -> PathBuf {
        self.target.join(profile.folder()).join(name)
    }

    pub fn cargo(&self) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root);
        command.env("CARGO_TARGET_DIR", &self.target);
        // `cargo run` describes xtask's own package in the environment. Some build scripts (ring's is one) watch these
        // names, and would rebuild whenever a build through xtask follows a build without it.
        for (name, _) in variables().filter(|(name, _)| describes_a_package(name)) {
            command.env_remove(name);
        }
        command
    }

    /// A build of the named binaries.
    pub fn build(&self, profile: BuildProfile, packages: &[&str], binaries: &[&str]) -> Command {
        let mut command = self.cargo();
        command.arg("build").args(profile.flags());
        for package in packages {
            command.args(["--package", package]);
        }
        for binary in binaries {
            command.args(["--bin", binary]);
        }
        command
    }

    /// The same build with its binaries in `target/<folder>`, so that they replace none of an ordinary build.
    /// Dependencies are shared with the ordinary build.
    pub fn build_into(&self, folder: &str, mut build: Command) -> Command {
        build.arg("--target-dir").arg(self.target.join(folder));
        build.env("CARGO_BUILD_BUILD_DIR", &self.target);
        build
    }

    pub fn binary_in(&self, folder: &str, profile: BuildProfile, name: &str) -> PathBuf {
        self.target.join(folder).join(profile.folder()).join(name)
    }

    /// One of our own programs, started in the root of the repository.
    pub fn program(&self, path: &Path) -> Command {
        let mut command = Command::new(path);
        command.current_dir(&self.root);
        command
    }
}

/// Becomes the program, so that every signal sent to xtask reaches it. Returns only when that failed.
pub fn become_program(command: &mut Command) -> String {
    let error = command.exec();
    cannot_run(command, &error)
}

pub fn cannot_run(command: &Command, error: &std::io::Error) -> String {
    format!("cannot run `{}`: {error}", spell(command))
}

pub fn spell(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

/// The running xtask. On Linux this works even after a build has replaced its file.
pub fn own_program() -> XtaskResult<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() {
        return Ok(running.to_path_buf());
    }
    std::env::current_exe().map_err(|error| format!("cannot find xtask's own program: {error}"))
}

/// The first file of this name in a folder of PATH.
pub fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = variable("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

pub fn variable(name: &str) -> Option<OsString> {
    variables().find(|(candidate, _)| candidate == name).map(|(_, value)| value)
}

#[expect(
    clippy::disallowed_methods,
    reason = "xtask is a tool, not the product, and this is the only place where it reads the environment"
)]
fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

fn describes_a_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME" || name == "CARGO"
}

/// Cargo sets the folder of the package it runs; without cargo, the folders above the current one are searched.
fn find_root() -> XtaskResult<PathBuf> {
    let manifest = variable("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = std::env::current_dir().map_err(|error| format!("cannot read the current folder: {error}"))?;
    manifest
        .as_deref()
        .unwrap_or(&here)
        .ancestors()
        .find(|folder| folder.join("xtask/Cargo.toml").is_file())
        .map(Path::to_path_buf)
        .ok_or_else(|| format!("{} is not inside the repository; run `cargo xtask` from within it", here.display()))
}
