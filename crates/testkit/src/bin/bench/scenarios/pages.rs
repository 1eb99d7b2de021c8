//! Whether a long room costs more than a short one: reading pages from its middle, and appending.

use super::journal::{counting_script, wait_until_completed};
use crate::{
    Bench,
    stack::GreenroomStack,
    statistics::{Rounds, percentile},
    table::{Aim, FigureRow, FigureUnit, grouped},
};
use anyhow::{Context as _, ensure};
use domain::ids::{RoomId, RunId};
use std::{
    collections::VecDeque,
    path::PathBuf,
    time::{Duration, Instant},
};
use testkit::client::{TestClient, TestPost};

/// The most that one script may hold.
const EVENTS_A_SCRIPT: u32 = 10_000;
const SMALL_PAGE: u32 = 100;
const LARGE_PAGE: u32 = 10_000;
/// Messages queued ahead while the room is filled.
const AHEAD: usize = 4;
const APPENDS: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Default)]
struct PageRounds {
    long: Rounds,
    short: Rounds,
}

#[derive(Default)]
pub struct PagesScenario {
    filled: Option<(PathBuf, RoomId)>,
    small_page: PageRounds,
    large_page: PageRounds,
    append: PageRounds,
    start: Rounds,
}

impl PagesScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let (data, long) = match &self.filled {
            Some(filled) => filled.clone(),
            None => {
                let data = bench.new_folder("pages");
                let stack = GreenroomStack::start(&bench.binary, &data).await?;
                let long = stack.room().await?;
                fill(&stack.api, long, bench.scale.long_room).await?;
                stack.server.terminate(Duration::from_secs(60)).await?;
                self.filled.insert((data, long)).clone()
            }
        };
        let stack = GreenroomStack::start(&bench.binary, &data).await?;
        let short = stack.room().await?;
        fill(&stack.api, short, bench.scale.short_room).await?;
        // A fresh server has neither room in memory.
        stack.server.terminate(Duration::from_secs(60)).await?;
        let stack = GreenroomStack::start(&bench.binary, &data).await?;
        self.start.push(stack.server.ready_after().as_secs_f64() * 1e3);

        let middle = |events: u32| events / 2;
        let reads = bench.scale.page_reads;
        let long_position = (long, middle(bench.scale.long_room));
        let (one, other) =
            pages(&stack.api, long_position, (short, middle(bench.scale.short_room)), SMALL_PAGE, reads).await?;
        self.small_page.long.push(one);
        self.small_page.short.push(other);
        // A page of the whole short room.
        let (one, other) = pages(&stack.api, long_position, (short, 0), LARGE_PAGE, reads.div_ceil(3)).await?;
        self.large_page.long.push(one);
        self.large_page.short.push(other);

        let (mut to_long, mut to_short) = (Vec::new(), Vec::new());
        for _ in 0..APPENDS {
            to_short.push(append(&stack.api, short).await?);
            to_long.push(append(&stack.api, long).await?);
        }
        self.append.long.push(percentile(&to_long, 50.0).context("no append")?);
        self.append.short.push(percentile(&to_short, 50.0).context("no append")?);
        stack.server.kill().await
    }

    pub fn rows(self, bench: &Bench) -> Vec<FigureRow> {
        let [long, short] = [bench.scale.long_room, bench.scale.short_room].map(|events| grouped(&events.to_string()));
        let row = |what: String, unit, pair: PageRounds| {
            let baseline = "in the short room";
            FigureRow::new(what, unit, pair.long).against(baseline, pair.short).aiming_at(Aim::RatioAtMost(1.2))
        };
        let rooms = format!("room of {long} against one of {short}");
        vec![
            row(format!("page of 100 events, {rooms}"), FigureUnit::Milliseconds, self.small_page),
            row(format!("page of 10,000 events, {rooms}"), FigureUnit::Milliseconds, self.large_page),
            row(format!("append one event, {rooms}"), FigureUnit::Microseconds, self.append),
            FigureRow::new(format!("start to listening with {long} events"), FigureUnit::Milliseconds, self.start)
                .aiming_at(Aim::AtMost(100.0)),
        ]
    }
}

async fn fill(api: &TestClient, room: RoomId, events: u32) -> anyhow::Result<()> {
    let mut waiting: VecDeque<RunId> = VecDeque::new();
    let mut left = events;
    while left > 0 {
        let now = left.min(EVENTS_A_SCRIPT);
        left -= now;
        let posted = api.post_message(room, &TestPost::new(counting_script(now, 0))).await?;
        waiting.extend(posted.runs.iter().map(|run| run.id));
        if waiting.len() >= AHEAD
            && let Some(run) = waiting.pop_front()
        {
            wait_until_completed(api, run, TIMEOUT).await?;
        }
    }
    for run in waiting {
        wait_until_completed(api, run, TIMEOUT).await?;
    }
    let head = api.room(room).await?.head;
    ensure!(head >= events.into(), "the room has {head} of {events} events: were some joined?");
    Ok(())
}

/// Reads both pages alternately and returns the medians in milliseconds.
async fn pages(
    api: &TestClient,
    one: (RoomId, u32),
    other: (RoomId, u32),
    size: u32,
    reads: usize,
) -> anyhow::Result<(f64, f64)> {
    let (mut of_one, mut of_other) = (Vec::new(), Vec::new());
    for _ in 0..reads {
        for ((room, after), times) in [(one, &mut of_one), (other, &mut of_other)] {
            let path = format!("/api/rooms/{room}/events?after={after}&limit={size}");
            let begin = Instant::now();
            let answer = api.request(reqwest::Method::GET, &path).timeout(TIMEOUT).send().await?;
            ensure!(answer.status().is_success(), "{path}: {}", answer.status());
            let body = answer.bytes().await?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            let last = format!("\"seq\":{},", after + size);
            ensure!(body.windows(last.len()).any(|window| window == last.as_bytes()), "{path}: the page is short");
        }
    }
    let median = |times: &[f64]| percentile(times, 50.0).context("nothing read");
    Ok((median(&of_one)?, median(&of_other)?))
}

/// Returns microseconds per event of a run, from the duration that the server reports.
async fn append(api: &TestClient, room: RoomId) -> anyhow::Result<f64> {
    let posted = api.post_message(room, &TestPost::new(counting_script(EVENTS_A_SCRIPT, 0))).await?;
    let run = posted.runs.first().context("no run")?.id;
    wait_until_completed(api, run, TIMEOUT).await?;
    let duration = api.run(run).await?.duration_ms.context("a completed run has a duration")?;
    Ok(u32::try_from(duration).map(f64::from)? * 1e3 / f64::from(EVENTS_A_SCRIPT))
}
