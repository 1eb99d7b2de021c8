//! Rooms that stream to readers, and what that came to.

use crate::{
    stack::{Room, Stack},
    statistics::percentile,
    stream::Stream,
    tokens::Tokens,
    usage,
};
use anyhow::Context as _;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(60);
const AS_FAST_AS_IT_GOES: Duration = Duration::ZERO;

#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub rooms: usize,
    /// In each room.
    pub readers: usize,
    /// In each room.
    pub tokens: u32,
    pub pace: Duration,
}

impl Load {
    pub fn flat_out(rooms: usize, readers: usize, tokens: u32) -> Self {
        Self { rooms, readers, tokens, pace: AS_FAST_AS_IT_GOES }
    }

    fn total(&self) -> f64 {
        f64::from(self.tokens) * u32::try_from(self.rooms).map_or(f64::NAN, f64::from)
    }

    fn deliveries(&self) -> f64 {
        self.total() * u32::try_from(self.readers).map_or(f64::NAN, f64::from)
    }
}

#[derive(Clone, Debug)]
pub struct Outcome {
    /// Stored, and shown to every reader.
    pub tokens_a_second: f64,
    pub processor_microseconds_a_delivery: f64,
    /// In milliseconds; they mean something only where there is a pace.
    pub p50: f64,
    pub p99: f64,
}

/// When each token arrived at one reader of a room.
struct Arrivals {
    room: usize,
    times: Vec<Duration>,
}

pub async fn run(stack: &Stack, load: Load) -> anyhow::Result<Outcome> {
    let pid = stack.pid()?;
    let mut rooms: Vec<Room> = Vec::new();
    for _ in 0..load.rooms {
        rooms.push(stack.room().await?);
    }
    let zero = Instant::now();
    let mut readers = JoinSet::new();
    for (index, room) in rooms.iter().enumerate() {
        for _ in 0..load.readers {
            let stream = Stream::open(stack.address(), &room.feed).await?;
            readers.spawn(read(stream, index, load.tokens, zero));
        }
    }
    let processor = usage::processor_time(pid)?;
    let begin = Instant::now();
    for room in &rooms {
        stack.count(room, load.tokens, load.pace).await?;
    }
    let mut arrivals = Vec::new();
    while let Some(finished) = readers.join_next().await {
        arrivals.push(finished??);
    }
    let elapsed = begin.elapsed();
    let processor = usage::processor_time(pid)?.saturating_sub(processor);
    let latencies = if load.pace.is_zero() { vec![0.0] } else { latencies(&arrivals, load) };
    Ok(Outcome {
        tokens_a_second: load.total() / elapsed.as_secs_f64(),
        processor_microseconds_a_delivery: processor.as_secs_f64() * 1e6 / load.deliveries(),
        p50: percentile(&latencies, 50.0).context("nothing arrived")?,
        p99: percentile(&latencies, 99.0).context("nothing arrived")?,
    })
}

async fn read(mut stream: Stream, room: usize, tokens: u32, zero: Instant) -> anyhow::Result<Arrivals> {
    let mut counted = Tokens::default();
    let mut body = Vec::new();
    let mut times = Vec::with_capacity(usize::try_from(tokens)?);
    while counted.count < tokens {
        body.clear();
        stream.read(&mut body, PATIENCE).await.with_context(|| format!("after {} of {tokens} tokens", counted.count))?;
        counted.take(&body)?;
        times.resize(usize::try_from(counted.count)?, zero.elapsed());
    }
    Ok(Arrivals { room, times })
}

/// In milliseconds. The producer keeps its beat from the start, so token i was due at start + i × pace; the start is taken
/// from the token of the room that was least late. Thus the least latency is zero, for every stack alike.
fn latencies(arrivals: &[Arrivals], load: Load) -> Vec<f64> {
    let lateness = |one: &Arrivals| -> Vec<f64> {
        let due = (0_u32..).map(|number| load.pace.as_secs_f64() * f64::from(number));
        one.times.iter().zip(due).map(|(time, due)| (time.as_secs_f64() - due) * 1e3).collect()
    };
    let mut all = Vec::new();
    for room in 0..load.rooms {
        let of_room: Vec<Vec<f64>> = arrivals.iter().filter(|one| one.room == room).map(lateness).collect();
        let start = of_room.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        all.extend(of_room.iter().flatten().map(|late| late - start));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Arrivals, Load, latencies};
    use std::time::Duration;

    #[test]
    fn lateness_is_counted_from_the_beat_of_the_room() {
        let at = |millis: &[u64]| millis.iter().map(|&ms| Duration::from_millis(ms)).collect();
        let arrivals = [
            Arrivals { room: 0, times: at(&[103, 121, 145]) },
            Arrivals { room: 0, times: at(&[102, 122, 141]) },
            Arrivals { room: 1, times: at(&[500, 520, 540]) },
        ];
        let load = Load { rooms: 2, readers: 2, tokens: 3, pace: Duration::from_millis(20) };
        let rounded: Vec<f64> = latencies(&arrivals, load).iter().map(|late| late.round()).collect();
        assert_eq!(rounded, [2.0, 0.0, 4.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
