//! Memory of idle sessions, and memory that remains after abandoned sessions.

use super::{client, contenders::Contender};
use crate::{connection::RawConnection, stream::RawStream, usage::resident_kibibytes};
use anyhow::Context as _;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// Opened before the first measurement, so that one-time allocations do not count.
const FIRST: usize = 20;
/// Allocators keep freed memory for a while, Greenroom's for ten seconds; waiting excludes temporary allocations.
const SETTLE_TIME: Duration = Duration::from_secs(12);
/// The server checks for expired sessions more often than this.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(6);
/// The longest wait for memory to be returned.
const LONGEST_WAIT: Duration = Duration::from_secs(90);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleSessionKind {
    /// A session and its stream on `/mcp`.
    Session,
    /// A legacy session on `/sse` and `/message`.
    Sse,
    /// `subscriptions/listen` on `/mcp`.
    Listener,
}

/// Returns KiB per idle session.
pub async fn idle_memory(contender: &Contender, kind: IdleSessionKind, count: usize) -> anyhow::Result<f64> {
    let mut held = Vec::new();
    hold(&mut held, contender.address, kind, FIRST).await?;
    sleep(SETTLE_TIME).await;
    let before = resident_kibibytes(contender.pid()?)?;
    hold(&mut held, contender.address, kind, count).await?;
    sleep(SETTLE_TIME).await;
    let after = resident_kibibytes(contender.pid()?)?;
    Ok((after - before) / u32::try_from(count).map(f64::from)?)
}

async fn hold(
    held: &mut Vec<RawStream>,
    address: SocketAddr,
    kind: IdleSessionKind,
    count: usize,
) -> anyhow::Result<()> {
    let mut posts = RawConnection::open(address).await?;
    for number in 0..count {
        let stream = match kind {
            IdleSessionKind::Session => client::session_with_stream(address).await,
            IdleSessionKind::Sse => client::sse_session(address, &mut posts).await,
            IdleSessionKind::Listener => client::open_listener(address).await,
        };
        held.push(stream.with_context(|| format!("{kind:?} {number}"))?);
    }
    Ok(())
}

/// Memory in MiB.
pub struct AbandonedSessionMemory {
    pub before: f64,
    pub held: f64,
    pub after: f64,
}

/// Opens sessions that are never closed, half of them with a dropped stream. `idle` is the session timeout of the
/// server.
pub async fn abandoned_memory(
    contender: &Contender,
    count: usize,
    idle: Duration,
) -> anyhow::Result<AbandonedSessionMemory> {
    let resident = || -> anyhow::Result<f64> { Ok(resident_kibibytes(contender.pid()?)? / 1024.0) };
    open_and_abandon(contender.address, FIRST).await?;
    sleep(idle + EXPIRY_INTERVAL + SETTLE_TIME).await;
    let before = resident()?;
    open_and_abandon(contender.address, count).await?;
    let held = resident()?;
    let end = Instant::now() + LONGEST_WAIT;
    let mut after = held;
    // Waits until no more memory is returned.
    loop {
        sleep(idle + EXPIRY_INTERVAL + SETTLE_TIME).await;
        let now = resident()?;
        if now > after * 0.99 || Instant::now() > end {
            return Ok(AbandonedSessionMemory { before, held, after: now });
        }
        after = now;
    }
}

async fn open_and_abandon(address: SocketAddr, count: usize) -> anyhow::Result<()> {
    for number in 0..count {
        if number % 2 == 0 {
            drop(client::session_with_stream(address).await?);
        } else {
            client::begin_session(&mut RawConnection::open(address).await?, address).await?;
        }
    }
    Ok(())
}
