//! How many calls a server answers, and what one of them costs it.

use super::{
    client::{Client, Era},
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

/// Of one server, round by round.
#[derive(Default)]
pub struct Figures {
    pub calls_a_second: Rounds,
    pub processor_microseconds_a_call: Rounds,
    /// Of a client that is alone, in milliseconds.
    pub median: Rounds,
}

/// Of one server in one round, over all its turns.
#[derive(Default)]
pub struct Tally {
    calls: u32,
    elapsed: Duration,
    processor: Duration,
    alone: Vec<f64>,
}

impl Tally {
    /// Every client calls, again as soon as it is answered, until the time is over.
    pub async fn crowd(&mut self, contender: &Contender, era: Era, time: Duration) -> anyhow::Result<()> {
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(Client::connect(contender.address, era, contender.tool).await?);
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

    pub async fn alone(&mut self, contender: &Contender, era: Era, calls: usize) -> anyhow::Result<()> {
        let mut client = Client::connect(contender.address, era, contender.tool).await?;
        for _ in 0..calls {
            let begin = Instant::now();
            client.call().await?;
            self.alone.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        Ok(())
    }
}

async fn call_until(mut client: Client, end: Instant) -> anyhow::Result<u32> {
    let mut calls = 0;
    while Instant::now() < end {
        client.call().await?;
        calls += 1;
    }
    Ok(calls)
}

impl Figures {
    pub fn push(&mut self, tally: &Tally) -> anyhow::Result<()> {
        let calls = f64::from(tally.calls);
        self.calls_a_second.push(calls / tally.elapsed.as_secs_f64());
        self.processor_microseconds_a_call.push(tally.processor.as_secs_f64() * 1e6 / calls);
        self.median.push(percentile(&tally.alone, 50.0).context("no call")?);
        Ok(())
    }
}
