//! An append-only file: takes everything queued, writes it, syncs it, then publishes it.

use super::BaselineToken;
use bytes::Bytes;
use std::{collections::BTreeMap, fs::File, io::Write as _, path::Path};
use tokio::sync::mpsc::Receiver;

const BATCH: usize = 4096;

pub struct AppendLog(File);

impl AppendLog {
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        Ok(Self(File::options().create(true).append(true).open(path)?))
    }

    /// Returns when all senders have been dropped. Each batch is published after it is synced.
    pub fn write(
        mut self,
        mut tokens: Receiver<BaselineToken>,
        mut show: impl FnMut(Vec<(usize, Bytes)>),
    ) -> anyhow::Result<()> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut bytes = Vec::new();
        while tokens.blocking_recv_many(&mut batch, BATCH) > 0 {
            let mut frames: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
            bytes.clear();
            for token in batch.drain(..) {
                let number = token.number;
                let begin = bytes.len();
                writeln!(bytes, "id: {number}\ndata: {{\"seq\":{number},\"delta\":\"{}\"}}\n", token.delta())?;
                frames.entry(token.room).or_default().extend_from_slice(&bytes[begin..]);
            }
            self.0.write_all(&bytes)?;
            self.0.sync_data()?;
            show(frames.into_iter().map(|(room, frames)| (room, frames.into())).collect());
        }
        Ok(())
    }
}
