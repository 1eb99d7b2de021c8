//! Programs that have to be on the machine beside cargo: installed where that is possible; otherwise the error is the
//! command to run.

use std::path::Path;
use std::process::Command;

use crate::postgres;
use crate::repository::{XtaskResult, find_in_path};
use crate::steps::Steps;
use crate::web;

#[derive(Debug, Clone, Copy)]
pub struct Prerequisite {
    name: &'static str,
    is_present: fn() -> bool,
    /// The Debian packages that contain it.
    packages: &'static [&'static str],
}

/// Compiles the bundled SQLite and the library that simulates power cuts in chaos runs.
pub const C_COMPILER: Prerequisite = Prerequisite {
    name: "a C compiler (cc) and make",
    is_present: || find_in_path("cc").is_some() && find_in_path("make").is_some(),
    packages: &["gcc", "libc6-dev", "make"],
};

pub const POSTGRESQL: Prerequisite = Prerequisite {
    name: "the PostgreSQL server programs (initdb, postgres, pg_ctl)",
    is_present: || postgres::find_programs().is_some(),
    packages: &["postgresql"],
};

/// Installs the real CLIs, and runs one of them.
pub const NODE: Prerequisite = Prerequisite {
    name: "Node.js with npm (node, npm)",
    is_present: || find_in_path("node").is_some() && find_in_path("npm").is_some(),
    packages: &["nodejs", "npm"],
};

/// Runs MCP servers written in Python, in a virtual environment.
pub const PYTHON: Prerequisite = Prerequisite {
    name: "Python 3 with venv and pip (python3)",
    is_present: || {
        Command::new("python3").args(["-c", "import venv, ensurepip"]).output().is_ok_and(|it| it.status.success())
    },
    packages: &["python3", "python3-venv"],
};

/// Lists the files of the repository; one of the MCP servers works on repositories too.
pub const GIT: Prerequisite =
    Prerequisite { name: "git", is_present: || find_in_path("git").is_some(), packages: &["git"] };

/// A client that is not ours: it connects to a server with TLS, and as another user of the machine.
pub const CURL: Prerequisite =
    Prerequisite { name: "curl", is_present: || find_in_path("curl").is_some(), packages: &["curl"] };

/// Runs the web app in the browser tests.
pub const CHROMIUM: Prerequisite = Prerequisite {
    name: "the Chromium browser",
    is_present: || web::find_browser().is_some(),
    packages: &["chromium"],
};

/// Counts the instructions and allocations of the server in `cargo xtask guard`.
pub const VALGRIND: Prerequisite = Prerequisite {
    name: "valgrind (valgrind, vgdb)",
    is_present: || find_in_path("valgrind").is_some() && find_in_path("vgdb").is_some(),
    packages: &["valgrind"],
};

pub fn ensure(needed: &[Prerequisite], steps: &Steps) -> XtaskResult<()> {
    let missing = missing(needed);
    if missing.is_empty() {
        return Ok(());
    }
    if find_in_path("apt-get").is_none() || !is_root() {
        return Err(advice(&missing));
    }
    if packages(&missing).contains(&"postgresql") {
        prevent_default_cluster();
    }
    steps.run("Updating the list of packages", apt_get().arg("update"))?;
    let label = format!("Installing {}", packages(&missing).join(", "));
    steps.run(&label, apt_get().args(["install", "-y", "--no-install-recommends"]).args(packages(&missing)))?;
    match self::missing(&missing) {
        still if still.is_empty() => Ok(()),
        still => Err(format!("installed, but not found: {}", names(&still))),
    }
}

/// PostgreSQL refuses to run as root, and only root may install packages.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Each once, although several stages may need it.
fn missing(needed: &[Prerequisite]) -> Vec<Prerequisite> {
    let mut missing: Vec<Prerequisite> = Vec::new();
    for prerequisite in needed {
        let is_known = missing.iter().any(|known| known.name == prerequisite.name);
        if !is_known && !(prerequisite.is_present)() {
            missing.push(*prerequisite);
        }
    }
    missing
}

fn advice(missing: &[Prerequisite]) -> String {
    format!(
        "missing: {}. Run this and try again (on systems other than Debian and Ubuntu, install \
         the equivalent):\n    \
         sudo apt-get update && sudo apt-get install -y --no-install-recommends {}",
        names(missing),
        packages(missing).join(" ")
    )
}

fn names(prerequisites: &[Prerequisite]) -> String {
    prerequisites.iter().map(|prerequisite| prerequisite.name).collect::<Vec<_>>().join("; ")
}

fn packages(prerequisites: &[Prerequisite]) -> Vec<&'static str> {
    prerequisites.iter().flat_map(|prerequisite| prerequisite.packages).copied().collect()
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Debian's package would create a database cluster and start it at every boot, unless this file says no. The tests
/// need only the programs.
fn prevent_default_cluster() {
    let folder = Path::new("/etc/postgresql-common");
    let file = folder.join("createcluster.conf");
    if file.exists() {
        return;
    }
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, "create_main_cluster = false\n"));
    if let Err(error) = written {
        eprintln!(
            "cannot write {}: {error}; PostgreSQL may start a cluster of its own, which is harmless",
            file.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRESENT: Prerequisite = Prerequisite { name: "here", is_present: || true, packages: &["here-package"] };
    const ABSENT: Prerequisite = Prerequisite { name: "gone", is_present: || false, packages: &["gone-package"] };

    #[test]
    fn only_missing_programs_are_installed() {
        assert_eq!(packages(&missing(&[PRESENT, ABSENT, ABSENT])), ["gone-package"]);
        assert!(missing(&[PRESENT]).is_empty());
    }

    #[test]
    fn the_advice_is_a_command_to_run() {
        let advice = advice(&[ABSENT, C_COMPILER]);
        assert!(advice.contains("missing: gone; a C compiler (cc) and make"));
        assert!(advice.ends_with("--no-install-recommends gone-package gcc libc6-dev make"));
    }
}
