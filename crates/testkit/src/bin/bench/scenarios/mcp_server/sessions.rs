//! What a session that waits holds in memory, and what is left of sessions whose clients went without a word.

use super::{client, contenders::Contender};
use crate::{exchange::Connection, stream::Stream, usage::resident_kibibytes};
use anyhow::Context as _;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// Held before memory is first looked at, so that what every server makes once does not count.
const FIRST: usize = 20;
/// Allocators keep what was freed for a while, Greenroom's for ten seconds: what was only passing through does not count.
const SETTLED: Duration = Duration::from_secs(12);
/// The server looks for sessions to end more often than this.
const LOOKS: Duration = Duration::from_secs(6);
/// By then it has looked often enough.
const LONGEST_END: Duration = Duration::from_secs(90);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `/mcp`: a session and its stream.
    Session,
    /// `/sse` and `/message`.
    Sse,
    /// `subscriptions/listen` on `/mcp`.
    Listener,
}

/// KiB of memory for each of so many that wait.
pub async fn idle(contender: &Contender, kind: Kind, count: usize) -> anyhow::Result<f64> {
    let mut held = Vec::new();
    hold(&mut held, contender.address, kind, FIRST).await?;
    sleep(SETTLED).await;
    let before = resident_kibibytes(contender.pid()?)?;
    hold(&mut held, contender.address, kind, count).await?;
    sleep(SETTLED).await;
    let after = resident_kibibytes(contender.pid()?)?;
    Ok((after - before) / u32::try_from(count).map(f64::from)?)
}

async fn hold(held: &mut Vec<Stream>, address: SocketAddr, kind: Kind, count: usize) -> anyhow::Result<()> {
    let mut posts = Connection::open(address).await?;
    for number in 0..count {
        let stream = match kind {
            Kind::Session => client::session_with_stream(address).await,
            Kind::Sse => client::sse_session(address, &mut posts).await,
            Kind::Listener => client::listener(address).await,
        };
        held.push(stream.with_context(|| format!("{kind:?} {number}"))?);
    }
    Ok(())
}

/// Memory in MiB.
pub struct Left {
    pub before: f64,
    pub held: f64,
    pub after: f64,
}

/// Sessions whose clients never say goodbye, half of them with a stream that is cut. `idle` is how long the server keeps them.
pub async fn left(contender: &Contender, count: usize, idle: Duration) -> anyhow::Result<Left> {
    let resident = || -> anyhow::Result<f64> { Ok(resident_kibibytes(contender.pid()?)? / 1024.0) };
    wave(contender.address, FIRST).await?;
    sleep(idle + LOOKS + SETTLED).await;
    let before = resident()?;
    wave(contender.address, count).await?;
    let held = resident()?;
    let end = Instant::now() + LONGEST_END;
    let mut after = held;
    // Until nothing more is given back.
    loop {
        sleep(idle + LOOKS + SETTLED).await;
        let now = resident()?;
        if now > after * 0.99 || Instant::now() > end {
            return Ok(Left { before, held, after: now });
        }
        after = now;
    }
}

async fn wave(address: SocketAddr, count: usize) -> anyhow::Result<()> {
    for number in 0..count {
        if number % 2 == 0 {
            drop(client::session_with_stream(address).await?);
        } else {
            client::begin_session(&mut Connection::open(address).await?, address).await?;
        }
    }
    Ok(())
}
