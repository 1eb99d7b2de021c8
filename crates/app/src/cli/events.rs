//! `greenroom events`: a room's journal, one JSON object per line, for people and for programs.

use super::{
    Connection, Exit,
    client::{
        Client,
        feed::{Feed, Item},
    },
};
use crate::terminal::sanitise;
use clap::Args;
use domain::{
    ids::RoomId,
    position::{Position, Seq},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    io::{self, Write as _},
    time::Duration,
};

const PAGE: &str = "500";
/// Someone who follows a room wants it back when the server is, even after a long maintenance.
const PATIENCE: Duration = Duration::from_secs(3600);

#[derive(Args, Debug)]
pub struct Arguments {
    /// The room's id.
    room: RoomId,
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
    connection: Connection,
}

fn position(text: &str) -> Result<String, domain::position::Error> {
    text.parse::<Position>().map(|_| text.to_owned())
}

#[derive(Deserialize)]
struct Page {
    epoch: String,
    head: Seq,
    events: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Numbered {
    seq: Seq,
}

pub async fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let client = Client::new(&arguments.connection)?;
    let mut out = io::stdout().lock();
    let path = format!("/api/rooms/{}/events", arguments.room);
    let mut after = arguments.after.clone();
    let mut seq: Seq = after.parse::<Position>()?.seq;
    let mut end = None;
    loop {
        let raw = if arguments.raw { "true" } else { "false" };
        let query = [("after", after.as_str()), ("limit", PAGE), ("raw", raw)];
        let page: Page = client.get(&path, &query).await?;
        // Without --follow the end is where the journal ended at the beginning, or a busy room would never be done.
        let end = *end.get_or_insert(page.head);
        for event in &page.events {
            writeln!(out, "{}", sanitise::json(event.get()))?;
            seq = serde_json::from_str::<Numbered>(event.get())?.seq;
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
    let mut feed = Feed::after(client, arguments.room, after, seq, PATIENCE);
    loop {
        match feed.next().await? {
            Item::Event(event) => {
                writeln!(out, "{}", sanitise::json(&event.json))?;
                out.flush()?;
            }
            Item::Reset => writeln!(io::stderr(), "the store was restored; the journal starts over")?,
        }
    }
}
