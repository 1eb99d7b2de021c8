//! `cargo xtask tidy`: the rules of the source tree, each one a test.
//!
//! A rule is a pure function from the tree to its findings. It must never touch the disk itself, so
//! that a good and a bad example of it fit in a unit test. To add one: write the function, give it
//! a line in `RULES`.

mod direction;
mod documents;
mod layout;
mod manifest;
mod markdown;
mod migrations;
mod size;
mod text;
mod tree;

use std::path::Path;
use std::process::ExitCode;

use crate::totals::Totals;
use crate::workspace::{Outcome, Workspace};
use tree::{Finding, Tree};

struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule { name: "source files stay small", check: size::source_files_stay_small },
    Rule { name: "the code map names existing paths", check: documents::the_map_names_existing_paths },
    Rule { name: "links between documents hold", check: documents::links_hold },
    Rule { name: "crates depend in the allowed direction", check: direction::crates_follow_the_arrows },
    Rule { name: "libraries stay in their rooms", check: direction::libraries_stay_in_their_rooms },
    Rule { name: "only the app reads the environment", check: direction::only_the_app_reads_the_environment },
    Rule { name: "names say what is inside", check: layout::names_say_what_is_inside },
    Rule { name: "folders have a door that explains them", check: layout::folders_have_a_door },
    Rule { name: "migrations come in pairs", check: migrations::come_in_pairs },
    Rule { name: "no path of one machine", check: text::no_path_of_one_machine },
    Rule { name: "no ignored test, nothing left to do", check: text::nothing_left_to_do },
];

pub fn command(_arguments: &[String]) -> Outcome<ExitCode> {
    let totals = check(Workspace::locate()?.root())?;
    Ok(if totals.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub fn check(root: &Path) -> Outcome<Totals> {
    let tree = Tree::read(root)?;
    let mut totals = Totals::default();
    for rule in RULES {
        let findings = (rule.check)(&tree);
        match findings.is_empty() {
            true => totals.passed += 1,
            false => totals.failed += 1,
        }
        println!("tidy: {} ... {}", rule.name, if findings.is_empty() { "ok" } else { "FAILED" });
        for finding in findings {
            println!("{finding}");
        }
    }
    println!("tidy: {totals}");
    Ok(totals)
}
