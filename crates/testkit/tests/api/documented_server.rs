//! The real binary, its document in a folder, and the tools.

use crate::own;
use reqwest::Method;
use std::{ffi::OsStr, fs, path::PathBuf, process::Stdio, time::Duration};
use tempfile::TempDir;
use testkit::{
    client::{ServerLaunch, TestServerProcess},
    programs::{self, ApiTools},
};
use tokio::{process::Command, time::timeout};

/// For one program on a busy machine; the test itself has 300 seconds.
const DEADLINE: Duration = Duration::from_secs(280);

/// Without limits of requests: the programs ask as fast as they can.
const SETTINGS: [(&str, &str); 2] =
    [("GREENROOM_LIMITS__REQUESTS_PER_SECOND", "100000"), ("GREENROOM_LIMITS__BURST", "100000")];

pub struct DocumentedServer {
    server: TestServerProcess,
    tools: ApiTools,
    folder: TempDir,
}

impl DocumentedServer {
    /// Starts a server with fresh data and saves its document as `openapi.json`.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let launch = ServerLaunch::new(programs::greenroom(), folder.path().join("data"));
        let launch = SETTINGS.iter().fold(launch, |launch, (name, value)| launch.with(name, *value));
        let server = launch.start().await.unwrap();
        let document = server.client().unwrap().request(Method::GET, "/openapi.json").send().await.unwrap();
        fs::write(folder.path().join("openapi.json"), document.bytes().await.unwrap()).unwrap();
        let tools = ApiTools::from_env();
        // Where Node.js looks for packages.
        std::os::unix::fs::symlink(&tools.modules, folder.path().join("node_modules")).unwrap();
        Self { server, tools, folder }
    }

    pub fn base_url(&self) -> &str {
        self.server.base_url()
    }

    pub fn token(&self) -> &str {
        self.server.local_key()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a script of a package.
    pub async fn node(&self, script: &str, arguments: &[&str]) -> String {
        let script = self.tools.modules.join(script);
        self.run("node", &[&[script.to_str().unwrap()], arguments].concat()).await
    }

    /// Runs a module.
    pub async fn python(&self, module: &str, arguments: &[&str]) -> String {
        self.run(&self.tools.python, &[&["-m", module], arguments].concat()).await
    }

    /// Sends what the document allows and what it forbids, and checks every response against it.
    pub async fn generate_requests(&self, arguments: &[&str]) {
        for file in ["schemathesis.toml", "hooks.py"] {
            fs::copy(own(file), self.path(file)).unwrap();
        }
        let command = ["run", "openapi.json", "--url", self.base_url()];
        self.python("schemathesis.cli", &[&command, arguments].concat()).await;
    }

    /// Runs a program to its end in the folder, with a clean environment, and returns what it printed. A failure fails
    /// the test.
    pub async fn run(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> String {
        let program = program.as_ref();
        let scripts = self.tools.python.parent().unwrap().display();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("PATH", format!("{scripts}:/usr/local/bin:/usr/bin:/bin")).env("HOME", self.folder.path());
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("REDOCLY_TELEMETRY", "off").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let Ok(output) = timeout(DEADLINE, command.output()).await else {
            panic!("{} {arguments:?} did not end within {DEADLINE:?}", program.display())
        };
        let output = output.unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(output.status.success(), "{} {arguments:?}: {}\n{text}", program.display(), output.status);
        text
    }
}
