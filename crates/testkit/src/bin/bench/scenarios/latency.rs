//! How late a token arrives at a reader when the provider sends 50 tokens a second.

use crate::{
    Bench,
    baseline::BaselineKind,
    load::{BenchLoad, run},
    stack::{BenchStack, TokenRate},
    statistics::{Rounds, percentile},
    table::{Aim, FigureRow, FigureUnit},
};
use anyhow::Context as _;
use std::time::Duration;

const PACE: Duration = Duration::from_millis(20);

#[derive(Default)]
struct LatencyRounds {
    greenroom: Rounds,
    bare: Rounds,
}

/// The median and the 99th percentile for each shape of load.
#[derive(Default)]
pub struct LatencyScenario {
    by_shape: [(LatencyRounds, LatencyRounds); 3],
}

fn shapes(bench: &Bench) -> [(usize, usize); 3] {
    let [small, large] = bench.scale.crowds;
    [(50, 2), (1, small), (1, large)]
}

impl LatencyScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let greenroom = BenchStack::greenroom(&bench.binary, &bench.new_folder("latency")).await?;
        let bare = BenchStack::baseline(BaselineKind::Bare, &bench.new_folder("bare")).await?;
        for ((rooms, readers), (p50, p99)) in shapes(bench).into_iter().zip(&mut self.by_shape) {
            let load = BenchLoad { rooms, readers, tokens: bench.scale.paced_tokens, rate: TokenRate::Paced(PACE) };
            // Many short alternations: the tail comes from slow phases of the machine, which should affect both stacks
            // equally.
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

    pub fn rows(self, bench: &Bench) -> Vec<FigureRow> {
        let mut rows = Vec::new();
        for ((rooms, readers), (p50, p99)) in shapes(bench).into_iter().zip(self.by_shape) {
            let shape =
                format!("{rooms} room{} × {readers} readers, 50 tokens/s a room", if rooms == 1 { "" } else { "s" });
            let row = |name: &str, pair: LatencyRounds| {
                FigureRow::new(format!("{name} token → reader, {shape}"), FigureUnit::Milliseconds, pair.greenroom)
                    .against(BaselineKind::Bare.name(), pair.bare)
            };
            rows.push(row("p50", p50));
            let aim = if rooms > 1 { Aim::RatioAtMost(2.0) } else { Aim::None };
            rows.push(row("p99", p99).aiming_at(aim));
        }
        rows
    }
}
