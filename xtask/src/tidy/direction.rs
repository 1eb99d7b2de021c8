//! Which crate may depend on which, and where some libraries may be used.

use super::manifest::{self, CrateManifest};
use super::tree::{SourceTree, TidyFinding};

/// Each crate and the workspace crates that it may depend on. `greenroom` is in crates/app.
pub const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("sandbox", &[]),
    ("store", &["domain"]),
    ("workbench", &["sandbox", "domain"]),
    ("providers", &["workbench", "domain"]),
    ("engine", &["store", "workbench", "providers", "domain"]),
    ("mcp", &["engine", "store", "domain"]),
    ("server", &["mcp", "engine", "store", "domain"]),
    ("greenroom", &["server", "mcp", "engine", "providers", "workbench", "sandbox", "store", "domain"]),
    ("testkit", &["greenroom", "server", "mcp", "engine", "providers", "workbench", "sandbox", "store", "domain"]),
    ("xtask", &[]),
];

/// A library (`axum` also means `axum-extra`), the crates that may use it, and why.
const LIBRARY_OWNERS: &[(&str, &[&str], &str)] = &[
    ("sqlx", &["store", "testkit"], "only store writes SQL"),
    ("axum", &["server", "testkit"], "only server serves HTTP"),
    ("hyper", &["server", "testkit"], "only server serves HTTP"),
];

const ENVIRONMENT_READERS: &[&str] = &["crates/app/", "crates/testkit/", "xtask/"];

fn manifests(tree: &SourceTree) -> impl Iterator<Item = (&str, CrateManifest<'_>)> {
    let is_crate =
        |path: &str| path == "xtask/Cargo.toml" || (path.starts_with("crates/") && path.ends_with("/Cargo.toml"));
    tree.texts().filter(move |(path, _)| is_crate(path)).map(|(path, text)| (path, manifest::parse(text)))
}

/// Versions are in the workspace's manifest only, so that no two crates ask for different ones.
pub fn dependencies_come_from_the_workspace(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (path, manifest) in manifests(tree) {
        for dependency in manifest.dependencies.iter().filter(|dependency| !dependency.is_from_workspace) {
            let name = dependency.name;
            let advice = format!("write `{name}.workspace = true` and put the version into the workspace's Cargo.toml");
            findings.push(TidyFinding::at(path, dependency.line, advice));
        }
    }
    findings
}

pub fn crates_depend_in_one_direction(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (path, manifest) in manifests(tree) {
        let name = manifest.name;
        let Some((_, allowed)) = ALLOWED_DEPENDENCIES.iter().find(|(known, _)| *known == name) else {
            let advice = format!(
                "the crate `{name}` has no allowed dependencies; add them to xtask/src/tidy/direction.rs and say \
                 why in ARCHITECTURE.md"
            );
            findings.push(TidyFinding::on(path, advice));
            continue;
        };
        for dependency in manifest.dependencies {
            let other = dependency.name;
            if name == "xtask" {
                findings.push(TidyFinding::at(
                    path,
                    dependency.line,
                    format!("xtask uses the standard library only; remove `{other}`"),
                ));
                continue;
            }
            let is_ours = ALLOWED_DEPENDENCIES.iter().any(|(known, _)| *known == other);
            if is_ours && !dependency.for_tests_only && !allowed.contains(&other) {
                let advice = format!(
                    "`{name}` may not depend on `{other}`, only on [{}]; reverse the dependency",
                    allowed.join(", ")
                );
                findings.push(TidyFinding::at(path, dependency.line, advice));
            }
        }
    }
    findings
}

pub fn libraries_stay_in_their_crates(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (path, manifest) in manifests(tree) {
        for dependency in manifest.dependencies.iter().filter(|dependency| !dependency.for_tests_only) {
            let belongs = |library: &str| {
                dependency.name.strip_prefix(library).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            for (_, allowed, reason) in LIBRARY_OWNERS.iter().filter(|(library, _, _)| belongs(library)) {
                if !allowed.contains(&manifest.name) {
                    let advice = format!("`{}` must not be used in `{}`: {reason}", dependency.name, manifest.name);
                    findings.push(TidyFinding::at(path, dependency.line, advice));
                }
            }
        }
    }
    findings
}

pub fn only_the_app_reads_the_environment(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    // A build script gets its input from the environment.
    let may_read =
        |path: &str| path.ends_with("/build.rs") || ENVIRONMENT_READERS.iter().any(|folder| path.starts_with(folder));
    for (path, text) in tree.rust_sources().filter(|(path, _)| !may_read(path)) {
        for (index, line) in text.lines().enumerate() {
            if line.contains("env::var") && !line.trim_start().starts_with("//") {
                let advice = "only crates/app reads the environment; take the value as configuration";
                findings.push(TidyFinding::at(path, index + 1, advice));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_of(path: &str, name: &str, dependencies: &str) -> SourceTree {
        SourceTree::of(&[(path, &format!("[package]\nname = \"{name}\"\n{dependencies}\n"))])
    }

    #[test]
    fn a_dependency_against_the_direction_is_found() {
        let good =
            "[dependencies]\ndomain.workspace = true\nserde = \"1\"\n[dev-dependencies]\ntestkit.workspace = true";
        assert_eq!(crates_depend_in_one_direction(&tree_of("crates/store/Cargo.toml", "store", good)), []);
        let bad = "[dependencies]\nengine.workspace = true";
        assert_eq!(crates_depend_in_one_direction(&tree_of("crates/store/Cargo.toml", "store", bad)).len(), 1);
        assert_eq!(
            crates_depend_in_one_direction(&tree_of(
                "crates/server/Cargo.toml",
                "server",
                "[dependencies]\nproviders.workspace = true"
            ))
            .len(),
            1
        );
        assert_eq!(
            crates_depend_in_one_direction(&tree_of(
                "crates/app/Cargo.toml",
                "greenroom",
                "[dependencies]\ntestkit.workspace = true"
            ))
            .len(),
            1
        );
    }

    #[test]
    fn a_crate_without_allowed_dependencies_is_found() {
        assert_eq!(crates_depend_in_one_direction(&tree_of("crates/shiny/Cargo.toml", "shiny", "")).len(), 1);
    }

    #[test]
    fn xtask_depends_on_nothing() {
        assert_eq!(crates_depend_in_one_direction(&tree_of("xtask/Cargo.toml", "xtask", "[dependencies]")), []);
        assert_eq!(
            crates_depend_in_one_direction(&tree_of("xtask/Cargo.toml", "xtask", "[dev-dependencies]\nserde = \"1\""))
                .len(),
            1
        );
    }

    #[test]
    fn a_library_outside_its_crates_is_found() {
        let database = "[dependencies]\nsqlx.workspace = true";
        assert_eq!(libraries_stay_in_their_crates(&tree_of("crates/store/Cargo.toml", "store", database)), []);
        assert_eq!(libraries_stay_in_their_crates(&tree_of("crates/engine/Cargo.toml", "engine", database)).len(), 1);
        let web = "[dependencies]\nhyper-util.workspace = true";
        assert_eq!(libraries_stay_in_their_crates(&tree_of("crates/server/Cargo.toml", "server", web)), []);
        assert_eq!(libraries_stay_in_their_crates(&tree_of("crates/app/Cargo.toml", "greenroom", web)).len(), 1);
    }

    #[test]
    fn a_version_outside_the_workspace_manifest_is_found() {
        let good = "[dependencies]\nserde.workspace = true\nrustix = { workspace = true, features = [\"fs\"] }\n\
                    [dependencies.axum]\nworkspace = true\noptional = true";
        assert_eq!(dependencies_come_from_the_workspace(&tree_of("crates/store/Cargo.toml", "store", good)), []);
        let bad = "[dependencies]\nbase64 = \"0.22\"\n[dev-dependencies]\nsocket2 = { version = \"0.6\" }\n\
                   [build-dependencies.cc]\nversion = \"1\"";
        let findings = dependencies_come_from_the_workspace(&tree_of("crates/store/Cargo.toml", "store", bad));
        assert_eq!(findings.len(), 3);
        let workspace = tree_of("Cargo.toml", "none", "[workspace.dependencies]\nserde = \"1\"");
        assert_eq!(dependencies_come_from_the_workspace(&workspace), []);
    }

    #[test]
    fn reading_the_environment_elsewhere_is_found() {
        let read = "let home = std::env::var_os(\"HOME\");\n";
        let good =
            SourceTree::of(&[("crates/app/src/config.rs", read), ("crates/store/src/lib.rs", "//! Not env::var.\n")]);
        assert_eq!(only_the_app_reads_the_environment(&good), []);
        assert_eq!(only_the_app_reads_the_environment(&SourceTree::of(&[("crates/store/src/lib.rs", read)])).len(), 1);
    }
}
