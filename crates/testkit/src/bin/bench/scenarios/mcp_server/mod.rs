//! Greenroom as an MCP server compared with small servers on the official SDKs: tool calls, idle and abandoned
//! sessions.

mod calls;
mod client;
mod contenders;
mod sessions;

use crate::{
    Bench,
    statistics::Rounds,
    table::{Aim, FigureRow, FigureUnit, grouped},
};
use calls::{CallFigures, CallTally};
use client::BenchEra;
use contenders::{Contender, ReferenceServer};
use sessions::IdleSessionKind;
use std::time::Duration;

/// Lets just-in-time compilers finish before measuring.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long Greenroom keeps abandoned sessions.
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct McpServerScenario {
    session: EraRounds,
    modern: EraRounds,
    idle: IdleSessionRounds,
    abandoned: AbandonedSessionRounds,
}

/// The figures of one era, for Greenroom and the reference servers.
#[derive(Default)]
struct EraRounds {
    greenroom: CallFigures,
    typescript: CallFigures,
    python: CallFigures,
}

/// KiB per idle session.
#[derive(Default)]
struct IdleSessionRounds {
    session: Rounds,
    session_typescript: Rounds,
    sse: Rounds,
    listener: Rounds,
    listener_typescript: Rounds,
}

/// Greenroom's memory in MiB around abandoned sessions.
#[derive(Default)]
struct AbandonedSessionRounds {
    before: Rounds,
    held: Rounds,
    after: Rounds,
}

impl McpServerScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        self.session.round(bench, BenchEra::Session, ReferenceServer::TypescriptV1).await?;
        self.modern.round(bench, BenchEra::Modern, ReferenceServer::TypescriptV2).await?;
        self.idle.round(bench).await?;
        self.abandoned.round(bench).await
    }

    pub fn rows(self, bench: &Bench) -> Vec<FigureRow> {
        let mut rows = self.session.rows("with a session", "TypeScript SDK 1 (echo)");
        rows.extend(self.modern.rows("modern", "TypeScript SDK 2 (echo)"));
        rows.extend(self.idle.rows(bench.scale.mcp_idle));
        rows.extend(self.abandoned.rows(bench.scale.mcp_abandoned));
        rows
    }
}

impl EraRounds {
    async fn round(&mut self, bench: &Bench, era: BenchEra, typescript: ReferenceServer) -> anyhow::Result<()> {
        let contenders = [
            Contender::greenroom(bench).await?,
            Contender::reference(typescript, bench).await?,
            Contender::reference(ReferenceServer::Python, bench).await?,
        ];
        let mut tallies = [CallTally::default(), CallTally::default(), CallTally::default()];
        for contender in &contenders {
            CallTally::default().measure_concurrent(contender, era, WARM_UP).await?;
        }
        for _ in 0..bench.scale.mcp_turns {
            for (tally, contender) in tallies.iter_mut().zip(&contenders) {
                tally.measure_concurrent(contender, era, Duration::from_millis(bench.scale.mcp_milliseconds)).await?;
                tally.measure_single(contender, era, bench.scale.mcp_single_calls).await?;
            }
        }
        for (figures, tally) in [&mut self.greenroom, &mut self.typescript, &mut self.python].into_iter().zip(&tallies)
        {
            figures.push(tally)?;
        }
        Ok(())
    }

    fn rows(self, who: &str, typescript: &'static str) -> Vec<FigureRow> {
        let python = "Python SDK (echo)";
        let row = |what: &str, unit, greenroom: &Rounds, name, baseline| {
            FigureRow::new(format!("{what} of `list_agents` over MCP, {who}"), unit, greenroom.clone())
                .against(name, baseline)
        };
        let calls = |name, baseline| {
            row("16 clients: calls/s", FigureUnit::PerSecond, &self.greenroom.calls_a_second, name, baseline)
        };
        let cost = |name, baseline| {
            let greenroom = &self.greenroom.processor_microseconds_a_call;
            row("16 clients: processor time per call", FigureUnit::Microseconds, greenroom, name, baseline)
        };
        let alone =
            |name, baseline| row("1 client: p50", FigureUnit::Milliseconds, &self.greenroom.median, name, baseline);
        vec![
            calls(typescript, self.typescript.calls_a_second).aiming_at(Aim::RatioAtLeast(10.0)),
            calls(python, self.python.calls_a_second),
            cost(typescript, self.typescript.processor_microseconds_a_call).aiming_at(Aim::RatioAtMost(1.0 / 14.0)),
            cost(python, self.python.processor_microseconds_a_call),
            alone(typescript, self.typescript.median),
            alone(python, self.python.median),
        ]
    }
}

impl IdleSessionRounds {
    /// Each kind gets its own process, because freed memory that the allocator keeps would not be counted again.
    async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let count = bench.scale.mcp_idle;
        for (rounds, kind) in [
            (&mut self.session, IdleSessionKind::Session),
            (&mut self.sse, IdleSessionKind::Sse),
            (&mut self.listener, IdleSessionKind::Listener),
        ] {
            rounds.push(sessions::idle_memory(&Contender::greenroom(bench).await?, kind, count).await?);
        }
        for (rounds, reference, kind) in [
            (&mut self.session_typescript, ReferenceServer::TypescriptV1, IdleSessionKind::Session),
            (&mut self.listener_typescript, ReferenceServer::TypescriptV2, IdleSessionKind::Listener),
        ] {
            rounds.push(sessions::idle_memory(&Contender::reference(reference, bench).await?, kind, count).await?);
        }
        Ok(())
    }

    fn rows(self, count: usize) -> Vec<FigureRow> {
        let count = grouped(&count.to_string());
        let row = |what: &str, rounds| {
            let what = format!("memory per idle MCP client, {what}, {count} held");
            FigureRow::new(what, FigureUnit::Kibibytes, rounds).aiming_at(Aim::AtMost(64.0))
        };
        vec![
            row("session with its stream on `/mcp`", self.session).against("TypeScript SDK 1", self.session_typescript),
            row("session on `/sse`", self.sse),
            row("modern, `subscriptions/listen`", self.listener).against("TypeScript SDK 2", self.listener_typescript),
        ]
    }
}

impl AbandonedSessionRounds {
    async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let seconds = SESSION_TIMEOUT.as_secs().to_string();
        let greenroom =
            Contender::greenroom_with(bench, &[("GREENROOM_MCP_SERVER__SESSION_IDLE_SECONDS", seconds.as_str())])
                .await?;
        let left = sessions::abandoned_memory(&greenroom, bench.scale.mcp_abandoned, SESSION_TIMEOUT).await?;
        self.before.push(left.before);
        self.held.push(left.held);
        self.after.push(left.after);
        Ok(())
    }

    fn rows(self, count: usize) -> Vec<FigureRow> {
        let what = format!("memory after {} abandoned MCP sessions", grouped(&count.to_string()));
        vec![
            FigureRow::new(format!("{what}, before they expire"), FigureUnit::Mebibytes, self.held)
                .against("before they came", self.before.clone()),
            FigureRow::new(format!("{what}, when they have expired"), FigureUnit::Mebibytes, self.after)
                .against("before they came", self.before)
                .aiming_at(Aim::RatioAtMost(1.1)),
        ]
    }
}
