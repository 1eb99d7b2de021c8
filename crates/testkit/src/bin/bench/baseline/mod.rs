//! What Greenroom is compared with, each in a process of its own: a server that streams the same tokens to the same readers
//! and does nothing else.
//!
//! `bare` appends every token to a file, syncs once for all that arrived meanwhile, and then shows them: the floor that
//! any durable server stands on. `insert` stores every token in a transaction of its own, with the row that Greenroom
//! writes, at the same durability: what one would write first. `http` serves both; `log` and `insert` store.

mod http;
pub mod insert;
pub mod log;
mod rooms;

use anyhow::Context as _;
use std::path::Path;
use tokio::sync::mpsc;

/// What a producer may be ahead of the disk.
pub const QUEUE: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Kind {
    Bare,
    Insert,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare log",
            Self::Insert => "one insert a token",
        }
    }
}

/// One word to be stored and shown.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub room: usize,
    pub number: u32,
}

impl Token {
    /// As the scripted provider sends it.
    pub fn delta(self) -> String {
        if self.number == 1 { "1".into() } else { format!(" {}", self.number) }
    }
}

/// Serves until it is killed.
pub async fn serve(kind: Kind, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    let rooms = rooms::Rooms::default();
    let (sender, receiver) = mpsc::channel(QUEUE);
    let mut tasks = tokio::task::JoinSet::new();
    match kind {
        Kind::Bare => {
            let log = log::Log::create(&folder.join("log"))?;
            let rooms = rooms.clone();
            tasks.spawn_blocking(move || log.write(receiver, |shown| rooms.publish(shown)));
        }
        Kind::Insert => {
            let mut table = insert::Table::create(&folder.join("baseline.db")).await?;
            let rooms = rooms.clone();
            tasks.spawn(async move { table.write(receiver, |room, frame| rooms.publish([(room, frame)])).await });
        }
    }
    tasks.spawn(http::serve(rooms, sender));
    tasks.join_next().await.context("nothing to do")??
}
