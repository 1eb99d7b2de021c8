//! The web app: `cargo xtask web` builds it into `web/dist`, which the server's next build puts into the binary.
//!
//! Never a part of `cargo build` itself, which needs neither Node.js nor a network.

mod inputs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::prerequisites::{self, C_COMPILER, NODE};
use crate::progress::TextOutput;
use crate::repository::{BuildProfile, Repository, XtaskResult, find_in_path};
use crate::steps::Steps;

/// The browser that the tests drive has one of these names.
const BROWSERS: [&str; 2] = ["chromium", "chromium-browser"];
/// Which sources `web/dist` was built from. Not in `dist` itself, which goes into the binary.
const BUILT_FROM: &str = "node_modules/.built-from";

pub fn command(_: &[String]) -> XtaskResult<ExitCode> {
    let repository = Repository::locate()?;
    let steps = Steps::open(&repository, "web", TextOutput::Stderr)?;
    prerequisites::ensure(&[NODE], &steps)?;
    build(&repository, &steps)?;
    Ok(ExitCode::SUCCESS)
}

/// `cargo xtask screens`: the pictures in `docs/screens`, of the app as it is now.
pub fn screens_command(_: &[String]) -> XtaskResult<ExitCode> {
    let repository = Repository::locate()?;
    let steps = Steps::open(&repository, "screens", TextOutput::Stderr)?;
    prerequisites::ensure(&[NODE, C_COMPILER], &steps)?;
    let mut pictures = in_browser(&repository, "screens")?;
    build(&repository, &steps)?;
    steps.build("Building the server", &mut repository.build(BuildProfile::Debug, &["greenroom"], &["greenroom"]))?;
    steps.run("Taking the pictures", &mut pictures)?;
    steps.say("The pictures are in docs/screens. Look at them before you commit them.");
    Ok(ExitCode::SUCCESS)
}

/// Leaves `web/dist` alone when its sources have not changed: new files there make cargo compile the server again.
pub fn build(repository: &Repository, steps: &Steps) -> XtaskResult<()> {
    let web = folder(repository);
    install(repository, steps)?;
    let digest = inputs::digest(&web).map_err(|error| format!("cannot read the sources of the web app: {error}"))?;
    let built_from = web.join(BUILT_FROM);
    if web.join("dist/index.html").is_file() && fs::read_to_string(&built_from).is_ok_and(|built| built == digest) {
        return Ok(());
    }
    // Removed first: a build that fails halfway must not count as one.
    write(&built_from, b"")?;
    steps.run("Building the web app", npm(repository).args(["run", "build"]))?;
    write(&built_from, digest.as_bytes())
}

/// Exactly what the lock file names, unless that is installed.
pub fn install(repository: &Repository, steps: &Steps) -> XtaskResult<()> {
    let web = folder(repository);
    let (lock, installed) = (web.join("package-lock.json"), web.join("node_modules/.installed-lock.json"));
    let wanted = fs::read(&lock).map_err(|error| format!("cannot read {}: {error}", lock.display()))?;
    if fs::read(&installed).is_ok_and(|present| present == wanted) {
        return Ok(());
    }
    let mut npm = npm(repository);
    steps.run("Installing npm packages", npm.args(["ci", "--no-audit", "--no-fund", "--no-update-notifier"]))?;
    write(&installed, &wanted)
}

/// Types and lints.
pub fn check(repository: &Repository) -> Command {
    let mut npm = npm(repository);
    npm.args(["run", "check"]);
    npm
}

pub fn unit_tests(repository: &Repository) -> Command {
    let mut npm = npm(repository);
    npm.args(["run", "test"]);
    npm
}

/// The app in a real browser, against the real server from the test build.
pub fn browser_tests(repository: &Repository) -> XtaskResult<Command> {
    in_browser(repository, "e2e")
}

/// A script of `web/package.json` that drives the debug server in a real browser.
fn in_browser(repository: &Repository, script: &str) -> XtaskResult<Command> {
    let browser = find_browser().ok_or("no browser was found; install chromium")?;
    let mut npm = npm(repository);
    npm.args(["run", script]).env("GREENROOM_BIN", repository.binary(BuildProfile::Debug, "greenroom"));
    npm.env("GREENROOM_EMBEDS_UI", "1").env("CHROMIUM", browser);
    Ok(npm)
}

/// The development server, which rebuilds the app when a file changes. Without npm in between, which would be one more
/// process to end.
pub fn dev_server(repository: &Repository, server_url: &str) -> Command {
    let mut vite = Command::new("node");
    vite.current_dir(folder(repository)).args(["node_modules/vite/bin/vite.js", "--clearScreen", "false"]);
    vite.env("GREENROOM_URL", server_url);
    vite
}

pub fn find_browser() -> Option<PathBuf> {
    BROWSERS.iter().find_map(|name| find_in_path(name))
}

fn folder(repository: &Repository) -> PathBuf {
    repository.root().join("web")
}

fn npm(repository: &Repository) -> Command {
    let mut command = Command::new("npm");
    command.current_dir(folder(repository)).env("NO_COLOR", "1");
    command
}

fn write(path: &Path, content: &[u8]) -> XtaskResult<()> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(path, content)).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
