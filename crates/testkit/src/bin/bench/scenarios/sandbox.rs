//! What a sandbox costs: its start, a command in it against a plain one, and the first answer of each real CLI inside against
//! outside. Both sides alternate.

use super::agent_room::{AgentRoom, millis};
use crate::{
    Bench,
    stack::GreenroomStack,
    statistics::{Rounds, percentile},
    table::{Aim, FigureRow, FigureUnit},
};
use anyhow::{Context as _, ensure};
use sandbox::{
    CommandExit, CommandIo, CommandSpec, IsolationTier, LocalDriver, LocalSandbox, SandboxCommand as _, SandboxPolicy,
};
use serde_json::json;
use std::{
    fs::File,
    process::Stdio,
    time::{Duration, Instant},
};
use testkit::{client::TestServerProcess, models::ModelDouble, programs::CliPrograms};
use tokio::process::Command;

const STOP: Duration = Duration::from_secs(30);
const COMMAND: [&str; 3] = ["bash", "-c", "exit 0"];

/// The provider, its model, and what people call the program.
const CLIS: [(&str, &str, &str); 3] = [
    ("claude_code", "claude-sonnet-4-5", "Claude Code"),
    ("codex", "gpt-5.5", "Codex"),
    ("gemini", "gemini-2.5-pro", "Gemini CLI"),
];

#[derive(Default)]
pub struct SandboxScenario {
    start: Rounds,
    inside: Rounds,
    plain: Rounds,
    /// Of each program of `CLIS`.
    cold_inside: [Rounds; CLIS.len()],
    cold_outside: [Rounds; CLIS.len()],
}

impl SandboxScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        self.commands(bench).await?;
        let models = ModelDouble::start().await?;
        let inside = start_server(bench, &models, "auto").await?;
        let outside = start_server(bench, &models, "none").await?;
        let measured = self.cold_starts(bench, &inside, &outside).await;
        inside.terminate(STOP).await?;
        outside.terminate(STOP).await?;
        measured
    }

    async fn commands(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let folder = bench.new_folder("sandbox");
        let driver = LocalDriver::new(IsolationTier::Native, &bench.binary, &folder);
        driver.create_folder(&folder)?;
        let mut starts = Vec::new();
        for _ in 0..bench.scale.sandbox_starts {
            let begun = Instant::now();
            let sandbox = driver.start_sandbox(SandboxPolicy::new(&folder)).await?;
            starts.push(millis(begun));
            sandbox.stop().await?;
        }
        let sandbox = driver.start_sandbox(SandboxPolicy::new(&folder)).await?;
        let (mut inside, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..bench.scale.sandbox_commands {
            let begun = Instant::now();
            run_inside(&sandbox).await?;
            inside.push(millis(begun));
            let begun = Instant::now();
            let [program, arguments @ ..] = COMMAND;
            let null = [Stdio::null(), Stdio::null(), Stdio::null()];
            let [stdin, stdout, stderr] = null;
            let status =
                Command::new(program).args(arguments).stdin(stdin).stdout(stdout).stderr(stderr).status().await?;
            plain.push(millis(begun));
            ensure!(status.success(), "the plain command ended with {status}");
        }
        sandbox.stop().await?;
        self.start.push(percentile(&starts, 50.0).context("no start")?);
        self.inside.push(percentile(&inside, 50.0).context("no command")?);
        self.plain.push(percentile(&plain, 50.0).context("no command")?);
        Ok(())
    }

    async fn cold_starts(
        &mut self,
        bench: &Bench,
        inside: &TestServerProcess,
        outside: &TestServerProcess,
    ) -> anyhow::Result<()> {
        for (at, (provider, model, _)) in CLIS.into_iter().enumerate() {
            let (mut within, mut without) = (Vec::new(), Vec::new());
            for number in 0..bench.scale.cold_starts {
                // The first of a pair warms up the caches of the machine for the second.
                if number % 2 == 0 {
                    within.push(cold_start(inside, provider, model).await?);
                    without.push(cold_start(outside, provider, model).await?);
                } else {
                    without.push(cold_start(outside, provider, model).await?);
                    within.push(cold_start(inside, provider, model).await?);
                }
            }
            self.cold_inside[at].push(percentile(&within, 50.0).context("no start")?);
            self.cold_outside[at].push(percentile(&without, 50.0).context("no start")?);
        }
        Ok(())
    }

    pub fn rows(self) -> Vec<FigureRow> {
        let unit = FigureUnit::Milliseconds;
        let mut rows = vec![
            FigureRow::new("start of a sandbox", unit, self.start).aiming_at(Aim::AtMost(15.0)),
            FigureRow::new("command in a running sandbox", unit, self.inside)
                .against("plain spawn", self.plain)
                .aiming_at(Aim::RatioAtMost(2.0)),
        ];
        let cold = self.cold_inside.into_iter().zip(self.cold_outside);
        rows.extend(CLIS.into_iter().zip(cold).map(|((_, _, name), (inside, outside))| {
            FigureRow::new(format!("cold start of {name}, new room to first word"), unit, inside)
                .against("outside", outside)
                .aiming_at(Aim::RatioAtMost(1.15))
        }));
        rows
    }
}

async fn run_inside(sandbox: &LocalSandbox) -> anyhow::Result<()> {
    let null = || File::options().read(true).write(true).open("/dev/null");
    let io = CommandIo { stdin: null()?.into(), stdout: null()?.into(), stderr: null()?.into() };
    let exit = sandbox.run(CommandSpec::new(COMMAND), io).await?.wait().await;
    ensure!(exit == CommandExit::Code(0), "the command in the sandbox ended with {exit:?}");
    Ok(())
}

async fn start_server(bench: &Bench, models: &ModelDouble, agents: &str) -> anyhow::Result<TestServerProcess> {
    let CliPrograms { claude, codex, gemini } = CliPrograms::from_env();
    let launch = GreenroomStack::launch(&bench.binary, &bench.new_folder(agents))
        .with("GREENROOM_SANDBOX__AGENTS", agents)
        .with("GREENROOM_CLAUDE_CODE__COMMAND", claude.display().to_string())
        .with("GREENROOM_CLAUDE_CODE__SHARE_LOGIN", "false")
        .with("GREENROOM_CODEX__COMMAND", codex.display().to_string())
        .with("GREENROOM_CODEX__SHARE_LOGIN", "false")
        .with("GREENROOM_ACP__AGENTS", format!("gemini = '{}' --acp", gemini.display()))
        .with("GREENROOM_ACP__SHARE_LOGIN", "false")
        .with("ANTHROPIC_BASE_URL", models.url())
        .with("ANTHROPIC_API_KEY", "test-key")
        .with("OPENAI_BASE_URL", format!("{}/v1", models.url()))
        .with("OPENAI_API_KEY", "test-key")
        .with("GOOGLE_GEMINI_BASE_URL", models.url())
        .with("GEMINI_API_KEY", "test-key");
    launch.start().await
}

/// The time from a new agent and its room to its first word: nothing of the program runs before.
async fn cold_start(server: &TestServerProcess, provider: &str, model: &str) -> anyhow::Result<f64> {
    let name = uuid::Uuid::new_v4().simple().to_string();
    let agent = json!({"name": name, "provider": provider, "model": model});
    let begun = Instant::now();
    let mut room = AgentRoom::open(server.client()?, &agent).await?;
    let opened = millis(begun);
    Ok(opened + room.turn("hello").await?.first)
}
