//! A re-export must not bring a crate to where it may not be depended on: the manifests would not show it.

use super::direction::ALLOWED_DEPENDENCIES;
use super::tree::{SourceTree, TidyFinding};

pub fn reexports_follow_the_direction(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust_sources() {
        let Some(exporter) = crate_of(path) else { continue };
        for (index, line) in text.lines().enumerate() {
            let Some(exported) = reexported_crate(line) else { continue };
            if let Some(reader) = forbidden_reader(exporter, exported) {
                let advice = format!(
                    "`{reader}` may depend on `{exporter}` but not on `{exported}`; expose a type of `{exporter}` instead"
                );
                findings.push(TidyFinding::at(path, index + 1, advice));
            }
        }
    }
    findings
}

/// The crate of a source file; the name of a folder is the name of its crate, except for the app.
fn crate_of(path: &str) -> Option<&str> {
    let (folder, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    rest.starts_with("src/").then_some(if folder == "app" { "greenroom" } else { folder })
}

/// The workspace crate that a line re-exports from.
fn reexported_crate(line: &str) -> Option<&'static str> {
    let used = line.trim_start().strip_prefix("pub use ")?;
    let first = used.trim_start_matches("::").split([':', ';', ' ']).next()?;
    ALLOWED_DEPENDENCIES.iter().map(|(name, _)| *name).find(|name| *name == first)
}

/// A crate that would get `exported` through `exporter` although it may not depend on it.
fn forbidden_reader(exporter: &str, exported: &str) -> Option<&'static str> {
    let is_forbidden = |allowed: &[&str]| allowed.contains(&exporter) && !allowed.contains(&exported);
    ALLOWED_DEPENDENCIES.iter().find(|(_, allowed)| is_forbidden(allowed)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        reexports_follow_the_direction(&SourceTree::of(&[(path, text)])).len()
    }

    #[test]
    fn a_reexport_against_the_direction_is_found() {
        let bad = "use providers::Provider;\npub use providers::{\n    host_tools,\n};\n";
        assert_eq!(found("crates/engine/src/agents.rs", bad), 1, "server and mcp may not depend on providers");
        assert_eq!(found("crates/engine/src/agents.rs", "    pub use ::providers::host_tools;\n"), 1);
        assert_eq!(found("crates/engine/src/agents.rs", "pub(crate) use providers::host_tools;\n"), 0);
        assert_eq!(found("crates/engine/src/agents.rs", "pub use store::Store;\npub use work::Worker;\n"), 0);
        assert_eq!(found("crates/server/src/lib.rs", "pub use mcp::McpHandlerKind;\n"), 0, "app may depend on mcp");
        assert_eq!(found("crates/engine/tests/it/main.rs", bad), 0);
    }
}
