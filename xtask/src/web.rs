//! The web app: `cargo xtask web` builds it into `web/dist`, from where the server's next build takes it into the binary.
//!
//! Never a part of `cargo build` itself, which needs neither Node.js nor a network.

use std::fs;
use std::io::stdout;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::prerequisites::{self, NODE};
use crate::totals::{self, Totals};
use crate::workspace::{Outcome, Profile, Workspace, find_in_path, succeed};

/// The browser that the tests drive, by the names it goes by.
const BROWSERS: [&str; 2] = ["chromium", "chromium-browser"];

pub fn command(_: &[String]) -> Outcome<ExitCode> {
    prerequisites::ensure(&[NODE])?;
    build(&Workspace::locate()?)?;
    Ok(ExitCode::SUCCESS)
}

pub fn build(workspace: &Workspace) -> Outcome<()> {
    install(workspace)?;
    succeed(npm(workspace).args(["run", "build"]))
}

/// Types, lints and unit tests; then the build, which the stages after this one have in their binary.
pub fn test(workspace: &Workspace) -> Outcome<Totals> {
    install(workspace)?;
    succeed(npm(workspace).args(["run", "check"]))?;
    let totals = totals::run(npm(workspace).args(["run", "test"]).env("NO_COLOR", "1"), &mut stdout(), from_vitest)?;
    build(workspace)?;
    Ok(totals)
}

/// The app in a real browser, against the real server.
pub fn test_in_browser(workspace: &Workspace) -> Outcome<Totals> {
    build(workspace)?;
    workspace.build(Profile::Test, &["greenroom"], &["greenroom"])?;
    let browser = find_browser().ok_or("no browser was found; install chromium")?;
    let mut tests = npm(workspace);
    tests.args(["run", "e2e"]).env("NO_COLOR", "1");
    tests.env("GREENROOM_BIN", workspace.binary(Profile::Test, "greenroom"));
    tests.env("GREENROOM_EMBEDS_UI", "1").env("CHROMIUM", browser);
    totals::run(&mut tests, &mut stdout(), from_vitest)
}

pub fn find_browser() -> Option<PathBuf> {
    BROWSERS.iter().find_map(|name| find_in_path(name))
}

fn npm(workspace: &Workspace) -> Command {
    let mut command = Command::new("npm");
    command.current_dir(workspace.root().join("web"));
    command
}

/// Exactly what the lock file names; not again while that is what is there.
fn install(workspace: &Workspace) -> Outcome<()> {
    let web = workspace.root().join("web");
    let (lock, installed) = (web.join("package-lock.json"), web.join("node_modules/.installed-lock.json"));
    let wanted = fs::read(&lock).map_err(|error| format!("cannot read {}: {error}", lock.display()))?;
    if fs::read(&installed).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    succeed(npm(workspace).args(["ci", "--no-audit", "--no-fund", "--no-update-notifier"]))?;
    fs::write(&installed, wanted).map_err(|error| format!("cannot write {}: {error}", installed.display()))
}

/// The line `Tests  2 failed | 40 passed | 1 skipped (43)`.
fn from_vitest(line: &str) -> Option<Totals> {
    let counts = line.trim_start().strip_prefix("Tests ")?;
    let counts = counts.rsplit_once('(').map_or(counts, |(counts, _)| counts);
    let count = |word: &str| counts.split('|').find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok());
    let [passed, failed, skipped] = ["passed", "failed", "skipped"].map(|word| count(word).unwrap_or(0));
    (passed + failed + skipped > 0).then_some(Totals { passed, failed, skipped })
}

#[cfg(test)]
mod tests {
    use super::from_vitest;
    use crate::totals::Totals;

    #[test]
    fn the_closing_line_of_vitest_is_read() {
        let read = |line| from_vitest(line).map(|Totals { passed, failed, skipped }| (passed, failed, skipped));
        assert_eq!(read("      Tests  57 passed (57)"), Some((57, 0, 0)));
        assert_eq!(read("      Tests  2 failed | 40 passed | 1 skipped (43)"), Some((40, 2, 1)));
        assert_eq!(read(" Test Files  3 passed (3)"), None);
        assert_eq!(read("Tests begin"), None);
    }
}
