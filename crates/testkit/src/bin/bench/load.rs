//! Streams tokens in rooms to readers and measures the result.

use crate::{
    stack::{BenchStack, StackRoom, TokenRate},
    stream::RawStream,
    tokens::TokenCounter,
    usage,
};
use anyhow::Context as _;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

pub const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub struct BenchLoad {
    pub rooms: usize,
    /// Readers per room.
    pub readers: usize,
    /// Tokens per room.
    pub tokens: u32,
    pub rate: TokenRate,
}

impl BenchLoad {
    fn total(&self) -> f64 {
        f64::from(self.tokens) * u32::try_from(self.rooms).map_or(f64::NAN, f64::from)
    }

    fn deliveries(&self) -> f64 {
        self.total() * u32::try_from(self.readers).map_or(f64::NAN, f64::from)
    }
}

#[derive(Clone, Debug)]
pub struct LoadResult {
    /// Tokens per second that were stored and delivered to every reader.
    pub tokens_a_second: f64,
    /// How many tokens were joined into one event, if the stack joins them.
    pub tokens_an_event: f64,
    pub processor_microseconds_a_delivery: f64,
    /// How late each token arrived at each reader, in milliseconds; empty for unpaced loads.
    pub latencies: Vec<f64>,
}

/// When each token of one stream arrived at one reader.
pub struct Arrivals {
    /// The number of the room, or of the run.
    pub stream: usize,
    pub times: Vec<Duration>,
}

pub async fn run(stack: &BenchStack, load: BenchLoad) -> anyhow::Result<LoadResult> {
    let pid = stack.pid()?;
    let mut rooms: Vec<StackRoom> = Vec::new();
    for _ in 0..load.rooms {
        rooms.push(stack.room().await?);
    }
    let zero = Instant::now();
    let mut readers = JoinSet::new();
    for (index, room) in rooms.iter().enumerate() {
        for _ in 0..load.readers {
            let stream = RawStream::open(stack.address(), &room.feed).await?;
            readers.spawn(read(stream, index, load.tokens, zero));
        }
    }
    let processor = usage::processor_time(pid)?;
    let begin = Instant::now();
    for room in &rooms {
        stack.stream_tokens(room, load.tokens, load.rate).await?;
    }
    let mut arrivals = Vec::new();
    while let Some(finished) = readers.join_next().await {
        arrivals.push(finished??);
    }
    let elapsed = begin.elapsed();
    let processor = usage::processor_time(pid)?.saturating_sub(processor);
    let events = stack.events(&rooms).await?;
    let latencies = match load.rate {
        TokenRate::Paced(pace) => latencies(&arrivals, load.rooms, pace),
        TokenRate::Unpaced | TokenRate::UnpacedUnjoined => Vec::new(),
    };
    Ok(LoadResult {
        tokens_a_second: load.total() / elapsed.as_secs_f64(),
        tokens_an_event: load.total() / events.unwrap_or(load.total()),
        processor_microseconds_a_delivery: processor.as_secs_f64() * 1e6 / load.deliveries(),
        latencies,
    })
}

async fn read(mut stream: RawStream, room: usize, tokens: u32, zero: Instant) -> anyhow::Result<Arrivals> {
    let mut counted = TokenCounter::default();
    let mut body = Vec::new();
    let mut times = Vec::with_capacity(usize::try_from(tokens)?);
    while counted.count < tokens {
        body.clear();
        stream.read(&mut body, TIMEOUT).await.with_context(|| format!("after {} of {tokens} tokens", counted.count))?;
        counted.push(&body)?;
        times.resize(usize::try_from(counted.count)?, zero.elapsed());
    }
    Ok(Arrivals { stream: room, times })
}

/// Latencies in milliseconds. The producer keeps a fixed schedule, so token i is due at start + i × pace. The start is
/// taken from the least late token of the stream, so the minimum latency is zero for every stack.
pub fn latencies(arrivals: &[Arrivals], streams: usize, pace: Duration) -> Vec<f64> {
    let lateness = |one: &Arrivals| -> Vec<f64> {
        let due = (0_u32..).map(|number| pace.as_secs_f64() * f64::from(number));
        one.times.iter().zip(due).map(|(time, due)| (time.as_secs_f64() - due) * 1e3).collect()
    };
    let mut all = Vec::new();
    for stream in 0..streams {
        let of_stream: Vec<Vec<f64>> = arrivals.iter().filter(|one| one.stream == stream).map(lateness).collect();
        let start = of_stream.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        all.extend(of_stream.iter().flatten().map(|late| late - start));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Arrivals, latencies};
    use std::time::Duration;

    #[test]
    fn latency_is_measured_against_the_schedule_of_the_stream() {
        let at = |millis: &[u64]| millis.iter().map(|&ms| Duration::from_millis(ms)).collect();
        let arrivals = [
            Arrivals { stream: 0, times: at(&[103, 121, 145]) },
            Arrivals { stream: 0, times: at(&[102, 122, 141]) },
            Arrivals { stream: 1, times: at(&[500, 520, 540]) },
        ];
        let rounded: Vec<f64> =
            latencies(&arrivals, 2, Duration::from_millis(20)).iter().map(|late| late.round()).collect();
        assert_eq!(rounded, [2.0, 0.0, 4.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
