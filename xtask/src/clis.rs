//! The real CLIs that some tests and measurements drive: their versions, their folder, and their installation.
//!
//! They are installed once with npm into the user's cache, never into the repository. Tests get their paths in the
//! environment; such tests are a target that a plain `cargo test` leaves out, so that it needs no network.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::repository::{XtaskResult, cannot_run, variable};
use crate::steps::Steps;

/// The only place to change a version. Recorded transcripts and `docs/providers.md` describe what these versions do.
const CLAUDE: PinnedPackage<'_> = PinnedPackage { name: "@anthropic-ai/claude-code", version: "2.1.325" };
const CODEX: PinnedPackage<'_> = PinnedPackage { name: "@openai/codex", version: "0.166.0" };
const GEMINI: PinnedPackage<'_> = PinnedPackage { name: "@google/gemini-cli", version: "0.61.0" };

/// The CLIs do not start with an older one, or npm would choose other versions.
const OLDEST_NODE: u32 = 20;

/// Part of the name of a folder that is being filled, before the id of the process that fills it.
const PARTIAL: &str = ".partial-";

/// From npm or pip.
#[derive(Clone, Copy)]
pub struct PinnedPackage<'a> {
    pub name: &'a str,
    pub version: &'a str,
}

/// The programs themselves, not their launchers, which would be one more process to watch.
#[derive(Debug, PartialEq, Eq)]
pub struct InstalledClis {
    claude: PathBuf,
    codex: PathBuf,
    gemini: PathBuf,
}

impl InstalledClis {
    /// Installs them unless they are installed.
    pub fn install(steps: &Steps) -> XtaskResult<Self> {
        let cache = cache()?;
        let folder = cache.join(folder_name());
        if let Ok(found) = Self::find(&folder) {
            return Ok(found);
        }
        check_node()?;
        steps.log(&format!("installing the CLIs into {}", folder.display()));
        sweep(&cache)?;
        let fresh = fresh(&cache, &folder_name());
        let installed = npm_install("Installing the CLIs", &fresh, &[CLAUDE, CODEX, GEMINI], steps)
            .and_then(|()| Self::find(&fresh))
            .and_then(|_| publish(&fresh, &folder));
        if fresh.exists() {
            remove(&fresh)?;
        }
        installed.and_then(|()| Self::find(&folder))
    }

    /// In the variables that `testkit::programs` reads.
    pub fn pass_to(&self, command: &mut Command) {
        command.env("GREENROOM_TEST_CLAUDE", &self.claude);
        command.env("GREENROOM_TEST_CODEX", &self.codex);
        command.env("GREENROOM_TEST_GEMINI", &self.gemini);
    }

    fn find(folder: &Path) -> XtaskResult<Self> {
        let modules = folder.join("node_modules");
        let platform = platform(std::env::consts::OS, std::env::consts::ARCH)?;
        let beside =
            |package: &PinnedPackage<'_>, ending: &str| modules.join(format!("{}-{platform}{ending}", package.name));
        let claude = ["", "-musl"].map(|libc| beside(&CLAUDE, libc).join("claude"));
        let codex = folders(&beside(&CODEX, "").join("vendor")).into_iter().map(|target| target.join("bin/codex"));
        let gemini = modules.join(".bin/gemini");
        Ok(Self {
            claude: first_file(claude, &CLAUDE, folder)?,
            codex: first_file(codex, &CODEX, folder)?,
            gemini: first_file([gemini], &GEMINI, folder)?,
        })
    }
}

pub fn first_file(
    places: impl IntoIterator<Item = PathBuf>,
    package: &PinnedPackage<'_>,
    folder: &Path,
) -> XtaskResult<PathBuf> {
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        let (name, folder) = (package.name, folder.display());
        format!("{name} is not in {folder}; remove that folder and try again with a network that npm can use")
    })
}

pub fn folders(parent: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(parent).into_iter().flatten().flatten().map(|it| it.path()).collect();
    found.sort();
    found
}

/// In the user's folder, not in the repository, so that all checkouts share it.
pub fn cache() -> XtaskResult<PathBuf> {
    cache_of(variable("XDG_CACHE_HOME"), variable("HOME"))
}

/// A folder to fill before it is renamed to its final name.
pub fn fresh(cache: &Path, name: &str) -> PathBuf {
    cache.join(format!("{name}{PARTIAL}{}", std::process::id()))
}

fn cache_of(configured: Option<OsString>, home: Option<OsString>) -> XtaskResult<PathBuf> {
    let configured = configured.map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = configured.or_else(|| home.map(|home| PathBuf::from(home).join(".cache")));
    let cache = cache.ok_or("neither XDG_CACHE_HOME nor HOME is set, so there is no folder for the CLIs")?;
    Ok(cache.join("greenroom"))
}

/// Each combination of versions has its own folder.
fn folder_name() -> String {
    format!("clis-claude-{}-codex-{}-gemini-{}", CLAUDE.version, CODEX.version, GEMINI.version)
}

/// The ending of packages with native programs, such as `linux-x64`.
pub fn platform(system: &str, processor: &str) -> XtaskResult<String> {
    let system = match system {
        "linux" => "linux",
        "macos" => "darwin",
        other => return Err(format!("the CLIs are not available for {other}")),
    };
    let processor = match processor {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => return Err(format!("the CLIs are not available for {other}")),
    };
    Ok(format!("{system}-{processor}"))
}

fn check_node() -> XtaskResult<()> {
    let mut node = Command::new("node");
    node.arg("--version");
    let output = node.output().map_err(|error| cannot_run(&node, &error))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match major(&version) {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => Err(format!("the CLIs need Node.js {OLDEST_NODE} or newer; `node --version` prints {version:?}")),
    }
}

fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Without the packages' install scripts: what they would build or download is not needed.
pub fn npm_install(label: &str, folder: &Path, packages: &[PinnedPackage<'_>], steps: &Steps) -> XtaskResult<()> {
    let cannot = |error: std::io::Error| format!("cannot write {}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(cannot)?;
    // Without this file npm would look for a package.json in the folders above.
    fs::write(folder.join("package.json"), "{\"private\": true}\n").map_err(cannot)?;
    let mut npm = Command::new("npm");
    npm.current_dir(folder).arg("install");
    npm.args(["--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--save-exact"]);
    npm.args(packages.iter().map(|package| format!("{}@{}", package.name, package.version)));
    steps.run(label, &mut npm)
}

/// Renames in one step, so that a folder of this name is always complete. Another run may have been faster.
pub fn publish(fresh: &Path, folder: &Path) -> XtaskResult<()> {
    match fs::rename(fresh, folder) {
        Err(_) if folder.is_dir() => Ok(()),
        renamed => {
            renamed.map_err(|error| format!("cannot rename {} to {}: {error}", fresh.display(), folder.display()))
        }
    }
}

/// Removes what killed runs left behind: most of a gigabyte each.
pub fn sweep(cache: &Path) -> XtaskResult<()> {
    let is_abandoned = |folder: &PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name.split_once(PARTIAL).is_some_and(|(_, id)| !Path::new("/proc").join(id).exists())
    };
    folders(cache).iter().filter(|folder| is_abandoned(folder)).try_for_each(|folder| remove(folder))
}

pub fn remove(folder: &Path) -> XtaskResult<()> {
    fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("xtask-clis-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn with(&self, file: &str) -> PathBuf {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn native_programs_are_found() {
        let folder = Folder::new("found");
        let platform = platform(std::env::consts::OS, std::env::consts::ARCH).unwrap();
        let modules = |path: &str| folder.with(&format!("node_modules/{path}"));
        let gemini = modules(".bin/gemini");
        let codex = modules(&format!("@openai/codex-{platform}/vendor/some-target/bin/codex"));
        modules("@anthropic-ai/claude-code/cli.js");
        let missing = InstalledClis::find(&folder.0).unwrap_err();
        assert!(missing.starts_with("@anthropic-ai/claude-code is not in "), "{missing}");
        let claude = modules(&format!("@anthropic-ai/claude-code-{platform}-musl/claude"));
        assert_eq!(InstalledClis::find(&folder.0), Ok(InstalledClis { claude, codex, gemini }));
    }

    #[test]
    fn the_cache_is_where_the_user_wants_it() {
        let cache = |configured: &str, home: &str| {
            let set = |value: &str| (!value.is_empty()).then(|| OsString::from(value));
            cache_of(set(configured), set(home))
        };
        assert_eq!(cache("/cache", "/me"), Ok("/cache/greenroom".into()));
        assert_eq!(cache("relative", "/me"), Ok("/me/.cache/greenroom".into()));
        assert_eq!(cache("", "/me"), Ok("/me/.cache/greenroom".into()));
        assert!(cache("", "").is_err());
    }

    #[test]
    fn packages_are_named_after_the_machine() {
        assert_eq!(platform("linux", "x86_64"), Ok("linux-x64".into()));
        assert_eq!(platform("macos", "aarch64"), Ok("darwin-arm64".into()));
        assert!(platform("linux", "riscv64").is_err() && platform("plan9", "x86_64").is_err());
    }

    #[test]
    fn the_version_of_node_is_read() {
        assert_eq!(major("v20.20.2"), Some(20));
        assert_eq!(major("20.20.2"), None);
        assert_eq!(major(""), None);
    }

    #[test]
    fn the_first_to_finish_wins() {
        let folder = Folder::new("publish");
        folder.with("fresh/a");
        folder.with("late/b");
        let place = folder.0.join("place");
        assert_eq!(publish(&folder.0.join("fresh"), &place), Ok(()));
        assert_eq!(publish(&folder.0.join("late"), &place), Ok(()));
        assert!(place.join("a").is_file() && !place.join("b").exists());
        assert!(publish(&folder.0.join("gone"), &folder.0.join("elsewhere")).is_err());
    }

    #[test]
    fn leftovers_of_killed_runs_are_removed() {
        let folder = Folder::new("sweep");
        let kept = [folder.with("clis-1/a"), folder.with(&format!("clis-1.partial-{}/a", std::process::id()))];
        let left = folder.with("clis-1.partial-999999999/a");
        assert_eq!(sweep(&folder.0), Ok(()));
        assert!(kept.iter().all(|file| file.is_file()) && !left.exists());
    }

    #[test]
    fn paths_are_passed_in_the_environment() {
        let clis = InstalledClis { claude: "c".into(), codex: "x".into(), gemini: "g".into() };
        let mut command = Command::new("true");
        clis.pass_to(&mut command);
        let names: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["GREENROOM_TEST_CLAUDE", "GREENROOM_TEST_CODEX", "GREENROOM_TEST_GEMINI"]);
    }
}
