//! What each stage runs. Everything was built by `setup.rs`, with the same selection, so that cargo finds it fresh.

use std::process::Command;
use std::time::{Duration, Instant};

use super::doctests;
use super::format::TestFormat;
use super::plan::{SELECTION, TestSlice};
use super::record::{TestRecord, TimedTest, read_line};
use super::setup::TestSetup;
use crate::progress::cargo_output;
use crate::repository::{BuildProfile, Repository, XtaskResult, spell};
use crate::steps::Steps;
use crate::tidy::SourceTree;
use crate::totals::TestTotals;
use crate::{chaos as chaos_command, guard as guard_command, tidy as tidy_rules, web as web_app};

pub struct StageContext<'a> {
    pub name: &'static str,
    pub repository: &'a Repository,
    pub setup: &'a TestSetup,
    /// With the log of this stage.
    pub steps: &'a Steps,
    /// What follows `--`: for nextest where it is installed, else for `cargo test`.
    pub arguments: &'a [String],
    pub limit: Duration,
}

#[derive(Default, Debug)]
pub struct StageResult {
    pub totals: TestTotals,
    pub built: Duration,
    pub ran: Duration,
    pub timed: Vec<TimedTest>,
}

impl StageResult {
    fn and(mut self, other: Self) -> Self {
        self.totals += other.totals;
        self.built += other.built;
        self.ran += other.ran;
        self.timed.extend(other.timed);
        self
    }
}

pub fn tidy(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let begun = Instant::now();
    let (totals, report) = tidy_rules::check(context.repository.root())?;
    Ok(checked(context, totals, &report, begun))
}

/// The debug build, which is what there is here.
pub fn guard(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let begun = Instant::now();
    let (totals, report) = guard_command::check(context.repository, context.steps, BuildProfile::Debug)?;
    Ok(checked(context, totals, &report, begun))
}

/// The result of a check of our own. Its report is shown when something failed.
fn checked(context: &StageContext<'_>, totals: TestTotals, report: &str, begun: Instant) -> StageResult {
    match totals.is_success() {
        true => context.steps.log(report),
        false => context.steps.say(report),
    }
    StageResult { totals, ran: begun.elapsed(), ..StageResult::default() }
}

pub fn web(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let begun = Instant::now();
    context.steps.run("web: types and lints", &mut web_app::check(context.repository))?;
    let checked = StageResult { ran: begun.elapsed(), ..StageResult::default() };
    Ok(checked.and(watch(context, TestFormat::Vitest, &mut web_app::unit_tests(context.repository))?))
}

/// The attacks: what docs/security.md promises.
pub fn security(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let (format, mut tests) = slice(context, TestSlice::Attacks);
    watch(context, format, &mut tests)
}

pub fn rust(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let (format, mut tests) = slice(context, TestSlice::Others);
    let result = watch(context, format, &mut tests)?;
    // `cargo test` runs examples in comments by itself, nextest does not.
    if format == TestFormat::Libtest || !doctests::exist(&SourceTree::read(context.repository.root())?) {
        return Ok(result);
    }
    let mut examples = context.repository.cargo();
    examples.args(["test", "--doc", "--no-fail-fast"]).args(SELECTION);
    Ok(result.and(watch(context, TestFormat::Libtest, &mut examples)?))
}

/// What is tried to get out of a sandbox, and a sandbox as a server uses it.
pub fn sandbox(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let (format, mut tests) = rust_tests(context, &["--test", "sandbox"]);
    watch(context, format, &mut tests)
}

/// The real CLIs against our own double of the model APIs.
pub fn cli(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let (format, mut tests) = rust_tests(context, &["--test", "cli"]);
    context.setup.pass_clis(&mut tests);
    watch(context, format, &mut tests)
}

/// Our MCP client and server against real ones and the protocol's conformance suite. These tests take turns with a lock
/// in their own process (crates/testkit/tests/mcp), so nextest, with a process for each test, would run them together.
pub fn mcp(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let mut tests = cargo_test(context, &["--test", "mcp"]);
    context.setup.pass_mcp_servers(&mut tests);
    watch(context, TestFormat::Libtest, &mut tests)
}

/// The API against its own document, with programs of others: a linter, client generators and a generator of requests.
pub fn api(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let (format, mut tests) = rust_tests(context, &["--test", "api"]);
    context.setup.pass_api_tools(&mut tests);
    watch(context, format, &mut tests)
}

/// The server's traces, at a real collector.
pub fn traces(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let (format, mut tests) = rust_tests(context, &["--test", "traces"]);
    context.setup.pass_collector(&mut tests);
    watch(context, format, &mut tests)
}

pub fn browser(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let mut tests = web_app::browser_tests(context.repository)?;
    // For the way of a newcomer to the first answer of a real program.
    context.setup.pass_clis(&mut tests);
    watch(context, TestFormat::Vitest, &mut tests)
}

pub fn chaos(context: &StageContext<'_>) -> XtaskResult<StageResult> {
    let mut sum = StageResult::default();
    for arguments in chaos_command::SHORT_RUNS {
        let binary = context.repository.binary(BuildProfile::Debug, "greenroom");
        let mut driver = chaos_command::driver(context.repository, BuildProfile::Debug, arguments, &binary);
        let mut result = watch(context, TestFormat::Chaos, &mut driver)?;
        result.timed.push(TimedTest { name: arguments.join(" "), took: result.ran });
        sum = sum.and(result);
    }
    Ok(sum)
}

/// A part of the tests of the workspace, on both databases.
fn slice(context: &StageContext<'_>, slice: TestSlice) -> (TestFormat, Command) {
    let (format, mut tests) = rust_tests(context, &[]);
    match format {
        // Nextest runs what any of several expressions selects, so that one from the command line would select nothing less.
        TestFormat::Nextest if context.arguments.iter().any(|argument| argument == "-E") => {}
        TestFormat::Nextest => {
            tests.args(["-E", &slice.filter_expression()]);
        }
        _ => {
            let is_separated = context.arguments.iter().any(|argument| argument == "--");
            tests.args((!is_separated).then_some("--")).args(slice.libtest_arguments());
        }
    }
    if let Some(url) = context.setup.postgres_url() {
        tests.env("GREENROOM_TEST_POSTGRES", url);
    }
    (format, tests)
}

fn rust_tests(context: &StageContext<'_>, targets: &[&str]) -> (TestFormat, Command) {
    if !context.setup.has_nextest() {
        return (TestFormat::Libtest, cargo_test(context, targets));
    }
    let mut nextest = context.repository.cargo();
    nextest.args(["nextest", "run", "--no-fail-fast", "--color", "never", "--show-progress", "counter"]);
    nextest.args(SELECTION).args(targets).args(context.arguments);
    (TestFormat::Nextest, nextest)
}

fn cargo_test(context: &StageContext<'_>, targets: &[&str]) -> Command {
    let mut cargo = context.repository.cargo();
    cargo.args(["test", "--no-fail-fast"]).args(SELECTION).args(targets).args(context.arguments);
    cargo
}

/// Runs a test program and shows what failed. An error means that it could not run at all.
fn watch(context: &StageContext<'_>, format: TestFormat, command: &mut Command) -> XtaskResult<StageResult> {
    let activity = context.steps.begin(context.name);
    let mut record = TestRecord::default();
    let mut built = None;
    let mut output = String::new();
    let status = context.steps.follow_cargo(command, context.limit, &mut |line| {
        let cargo = cargo_output::read(line);
        read_line(format, line, &mut record);
        match cargo_output::detail(&cargo).filter(|_| !record.has_started()) {
            Some(detail) => activity.detail(format!("building, {detail}")),
            None => {
                output.push_str(line);
                output.push('\n');
            }
        }
        if record.has_started() {
            built.get_or_insert_with(|| activity.elapsed());
            activity.detail(record.detail());
        }
    })?;
    let took = activity.elapsed();
    drop(activity);
    let (totals, timed, complaint) = record.conclude(status.success());
    if totals.failed > 0 {
        context.steps.show(&format.failures(&output));
    }
    if let Some(complaint) = complaint {
        context.steps.say(&format!("`{}` {complaint} ({status})", spell(command)));
    }
    let built = built.unwrap_or_default();
    Ok(StageResult { totals, built, ran: took.saturating_sub(built), timed })
}
