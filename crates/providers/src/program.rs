//! Shared by all providers that run a program: where it is, which environment variables it gets, how it is stopped.

use crate::{
    ModelApiUse, TurnEvent,
    gateway::{ModelGateway, ModelWire},
};
use domain::provider_settings::WorkspaceProviders;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use workbench::{
    process::{Launcher, StopTimeouts},
    project_sandbox::{SandboxSpec, proxy_variables},
};

/// Variables of the server's environment that every program gets, if they are set. Others are passed on only if the
/// operator names them (invariant 17).
const ALWAYS_ALLOWED: [&str; 16] = [
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

/// The variables that configure a proxy.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// The variables of every program inside of a sandbox.
const INSIDE: [(&str, &str); 7] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("USER", "agent"),
    ("LANG", "C.UTF-8"),
    ("SHELL", "/bin/bash"),
    ("TMPDIR", "/tmp"),
    // Commits fail without a name.
    ("GIT_AUTHOR_NAME", "agent"),
    ("GIT_COMMITTER_NAME", "agent"),
];

/// A path of this machine, as a program in this sandbox sees it; the path itself without a sandbox.
pub fn path_inside(sandbox: Option<&SandboxSpec>, path: &Path) -> PathBuf {
    sandbox.and_then(|sandbox| sandbox.path_inside(path)).unwrap_or_else(|| path.to_owned())
}

/// Returns whether a program with this environment uses a proxy.
pub fn uses_proxy(environment: &BTreeMap<OsString, OsString>) -> bool {
    PROXIES.iter().any(|name| environment.get(OsStr::new(name)).is_some_and(|value| !value.is_empty()))
}

/// A program that a provider runs: how it is found and started.
#[derive(Clone)]
pub struct AgentProgram {
    /// A path, or a name to look for in `PATH`.
    pub command: String,
    /// Extra arguments set by the operator, after ours.
    pub args: Vec<String>,
    /// Names of further variables of the server's environment that the program gets.
    pub allowed_variables: Vec<String>,
    /// Whether the program uses the login of the user who runs the server.
    pub share_login: bool,
    /// The server's whole environment: read by name, never passed on as a whole.
    pub environment: BTreeMap<OsString, OsString>,
    pub launcher: Arc<dyn Launcher>,
    /// Where the program finds model APIs if it is in a sandbox.
    pub gateway: ModelGateway,
}

impl std::fmt::Debug for AgentProgram {
    /// Omits the environment: it contains secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentProgram").field("command", &self.command).field("args", &self.args).finish_non_exhaustive()
    }
}

impl AgentProgram {
    /// Returns the path of the program, or `None` if it is not installed.
    pub fn locate(&self) -> Option<PathBuf> {
        let command = Path::new(&self.command);
        if command.components().count() > 1 {
            return is_program(command).then(|| command.to_owned());
        }
        let path = self.environment.get(OsStr::new("PATH"))?;
        std::env::split_paths(path).map(|folder| folder.join(command)).find(|file| is_program(file))
    }

    /// Returns the environment to start the program with: the allow-list, the variables `names` that the provider
    /// needs, the variables that the operator named, and the values `set` by the provider.
    pub fn environment(&self, names: &[&str], set: &[(&str, &OsStr)]) -> BTreeMap<OsString, OsString> {
        let passed =
            ALWAYS_ALLOWED.iter().chain(names).copied().chain(self.allowed_variables.iter().map(String::as_str));
        let mut environment: BTreeMap<OsString, OsString> = passed
            .filter_map(|name| Some((OsString::from(name), self.environment.get(OsStr::new(name))?.clone())))
            .collect();
        environment.extend(set.iter().map(|(name, value)| (OsString::from(name), value.to_os_string())));
        environment
    }

    /// The program as agents of a workspace with these settings run it: what the workspace has set for a model API replaces
    /// what the server has for it, its login too.
    pub fn for_workspace(&self, wires: &[ModelWire], settings: &WorkspaceProviders) -> Self {
        let mut program = self.clone();
        for wire in wires {
            if let Some(own) = settings.get(wire.settings).filter(|_| settings.has_own_access(wire.settings)) {
                wire.replace(&mut program.environment, own);
                program.share_login = false;
            }
        }
        program
    }

    /// The program with what it would get of the server's in a workspace with these settings, and nothing of the
    /// workspace's own.
    pub fn without_own_access(&self, wires: &[ModelWire], settings: &WorkspaceProviders) -> Self {
        let mut program = self.clone();
        for wire in wires.iter().filter(|wire| settings.has_own_access(wire.settings)) {
            wire.clear(&mut program.environment);
            program.share_login = false;
        }
        program
    }

    /// The model APIs that the program calls.
    pub fn model_apis(&self, wires: &[ModelWire]) -> Vec<ModelApiUse> {
        let api = |wire: &ModelWire| ModelApiUse {
            settings: wire.settings.to_owned(),
            has_server_key: wire.has_key(&self.environment),
            key_variables: wire.key_variables().collect::<Vec<_>>().join(" or "),
        };
        wires.iter().map(api).collect()
    }

    /// Returns whether one of these variables, or of those that the operator named, is set: the program would get it.
    pub fn lends_variable(&self, names: &[&str]) -> bool {
        let named = self.allowed_variables.iter().map(String::as_str);
        names.iter().copied().chain(named).any(|name| self.environment.contains_key(OsStr::new(name)))
    }

    /// Returns whether the user who runs the server has one of these files, below their home folder, and shares it.
    pub fn lends_file(&self, files: &[&str]) -> bool {
        let home = self.user_home().filter(|_| self.share_login);
        home.is_some_and(|home| files.iter().any(|file| home.join(file).is_file()))
    }

    /// Returns the environment of a program inside of a sandbox: nothing that belongs to this machine, and no key. Variables
    /// that the operator named are passed on.
    pub fn environment_inside(
        &self,
        sandbox: &SandboxSpec,
        names: &[&str],
        set: &[(&str, &OsStr)],
    ) -> BTreeMap<OsString, OsString> {
        let mut environment: BTreeMap<OsString, OsString> =
            INSIDE.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect();
        let passed = ["LANG", "LC_ALL", "TZ"];
        let passed = passed.iter().chain(names).copied().chain(self.allowed_variables.iter().map(String::as_str));
        environment.extend(
            passed.filter_map(|name| Some((OsString::from(name), self.environment.get(OsStr::new(name))?.clone()))),
        );
        if !sandbox.allowed_hosts.is_empty() {
            environment.extend(proxy_variables().map(|(name, value)| (OsString::from(name), OsString::from(value))));
        }
        environment.extend(set.iter().map(|(name, value)| (OsString::from(name), value.to_os_string())));
        environment
    }

    /// Returns the home folder of the user who runs the server.
    pub fn user_home(&self) -> Option<PathBuf> {
        self.environment.get(OsStr::new("HOME")).map(PathBuf::from)
    }
}

/// Short: the output of an interrupted turn is already saved, and a program that does not exit is killed.
pub const STOP_TIMEOUTS: StopTimeouts =
    StopTimeouts { after_input_closed: Duration::from_millis(1500), after_sigterm: Duration::from_millis(1500) };

/// Returns the status event for processes that a turn had left running.
pub fn leftovers_ended(count: u32) -> Option<TurnEvent> {
    let message = format!("Processes that the agent left running were stopped with its turn: {count}.");
    (count > 0).then(|| TurnEvent::Status { status: "leftovers_ended".into(), message })
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
