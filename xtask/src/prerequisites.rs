//! What has to be on the machine beside cargo: found by looking for files, installed where that is
//! possible, and otherwise answered with the command to run.

use std::path::Path;
use std::process::Command;

use crate::postgres;
use crate::web;
use crate::workspace::{Outcome, find_in_path, succeed};

#[derive(Debug, Clone, Copy)]
pub struct Prerequisite {
    name: &'static str,
    is_present: fn() -> bool,
    /// The Debian packages that bring it.
    packages: &'static [&'static str],
}

/// Compiles the bundled SQLite and the library that cuts the power in chaos runs.
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

/// Runs MCP servers that are written in it, in an environment of their own.
pub const PYTHON: Prerequisite = Prerequisite {
    name: "Python 3 with venv and pip (python3)",
    is_present: || {
        Command::new("python3").args(["-c", "import venv, ensurepip"]).output().is_ok_and(|it| it.status.success())
    },
    packages: &["python3", "python3-venv"],
};

/// One of those servers works on repositories.
pub const GIT: Prerequisite =
    Prerequisite { name: "git", is_present: || find_in_path("git").is_some(), packages: &["git"] };

/// Shows the web app to the tests.
pub const CHROMIUM: Prerequisite = Prerequisite {
    name: "the Chromium browser",
    is_present: || web::find_browser().is_some(),
    packages: &["chromium"],
};

pub fn ensure(needed: &[Prerequisite]) -> Outcome<()> {
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
    succeed(apt_get().arg("update"))?;
    succeed(apt_get().args(["install", "-y", "--no-install-recommends"]).args(packages(&missing)))?;
    match self::missing(&missing) {
        still if still.is_empty() => Ok(()),
        still => Err(format!("installed, but not found afterwards: {}", names(&still))),
    }
}

/// PostgreSQL refuses to run as root, and only root may install packages.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn missing(needed: &[Prerequisite]) -> Vec<Prerequisite> {
    needed.iter().filter(|prerequisite| !(prerequisite.is_present)()).copied().collect()
}

fn advice(missing: &[Prerequisite]) -> String {
    format!(
        "missing: {}. Run this and try again (on systems other than Debian and Ubuntu, install \
         what brings the same):\n    \
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

/// Debian's package would create a database cluster and start it at every boot; this file is its
/// switch for that. The tests need only the programs, so a machine that never had PostgreSQL is
/// spared the service.
fn prevent_default_cluster() {
    let folder = Path::new("/etc/postgresql-common");
    let file = folder.join("createcluster.conf");
    if file.exists() {
        return;
    }
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, "create_main_cluster = false\n"));
    if let Err(error) = written {
        eprintln!(
            "cannot write {}: {error}; PostgreSQL may start a cluster of its own; it does no harm",
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
    fn only_what_is_missing_is_installed() {
        let missing = missing(&[PRESENT, ABSENT]);
        assert_eq!(packages(&missing), ["gone-package"]);
        assert!(ensure(&[PRESENT]).is_ok());
    }

    #[test]
    fn the_advice_is_a_command_to_run() {
        let advice = advice(&[ABSENT, C_COMPILER]);
        assert!(advice.contains("missing: gone; a C compiler (cc) and make"));
        assert!(advice.ends_with("--no-install-recommends gone-package gcc libc6-dev make"));
    }
}
