//! Who may know whom: between our crates, and between them and the outside world.

use super::manifest::{self, Manifest};
use super::tree::{Finding, Tree};

/// Each crate and the crates of ours that it may depend on. `greenroom` lies in crates/app.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("store", &["domain"]),
    ("workbench", &["domain"]),
    ("providers", &["workbench", "domain"]),
    ("engine", &["store", "workbench", "providers", "domain"]),
    ("mcp", &["engine", "store", "domain"]),
    ("server", &["mcp", "engine", "store", "domain"]),
    ("greenroom", &["server", "mcp", "engine", "providers", "workbench", "store", "domain"]),
    ("testkit", &["greenroom", "server", "mcp", "engine", "providers", "workbench", "store", "domain"]),
    ("xtask", &[]),
];

/// A library (with its satellites: `axum` also means `axum-extra`), the crates that may use it, and
/// what it stands for.
const ROOMS: &[(&str, &[&str], &str)] = &[
    ("sqlx", &["store", "testkit"], "only store writes SQL"),
    ("axum", &["server", "testkit"], "only server knows HTTP"),
    ("hyper", &["server", "testkit"], "only server knows HTTP"),
];

const ENVIRONMENT_READERS: &[&str] = &["crates/app/", "crates/testkit/", "xtask/"];

fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, Manifest<'_>)> {
    let is_crate =
        |path: &str| path == "xtask/Cargo.toml" || (path.starts_with("crates/") && path.ends_with("/Cargo.toml"));
    tree.texts().filter(move |(path, _)| is_crate(path)).map(|(path, text)| (path, manifest::parse(text)))
}

pub fn crates_follow_the_arrows(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, manifest) in manifests(tree) {
        let name = manifest.name;
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            let advice = format!(
                "the crate `{name}` has no arrows; add them to xtask/src/tidy/direction.rs and say \
                 why in ARCHITECTURE.md"
            );
            findings.push(Finding::on(path, advice));
            continue;
        };
        for dependency in manifest.dependencies {
            let other = dependency.name;
            if name == "xtask" {
                findings.push(Finding::at(path, dependency.line, format!("xtask is std-only; do without `{other}`")));
                continue;
            }
            let is_ours = ARROWS.iter().any(|(known, _)| *known == other);
            if is_ours && !dependency.for_tests_only && !allowed.contains(&other) {
                let advice = format!(
                    "`{name}` may not depend on `{other}`, only on [{}]; turn the dependency around",
                    allowed.join(", ")
                );
                findings.push(Finding::at(path, dependency.line, advice));
            }
        }
    }
    findings
}

pub fn libraries_stay_in_their_rooms(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, manifest) in manifests(tree) {
        for dependency in manifest.dependencies.iter().filter(|dependency| !dependency.for_tests_only) {
            let belongs = |library: &str| {
                dependency.name.strip_prefix(library).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            for (_, allowed, reason) in ROOMS.iter().filter(|(library, _, _)| belongs(library)) {
                if !allowed.contains(&manifest.name) {
                    let advice = format!("`{}` does not belong in `{}`: {reason}", dependency.name, manifest.name);
                    findings.push(Finding::at(path, dependency.line, advice));
                }
            }
        }
    }
    findings
}

pub fn only_the_app_reads_the_environment(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A build script has no other way to learn about its build.
    let may_read =
        |path: &str| path.ends_with("/build.rs") || ENVIRONMENT_READERS.iter().any(|room| path.starts_with(room));
    for (path, text) in tree.rust_sources().filter(|(path, _)| !may_read(path)) {
        for (index, line) in text.lines().enumerate() {
            if line.contains("env::var") && !line.trim_start().starts_with("//") {
                let advice = "only crates/app reads the environment; take the value as configuration";
                findings.push(Finding::at(path, index + 1, advice));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_of(path: &str, name: &str, dependencies: &str) -> Tree {
        Tree::of(&[(path, &format!("[package]\nname = \"{name}\"\n{dependencies}\n"))])
    }

    #[test]
    fn an_arrow_against_the_direction_is_found() {
        let good =
            "[dependencies]\ndomain.workspace = true\nserde = \"1\"\n[dev-dependencies]\ntestkit.workspace = true";
        assert_eq!(crates_follow_the_arrows(&tree_of("crates/store/Cargo.toml", "store", good)), []);
        let bad = "[dependencies]\nengine.workspace = true";
        assert_eq!(crates_follow_the_arrows(&tree_of("crates/store/Cargo.toml", "store", bad)).len(), 1);
        assert_eq!(
            crates_follow_the_arrows(&tree_of(
                "crates/server/Cargo.toml",
                "server",
                "[dependencies]\nproviders.workspace = true"
            ))
            .len(),
            1
        );
        assert_eq!(
            crates_follow_the_arrows(&tree_of(
                "crates/app/Cargo.toml",
                "greenroom",
                "[dependencies]\ntestkit.workspace = true"
            ))
            .len(),
            1
        );
    }

    #[test]
    fn a_crate_without_arrows_is_found() {
        assert_eq!(crates_follow_the_arrows(&tree_of("crates/shiny/Cargo.toml", "shiny", "")).len(), 1);
    }

    #[test]
    fn xtask_depends_on_nothing() {
        assert_eq!(crates_follow_the_arrows(&tree_of("xtask/Cargo.toml", "xtask", "[dependencies]")), []);
        assert_eq!(
            crates_follow_the_arrows(&tree_of("xtask/Cargo.toml", "xtask", "[dev-dependencies]\nserde = \"1\"")).len(),
            1
        );
    }

    #[test]
    fn a_library_outside_its_room_is_found() {
        let database = "[dependencies]\nsqlx.workspace = true";
        assert_eq!(libraries_stay_in_their_rooms(&tree_of("crates/store/Cargo.toml", "store", database)), []);
        assert_eq!(libraries_stay_in_their_rooms(&tree_of("crates/engine/Cargo.toml", "engine", database)).len(), 1);
        let web = "[dependencies]\nhyper-util.workspace = true";
        assert_eq!(libraries_stay_in_their_rooms(&tree_of("crates/server/Cargo.toml", "server", web)), []);
        assert_eq!(libraries_stay_in_their_rooms(&tree_of("crates/app/Cargo.toml", "greenroom", web)).len(), 1);
    }

    #[test]
    fn reading_the_environment_elsewhere_is_found() {
        let read = "let home = std::env::var_os(\"HOME\");\n";
        let good = Tree::of(&[("crates/app/src/config.rs", read), ("crates/store/src/lib.rs", "//! Not env::var.\n")]);
        assert_eq!(only_the_app_reads_the_environment(&good), []);
        assert_eq!(only_the_app_reads_the_environment(&Tree::of(&[("crates/store/src/lib.rs", read)])).len(), 1);
    }
}
