//! `cargo xtask guard`: checks figures that hardly depend on the machine against bounds, so that a change that makes the
//! server much larger or slower fails before it is merged. It measures no time: that is what `bench` is for.
//!
//! The debug build is checked, because `cargo xtask test` has built it anyway and a release build takes many minutes.
//! Its figures differ from those of a release, so they have their own bounds, but a new allocation, copy or query per
//! event shows in both. `--release` builds first, because an old binary in `target` would say nothing about the source.
//!
//! The benchmark's driver takes the figures (`crates/testkit/src/bin/bench/guard`); `bounds.rs` judges them.

mod bounds;

use std::process::ExitCode;
use std::time::Duration;

use crate::prerequisites::{self, C_COMPILER, Prerequisite, VALGRIND};
use crate::progress::TextOutput;
use crate::repository::{BuildProfile, Repository, XtaskResult};
use crate::steps::Steps;
use crate::test;
use crate::totals::TestTotals;

pub const PROGRAMS: &[Prerequisite] = &[C_COMPILER, VALGRIND];

/// It takes about half a minute.
const LIMIT: Duration = Duration::from_secs(5 * 60);

pub fn command(arguments: &[String]) -> XtaskResult<ExitCode> {
    match arguments {
        [] => return test::command(&["guard".to_owned()]),
        [argument] if argument == "--release" => {}
        _ => return Err("the only argument is --release".into()),
    }
    let profile = BuildProfile::Release;
    let repository = Repository::locate()?;
    let steps = Steps::open(&repository, "guard", TextOutput::Stdout)?;
    prerequisites::ensure(PROGRAMS, &steps)?;
    let mut build = repository.build(profile, &["greenroom", "testkit"], &["greenroom", "bench"]);
    steps.build("Building the server and its driver", &mut build)?;
    let (totals, report) = check(&repository, &steps, profile)?;
    drop(steps);
    println!("{report}");
    Ok(if totals.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The totals and the text for the terminal. The server and the driver have to be built.
pub fn check(repository: &Repository, steps: &Steps, profile: BuildProfile) -> XtaskResult<(TestTotals, String)> {
    let activity = steps.begin("guard");
    let mut driver = repository.program(&repository.binary(profile, "bench"));
    driver.arg("--guard").arg("--binary").arg(repository.binary(profile, "greenroom"));
    let mut output = String::new();
    let status = steps.follow(&mut driver, LIMIT, &mut |line| {
        activity.detail(line.to_owned());
        output.push_str(line);
        output.push('\n');
    })?;
    match status.success() {
        true => Ok(bounds::judge(&bounds::figures(&output), profile)),
        false => Err(format!("the server could not be measured:\n{output}")),
    }
}
