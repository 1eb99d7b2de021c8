//! Memory at rest and per idle reader.

use super::launch;
use crate::{
    Bench,
    scenarios::idle::{FeedTransport, IdleReader},
    stack::GreenroomStack,
    usage::anonymous_kibibytes,
};
use anyhow::ensure;
use domain::ids::RoomId;
use std::time::Duration;
use tokio::time::sleep;

const READERS: usize = 1_000;
/// Connected before the first measurement, so that one-time allocations do not count.
const FIRST: usize = 50;
const ROOMS: usize = 10;
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// For both kinds of readers at once, and what the processes need besides.
const FILES: u64 = 2_500;

/// Bytes.
pub struct GuardMemory {
    pub at_rest: f64,
    pub sse_reader: f64,
    pub websocket_reader: f64,
}

pub async fn measure(bench: &Bench) -> anyhow::Result<GuardMemory> {
    ensure!(bench.files >= FILES, "the limit of open files is {}; at least {FILES} are needed", bench.files);
    let stack = GreenroomStack::start_with(&launch(&bench.binary, &bench.new_folder("memory"))).await?;
    let at_rest = settled(&stack).await?;
    let mut rooms = Vec::new();
    for _ in 0..ROOMS {
        let room = stack.room().await?;
        rooms.push((room, stack.api.room(room).await?.head));
    }
    let mut held = Vec::new();
    let sse_reader = reader(&stack, FeedTransport::Sse, &rooms, &mut held).await?;
    let websocket_reader = reader(&stack, FeedTransport::WebSocket, &rooms, &mut held).await?;
    stack.server.kill().await?;
    Ok(GuardMemory { at_rest, sse_reader, websocket_reader })
}

/// Returns bytes per reader. The readers stay, because memory that they freed would not be counted for the next ones.
async fn reader(
    stack: &GreenroomStack,
    transport: FeedTransport,
    rooms: &[(RoomId, u64)],
    held: &mut Vec<IdleReader>,
) -> anyhow::Result<f64> {
    hold(stack, transport, rooms, FIRST, held).await?;
    let before = settled(stack).await?;
    hold(stack, transport, rooms, READERS, held).await?;
    let after = settled(stack).await?;
    Ok((after - before) / u32::try_from(READERS).map(f64::from)?)
}

async fn hold(
    stack: &GreenroomStack,
    transport: FeedTransport,
    rooms: &[(RoomId, u64)],
    count: usize,
    held: &mut Vec<IdleReader>,
) -> anyhow::Result<()> {
    for (_, &(room, head)) in (0..count).zip(rooms.iter().cycle()) {
        held.push(IdleReader::open(stack.address, transport, room, head).await?);
    }
    Ok(())
}

/// Anonymous memory only: which pages of the binary are in memory depends on the machine.
async fn settled(stack: &GreenroomStack) -> anyhow::Result<f64> {
    sleep(SETTLE_TIME).await;
    Ok(anonymous_kibibytes(stack.server.pid())? * 1024.0)
}
