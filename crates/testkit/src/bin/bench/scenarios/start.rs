//! Startup time, memory at rest, and binary size.

use crate::{
    Bench,
    stack::GreenroomStack,
    statistics::{Rounds, percentile},
    table::{Aim, FigureRow, FigureUnit},
    usage::resident_kibibytes,
};
use anyhow::Context as _;
use std::time::Duration;
use tokio::time::sleep;

/// Lets background work after the start finish.
const SETTLE_TIME: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct StartScenario {
    first: Rounds,
    again: Rounds,
    resident: Rounds,
    size: Rounds,
}

impl StartScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let (mut first, mut again) = (Vec::new(), Vec::new());
        for _ in 0..bench.scale.starts {
            let launch = GreenroomStack::launch(&bench.binary, &bench.new_folder("start"));
            for times in [&mut first, &mut again] {
                let server = launch.start().await?;
                times.push(server.ready_after().as_secs_f64() * 1e3);
                server.terminate(Duration::from_secs(30)).await?;
            }
        }
        self.first.push(percentile(&first, 50.0).context("no start")?);
        self.again.push(percentile(&again, 50.0).context("no start")?);

        let server = GreenroomStack::launch(&bench.binary, &bench.new_folder("start")).start().await?;
        sleep(SETTLE_TIME).await;
        self.resident.push(resident_kibibytes(server.pid())? * 1024.0 / 1e6);
        server.kill().await?;
        let bytes = u32::try_from(std::fs::metadata(&bench.binary)?.len()).map(f64::from)?;
        self.size.push(bytes / 1e6);
        Ok(())
    }

    pub fn rows(self) -> Vec<FigureRow> {
        let row = |what, unit, rounds, most| FigureRow::new(what, unit, rounds).aiming_at(Aim::AtMost(most));
        vec![
            row("start to listening, first start", FigureUnit::Milliseconds, self.first, 30.0),
            row("start to listening, later start", FigureUnit::Milliseconds, self.again, 30.0),
            row("memory at rest", FigureUnit::Megabytes, self.resident, 25.0),
            row("size of the binary", FigureUnit::Megabytes, self.size, 30.0),
        ]
    }
}
