//! Greenroom as an MCP server beside small servers on the official SDKs, in turn: calls of a tool, and sessions that wait.

mod calls;
mod client;
mod contenders;
mod sessions;

use crate::{
    Bench,
    statistics::Rounds,
    table::{Aim, Row, Unit, grouped},
};
use calls::{Figures, Tally};
use client::Era;
use contenders::{Contender, Reference};
use sessions::Kind;
use std::time::Duration;

/// So that what compiles while it runs has done so.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long Greenroom keeps the sessions of clients that went.
const KEPT: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct McpServer {
    session: Side,
    modern: Side,
    idle: Idle,
    left: Left,
}

/// One era: Greenroom and those it is compared with.
#[derive(Default)]
struct Side {
    greenroom: Figures,
    typescript: Figures,
    python: Figures,
}

/// KiB for each.
#[derive(Default)]
struct Idle {
    session: Rounds,
    session_typescript: Rounds,
    sse: Rounds,
    listener: Rounds,
    listener_typescript: Rounds,
}

/// MiB of Greenroom.
#[derive(Default)]
struct Left {
    before: Rounds,
    held: Rounds,
    after: Rounds,
}

impl McpServer {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        self.session.round(bench, Era::Session, Reference::TypescriptV1).await?;
        self.modern.round(bench, Era::Modern, Reference::TypescriptV2).await?;
        self.idle.round(bench).await?;
        self.left.round(bench).await
    }

    pub fn rows(self, bench: &Bench) -> Vec<Row> {
        let mut rows = self.session.rows("with a session", "TypeScript SDK 1 (echo)");
        rows.extend(self.modern.rows("modern", "TypeScript SDK 2 (echo)"));
        rows.extend(self.idle.rows(bench.scale.mcp_idle));
        rows.extend(self.left.rows(bench.scale.mcp_left));
        rows
    }
}

impl Side {
    async fn round(&mut self, bench: &Bench, era: Era, typescript: Reference) -> anyhow::Result<()> {
        let contenders = [
            Contender::greenroom(bench).await?,
            Contender::reference(typescript, bench).await?,
            Contender::reference(Reference::Python, bench).await?,
        ];
        let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
        for contender in &contenders {
            Tally::default().crowd(contender, era, WARM_UP).await?;
        }
        for _ in 0..bench.scale.mcp_turns {
            for (tally, contender) in tallies.iter_mut().zip(&contenders) {
                tally.crowd(contender, era, Duration::from_millis(bench.scale.mcp_milliseconds)).await?;
                tally.alone(contender, era, bench.scale.mcp_calls_alone).await?;
            }
        }
        for (figures, tally) in [&mut self.greenroom, &mut self.typescript, &mut self.python].into_iter().zip(&tallies)
        {
            figures.push(tally)?;
        }
        Ok(())
    }

    fn rows(self, who: &str, typescript: &'static str) -> Vec<Row> {
        let python = "Python SDK (echo)";
        let row = |what: &str, unit, greenroom: &Rounds, name, baseline| {
            Row::new(format!("{what} of `list_agents` over MCP, {who}"), unit, greenroom.clone())
                .against(name, baseline)
        };
        let calls = |name, baseline| {
            row("16 clients: calls/s", Unit::PerSecond, &self.greenroom.calls_a_second, name, baseline)
        };
        let cost = |name, baseline| {
            let greenroom = &self.greenroom.processor_microseconds_a_call;
            row("16 clients: processor time per call", Unit::Microseconds, greenroom, name, baseline)
        };
        let alone = |name, baseline| row("1 client: p50", Unit::Milliseconds, &self.greenroom.median, name, baseline);
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

impl Idle {
    /// Each in a process of its own: memory that was given back to the allocator is not counted again.
    async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let count = bench.scale.mcp_idle;
        for (rounds, kind) in
            [(&mut self.session, Kind::Session), (&mut self.sse, Kind::Sse), (&mut self.listener, Kind::Listener)]
        {
            rounds.push(sessions::idle(&Contender::greenroom(bench).await?, kind, count).await?);
        }
        for (rounds, reference, kind) in [
            (&mut self.session_typescript, Reference::TypescriptV1, Kind::Session),
            (&mut self.listener_typescript, Reference::TypescriptV2, Kind::Listener),
        ] {
            rounds.push(sessions::idle(&Contender::reference(reference, bench).await?, kind, count).await?);
        }
        Ok(())
    }

    fn rows(self, count: usize) -> Vec<Row> {
        let count = grouped(&count.to_string());
        let row = |what: &str, rounds| {
            let what = format!("memory per idle MCP client, {what}, {count} held");
            Row::new(what, Unit::Kibibytes, rounds).aiming_at(Aim::AtMost(64.0))
        };
        vec![
            row("session with its stream on `/mcp`", self.session).against("TypeScript SDK 1", self.session_typescript),
            row("session on `/sse`", self.sse),
            row("modern, `subscriptions/listen`", self.listener).against("TypeScript SDK 2", self.listener_typescript),
        ]
    }
}

impl Left {
    async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let seconds = KEPT.as_secs().to_string();
        let greenroom =
            Contender::greenroom_with(bench, &[("GREENROOM_MCP_SERVER__SESSION_IDLE_SECONDS", seconds.as_str())])
                .await?;
        let left = sessions::left(&greenroom, bench.scale.mcp_left, KEPT).await?;
        self.before.push(left.before);
        self.held.push(left.held);
        self.after.push(left.after);
        Ok(())
    }

    fn rows(self, count: usize) -> Vec<Row> {
        let what = format!("memory after {} MCP sessions without a goodbye", grouped(&count.to_string()));
        vec![
            Row::new(format!("{what}, before they expire"), Unit::Mebibytes, self.held)
                .against("before they came", self.before.clone()),
            Row::new(format!("{what}, when they have expired"), Unit::Mebibytes, self.after)
                .against("before they came", self.before)
                .aiming_at(Aim::RatioAtMost(1.1)),
        ]
    }
}
