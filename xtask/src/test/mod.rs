//! `cargo xtask test`: every test, in stages, some of them side by side, ending in one line of totals.
//!
//! A stage that cannot run counts as one failed test, so that a broken machine never looks like a green one. Must not
//! know how a test works. Start at `plan.rs`: its tables say what runs and when.

mod doctests;
mod format;
mod plan;
mod record;
mod report;
mod setup;
mod stages;

use std::process::ExitCode;
use std::time::Instant;

use crate::progress::TextOutput;
use crate::repository::{Repository, XtaskResult};
use crate::steps::Steps;
use crate::totals::TestTotals;
use plan::TestStage;
use report::StageReport;
use setup::TestSetup;
use stages::{StageContext, StageResult};

pub fn command(arguments: &[String]) -> XtaskResult<ExitCode> {
    let begun = Instant::now();
    let (names, arguments) = plan::split(arguments);
    let stages = plan::select(names)?;
    let repository = Repository::locate()?;
    let steps = Steps::open(&repository, "test", TextOutput::Stdout)?;
    let setup = TestSetup::prepare(&repository, &steps, &stages);
    let reports = run_lanes(&stages, &repository, &setup, &steps, arguments);
    let (building, logs) = (setup.building, steps.log_name().replace("test.log", "test*.log"));
    // Stopped before the totals, because those have to be the last line.
    drop(setup);
    drop(steps);
    println!("{}", report::closing(&reports, building, begun.elapsed(), &logs));
    Ok(if report::sum(&reports).is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The reports are in the order of the stages, whichever ended first.
fn run_lanes(
    stages: &[&'static TestStage],
    repository: &Repository,
    setup: &TestSetup,
    steps: &Steps,
    arguments: &[String],
) -> Vec<StageReport> {
    let run = |stage: &'static TestStage| run_stage(stage, repository, setup, steps, arguments);
    let mut reports: Vec<StageReport> = std::thread::scope(|scope| {
        let lanes = plan::lanes(stages).into_iter().map(|lane| {
            let names: Vec<&'static str> = lane.iter().map(|stage| stage.name).collect();
            (names, scope.spawn(move || lane.into_iter().map(run).collect::<Vec<_>>()))
        });
        // All lanes are started before the first is waited for.
        let lanes: Vec<_> = lanes.collect();
        lanes
            .into_iter()
            .flat_map(|(names, lane)| lane.join().unwrap_or_else(|_| names.into_iter().map(failed).collect()))
            .collect()
    });
    reports.sort_by_key(|report| plan::STAGES.iter().position(|stage| stage.name == report.name));
    reports
}

fn run_stage(
    stage: &'static TestStage,
    repository: &Repository,
    setup: &TestSetup,
    steps: &Steps,
    arguments: &[String],
) -> StageReport {
    let name = stage.name;
    let own_steps = match steps.branch(&format!("test-{name}")) {
        Ok(own_steps) => own_steps,
        Err(reason) => {
            steps.say(&format!("{name} could not run: {reason}"));
            return failed(name);
        }
    };
    let result = match setup.reason_against(stage) {
        Some(reason) => Err(reason.to_owned()),
        None => {
            let limit = stage.limit;
            (stage.run)(&StageContext { name, repository, setup, steps: &own_steps, arguments, limit })
        }
    };
    let report = match result {
        Ok(result) => StageReport { name, result },
        Err(reason) => {
            own_steps.say(&format!("{name} could not run: {reason}"));
            failed(name)
        }
    };
    own_steps.say(&report::stage_line(&report));
    if report.result.totals.failed > 0 {
        own_steps.say(&format!("Log: {}", own_steps.log_name()));
    }
    report
}

fn failed(name: &'static str) -> StageReport {
    StageReport { name, result: StageResult { totals: TestTotals::ONE_FAILED, ..StageResult::default() } }
}
