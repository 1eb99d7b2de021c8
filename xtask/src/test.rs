//! `cargo xtask test`: every test there is, in stages, ending in one line of totals.
//!
//! A stage that cannot run counts as one failed test, so a broken machine never looks like a green
//! one.

use std::io::stdout;
use std::process::ExitCode;

use crate::clis::Clis;
use crate::mcp_servers::McpServers;
use crate::postgres::Postgres;
use crate::prerequisites::{self, C_COMPILER, CHROMIUM, GIT, NODE, POSTGRESQL, PYTHON, Prerequisite};
use crate::totals::{self, Totals};
use crate::workspace::{Outcome, Profile, Workspace};
use crate::{chaos, tidy, web};

struct Stage {
    name: &'static str,
    needs: &'static [Prerequisite],
    uses_postgres: bool,
    run: fn(&Setting) -> Outcome<Totals>,
}

const STAGES: &[Stage] = &[
    Stage { name: "tidy", needs: &[], uses_postgres: false, run: run_tidy },
    // First, so that the binaries of the stages after it have the app in them.
    Stage { name: "web", needs: &[NODE], uses_postgres: false, run: run_web },
    Stage { name: "rust", needs: &[C_COMPILER, POSTGRESQL], uses_postgres: true, run: run_rust },
    Stage { name: "cli", needs: &[C_COMPILER, NODE], uses_postgres: false, run: run_cli },
    Stage { name: "mcp", needs: &[C_COMPILER, NODE, PYTHON, GIT], uses_postgres: false, run: run_mcp },
    Stage { name: "browser", needs: &[C_COMPILER, NODE, CHROMIUM], uses_postgres: false, run: run_browser },
    Stage { name: "chaos", needs: &[C_COMPILER], uses_postgres: false, run: run_chaos },
];

/// What the stages of one run share.
struct Setting {
    workspace: Workspace,
    postgres: Option<Postgres>,
    cargo_arguments: Vec<String>,
}

pub fn command(arguments: &[String]) -> Outcome<ExitCode> {
    let (names, cargo_arguments) = split(arguments);
    let stages = select(names)?;
    let mut setting =
        Setting { workspace: Workspace::locate()?, postgres: None, cargo_arguments: cargo_arguments.to_vec() };
    let mut sum = Totals::default();
    let mut report = Vec::new();
    for stage in stages {
        println!("== {} ==", stage.name);
        let totals = run(stage, &mut setting).unwrap_or_else(|message| {
            eprintln!("xtask test: stage {} could not run: {message}", stage.name);
            Totals::ONE_FAILED
        });
        report.push(format!("{}: {totals}", stage.name));
        sum += totals;
    }
    // Stopped before the totals, because they have to be the last line.
    drop(setting);
    println!("== totals ==\n{}\n{sum}", report.join("\n"));
    Ok(if sum.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn split(arguments: &[String]) -> (&[String], &[String]) {
    match arguments.iter().position(|argument| argument == "--") {
        Some(separator) => (&arguments[..separator], &arguments[separator + 1..]),
        None => (arguments, &[]),
    }
}

fn select(names: &[String]) -> Outcome<Vec<&'static Stage>> {
    if let Some(unknown) = names.iter().find(|name| STAGES.iter().all(|stage| stage.name != name.as_str())) {
        let known: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
        return Err(format!("there is no stage `{unknown}`; the stages are {}", known.join(", ")));
    }
    let wanted = |stage: &&Stage| names.is_empty() || names.iter().any(|name| name == stage.name);
    Ok(STAGES.iter().filter(wanted).collect())
}

fn run(stage: &Stage, setting: &mut Setting) -> Outcome<Totals> {
    prerequisites::ensure(stage.needs)?;
    if stage.uses_postgres && setting.postgres.is_none() {
        setting.postgres = Some(Postgres::start()?);
    }
    (stage.run)(setting)
}

fn run_tidy(setting: &Setting) -> Outcome<Totals> {
    tidy::check(setting.workspace.root())
}

fn run_web(setting: &Setting) -> Outcome<Totals> {
    web::test(&setting.workspace)
}

fn run_browser(setting: &Setting) -> Outcome<Totals> {
    web::test_in_browser(&setting.workspace)
}

fn run_rust(setting: &Setting) -> Outcome<Totals> {
    let mut cargo = setting.workspace.cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast"]).args(&setting.cargo_arguments);
    if let Some(postgres) = &setting.postgres {
        cargo.env("GREENROOM_TEST_POSTGRES", postgres.url());
    }
    totals::run(&mut cargo, &mut stdout(), totals::from_test_result)
}

/// The real CLIs against our own double of the model APIs. Without their variables the same tests
/// are skipped, as happens in the stage `rust`.
fn run_cli(setting: &Setting) -> Outcome<Totals> {
    let clis = Clis::install()?;
    let mut cargo = setting.workspace.cargo();
    // Of the whole workspace, as the stage before it: another selection of packages could mean other
    // features of shared dependencies, and then they would all be built once more.
    cargo.args(["test", "--workspace", "--no-fail-fast", "--test", "cli"]).args(&setting.cargo_arguments);
    clis.hand_to(&mut cargo);
    totals::run(&mut cargo, &mut stdout(), totals::from_test_result)
}

/// Our MCP client and our MCP server against real ones and against the protocol's own examination,
/// for which a server is built that has what it asks for.
fn run_mcp(setting: &Setting) -> Outcome<Totals> {
    let servers = McpServers::install()?;
    // Clients start it; the selection below builds tests only.
    setting.workspace.build(Profile::Test, chaos::PACKAGES, &["greenroom"])?;
    let examined = setting.workspace.build_apart(Profile::Test, chaos::PACKAGES, "conformance")?;
    let mut cargo = setting.workspace.cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast", "--test", "mcp"]).args(&setting.cargo_arguments);
    servers.hand_to(&mut cargo);
    cargo.env("GREENROOM_TEST_MCP_GREENROOM_CONFORMANCE", examined);
    totals::run(&mut cargo, &mut stdout(), totals::from_test_result)
}

fn run_chaos(setting: &Setting) -> Outcome<Totals> {
    let mut sum = Totals::default();
    for arguments in chaos::SHORT_RUNS {
        println!("-- chaos {}", arguments.join(" "));
        let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string()).collect();
        let outcome = chaos::prepare(&setting.workspace, Profile::Test, &arguments).and_then(|mut driver| {
            let read = |line: &str| totals::from_closing_line("chaos", line);
            totals::run(&mut driver, &mut stdout(), read)
        });
        sum += outcome.unwrap_or_else(|message| {
            eprintln!("xtask test: chaos {} could not run: {message}", arguments.join(" "));
            Totals::ONE_FAILED
        });
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    fn names(stages: Outcome<Vec<&Stage>>) -> Outcome<Vec<&str>> {
        stages.map(|stages| stages.iter().map(|stage| stage.name).collect())
    }

    #[test]
    fn no_name_selects_every_stage() {
        assert_eq!(names(select(&[])), Ok(vec!["tidy", "web", "rust", "cli", "mcp", "browser", "chaos"]));
    }

    #[test]
    fn named_stages_keep_their_order() {
        assert_eq!(names(select(&words(&["chaos", "cli", "tidy"]))), Ok(vec!["tidy", "cli", "chaos"]));
    }

    #[test]
    fn an_unknown_stage_is_refused_with_the_known_ones() {
        let refusal = names(select(&words(&["rust", "wep"])));
        assert!(refusal.is_err_and(
            |message| message.contains("`wep`") && message.contains("tidy, web, rust, cli, mcp, browser, chaos")
        ));
    }

    #[test]
    fn what_follows_the_separator_is_for_cargo() {
        let arguments = words(&["rust", "--", "--package", "store"]);
        assert_eq!(split(&arguments), (&words(&["rust"])[..], &words(&["--package", "store"])[..]));
    }
}
