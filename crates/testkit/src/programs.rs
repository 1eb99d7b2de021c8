//! Programs that tests start: doubles that are built with this crate, and the real CLIs where `cargo xtask test cli`
//! has brought them.

use std::path::PathBuf;

/// Set together, by xtask. `xtask/src/clis.rs` knows the same names.
const CLAUDE: &str = "GREENROOM_TEST_CLAUDE";
const CODEX: &str = "GREENROOM_TEST_CODEX";
const GEMINI: &str = "GREENROOM_TEST_GEMINI";

/// The double that plays a recorded CLI, or a broken one: see `src/bin/replay/`.
pub fn replay() -> PathBuf {
    built("replay")
}

/// The MCP server that behaves as told: see `src/bin/fake-mcp/`.
pub fn fake_mcp() -> PathBuf {
    built("fake-mcp")
}

/// The server's own binary. Programs that it starts are kept by it, also where the server runs inside of a test.
pub fn greenroom() -> PathBuf {
    built("greenroom")
}

/// The server with the fixture of the protocol's examination in place of its own tools, as `cargo xtask test mcp` builds it.
/// Panics where it was not.
#[expect(clippy::disallowed_methods, reason = "xtask hands the programs to the tests this way")]
pub fn greenroom_for_conformance() -> PathBuf {
    let name = "GREENROOM_TEST_MCP_GREENROOM_CONFORMANCE";
    let path = std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_file());
    path.unwrap_or_else(|| panic!("{name} does not name a file: that server is built by `cargo xtask test mcp`"))
}

/// A program of this workspace. Cargo puts it beside the folder of the test's own executable.
fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(name)).find(|file| file.is_file());
    let Some(found) = found else {
        panic!(
            "the program `{name}` is not built beside {}; run: cargo build -p greenroom -p testkit --bins",
            own.display()
        );
    };
    found
}

/// Real MCP servers and clients and the protocol's examination, as `cargo xtask test mcp` brings them. `xtask/src/mcp_servers.rs` knows the
/// same names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpServers {
    /// Runs the scripts.
    pub node: PathBuf,
    pub conformance: PathBuf,
    pub everything: PathBuf,
    pub filesystem: PathBuf,
    pub inspector: PathBuf,
    /// The folder where Node finds the TypeScript libraries.
    pub modules: PathBuf,
    /// Has `mcp_server_time` and `mcp_server_git` as modules, and the library `mcp` in its second generation.
    pub python: PathBuf,
    /// Has the library `mcp` in its first generation.
    pub python1: PathBuf,
}

impl McpServers {
    /// Panics where they were not brought: whoever calls this cannot do without.
    #[expect(clippy::disallowed_methods, reason = "xtask hands the programs to the tests this way")]
    pub fn found() -> Self {
        let there = |name: &str| {
            let name = format!("GREENROOM_TEST_MCP_{name}");
            let Some(path) = std::env::var_os(&name).map(PathBuf::from) else {
                panic!("{name} is not set: real MCP servers are brought by `cargo xtask test mcp`")
            };
            assert!(path.exists(), "{name} names {}, which is not there", path.display());
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

/// The real CLIs, in the versions that the project is tested with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clis {
    pub claude: PathBuf,
    pub codex: PathBuf,
    pub gemini: PathBuf,
}

impl Clis {
    /// Panics where they were not brought: whoever calls this cannot do without.
    #[expect(clippy::disallowed_methods, reason = "xtask hands the programs to the tests this way")]
    pub fn found() -> Self {
        Self::named(|name| std::env::var_os(name).map(PathBuf::from))
    }

    fn named(variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let there = |name: &str| {
            let Some(path) = variable(name) else {
                panic!(
                    "{name} is not set: the real CLIs are brought by `cargo xtask test cli` and `cargo xtask bench providers`"
                )
            };
            assert!(path.is_file(), "{name} names {}, which is no file", path.display());
            path
        };
        Self { claude: there(CLAUDE), codex: there(CODEX), gemini: there(GEMINI) }
    }
}

#[cfg(test)]
mod tests {
    use super::{CODEX, Clis};
    use std::panic::catch_unwind;

    #[test]
    fn all_of_the_clis_or_a_failure() {
        let here = std::env::current_exe().unwrap();
        let all = Clis::named(|_| Some(here.clone()));
        assert_eq!(all.gemini, here);
        assert!(catch_unwind(|| Clis::named(|name| (name != CODEX).then(|| here.clone()))).is_err());
        assert!(catch_unwind(|| Clis::named(|_| Some(here.join("gone")))).is_err());
    }
}
