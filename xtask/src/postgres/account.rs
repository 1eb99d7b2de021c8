//! The user that PostgreSQL runs as, because it refuses to run as root, and the wrapper that ends it together with the
//! process that started it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::prerequisites::is_root;
use crate::repository::{XtaskResult, find_in_path};

/// `nobody` for machines where PostgreSQL was installed without a package, and so without its user.
const USERS: &[&str] = &["postgres", "nobody"];

pub struct PostgresAccount {
    /// Comes before the command.
    wrapper: Vec<String>,
    /// The user and group that have to own the files, unless they are our own.
    owner: Option<(u32, u32)>,
}

impl PostgresAccount {
    pub fn choose() -> XtaskResult<Self> {
        let mut wrapper = Vec::new();
        // With this the server ends even when the guard is killed.
        let dies_with_parent = Command::new("setpriv")
            .args(["--pdeathsig", "INT", "true"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if dies_with_parent {
            wrapper.extend(["setpriv", "--pdeathsig", "INT"].map(str::to_owned));
        }
        if !is_root() {
            return Ok(Self { wrapper, owner: None });
        }
        let (name, user, group) = USERS
            .iter()
            .find_map(|name| Some((*name, number("-u", name)?, number("-g", name)?)))
            .ok_or_else(|| format!("PostgreSQL refuses root, and no user is named {}; add one", USERS.join(" or ")))?;
        if dies_with_parent {
            wrapper.extend([format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".to_owned()]);
        } else if find_in_path("runuser").is_some() {
            wrapper.extend(["runuser", "-u", name, "--"].map(str::to_owned));
        } else {
            let advice = "install util-linux (setpriv, runuser) or run as another user";
            return Err(format!("PostgreSQL refuses root; {advice}"));
        }
        Ok(Self { wrapper, owner: Some((user, group)) })
    }

    pub fn command(&self, program: &Path) -> Command {
        match self.wrapper.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        }
    }

    pub fn give_ownership(&self, path: &Path) -> XtaskResult<()> {
        let Some((user, group)) = self.owner else {
            return Ok(());
        };
        std::os::unix::fs::chown(path, Some(user), Some(group))
            .map_err(|error| format!("cannot make PostgreSQL's user the owner of {}: {error}", path.display()))
    }
}

fn number(flag: &str, user: &str) -> Option<u32> {
    let output = Command::new("id").args([flag, user]).output().ok()?;
    str::from_utf8(&output.stdout).ok()?.trim().parse().ok()
}
