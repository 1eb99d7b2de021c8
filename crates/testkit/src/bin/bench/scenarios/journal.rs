//! The journal alone: many concurrent streams, no readers. Text and thinking alternate, so that no two deltas can be
//! joined and each one is an event.

use crate::{
    Bench,
    baseline::{BaselineToken, QUEUE, insert::InsertTable, log::AppendLog},
    stack::GreenroomStack,
    statistics::Rounds,
    table::{FigureRow, FigureUnit},
};
use anyhow::ensure;
use domain::ids::{RoomId, RunId};
use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};
use testkit::client::{TestClient, TestPost};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

#[derive(Default)]
pub struct JournalScenario {
    greenroom: Rounds,
    inserted: Rounds,
    bare: Rounds,
}

impl JournalScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        self.greenroom.push(greenroom(bench).await?);
        self.inserted.push(inserted(bench).await?);
        self.bare.push(bare(bench).await?);
        Ok(())
    }

    pub fn rows(self, bench: &Bench) -> Vec<FigureRow> {
        let what = format!("durable events/s of the journal, {} streams", bench.scale.journal_streams);
        vec![
            FigureRow::new(&what, FigureUnit::PerSecond, self.greenroom.clone())
                .against("one insert a transaction", self.inserted),
            FigureRow::new(&what, FigureUnit::PerSecond, self.greenroom).against("bare log", self.bare),
        ]
    }
}

/// A script that writes `1 2 3 …` as separate events that cannot be joined, one every `pace` milliseconds.
pub fn counting_script(events: u32, pace: u32) -> String {
    let delay = if pace == 0 { String::new() } else { format!(",\"after_ms\":{pace}") };
    let mut script = String::from("!script [");
    for number in 1..=events {
        let kind = if number % 2 == 0 { "text" } else { "thinking" };
        let comma = if number == 1 { "" } else { "," };
        // Writing to a string does not fail.
        write!(script, "{comma}{{\"{kind}\":\" {number}\"{delay}}}").ok();
    }
    script.push(']');
    script
}

/// Waits until a run is completed.
pub async fn wait_until_completed(api: &TestClient, run: RunId, patience: Duration) -> anyhow::Result<()> {
    let end = Instant::now() + patience;
    loop {
        let found = api.run(run).await?;
        if found.status.is_terminal() {
            let status = found.status;
            ensure!(status == domain::run::RunStatus::Completed, "run {run} is {status}: {:?}", found.error);
            return Ok(());
        }
        ensure!(Instant::now() < end, "run {run} is still {} after {patience:?}", found.status);
        sleep(Duration::from_millis(5)).await;
    }
}

async fn heads(api: &TestClient, rooms: &[RoomId]) -> anyhow::Result<f64> {
    let mut sum = 0;
    for room in rooms {
        sum += api.room(*room).await?.head;
    }
    Ok(u32::try_from(sum).map(f64::from)?)
}

async fn greenroom(bench: &Bench) -> anyhow::Result<f64> {
    let stack = GreenroomStack::start(&bench.binary, &bench.new_folder("journal")).await?;
    let script = counting_script(bench.scale.journal_events, 0);
    let mut rooms = Vec::new();
    for _ in 0..bench.scale.journal_streams {
        rooms.push(stack.room().await?);
    }
    let before = heads(&stack.api, &rooms).await?;
    let begin = Instant::now();
    let mut posts = JoinSet::new();
    for &room in &rooms {
        let (api, post) = (stack.api.clone(), TestPost::new(script.clone()));
        posts.spawn(async move { api.post_message(room, &post).await });
    }
    let mut runs = Vec::new();
    while let Some(posted) = posts.join_next().await {
        runs.extend(posted??.runs.into_iter().map(|run| run.id));
    }
    for run in runs {
        wait_until_completed(&stack.api, run, Duration::from_secs(120)).await?;
    }
    let elapsed = begin.elapsed();
    let events = heads(&stack.api, &rooms).await? - before;
    stack.server.kill().await?;
    Ok(events / elapsed.as_secs_f64())
}

async fn inserted(bench: &Bench) -> anyhow::Result<f64> {
    let folder = bench.new_folder("insert");
    std::fs::create_dir_all(&folder)?;
    let mut table = InsertTable::create(&folder.join("baseline.db")).await?;
    let begin = Instant::now();
    for number in 1..=bench.scale.inserts {
        table.insert(BaselineToken { room: 0, number }).await?;
    }
    Ok(f64::from(bench.scale.inserts) / begin.elapsed().as_secs_f64())
}

async fn bare(bench: &Bench) -> anyhow::Result<f64> {
    let folder = bench.new_folder("bare");
    std::fs::create_dir_all(&folder)?;
    let log = AppendLog::create(&folder.join("log"))?;
    let (sender, receiver) = mpsc::channel(QUEUE);
    let events = bench.scale.journal_events;
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    tasks.spawn_blocking(move || log.write(receiver, drop));
    for room in 0..bench.scale.journal_streams {
        let sender = sender.clone();
        tasks.spawn(async move {
            for number in 1..=events {
                sender.send(BaselineToken { room, number }).await?;
            }
            Ok(())
        });
    }
    drop(sender);
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let total = f64::from(events) * u32::try_from(bench.scale.journal_streams).map(f64::from)?;
    Ok(total / begin.elapsed().as_secs_f64())
}
