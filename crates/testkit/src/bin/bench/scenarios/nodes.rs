//! Two servers on one PostgreSQL: how much later an event arrives at a reader of the other server than at a reader of the
//! server that stored it. Both readers follow the same room, so each message is measured on both at once.

use super::direct::{contains, millis, post};
use crate::{
    Bench,
    connection::RawConnection,
    stack::GreenroomStack,
    statistics::{Rounds, percentile},
    stream::RawStream,
    table::{Aim, FigureRow, FigureUnit},
};
use anyhow::{Context as _, bail, ensure};
use serde_json::json;
use std::time::{Duration, Instant};
use store::Backend;
use testkit::database::TestDatabase;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The first messages find cold connections and caches.
const WARM_UP: usize = 5;

/// Medians in milliseconds since the message was sent, round by round.
#[derive(Default)]
struct Arrivals {
    same: Rounds,
    other: Rounds,
}

#[derive(Default)]
pub struct NodesScenario {
    posted: Arrivals,
    first_token: Arrivals,
}

/// When the events of one message arrived at a reader.
struct SeenAt {
    posted: f64,
    first_token: f64,
}

impl NodesScenario {
    pub async fn round(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let database = TestDatabase::postgres();
        let Backend::Postgres { url } = database.backend() else { bail!("not PostgreSQL") };
        let start = async |folder: &str| {
            let launch = GreenroomStack::launch(&bench.binary, &bench.new_folder(folder));
            GreenroomStack::start_with(&launch.with("GREENROOM_STORE__DATABASE", url.clone())).await
        };
        // One after another: the first one prepares the database.
        let (one, two) = (start("node-1").await?, start("node-2").await?);
        let room = one.room().await?;
        let feed = format!("/api/rooms/{room}/events?after=0");
        let mut readers = (RawStream::open(one.address, &feed).await?, RawStream::open(two.address, &feed).await?);
        let mut posts = RawConnection::open(one.address).await?;
        let request = post(&format!("/api/rooms/{room}/messages"), &json!({"text": "!count 3 5"}));
        let (mut same, mut other) = (Vec::new(), Vec::new());
        for nth in 0..WARM_UP + bench.scale.node_messages {
            let sent = Instant::now();
            let (posted, here, there) =
                tokio::join!(posts.send(&request), seen(&mut readers.0, sent), seen(&mut readers.1, sent));
            let posted = posted?;
            ensure!(posted.is_success(), "{}", posted.text());
            if nth >= WARM_UP {
                same.push(here?);
                other.push(there?);
            }
        }
        let median = |seen: &[SeenAt], of: fn(&SeenAt) -> f64| {
            percentile(&seen.iter().map(of).collect::<Vec<_>>(), 50.0).context("nothing arrived")
        };
        self.posted.same.push(median(&same, |at| at.posted)?);
        self.posted.other.push(median(&other, |at| at.posted)?);
        self.first_token.same.push(median(&same, |at| at.first_token)?);
        self.first_token.other.push(median(&other, |at| at.first_token)?);
        one.server.kill().await?;
        two.server.kill().await
    }

    pub fn rows(self) -> Vec<FigureRow> {
        let row = |what: &str, arrivals: Arrivals| {
            let name = format!("{what} at a reader of another server");
            FigureRow::new(name, FigureUnit::Milliseconds, arrivals.other)
                .against("on the same server", arrivals.same)
                .aiming_at(Aim::AddsAtMost(20.0))
        };
        vec![row("a message", self.posted), row("the first token", self.first_token)]
    }
}

/// Reads until the run has ended.
async fn seen(feed: &mut RawStream, sent: Instant) -> anyhow::Result<SeenAt> {
    let (mut body, mut posted, mut first_token) = (Vec::new(), None, None);
    loop {
        feed.read(&mut body, TIMEOUT).await?;
        for (at, event) in [(&mut posted, "event: message_posted\n"), (&mut first_token, "event: content_delta\n")] {
            if at.is_none() && contains(&body, event) {
                *at = Some(millis(sent));
            }
        }
        if contains(&body, "event: run_completed\n") {
            return Ok(SeenAt { posted: posted.context("no message")?, first_token: first_token.context("no token")? });
        }
        ensure!(!contains(&body, "event: run_failed\n"), "the run failed: {}", String::from_utf8_lossy(&body));
    }
}
