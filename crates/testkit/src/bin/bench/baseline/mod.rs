//! The baselines that Greenroom is compared with, each in its own process: servers that stream the same tokens to the
//! same readers and do nothing else.
//!
//! `bare` appends every token to a file, syncs once per batch, then publishes: the lower bound for any durable server.
//! `insert` stores every token in its own transaction, with the row that Greenroom writes and the same durability: the
//! naive implementation. `http` serves both; `log` and `insert` store.

mod http;
pub mod insert;
pub mod log;
mod rooms;

use anyhow::Context as _;
use std::path::Path;
use tokio::sync::mpsc;

/// How many tokens a producer may be ahead of the disk.
pub const QUEUE: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum BaselineKind {
    Bare,
    Insert,
}

impl BaselineKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare log",
            Self::Insert => "one insert a token",
        }
    }
}

/// One word to store and publish.
#[derive(Clone, Copy, Debug)]
pub struct BaselineToken {
    pub room: usize,
    pub number: u32,
}

impl BaselineToken {
    /// The text as the scripted provider sends it.
    pub fn delta(self) -> String {
        if self.number == 1 { "1".into() } else { format!(" {}", self.number) }
    }
}

/// Serves until the process is killed.
pub async fn serve(kind: BaselineKind, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    let rooms = rooms::BaselineRooms::default();
    let (sender, receiver) = mpsc::channel(QUEUE);
    let mut tasks = tokio::task::JoinSet::new();
    match kind {
        BaselineKind::Bare => {
            let log = log::AppendLog::create(&folder.join("log"))?;
            let rooms = rooms.clone();
            tasks.spawn_blocking(move || log.write(receiver, |shown| rooms.publish(shown)));
        }
        BaselineKind::Insert => {
            let mut table = insert::InsertTable::create(&folder.join("baseline.db")).await?;
            let rooms = rooms.clone();
            tasks.spawn(async move { table.write(receiver, |room, frame| rooms.publish([(room, frame)])).await });
        }
    }
    tasks.spawn(http::serve(rooms, sender));
    tasks.join_next().await.context("all tasks ended")??
}
