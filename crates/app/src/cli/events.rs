//! `greenroom events`: prints a room's journal, one JSON object per line.

use super::{
    Exit, ServerArgs,
    client::{
        ApiClient,
        feed::{FeedItem, RoomFeed},
    },
};
use crate::terminal::sanitize;
use clap::Args;
use domain::position::{Position, Seq};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    io::{self, Write as _},
    time::Duration,
};

const PAGE: &str = "500";
/// A follower waits this long for a server to come back, for example after maintenance.
const PATIENCE: Duration = Duration::from_secs(3600);

#[derive(Args, Debug)]
pub struct EventsArgs {
    /// The room's name or id, or a part of the id.
    room: String,
    /// Start after this position: a seq, or EPOCH-SEQ as in the id of a live frame.
    #[arg(long, value_name = "POSITION", default_value = "0", value_parser = position)]
    after: String,
    /// Go on with new events as they come, and resume when the connection is lost.
    #[arg(long, short)]
    follow: bool,
    /// Add what the provider itself sent; live feeds do not carry it.
    #[arg(long, conflicts_with = "follow")]
    raw: bool,
    #[command(flatten)]
    connection: ServerArgs,
}

fn position(text: &str) -> Result<String, domain::position::PositionError> {
    text.parse::<Position>().map(|_| text.to_owned())
}

#[derive(Deserialize)]
struct EventsResponse {
    epoch: String,
    head: Seq,
    events: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct EventSeq {
    seq: Seq,
}

pub async fn run(arguments: EventsArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    let mut out = io::stdout().lock();
    let room = client.find_room(&arguments.room).await?;
    let path = format!("/api/rooms/{room}/events");
    let mut after = arguments.after.clone();
    let mut seq: Seq = after.parse::<Position>()?.seq;
    let mut end = None;
    loop {
        let raw = if arguments.raw { "true" } else { "false" };
        let query = [("after", after.as_str()), ("limit", PAGE), ("raw", raw)];
        let page: EventsResponse = client.get(&path, &query).await?;
        // Without --follow, the end is the head at the start; otherwise a busy room would never end.
        let end = *end.get_or_insert(page.head);
        for event in &page.events {
            writeln!(out, "{}", sanitize::json(event.get()))?;
            seq = serde_json::from_str::<EventSeq>(event.get())?.seq;
        }
        out.flush()?;
        after = format!("{}-{seq}", page.epoch);
        if seq >= end || page.events.is_empty() {
            break;
        }
    }
    if !arguments.follow {
        return Ok(Exit::Success);
    }
    let mut feed = RoomFeed::after(client, room, after, seq, PATIENCE);
    loop {
        match feed.next().await? {
            FeedItem::Event(event) => {
                writeln!(out, "{}", sanitize::json(&event.json))?;
                out.flush()?;
            }
            FeedItem::Reset => writeln!(io::stderr(), "the store was restored; the journal starts over")?,
        }
    }
}
