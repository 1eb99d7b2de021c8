//! Where the repository and its build output are, and how cargo is called from inside a cargo
//! command.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The error is a sentence for the person at the terminal that says what to do.
pub type Outcome<T> = Result<T, String>;

pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

/// How a build is optimised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// As `cargo test` builds, so that its dependencies are not built twice.
    Test,
    Release,
}

impl Profile {
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Test => &[],
            Self::Release => &["--release"],
        }
    }

    pub fn folder(self) -> &'static str {
        match self {
            Self::Test => "debug",
            Self::Release => "release",
        }
    }
}

impl Workspace {
    pub fn locate() -> Outcome<Self> {
        let root = find_root()?;
        let target = root.join(variable("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
        Ok(Self { root, target })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn binary(&self, profile: Profile, name: &str) -> PathBuf {
        self.target.join(profile.folder()).join(name)
    }

    pub fn cargo(&self) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root);
        command.env("CARGO_TARGET_DIR", &self.target);
        // `cargo run` describes xtask's own package in the environment. Some build scripts (ring's,
        // for one) watch these names, and would rebuild every time a build through xtask follows a
        // build without it.
        for (name, _) in variables().filter(|(name, _)| describes_a_package(name)) {
            command.env_remove(name);
        }
        command
    }

    /// Builds the named binaries.
    pub fn build(&self, profile: Profile, packages: &[&str], binaries: &[&str]) -> Outcome<()> {
        let mut command = self.cargo();
        command.arg("build").args(profile.flags());
        for package in packages {
            command.args(["--package", package]);
        }
        for binary in binaries {
            command.args(["--bin", binary]);
        }
        succeed(&mut command)
    }

    /// Builds the server with a feature that no release has. It lies in a folder of its own, named
    /// after the feature, so that nobody serves it by mistake.
    pub fn build_apart(&self, profile: Profile, packages: &[&str], feature: &str) -> Outcome<PathBuf> {
        let folder = self.target.join(feature);
        let mut command = self.cargo();
        command.arg("build").args(profile.flags());
        command.args(["--bin", "greenroom", "--features"]).arg(format!("greenroom/{feature}"));
        for package in packages {
            command.args(["--package", package]);
        }
        command.arg("--target-dir").arg(&folder);
        // Only the finished binary goes to the folder; the dependencies are shared with the ordinary
        // build.
        command.env("CARGO_BUILD_BUILD_DIR", &self.target);
        succeed(&mut command)?;
        Ok(folder.join(profile.folder()).join("greenroom"))
    }

    /// A program of ours, started in the root of the repository.
    pub fn program(&self, path: &Path) -> Command {
        let mut command = Command::new(path);
        command.current_dir(&self.root);
        command
    }
}

/// Runs to the end with the terminal's own input and output.
pub fn succeed(command: &mut Command) -> Outcome<()> {
    let status = command.status().map_err(|error| cannot_run(command, &error))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{}` ended with {status}", spell(command)))
}

/// Becomes the program, so that every signal sent to xtask reaches it. Returns only when that
/// failed.
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
    reason = "xtask is a tool, not the product, and this is its one door to the environment"
)]
fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

fn describes_a_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME" || name == "CARGO"
}

/// Cargo names the folder of the package it runs; without cargo the root is looked for upwards.
fn find_root() -> Outcome<PathBuf> {
    let manifest = variable("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = std::env::current_dir().map_err(|error| format!("cannot tell the current folder: {error}"))?;
    manifest
        .as_deref()
        .unwrap_or(&here)
        .ancestors()
        .find(|folder| folder.join("xtask/Cargo.toml").is_file())
        .map(Path::to_path_buf)
        .ok_or_else(|| format!("{} is not inside the repository; run `cargo xtask` from within it", here.display()))
}
