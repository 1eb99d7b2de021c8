//! Programs that tests start: doubles built with this crate, and the real CLIs installed by `cargo xtask test cli`.

use std::path::PathBuf;

/// Set by xtask. Must match the names in `xtask/src/clis.rs`.
const CLAUDE: &str = "GREENROOM_TEST_CLAUDE";
const CODEX: &str = "GREENROOM_TEST_CODEX";
const GEMINI: &str = "GREENROOM_TEST_GEMINI";

/// The fake CLI that replays a transcript or a fault: see `src/bin/replay/`.
pub fn replay() -> PathBuf {
    built("replay")
}

/// The fake MCP server: see `src/bin/fake-mcp/`.
pub fn fake_mcp() -> PathBuf {
    built("fake-mcp")
}

/// The server binary. It is also the keeper of started programs if the server runs inside a test.
pub fn greenroom() -> PathBuf {
    built("greenroom")
}

/// A program of this workspace. Cargo puts it next to the folder of the test executable.
fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(name)).find(|file| file.is_file());
    let Some(found) = found else {
        panic!(
            "the program `{name}` is not built next to {}; run: cargo build -p greenroom -p testkit --bins",
            own.display()
        );
    };
    found
}

/// A real OpenTelemetry collector, installed by `cargo xtask test traces`. Must match the name in `xtask/src/collector.rs`.
#[expect(clippy::disallowed_methods, reason = "xtask passes the program to the test this way")]
pub fn collector() -> PathBuf {
    const COLLECTOR: &str = "GREENROOM_TEST_COLLECTOR";
    let Some(path) = std::env::var_os(COLLECTOR).map(PathBuf::from) else {
        panic!("{COLLECTOR} is not set: a collector is installed by `cargo xtask test traces`")
    };
    path
}

/// Real MCP servers and clients and the conformance suite, installed by `cargo xtask test mcp`. Must match the names in
/// `xtask/src/mcp_servers.rs`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpPrograms {
    /// Runs the scripts.
    pub node: PathBuf,
    pub conformance: PathBuf,
    pub everything: PathBuf,
    pub filesystem: PathBuf,
    pub inspector: PathBuf,
    /// The folder where Node finds the TypeScript libraries.
    pub modules: PathBuf,
    /// Has the modules `mcp_server_time` and `mcp_server_git`, and version 2 of the library `mcp`.
    pub python: PathBuf,
    /// Has version 1 of the library `mcp`.
    pub python1: PathBuf,
}

impl McpPrograms {
    /// Panics if one of the variables is not set.
    #[expect(clippy::disallowed_methods, reason = "xtask passes the programs to the tests this way")]
    pub fn from_env() -> Self {
        let there = |name: &str| {
            let name = format!("GREENROOM_TEST_MCP_{name}");
            let Some(path) = std::env::var_os(&name).map(PathBuf::from) else {
                panic!("{name} is not set: real MCP servers are installed by `cargo xtask test mcp`")
            };
            assert!(path.exists(), "{name} is {}, which does not exist", path.display());
            path
        };
        Self {
            node: there("NODE"),
            conformance: there("CONFORMANCE"),
            everything: there("EVERYTHING"),
            filesystem: there("FILESYSTEM"),
            inspector: there("INSPECTOR"),
            modules: there("MODULES"),
            python: there("PYTHON"),
            python1: there("PYTHON1"),
        }
    }
}

/// The tools that compare the API with its document, installed by `cargo xtask test api`. Must match the names in
/// `xtask/src/api_tools.rs`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiTools {
    /// The folder where Node finds the packages.
    pub modules: PathBuf,
    /// Has the Python packages as its modules.
    pub python: PathBuf,
}

impl ApiTools {
    /// Panics if one of the variables is not set.
    #[expect(clippy::disallowed_methods, reason = "xtask passes the programs to the tests this way")]
    pub fn from_env() -> Self {
        let there = |name: &str| {
            let Some(path) = std::env::var_os(name).map(PathBuf::from) else {
                panic!("{name} is not set: the tools are installed by `cargo xtask test api`")
            };
            assert!(path.exists(), "{name} is {}, which does not exist", path.display());
            path
        };
        Self { modules: there("GREENROOM_TEST_API_MODULES"), python: there("GREENROOM_TEST_API_PYTHON") }
    }
}

/// The real CLIs, in the versions that the project is tested with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CliPrograms {
    pub claude: PathBuf,
    pub codex: PathBuf,
    pub gemini: PathBuf,
}

impl CliPrograms {
    /// Panics if one of the variables is not set.
    #[expect(clippy::disallowed_methods, reason = "xtask passes the programs to the tests this way")]
    pub fn from_env() -> Self {
        Self::named(|name| std::env::var_os(name).map(PathBuf::from))
    }

    fn named(variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let there = |name: &str| {
            let Some(path) = variable(name) else {
                panic!(
                    "{name} is not set: the real CLIs are installed by `cargo xtask test cli` and `cargo xtask bench providers`"
                )
            };
            assert!(path.is_file(), "{name} is {}, which is not a file", path.display());
            path
        };
        Self { claude: there(CLAUDE), codex: there(CODEX), gemini: there(GEMINI) }
    }
}

#[cfg(test)]
mod tests {
    use super::{CODEX, CliPrograms};
    use std::panic::catch_unwind;

    #[test]
    fn missing_cli_panics() {
        let here = std::env::current_exe().unwrap();
        let all = CliPrograms::named(|_| Some(here.clone()));
        assert_eq!(all.gemini, here);
        assert!(catch_unwind(|| CliPrograms::named(|name| (name != CODEX).then(|| here.clone()))).is_err());
        assert!(catch_unwind(|| CliPrograms::named(|_| Some(here.join("gone")))).is_err());
    }
}
