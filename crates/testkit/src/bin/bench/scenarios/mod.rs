//! What is measured. Every scenario takes part in every round, so that a slow spell of the machine meets all of them.

mod idle;
mod journal;
mod latency;
mod mcp_client;
mod mcp_server;
mod pages;
mod path;
mod providers;
mod start;

pub use journal::script;

use crate::{Bench, table::Row};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Far beyond what any of them needs.
const LONGEST_ROUND: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Scenario {
    /// Events stored per second, nobody reading.
    Journal,
    /// Tokens per second from provider to readers.
    Path,
    /// How late a token arrives.
    Latency,
    /// Memory per reader that waits.
    Idle,
    /// Reading and writing a long room.
    Pages,
    /// Until it listens, memory at rest, size.
    Start,
    /// What the MCP manager adds to a call of a tool.
    McpClient,
    /// Calls of tools and sessions of the MCP server. Only when named: `cargo xtask bench mcp` brings what it is compared with.
    Mcp,
    /// What a turn of a real program costs more in a room. Only when named: `cargo xtask bench providers` brings it.
    Providers,
}

enum Measured {
    Journal(journal::Journal),
    Path(path::Path),
    Latency(latency::Latency),
    Idle(idle::Idle),
    Pages(pages::Pages),
    Start(start::Start),
    McpClient(mcp_client::McpClient),
    Mcp(Box<mcp_server::McpServer>),
    Providers(providers::Providers),
}

impl Measured {
    fn new(scenario: Scenario) -> Self {
        match scenario {
            Scenario::Journal => Self::Journal(journal::Journal::default()),
            Scenario::Path => Self::Path(path::Path::default()),
            Scenario::Latency => Self::Latency(latency::Latency::default()),
            Scenario::Idle => Self::Idle(idle::Idle::default()),
            Scenario::Pages => Self::Pages(pages::Pages::default()),
            Scenario::Start => Self::Start(start::Start::default()),
            Scenario::McpClient => Self::McpClient(mcp_client::McpClient::default()),
            Scenario::Mcp => Self::Mcp(Box::default()),
            Scenario::Providers => Self::Providers(providers::Providers::default()),
        }
    }

    async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        match self {
            Self::Journal(it) => it.round(bench).await,
            Self::Path(it) => it.round(bench).await,
            Self::Latency(it) => it.round(bench).await,
            Self::Idle(it) => it.round(bench).await,
            Self::Pages(it) => it.round(bench).await,
            Self::Start(it) => it.round(bench).await,
            Self::McpClient(it) => it.round(bench).await,
            Self::Mcp(it) => it.round(bench).await,
            Self::Providers(it) => it.round(bench).await,
        }
    }

    fn rows(self, bench: &Bench) -> Vec<Row> {
        match self {
            Self::Journal(it) => it.rows(bench),
            Self::Path(it) => it.rows(),
            Self::Latency(it) => it.rows(bench),
            Self::Idle(it) => it.rows(),
            Self::Pages(it) => it.rows(bench),
            Self::Start(it) => it.rows(),
            Self::McpClient(it) => it.rows(),
            Self::Mcp(it) => it.rows(bench),
            Self::Providers(it) => it.rows(),
        }
    }
}

/// The rows, and what could not be measured.
pub async fn measure(bench: &Bench, only: &[Scenario]) -> (Vec<Row>, Vec<String>) {
    let all: &[Scenario] = <Scenario as clap::ValueEnum>::value_variants();
    let by_default = |scenario: &Scenario| only.is_empty() && !matches!(scenario, Scenario::Providers | Scenario::Mcp);
    let wanted = all.iter().filter(|scenario| by_default(scenario) || only.contains(scenario));
    let mut measured: Vec<(Scenario, Measured)> = wanted.map(|it| (*it, Measured::new(*it))).collect();
    let mut failures = Vec::new();
    for round in 1..=bench.scale.rounds {
        for (scenario, it) in &mut measured {
            let begin = Instant::now();
            let failure = match timeout(LONGEST_ROUND, it.round(bench)).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{scenario:?} in round {round}: {error:#}")),
                Err(_) => Some(format!("{scenario:?} in round {round}: not done after {LONGEST_ROUND:?}")),
            };
            let outcome = if failure.is_some() { "failed" } else { "done" };
            eprintln!("round {round}: {scenario:?} {outcome} in {:.1} s", begin.elapsed().as_secs_f64());
            failures.extend(failure);
        }
    }
    (measured.into_iter().flat_map(|(_, it)| it.rows(bench)).collect(), failures)
}
