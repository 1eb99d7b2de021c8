//! Dependencies that no source of their package names.
//!
//! Cargo says what is declared, for all targets and features; the sources are searched as text. A name in a string counts
//! as a use, so a finding is certain and its absence is not.

use crate::repository::{Repository, XtaskResult, cannot_run, spell};
use crate::steps::Steps;
use crate::tidy::SourceTree;

/// Dependencies that no source names: the package, the dependency, and why it is there.
const UNNAMED: &[(&str, &str, &str)] = &[];

#[derive(Clone, Copy)]
struct DependencyKind {
    /// What `cargo tree --edges` calls it.
    edge: &'static str,
    table: &'static str,
    /// Whether a source may use it; the path is relative to the package.
    is_visible_in: fn(&str) -> bool,
}

const KINDS: &[DependencyKind] = &[
    DependencyKind { edge: "normal", table: "dependencies", is_visible_in: |path| path.starts_with("src/") },
    DependencyKind { edge: "dev", table: "dev-dependencies", is_visible_in: |path| path != "build.rs" },
    DependencyKind { edge: "build", table: "build-dependencies", is_visible_in: |path| path == "build.rs" },
];

#[derive(Debug, PartialEq, Eq)]
struct DeclaredDependency<'a> {
    package: &'a str,
    /// Absolute.
    folder: &'a str,
    name: &'a str,
    /// As sources spell it.
    library: &'a str,
}

/// Each finding is a line for the terminal.
pub fn find(repository: &Repository, steps: &Steps) -> XtaskResult<Vec<String>> {
    let tree = SourceTree::read(repository.root())?;
    let root = format!("{}/", repository.root().display());
    let mut findings = Vec::new();
    for kind in KINDS {
        let listing = list(repository, kind)?;
        steps.log(&listing);
        findings.extend(check(&tree, &root, *kind, &declared(&listing), UNNAMED));
    }
    Ok(findings)
}

fn list(repository: &Repository, kind: &DependencyKind) -> XtaskResult<String> {
    let mut cargo = repository.cargo();
    cargo.args(["tree", "--workspace", "--all-features", "--target", "all", "--depth", "1", "--prefix", "depth"]);
    cargo.args(["--edges", kind.edge, "--format", " {p}|{lib}"]);
    let output = cargo.output().map_err(|error| cannot_run(&cargo, &error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Err(format!("`{}` ended with {}: {complaint}", spell(&cargo), output.status))
        }
    }
}

/// Lines such as `0 store v0.1.0 (/greenroom/crates/store)|store` and `1 tokio-util v0.7.20|tokio_util (*)`.
fn declared(listing: &str) -> Vec<DeclaredDependency<'_>> {
    let mut found = Vec::new();
    let mut dependent = None;
    for line in listing.lines() {
        let Some((depth, (description, library))) =
            line.split_once(' ').and_then(|(depth, rest)| Some((depth, rest.split_once('|')?)))
        else {
            continue;
        };
        let name = description.split(' ').next().unwrap_or(description);
        if depth == "0" {
            let folder = description.split_once('(').and_then(|(_, rest)| rest.split(')').next());
            dependent = folder.map(|folder| (name, folder));
        } else if let Some((package, folder)) = dependent {
            let library = library.split(' ').next().unwrap_or(library);
            found.push(DeclaredDependency { package, folder, name, library });
        }
    }
    found
}

fn check(
    tree: &SourceTree,
    root: &str,
    kind: DependencyKind,
    declared: &[DeclaredDependency<'_>],
    unnamed: &[(&str, &str, &str)],
) -> Vec<String> {
    let mut findings = Vec::new();
    for DeclaredDependency { package, folder, name, library } in declared {
        let folder = format!("{}/", folder.strip_prefix(root).unwrap_or(folder));
        let is_visible = |path: &str| path.strip_prefix(&folder).is_some_and(|inside| (kind.is_visible_in)(inside));
        let is_used = tree.rust_sources().any(|(path, text)| is_visible(path) && names(text, library));
        let is_excepted = unnamed.iter().any(|(dependent, excepted, _)| dependent == package && excepted == name);
        let manifest = format!("{folder}Cargo.toml");
        match (is_used, is_excepted) {
            (false, false) => findings.push(format!(
                "{manifest}: `{name}` in [{}] is not used; remove it, or move it to where it is used",
                kind.table
            )),
            (true, true) => findings.push(format!("{manifest}: `{name}` is used, so it needs no exception")),
            _ => {}
        }
    }
    findings
}

/// As the start of a path, or alone in a `use`. Paths inside other paths (`crate::metrics::Meter`) and comments do not
/// count.
fn names(text: &str, library: &str) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        line.match_indices(library).any(|(start, _)| {
            let (before, after) = (&line[..start], &line[start + library.len()..]);
            starts_path(before) && (after.starts_with("::") || (is_import(before) && ends_import(after)))
        })
    })
}

fn starts_path(before: &str) -> bool {
    let is_part_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    match before.strip_suffix("::") {
        // `::serde::Serialize` starts a path, `crate::serde::Serialize` and `<T>::serde::Serialize` do not.
        Some(outer) => !outer.ends_with(|letter: char| is_part_of_name(letter) || letter == '>'),
        None => !before.ends_with(is_part_of_name),
    }
}

fn is_import(before: &str) -> bool {
    let before = before.trim_end();
    before.ends_with("use") || before.ends_with("extern crate")
}

fn ends_import(after: &str) -> bool {
    after.starts_with(';') || after.starts_with(" as ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "0 store v0.1.0 (/tree/crates/store)|store\n1 domain v0.1.0 (/tree/crates/domain)|domain (*)\n\
                           1 tokio-util v0.7.20|tokio_util\n\n0 domain v0.1.0 (/tree/crates/domain)|domain\n";

    fn findings(table: &str, sources: &[(&str, &str)], unnamed: &[(&str, &str, &str)]) -> Vec<String> {
        let kind = KINDS.iter().find(|kind| kind.table == table).unwrap();
        let listing = "0 store v0.1.0 (/tree/crates/store)|store\n1 tokio-util v0.7.20|tokio_util\n";
        check(&SourceTree::of(sources), "/tree/", *kind, &declared(listing), unnamed)
    }

    #[test]
    fn cargo_names_packages_and_their_dependencies() {
        let declared = declared(LISTING);
        let of_store =
            |name, library| DeclaredDependency { package: "store", folder: "/tree/crates/store", name, library };
        assert_eq!(declared, [of_store("domain", "domain"), of_store("tokio-util", "tokio_util")]);
    }

    #[test]
    fn a_dependency_that_no_source_names_is_found() {
        let used = "use tokio_util::sync::CancellationToken;\n";
        assert_eq!(findings("dependencies", &[("crates/store/src/lib.rs", used)], &[]).len(), 0);
        assert_eq!(findings("dependencies", &[("crates/store/src/lib.rs", "use tokio::sync;")], &[]).len(), 1);
        assert_eq!(findings("dependencies", &[("crates/stored/src/lib.rs", used)], &[]).len(), 1);
        let message = &findings("dependencies", &[], &[])[0];
        assert!(
            message.starts_with("crates/store/Cargo.toml: `tokio-util` in [dependencies] is not used"),
            "{message}"
        );
    }

    #[test]
    fn each_table_has_its_own_sources() {
        let used = "tokio_util::task::spawn();";
        let files = ["src/lib.rs", "src/bin/it.rs", "tests/it/main.rs", "benches/all.rs", "build.rs"];
        let seen_by =
            |table: &str| files.map(|file| findings(table, &[(&format!("crates/store/{file}"), used)], &[]).is_empty());
        assert_eq!(seen_by("dependencies"), [true, true, false, false, false]);
        assert_eq!(seen_by("dev-dependencies"), [true, true, true, true, false]);
        assert_eq!(seen_by("build-dependencies"), [false, false, false, false, true]);
    }

    #[test]
    fn an_exception_is_accepted_until_it_is_not_needed() {
        let unnamed = [("store", "tokio-util", "switches a feature on")];
        assert_eq!(findings("dependencies", &[], &unnamed).len(), 0);
        let used = [("crates/store/src/lib.rs", "use tokio_util as util;")];
        assert_eq!(findings("dependencies", &used, &unnamed).len(), 1);
    }

    #[test]
    fn only_paths_and_imports_are_uses() {
        let uses = ["use serde::Serialize;", "#[derive(serde::Serialize)]", "use {a::B, serde::C};", "use serde;"];
        let more = ["use serde as s;", "extern crate serde;", "impl ::serde::Serialize for X {}", "(serde::x!())"];
        for text in uses.into_iter().chain(more) {
            assert!(names(text, "serde"), "{text}");
        }
        let others = ["use crate::serde::X;", "use serde_json::X;", "my_serde::x()", "// serde::x", "let serde = 1;"];
        for text in others.into_iter().chain(["    //! serde::x", "use self::serde;", "<T>::serde::X"]) {
            assert!(!names(text, "serde"), "{text}");
        }
    }
}
