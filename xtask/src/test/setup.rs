//! What is done once before the stages: programs, the web app, the builds, PostgreSQL. A part that fails is kept as the
//! reason why stages that need it cannot run; the other stages go on.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::plan::{self, TestNeed, TestStage};
use crate::api_tools::InstalledApiTools;
use crate::clis::InstalledClis;
use crate::collector::InstalledCollector;
use crate::mcp_servers::InstalledMcpServers;
use crate::postgres::TestPostgres;
use crate::repository::{Repository, XtaskResult};
use crate::steps::Steps;
use crate::{prerequisites, web};

#[derive(Default)]
pub struct TestSetup {
    failed_stages: Vec<(&'static str, String)>,
    failed_needs: Vec<(TestNeed, String)>,
    postgres: Option<TestPostgres>,
    clis: Option<InstalledClis>,
    mcp_servers: Option<InstalledMcpServers>,
    collector: Option<InstalledCollector>,
    api_tools: Option<InstalledApiTools>,
    has_nextest: bool,
    /// How long the two cargo builds took.
    pub building: Duration,
}

impl TestSetup {
    pub fn prepare(repository: &Repository, steps: &Steps, stages: &[&'static TestStage]) -> Self {
        let mut setup = Self { has_nextest: finds_nextest(repository), ..Self::default() };
        setup.install_programs(steps, stages);
        let can_run = |stage: &&&TestStage| setup.failed_stages.iter().all(|(name, _)| *name != stage.name);
        let needs = plan::needs(&stages.iter().filter(can_run).copied().collect::<Vec<_>>());
        // First, because the build of crates/server puts the web app into the binary.
        if needs.contains(&TestNeed::WebApp) {
            setup.note(TestNeed::WebApp, web::build(repository, steps));
        }
        // Downloads leave the processor to the build. They come after the web app: one npm at a time.
        let Downloads { clis, mcp_servers, collector, api_tools } = std::thread::scope(|scope| {
            let downloads = scope.spawn(|| download(steps, &needs));
            setup.build(repository, steps, &needs);
            let stopped = || "the installation stopped early".to_owned();
            downloads.join().unwrap_or_else(|_| Downloads {
                clis: Some(Err(stopped())),
                mcp_servers: Some(Err(stopped())),
                collector: Some(Err(stopped())),
                api_tools: Some(Err(stopped())),
            })
        });
        setup.clis = clis.and_then(|clis| setup.note(TestNeed::Clis, clis));
        setup.mcp_servers = mcp_servers.and_then(|servers| setup.note(TestNeed::McpServers, servers));
        setup.collector = collector.and_then(|collector| setup.note(TestNeed::Collector, collector));
        setup.api_tools = api_tools.and_then(|tools| setup.note(TestNeed::ApiTools, tools));
        if needs.contains(&TestNeed::Postgres) {
            setup.postgres = setup.note(TestNeed::Postgres, TestPostgres::start());
        }
        setup
    }

    /// Why this stage cannot run, if it cannot.
    pub fn reason_against(&self, stage: &TestStage) -> Option<&str> {
        let missing = self.failed_stages.iter().find(|(name, _)| *name == stage.name).map(|(_, reason)| reason);
        let needed = || self.failed_needs.iter().find(|(need, _)| stage.needs.contains(need)).map(|(_, reason)| reason);
        missing.or_else(needed).map(String::as_str)
    }

    pub fn has_nextest(&self) -> bool {
        self.has_nextest
    }

    pub fn postgres_url(&self) -> Option<&str> {
        self.postgres.as_ref().map(TestPostgres::url)
    }

    pub fn pass_clis(&self, command: &mut Command) {
        if let Some(clis) = &self.clis {
            clis.pass_to(command);
        }
    }

    pub fn pass_mcp_servers(&self, command: &mut Command) {
        if let Some(servers) = &self.mcp_servers {
            servers.pass_to(command);
        }
    }

    pub fn pass_api_tools(&self, command: &mut Command) {
        if let Some(tools) = &self.api_tools {
            tools.pass_to(command);
        }
    }

    pub fn pass_collector(&self, command: &mut Command) {
        if let Some(collector) = &self.collector {
            collector.pass_to(command);
        }
    }

    /// All at once, and stage by stage when that fails, so that one missing package stops only the stages that need it.
    fn install_programs(&mut self, steps: &Steps, stages: &[&'static TestStage]) {
        let all: Vec<_> = stages.iter().flat_map(|stage| stage.programs).copied().collect();
        if prerequisites::ensure(&all, steps).is_ok() {
            return;
        }
        for stage in stages {
            if let Err(reason) = prerequisites::ensure(stage.programs, steps) {
                self.failed_stages.push((stage.name, reason));
            }
        }
    }

    fn build(&mut self, repository: &Repository, steps: &Steps, needs: &[TestNeed]) {
        let begun = Instant::now();
        for (need, arguments) in plan::builds(needs) {
            let label = match need {
                TestNeed::RustTests => "Building the tests",
                _ => "Building the programs and the tests with them",
            };
            let built = steps.build(label, repository.cargo().args(arguments));
            self.note(need, built);
        }
        self.building = begun.elapsed();
    }

    fn note<T>(&mut self, need: TestNeed, result: XtaskResult<T>) -> Option<T> {
        result.map_err(|reason| self.failed_needs.push((need, reason))).ok()
    }
}

/// What the stages need from npm and pip.
struct Downloads {
    clis: Option<XtaskResult<InstalledClis>>,
    mcp_servers: Option<XtaskResult<InstalledMcpServers>>,
    collector: Option<XtaskResult<InstalledCollector>>,
    api_tools: Option<XtaskResult<InstalledApiTools>>,
}

fn download(steps: &Steps, needs: &[TestNeed]) -> Downloads {
    Downloads {
        clis: needs.contains(&TestNeed::Clis).then(|| InstalledClis::install(steps)),
        mcp_servers: needs.contains(&TestNeed::McpServers).then(|| InstalledMcpServers::install(steps)),
        collector: needs.contains(&TestNeed::Collector).then(|| InstalledCollector::install(steps)),
        api_tools: needs.contains(&TestNeed::ApiTools).then(|| InstalledApiTools::install(steps)),
    }
}

fn finds_nextest(repository: &Repository) -> bool {
    let mut command = repository.cargo();
    command.args(["nextest", "--version"]).stdin(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_part_stops_only_the_stages_that_need_it() {
        let mut setup = TestSetup::default();
        assert_eq!(setup.note(TestNeed::WebApp, Err::<(), _>("no npm".into())), None);
        assert_eq!(setup.note(TestNeed::Clis, Ok(7)), Some(7));
        setup.failed_stages.push(("mcp", "no python".into()));
        let reasons: Vec<_> = plan::STAGES.iter().map(|stage| (stage.name, setup.reason_against(stage))).collect();
        assert_eq!(
            reasons,
            [
                ("tidy", None),
                ("web", Some("no npm")),
                ("security", None),
                ("rust", None),
                ("sandbox", None),
                ("cli", None),
                ("mcp", Some("no python")),
                ("api", None),
                ("traces", None),
                ("browser", Some("no npm")),
                ("chaos", None),
                ("guard", None),
            ]
        );
    }
}
