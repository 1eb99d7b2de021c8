//! Which stages there are, what each needs, and which run side by side. Tables and pure functions only.

use std::time::Duration;

use super::stages::{self, StageContext, StageResult};
use crate::guard;
use crate::prerequisites::{C_COMPILER, CHROMIUM, CURL, GIT, NODE, POSTGRESQL, PYTHON, Prerequisite};
use crate::repository::XtaskResult;

pub struct TestStage {
    pub name: &'static str,
    /// Programs that have to be on the machine.
    pub programs: &'static [Prerequisite],
    /// What has to be set up before the lanes start.
    pub needs: &'static [TestNeed],
    /// A stage that takes longer has failed.
    pub limit: Duration,
    pub run: fn(&StageContext<'_>) -> XtaskResult<StageResult>,
}

/// Set up once and shared by the stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestNeed {
    /// `web/dist` is built.
    WebApp,
    /// Every test of the workspace is built, except the targets `cli`, `mcp`, `api`, `sandbox` and `traces`.
    RustTests,
    /// The targets `cli`, `mcp`, `api`, `sandbox` and `traces` and all programs that tests start are built.
    TestPrograms,
    Postgres,
    Clis,
    McpServers,
    Collector,
    ApiTools,
}

use TestNeed::{ApiTools, Clis, Collector, McpServers, Postgres, RustTests, TestPrograms, WebApp};

pub const STAGES: &[TestStage] = &[
    TestStage { name: "tidy", programs: &[GIT], needs: &[], limit: minutes(5), run: stages::tidy },
    TestStage { name: "web", programs: &[NODE], needs: &[WebApp], limit: minutes(15), run: stages::web },
    TestStage {
        name: "security",
        programs: &[C_COMPILER, POSTGRESQL, CURL],
        needs: &[RustTests, Postgres],
        limit: minutes(30),
        run: stages::security,
    },
    TestStage {
        name: "rust",
        programs: &[C_COMPILER, POSTGRESQL, GIT],
        needs: &[RustTests, Postgres],
        limit: minutes(60),
        run: stages::rust,
    },
    TestStage {
        name: "sandbox",
        programs: &[C_COMPILER],
        needs: &[TestPrograms],
        limit: minutes(10),
        run: stages::sandbox,
    },
    TestStage {
        name: "cli",
        programs: &[C_COMPILER, NODE],
        needs: &[TestPrograms, Clis],
        limit: minutes(30),
        run: stages::cli,
    },
    TestStage {
        name: "mcp",
        programs: &[C_COMPILER, NODE, PYTHON, GIT],
        needs: &[TestPrograms, McpServers],
        limit: minutes(30),
        run: stages::mcp,
    },
    TestStage {
        name: "api",
        programs: &[C_COMPILER, NODE, PYTHON],
        needs: &[TestPrograms, ApiTools],
        limit: minutes(10),
        run: stages::api,
    },
    TestStage {
        name: "traces",
        programs: &[C_COMPILER, PYTHON],
        needs: &[TestPrograms, Collector],
        limit: minutes(5),
        run: stages::traces,
    },
    TestStage {
        name: "browser",
        programs: &[C_COMPILER, NODE, CHROMIUM],
        needs: &[WebApp, TestPrograms, Clis],
        limit: minutes(40),
        run: stages::browser,
    },
    TestStage {
        name: "chaos",
        programs: &[C_COMPILER],
        needs: &[TestPrograms],
        limit: minutes(30),
        run: stages::chaos,
    },
    TestStage {
        name: "guard",
        programs: guard::PROGRAMS,
        needs: &[TestPrograms],
        limit: minutes(10),
        run: stages::guard,
    },
];

/// Lanes run side by side, the stages of a lane one after the other. Change this when a stage with time limits of its
/// own becomes unreliable beside another: a third lane made tests with deadlines fail on two cores.
pub const LANES: &[&[&str]] =
    &[&["tidy", "security", "rust", "sandbox", "chaos"], &["web", "cli", "mcp", "api", "traces", "browser", "guard"]];

/// The same for every build and every run of tests: another selection of packages or features would build the
/// dependencies once more.
pub const SELECTION: &[&str] = &["--workspace", "--features", "greenroom/test-hooks"];

/// Tests that need programs from npm or pip, and those of the sandbox, which need what not every machine permits. They have
/// `test = false`, so the default selection leaves them out.
const NAMED_TARGETS: &[&str] =
    &["--test", "cli", "--test", "mcp", "--test", "api", "--test", "sandbox", "--test", "traces"];

/// How the names of attack tests begin: the finding of the audit, or the invariant, that the test is about (docs/security.md).
/// The stage `security` runs exactly these, the stage `rust` all others.
pub const ATTACKS: &[&str] = &[
    "c2_",
    "h1_",
    "h2_",
    "h3_",
    "h4_",
    "h5_",
    "m1_",
    "m2_",
    "m3_",
    "m4_",
    "m5_",
    "m6_",
    "m7_",
    "m8_",
    "m9_",
    "m10_",
    "m11_",
    "m12_",
    "m13_",
    "l1_",
    "l2_",
    "l3_",
    "l4_",
    "l5_",
    "l6_",
    "l7_",
    "l8_",
    "l9_",
    "l10_",
    "invariant_15_",
    "invariant_21_",
    "invariant_28_",
];

/// Which of the Rust tests a stage runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestSlice {
    Attacks,
    Others,
}

impl TestSlice {
    /// For nextest.
    pub fn filter_expression(self) -> String {
        let attacks = format!("test(/(^|::)({})/)", ATTACKS.join("|"));
        match self {
            Self::Attacks => attacks,
            Self::Others => format!("not {attacks}"),
        }
    }

    /// For `cargo test`, which compares parts of names: what one slice selects, the other one skips.
    pub fn libtest_arguments(self) -> Vec<String> {
        let parts = ATTACKS.iter().map(|attack| format!("::{attack}"));
        match self {
            Self::Attacks => parts.collect(),
            Self::Others => parts.flat_map(|part| ["--skip".to_owned(), part]).collect(),
        }
    }
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// Cargo's arguments for the builds that these needs ask for, in order. Naming an integration test also builds all
/// programs of its package: this is where `greenroom`, `chaos` and `fake-mcp` come from.
pub fn builds(needs: &[TestNeed]) -> Vec<(TestNeed, Vec<&'static str>)> {
    let wanted = [(RustTests, &[][..]), (TestPrograms, NAMED_TARGETS)];
    let asked = wanted.into_iter().filter(|(need, _)| needs.contains(need));
    asked.map(|(need, targets)| (need, [&["test", "--no-run"], SELECTION, targets].concat())).collect()
}

/// What at least one of the stages needs, each once.
pub fn needs(stages: &[&TestStage]) -> Vec<TestNeed> {
    let mut needs: Vec<TestNeed> = Vec::new();
    for need in stages.iter().flat_map(|stage| stage.needs) {
        if !needs.contains(need) {
            needs.push(*need);
        }
    }
    needs
}

/// The stages' names before `--`, and the arguments after it.
pub fn split(arguments: &[String]) -> (&[String], &[String]) {
    match arguments.iter().position(|argument| argument == "--") {
        Some(separator) => (&arguments[..separator], &arguments[separator + 1..]),
        None => (arguments, &[]),
    }
}

/// Every stage when none is named.
pub fn select(names: &[String]) -> XtaskResult<Vec<&'static TestStage>> {
    if let Some(unknown) = names.iter().find(|name| STAGES.iter().all(|stage| stage.name != name.as_str())) {
        let known: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
        return Err(format!("unknown stage `{unknown}`; the stages are {}", known.join(", ")));
    }
    let is_wanted = |stage: &&TestStage| names.is_empty() || names.iter().any(|name| name == stage.name);
    Ok(STAGES.iter().filter(is_wanted).collect())
}

/// The selected stages in their lanes, without lanes that would be empty.
pub fn lanes(selected: &[&'static TestStage]) -> Vec<Vec<&'static TestStage>> {
    let stage = |name: &&str| selected.iter().find(|stage| stage.name == *name).copied();
    let lanes = LANES.iter().map(|lane| lane.iter().filter_map(stage).collect::<Vec<_>>());
    lanes.filter(|lane| !lane.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::TEST_HOOKS;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    fn names(stages: XtaskResult<Vec<&TestStage>>) -> XtaskResult<Vec<&str>> {
        stages.map(|stages| stages.iter().map(|stage| stage.name).collect())
    }

    #[test]
    fn no_name_selects_every_stage() {
        assert_eq!(
            names(select(&[])),
            Ok(vec![
                "tidy", "web", "security", "rust", "sandbox", "cli", "mcp", "api", "traces", "browser", "chaos",
                "guard"
            ])
        );
    }

    #[test]
    fn named_stages_keep_their_order() {
        assert_eq!(names(select(&words(&["chaos", "cli", "tidy"]))), Ok(vec!["tidy", "cli", "chaos"]));
    }

    #[test]
    fn an_unknown_stage_is_refused_with_the_known_ones() {
        let refusal = names(select(&words(&["rust", "wep"])));
        assert!(refusal.is_err_and(|message| message.contains("`wep`")
            && message.contains("tidy, web, security, rust, sandbox, cli, mcp, api, traces, browser, chaos, guard")));
    }

    #[test]
    fn arguments_after_the_separator_are_passed_on() {
        let arguments = words(&["rust", "--", "--package", "store"]);
        assert_eq!(split(&arguments), (&words(&["rust"])[..], &words(&["--package", "store"])[..]));
    }

    #[test]
    fn every_stage_is_in_exactly_one_lane() {
        let mut in_lanes: Vec<&str> = LANES.concat();
        let mut known: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
        in_lanes.sort();
        known.sort();
        assert_eq!(in_lanes, known);
    }

    #[test]
    fn lanes_hold_the_selected_stages_only() {
        let selected = select(&words(&["chaos", "tidy", "mcp"])).unwrap();
        let lanes: Vec<Vec<&str>> =
            lanes(&selected).iter().map(|lane| lane.iter().map(|stage| stage.name).collect()).collect();
        assert_eq!(lanes, [vec!["tidy", "chaos"], vec!["mcp"]]);
    }

    #[test]
    fn the_slices_select_by_the_same_names() {
        let attacks = TestSlice::Attacks.filter_expression();
        assert!(attacks.starts_with("test(/(^|::)(c2_|h1_|"), "{attacks}");
        assert_eq!(TestSlice::Others.filter_expression(), format!("not {attacks}"));
        let selected = TestSlice::Attacks.libtest_arguments();
        let skipped: Vec<String> =
            TestSlice::Others.libtest_arguments().into_iter().filter(|argument| argument != "--skip").collect();
        assert_eq!((selected.len(), &selected), (ATTACKS.len(), &skipped));
    }

    #[test]
    fn each_build_happens_once_and_with_the_same_selection() {
        let all = builds(&needs(&select(&[]).unwrap()));
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|(_, arguments)| arguments[2..5] == *SELECTION));
        assert_eq!(all[1].1[5..], *NAMED_TARGETS);
        let browser = builds(&needs(&select(&words(&["browser", "chaos"])).unwrap()));
        assert_eq!(browser.iter().map(|(need, _)| *need).collect::<Vec<_>>(), [TestPrograms]);
        assert_eq!(builds(&needs(&select(&words(&["tidy", "web"])).unwrap())), []);
    }

    #[test]
    fn the_feature_is_the_one_of_the_chaos_build() {
        assert_eq!(SELECTION[2], format!("greenroom/{TEST_HOOKS}"));
    }
}
