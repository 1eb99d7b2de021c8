//! Until it listens, memory at rest, size of the binary.

use crate::{
    Bench,
    stack::Greenroom,
    statistics::{Rounds, percentile},
    table::{Aim, Row, Unit},
    usage::resident_kibibytes,
};
use anyhow::Context as _;
use std::time::Duration;
use tokio::time::sleep;

/// What is done after the start is done by then.
const SETTLED: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Start {
    first: Rounds,
    again: Rounds,
    resident: Rounds,
    size: Rounds,
}

impl Start {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let (mut first, mut again) = (Vec::new(), Vec::new());
        for _ in 0..bench.scale.starts {
            let launch = Greenroom::launch(&bench.binary, &bench.fresh("start"));
            for times in [&mut first, &mut again] {
                let server = launch.start().await?;
                times.push(server.ready_after().as_secs_f64() * 1e3);
                server.terminate(Duration::from_secs(30)).await?;
            }
        }
        self.first.push(percentile(&first, 50.0).context("no start")?);
        self.again.push(percentile(&again, 50.0).context("no start")?);

        let server = Greenroom::launch(&bench.binary, &bench.fresh("start")).start().await?;
        sleep(SETTLED).await;
        self.resident.push(resident_kibibytes(server.pid())? / 1024.0);
        server.kill().await?;
        let bytes = u32::try_from(std::fs::metadata(&bench.binary)?.len()).map(f64::from)?;
        self.size.push(bytes / 1024.0 / 1024.0);
        Ok(())
    }

    pub fn rows(self) -> Vec<Row> {
        vec![
            Row::new("start to listening, first start", Unit::Milliseconds, self.first).aiming_at(Aim::AtMost(100.0)),
            Row::new("start to listening, later start", Unit::Milliseconds, self.again).aiming_at(Aim::AtMost(100.0)),
            Row::new("memory at rest", Unit::Mebibytes, self.resident),
            Row::new("size of the binary", Unit::Mebibytes, self.size),
        ]
    }
}
