//! What all providers that drive a program share: where it is, what of the environment it may see, how it is stopped.

use crate::TurnEvent;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};
use workbench::process::{Patience, Supervisor};

/// What every program gets to see of the server's environment, where it is set. Nothing else passes but what the
/// operator names (invariant 17).
const ALWAYS: [&str; 16] = [
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
];

/// Those of them that send what a program asks for through somebody else.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// Whether a program with this environment reaches others by a proxy.
pub fn is_proxied(environment: &BTreeMap<OsString, OsString>) -> bool {
    PROXIES.iter().any(|name| environment.get(OsStr::new(name)).is_some_and(|value| !value.is_empty()))
}

/// How a program is found and started.
#[derive(Clone)]
pub struct Program {
    /// A path, or a name to look for in `PATH`.
    pub command: String,
    /// Further arguments of the operator's, after ours.
    pub args: Vec<String>,
    /// Further variables of the server's environment that it may see, by name.
    pub pass: Vec<String>,
    /// Whether the login of the person who runs the server is lent to it.
    pub share_login: bool,
    /// The server's whole environment: looked into by name, never handed on whole.
    pub environment: BTreeMap<OsString, OsString>,
    pub supervisor: Supervisor,
}

impl std::fmt::Debug for Program {
    /// Without the environment: it holds secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("command", &self.command).field("args", &self.args).finish_non_exhaustive()
    }
}

impl Program {
    /// Where the program lies, or `None` when this machine does not have it.
    pub fn locate(&self) -> Option<PathBuf> {
        let command = Path::new(&self.command);
        if command.components().count() > 1 {
            return is_program(command).then(|| command.to_owned());
        }
        let path = self.environment.get(OsStr::new("PATH"))?;
        std::env::split_paths(path).map(|folder| folder.join(command)).find(|file| is_program(file))
    }

    /// The environment to start it with: the allow-list, what the provider itself needs by name, what the operator
    /// added by name, and what the provider sets.
    pub fn environment(&self, names: &[&str], set: &[(&str, &OsStr)]) -> BTreeMap<OsString, OsString> {
        let passed = ALWAYS.iter().chain(names).copied().chain(self.pass.iter().map(String::as_str));
        let mut environment: BTreeMap<OsString, OsString> = passed
            .filter_map(|name| Some((OsString::from(name), self.environment.get(OsStr::new(name))?.clone())))
            .collect();
        environment.extend(set.iter().map(|(name, value)| (OsString::from(name), value.to_os_string())));
        environment
    }

    /// The home folder of the person who runs the server.
    pub fn persons_home(&self) -> Option<PathBuf> {
        self.environment.get(OsStr::new("HOME")).map(PathBuf::from)
    }
}

/// Short: a turn that was interrupted has had its say, and what does not end by itself is killed.
pub const STOP: Patience =
    Patience { input_closed: Duration::from_millis(1500), terminated: Duration::from_millis(1500) };

/// What is told of processes that a turn had left running.
pub fn strays_ended(count: usize) -> Option<TurnEvent> {
    let message = format!("What the agent had left running was ended with its turn; processes: {count}.");
    (count > 0).then(|| TurnEvent::Status { status: "leftovers_ended".into(), message })
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
