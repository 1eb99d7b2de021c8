//! Throughput and processor cost of calls to a server.

use super::{
    client::{BenchEra, BenchMcpClient},
    contenders::Contender,
};
use crate::{
    statistics::{Rounds, percentile},
    usage,
};
use anyhow::Context as _;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const CLIENTS: usize = 16;

/// The figures of one server, one value per round.
#[derive(Default)]
pub struct CallFigures {
    pub calls_a_second: Rounds,
    pub processor_microseconds_a_call: Rounds,
    /// The median latency with a single client, in milliseconds.
    pub median: Rounds,
}

/// The raw counts of one server in one round, summed over all its turns.
#[derive(Default)]
pub struct CallTally {
    calls: u32,
    elapsed: Duration,
    processor: Duration,
    single_latencies: Vec<f64>,
}

impl CallTally {
    /// Each client calls in a loop until the time is over.
    pub async fn measure_concurrent(
        &mut self,
        contender: &Contender,
        era: BenchEra,
        time: Duration,
    ) -> anyhow::Result<()> {
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(BenchMcpClient::connect(contender.address, era, contender.tool).await?);
        }
        let processor = usage::processor_time(contender.pid()?)?;
        let begin = Instant::now();
        let mut calling = JoinSet::new();
        for client in clients {
            calling.spawn(call_until(client, begin + time));
        }
        while let Some(calls) = calling.join_next().await {
            self.calls += calls??;
        }
        self.elapsed += begin.elapsed();
        self.processor += usage::processor_time(contender.pid()?)?.saturating_sub(processor);
        Ok(())
    }

    pub async fn measure_single(&mut self, contender: &Contender, era: BenchEra, calls: usize) -> anyhow::Result<()> {
        let mut client = BenchMcpClient::connect(contender.address, era, contender.tool).await?;
        for _ in 0..calls {
            let begin = Instant::now();
            client.call().await?;
            self.single_latencies.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        Ok(())
    }
}

async fn call_until(mut client: BenchMcpClient, end: Instant) -> anyhow::Result<u32> {
    let mut calls = 0;
    while Instant::now() < end {
        client.call().await?;
        calls += 1;
    }
    Ok(calls)
}

impl CallFigures {
    pub fn push(&mut self, tally: &CallTally) -> anyhow::Result<()> {
        let calls = f64::from(tally.calls);
        self.calls_a_second.push(calls / tally.elapsed.as_secs_f64());
        self.processor_microseconds_a_call.push(tally.processor.as_secs_f64() * 1e6 / calls);
        self.median.push(percentile(&tally.single_latencies, 50.0).context("no call")?);
        Ok(())
    }
}
