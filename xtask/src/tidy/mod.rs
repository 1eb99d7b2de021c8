//! `cargo xtask tidy`: the rules of the source tree, each one a test.
//!
//! A rule is a pure function from the tree to its findings. It must not touch the disk itself, so that a good and a bad
//! example fit in a unit test. To add one: write the function, give it a line in `RULES`.

mod direction;
mod documents;
mod layout;
mod manifest;
mod markdown;
mod migrations;
mod reexports;
mod searches;
mod security_tests;
mod size;
mod text;
mod tree;
mod types;
mod unsafe_code;
mod words;

use std::path::Path;
use std::process::ExitCode;

use crate::repository::{Repository, XtaskResult};
use crate::totals::TestTotals;
use tree::TidyFinding;

pub use tree::SourceTree;

struct TidyRule {
    name: &'static str,
    check: fn(&SourceTree) -> Vec<TidyFinding>,
}

const RULES: &[TidyRule] = &[
    TidyRule { name: "source files stay small", check: size::source_files_stay_small },
    TidyRule { name: "the code map names existing paths", check: documents::the_map_names_existing_paths },
    TidyRule { name: "links between documents work", check: documents::links_hold },
    TidyRule { name: "promises name existing tests", check: security_tests::promises_name_existing_tests },
    TidyRule { name: "searches lead to their file", check: searches::lead_to_their_file },
    TidyRule { name: "crates depend in one direction", check: direction::crates_depend_in_one_direction },
    TidyRule { name: "re-exports follow the direction", check: reexports::reexports_follow_the_direction },
    TidyRule { name: "libraries stay in their crates", check: direction::libraries_stay_in_their_crates },
    TidyRule { name: "versions are in the workspace manifest", check: direction::dependencies_come_from_the_workspace },
    TidyRule { name: "only the app reads the environment", check: direction::only_the_app_reads_the_environment },
    TidyRule { name: "unsafe code stays in its crates", check: unsafe_code::stays_in_its_crates },
    TidyRule { name: "names say what is inside", check: layout::names_say_what_is_inside },
    TidyRule { name: "each public type has its own name", check: types::have_their_own_names },
    TidyRule { name: "module folders have a head comment", check: layout::module_folders_have_a_head_comment },
    TidyRule { name: "migrations come in pairs", check: migrations::come_in_pairs },
    TidyRule { name: "plain words", check: words::are_plain },
    TidyRule { name: "no path of one machine", check: text::no_path_of_one_machine },
    TidyRule { name: "no ignored test, nothing left to do", check: text::nothing_left_to_do },
];

pub fn command(_arguments: &[String]) -> XtaskResult<ExitCode> {
    let (totals, report) = check(Repository::locate()?.root())?;
    println!("{report}");
    Ok(if totals.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The totals and the text for the terminal.
pub fn check(root: &Path) -> XtaskResult<(TestTotals, String)> {
    let tree = SourceTree::read(root)?;
    let mut totals = TestTotals::default();
    let mut lines = Vec::new();
    for rule in RULES {
        let findings = (rule.check)(&tree);
        match findings.is_empty() {
            true => totals.passed += 1,
            false => totals.failed += 1,
        }
        lines.push(format!("tidy: {} ... {}", rule.name, if findings.is_empty() { "ok" } else { "FAILED" }));
        lines.extend(findings.iter().map(TidyFinding::to_string));
    }
    lines.push(format!("tidy: {totals}"));
    Ok((totals, lines.join("\n")))
}
