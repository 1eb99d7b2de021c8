//! What is checked for each package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::clean_root::CleanRoot;
use super::report::CheckReport;
use super::server::CheckedServer;
use crate::dist::target::DistTarget;
use crate::dist::{UNIT, files};
use crate::repository::{XtaskResult, find_in_path};
use crate::steps::Steps;

/// Inside the root.
const DATA: &str = "/tmp/data";
/// None of these may be there, or the check would not show that the package needs none.
const DEVELOPMENT: &[&str] = &["cc", "gcc", "cargo", "rustc", "node", "npm", "python3"];
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PackageKind {
    Archive,
    Deb,
}

pub struct TriedPackage {
    pub file: PathBuf,
    kind: PackageKind,
}

impl TriedPackage {
    pub fn archive(folder: &Path, target: DistTarget, version: &str) -> Self {
        Self { file: folder.join(target.archive_name(version)), kind: PackageKind::Archive }
    }

    pub fn deb(folder: &Path, target: DistTarget, version: &str) -> Self {
        Self { file: folder.join(target.deb_name(version)), kind: PackageKind::Deb }
    }

    /// The error is about the check itself; what is wrong with the package is in the report.
    pub fn check(&self, debian: &Path, copies: &Path, version: &str, report: &mut CheckReport<'_>) -> XtaskResult<()> {
        let steps = report.steps;
        let root = CleanRoot::copy(debian, copies, self.name(), steps)?;
        report.add(&self.label("the root has nothing but Debian"), has_no_tools(root.path()));
        if !report.add(&self.label("installs"), self.install(&root, steps)) {
            return Ok(());
        }
        let program = self.program();
        let printed = root.run_successfully(program, &["--version"], steps);
        let printed = printed.and_then(|line| match is_version_line(&line, version) {
            true => Ok(line),
            false => Err(format!("--version prints {line:?}")),
        });
        report.add(&self.label("--version"), printed);
        report.add(&self.label("upgrade-check before the first start"), check_new(&root, program, steps));
        match CheckedServer::start(&root, program, DATA) {
            Err(message) => drop(report.add(&self.label("serves"), Err(message))),
            Ok(server) => {
                report.add(&self.label("serves"), Ok(format!("after {} ms", server.took.as_millis())));
                report.add(&self.label("has the web app"), has_web_app(&server));
                report.add(&self.label("upgrade-check of a running server"), check_current(&root, program, steps));
                let stopped = server.stop().map(|took| format!("after {} ms", took.as_millis()));
                report.add(&self.label("stops"), stopped);
            }
        }
        if self.kind == PackageKind::Deb {
            report.add(&self.label("the unit is valid"), verify_unit(&root, steps));
            report.add(&self.label("is removed"), uninstall(&root, steps));
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self.kind {
            PackageKind::Archive => "tar.gz",
            PackageKind::Deb => "deb",
        }
    }

    fn label(&self, check: &str) -> String {
        format!("{}: {check}", self.name())
    }

    fn program(&self) -> &'static str {
        match self.kind {
            PackageKind::Archive => "/opt/greenroom",
            PackageKind::Deb => "/usr/bin/greenroom",
        }
    }

    /// With the tools of the root itself.
    fn install(&self, root: &CleanRoot, steps: &Steps) -> XtaskResult<String> {
        let inside = format!("/tmp/package.{}", self.name());
        let copy = root.path().join(inside.trim_start_matches('/'));
        fs::copy(&self.file, &copy).map_err(|error| format!("cannot write {}: {error}", copy.display()))?;
        match self.kind {
            PackageKind::Archive => root.run_successfully("tar", &["xzf", &inside, "-C", "/opt"], steps)?,
            PackageKind::Deb => {
                root.run_successfully("dpkg", &["--install", &inside], steps)?;
                root.run_successfully("dpkg", &["--verify", "greenroom"], steps)?
            }
        };
        Ok(String::new())
    }
}

fn has_no_tools(root: &Path) -> XtaskResult<String> {
    let folders = ["usr/bin", "usr/local/bin", "bin"];
    let found = folders.iter().flat_map(|folder| DEVELOPMENT.iter().map(move |tool| root.join(folder).join(tool)));
    match found.into_iter().find(|path| path.exists()) {
        Some(path) => Err(format!("{} exists; remove the cached root", path.display())),
        None => Ok(String::new()),
    }
}

/// `greenroom 0.1.0 (b32665401f 2026-11-17)`
fn is_version_line(line: &str, version: &str) -> bool {
    let inside = line.strip_prefix(&format!("greenroom {version} (")).and_then(|rest| rest.strip_suffix(')'));
    let Some((commit, date)) = inside.and_then(|inside| inside.split_once(' ')) else {
        return false;
    };
    let commit = commit.strip_suffix("-dirty").unwrap_or(commit);
    let is_date = date.len() == 10 && date.chars().all(|letter| letter.is_ascii_digit() || letter == '-');
    is_date && commit.len() >= 10 && commit.chars().all(|letter| letter.is_ascii_hexdigit())
}

/// Nothing is stored yet, and a check must not change that.
fn check_new(root: &CleanRoot, program: &str, steps: &Steps) -> XtaskResult<String> {
    let printed = root.run_successfully(program, &["upgrade-check", "--data-dir", DATA], steps)?;
    match root.path().join(DATA.trim_start_matches('/')).exists() {
        true => Err("upgrade-check has created the data folder".to_owned()),
        false => Ok(printed),
    }
}

fn check_current(root: &CleanRoot, program: &str, steps: &Steps) -> XtaskResult<String> {
    let printed = root.run_successfully(program, &["upgrade-check", "--data-dir", DATA], steps)?;
    match printed.contains("up to date") {
        true => Ok(printed),
        false => Err(format!("upgrade-check prints {printed:?}")),
    }
}

fn has_web_app(server: &CheckedServer) -> XtaskResult<String> {
    let page = server.get("/")?;
    match page.contains("<script type=\"module\"") {
        true => Ok(String::new()),
        false => Err("the first page is the plain one: the web app is not in the binary".to_owned()),
    }
}

/// With the systemd of this machine, if it has one. The root has none, so the units that ours refers to are added empty.
fn verify_unit(root: &CleanRoot, steps: &Steps) -> XtaskResult<String> {
    if find_in_path("systemd-analyze").is_none() {
        return Ok("skipped: no systemd-analyze here".to_owned());
    }
    for name in ["sysinit", "basic", "shutdown", "network-online", "multi-user"] {
        let target = root.path().join(format!("usr/lib/systemd/system/{name}.target"));
        files::write(&target, b"[Unit]\nDefaultDependencies=no\n", 0o644)?;
    }
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no", "--root"]).arg(root.path()).arg(UNIT);
    let mut complaints = Vec::new();
    let status = steps.follow(&mut command, LIMIT, &mut |line| complaints.push(line.to_owned()))?;
    let ours: Vec<String> = complaints.into_iter().filter(|line| line.contains("greenroom")).collect();
    match status.success() && ours.is_empty() {
        true => Ok(String::new()),
        false => Err(format!("systemd-analyze verify ended with {status}: {}", ours.join("\n"))),
    }
}

fn uninstall(root: &CleanRoot, steps: &Steps) -> XtaskResult<String> {
    root.run_successfully("dpkg", &["--remove", "greenroom"], steps)?;
    match root.path().join("usr/bin/greenroom").exists() {
        true => Err("/usr/bin/greenroom is still there".to_owned()),
        false => Ok(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_line_names_commit_and_date() {
        assert!(is_version_line("greenroom 0.1.0 (b32665401f 2026-11-17)", "0.1.0"));
        assert!(is_version_line("greenroom 0.1.0 (b32665401f-dirty 2026-11-17)", "0.1.0"));
        for wrong in [
            "greenroom 0.1.0 (unknown)",
            "greenroom 0.1.1 (b32665401f 2026-11-17)",
            "greenroom 0.1.0 (b32665401f today)",
            "greenroom 0.1.0",
        ] {
            assert!(!is_version_line(wrong, "0.1.0"), "{wrong}");
        }
    }

    #[test]
    fn a_root_with_a_compiler_is_refused() {
        let root = std::env::temp_dir().join(format!("xtask-root-{}", std::process::id()));
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        assert!(has_no_tools(&root).is_ok());
        fs::write(root.join("usr/bin/gcc"), "").unwrap();
        assert!(has_no_tools(&root).is_err());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn packages_are_named_after_their_kind() {
        let folder = Path::new("dist");
        let deb = TriedPackage::deb(folder, DistTarget::Musl, "0.1.0");
        assert_eq!(deb.label("stops"), "deb: stops");
        assert_eq!(deb.file, folder.join("greenroom_0.1.0_amd64.deb"));
        let archive = TriedPackage::archive(folder, DistTarget::Gnu, "0.1.0");
        assert_eq!(archive.label("stops"), "tar.gz: stops");
    }
}
