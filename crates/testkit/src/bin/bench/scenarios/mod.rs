//! The scenarios. Every scenario runs in every round, so that a slow phase of the machine affects all of them.

mod agent_room;
mod direct;
pub mod idle;
mod journal;
mod latency;
mod mcp_client;
mod mcp_server;
mod nodes;
mod pages;
mod path;
mod providers;
mod rooms;
mod sandbox;
mod start;

pub use journal::counting_script;

use crate::{Bench, table::FigureRow};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Much longer than any scenario needs.
const LONGEST_ROUND: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Scenario {
    /// Events stored per second without readers.
    Journal,
    /// Tokens per second from provider to readers.
    Path,
    /// Latency of tokens.
    Latency,
    /// Latency of tokens with many agents in one room.
    Rooms,
    /// Memory per idle reader.
    Idle,
    /// Reading and writing a long room.
    Pages,
    /// Startup time, memory at rest, binary size.
    Start,
    /// Overhead of a room for a turn with a bare model API.
    Direct,
    /// Overhead of the MCP manager per tool call.
    McpClient,
    /// Tool calls and sessions of the MCP server. Only when named: `cargo xtask bench mcp` installs the reference
    /// servers.
    Mcp,
    /// Delay of a reader on another server of one PostgreSQL. Only when named: `cargo xtask bench nodes` starts one.
    Nodes,
    /// Overhead of a room for a turn of a real program. Only when named: `cargo xtask bench providers` installs it.
    Providers,
    /// Start of a sandbox, commands and real programs in it. Only when named: `cargo xtask bench sandbox` installs the programs.
    Sandbox,
}

enum ScenarioRounds {
    Journal(journal::JournalScenario),
    Path(path::PathScenario),
    Latency(latency::LatencyScenario),
    Rooms(rooms::RoomsScenario),
    Idle(idle::IdleScenario),
    Pages(pages::PagesScenario),
    Start(start::StartScenario),
    Direct(direct::DirectScenario),
    McpClient(mcp_client::McpClientScenario),
    Mcp(Box<mcp_server::McpServerScenario>),
    Nodes(nodes::NodesScenario),
    Providers(providers::ProvidersScenario),
    Sandbox(Box<sandbox::SandboxScenario>),
}

impl ScenarioRounds {
    fn new(scenario: Scenario) -> Self {
        match scenario {
            Scenario::Journal => Self::Journal(journal::JournalScenario::default()),
            Scenario::Path => Self::Path(path::PathScenario::default()),
            Scenario::Latency => Self::Latency(latency::LatencyScenario::default()),
            Scenario::Rooms => Self::Rooms(rooms::RoomsScenario::default()),
            Scenario::Idle => Self::Idle(idle::IdleScenario::default()),
            Scenario::Pages => Self::Pages(pages::PagesScenario::default()),
            Scenario::Start => Self::Start(start::StartScenario::default()),
            Scenario::Direct => Self::Direct(direct::DirectScenario::default()),
            Scenario::McpClient => Self::McpClient(mcp_client::McpClientScenario::default()),
            Scenario::Mcp => Self::Mcp(Box::default()),
            Scenario::Nodes => Self::Nodes(nodes::NodesScenario::default()),
            Scenario::Providers => Self::Providers(providers::ProvidersScenario::default()),
            Scenario::Sandbox => Self::Sandbox(Box::default()),
        }
    }

    async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        match self {
            Self::Journal(it) => it.round(bench).await,
            Self::Path(it) => it.round(bench).await,
            Self::Latency(it) => it.round(bench).await,
            Self::Rooms(it) => it.round(bench).await,
            Self::Idle(it) => it.round(bench).await,
            Self::Pages(it) => it.round(bench).await,
            Self::Start(it) => it.round(bench).await,
            Self::Direct(it) => it.round(bench).await,
            Self::McpClient(it) => it.round(bench).await,
            Self::Mcp(it) => it.round(bench).await,
            Self::Nodes(it) => it.round(bench).await,
            Self::Providers(it) => it.round(bench).await,
            Self::Sandbox(it) => it.round(bench).await,
        }
    }

    fn rows(self, bench: &Bench) -> Vec<FigureRow> {
        match self {
            Self::Journal(it) => it.rows(bench),
            Self::Path(it) => it.rows(),
            Self::Latency(it) => it.rows(bench),
            Self::Rooms(it) => it.rows(),
            Self::Idle(it) => it.rows(),
            Self::Pages(it) => it.rows(bench),
            Self::Start(it) => it.rows(),
            Self::Direct(it) => it.rows(),
            Self::McpClient(it) => it.rows(),
            Self::Mcp(it) => it.rows(bench),
            Self::Nodes(it) => it.rows(),
            Self::Providers(it) => it.rows(),
            Self::Sandbox(it) => it.rows(),
        }
    }
}

impl Scenario {
    /// The name on the command line and in the document.
    pub fn name(self) -> String {
        clap::ValueEnum::to_possible_value(&self).map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// The result of one scenario. With failures, the rows are incomplete.
pub struct MeasuredPart {
    pub name: String,
    pub rows: Vec<FigureRow>,
    pub failures: Vec<String>,
}

pub async fn measure(bench: &Bench, only: &[Scenario]) -> Vec<MeasuredPart> {
    let all: &[Scenario] = <Scenario as clap::ValueEnum>::value_variants();
    let needs_more = |scenario: &Scenario| {
        matches!(scenario, Scenario::Providers | Scenario::Mcp | Scenario::Nodes | Scenario::Sandbox)
    };
    let by_default = |scenario: &Scenario| only.is_empty() && !needs_more(scenario);
    let wanted = all.iter().filter(|scenario| by_default(scenario) || only.contains(scenario));
    let mut measured: Vec<(String, ScenarioRounds, Vec<String>)> =
        wanted.map(|it| (it.name(), ScenarioRounds::new(*it), Vec::new())).collect();
    for round in 1..=bench.scale.rounds {
        for (name, it, failures) in &mut measured {
            let begin = Instant::now();
            let failure = match timeout(LONGEST_ROUND, it.round(bench)).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{name} in round {round}: {error:#}")),
                Err(_) => Some(format!("{name} in round {round}: not done after {LONGEST_ROUND:?}")),
            };
            let outcome = if failure.is_some() { "failed" } else { "done" };
            eprintln!("round {round}: {name} {outcome} in {:.1} s", begin.elapsed().as_secs_f64());
            failures.extend(failure);
        }
    }
    let part = |(name, it, failures): (String, ScenarioRounds, Vec<String>)| {
        let rows = it.rows(bench);
        MeasuredPart { name, rows, failures }
    };
    measured.into_iter().map(part).collect()
}
