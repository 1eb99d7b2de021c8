//! How late a token is at a reader when the provider speaks at its own pace, 50 tokens a second.

use crate::{
    Bench,
    baseline::Kind,
    load::{Load, run},
    stack::{Speech, Stack},
    statistics::{Rounds, percentile},
    table::{Aim, Row, Unit},
};
use anyhow::Context as _;
use std::time::Duration;

const PACE: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Pair {
    greenroom: Rounds,
    bare: Rounds,
}

/// For each shape of load the median and the 99th percentile.
#[derive(Default)]
pub struct Latency {
    by_shape: [(Pair, Pair); 3],
}

fn shapes(bench: &Bench) -> [(usize, usize); 3] {
    let [small, large] = bench.scale.crowds;
    [(50, 2), (1, small), (1, large)]
}

impl Latency {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let greenroom = Stack::greenroom(&bench.binary, &bench.fresh("latency")).await?;
        let bare = Stack::baseline(Kind::Bare, &bench.fresh("bare")).await?;
        for ((rooms, readers), (p50, p99)) in shapes(bench).into_iter().zip(&mut self.by_shape) {
            let load = Load { rooms, readers, tokens: bench.scale.paced_tokens, speech: Speech::Paced(PACE) };
            // Many short turns: the tail is made by slow spells of the machine, and both should meet the same.
            let (mut of_greenroom, mut of_bare) = (Vec::new(), Vec::new());
            for _ in 0..bench.scale.paced_turns {
                of_greenroom.extend(run(&greenroom, load).await?.latencies);
                of_bare.extend(run(&bare, load).await?.latencies);
            }
            for (percent, pair) in [(50.0, p50), (99.0, p99)] {
                pair.greenroom.push(percentile(&of_greenroom, percent).context("nothing arrived")?);
                pair.bare.push(percentile(&of_bare, percent).context("nothing arrived")?);
            }
        }
        greenroom.stop().await?;
        bare.stop().await
    }

    pub fn rows(self, bench: &Bench) -> Vec<Row> {
        let mut rows = Vec::new();
        for ((rooms, readers), (p50, p99)) in shapes(bench).into_iter().zip(self.by_shape) {
            let shape =
                format!("{rooms} room{} × {readers} readers, 50 tokens/s a room", if rooms == 1 { "" } else { "s" });
            let row = |name: &str, pair: Pair| {
                Row::new(format!("{name} token → reader, {shape}"), Unit::Milliseconds, pair.greenroom)
                    .against(Kind::Bare.name(), pair.bare)
            };
            rows.push(row("p50", p50));
            let aim = if rooms > 1 { Aim::RatioAtMost(2.0) } else { Aim::None };
            rows.push(row("p99", p99).aiming_at(aim));
        }
        rows
    }
}
