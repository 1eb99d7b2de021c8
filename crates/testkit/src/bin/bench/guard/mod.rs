//! The figures for `cargo xtask guard`: those that are nearly the same on every machine and under any load, because
//! they count bytes, instructions and allocations instead of time. xtask knows their bounds.
//!
//! Prints lines of the form `figure NAME NUMBER`.

mod callgrind;
mod memory;

use crate::{Bench, stack::GreenroomStack};
use anyhow::{Context as _, ensure};
use std::{path::Path, process::Command};
use testkit::client::ServerLaunch;

pub async fn measure(bench: &Bench) -> anyhow::Result<()> {
    show("binary_bytes", loaded_bytes(&bench.binary)?);
    let memory = memory::measure(bench).await.context("memory")?;
    show("rest_bytes", memory.at_rest);
    show("sse_reader_bytes", memory.sse_reader);
    show("websocket_reader_bytes", memory.websocket_reader);
    let costs = callgrind::measure(bench).await.context("callgrind")?;
    for (load, cost) in [("single", &costs.single), ("grouped", &costs.grouped)] {
        show(&format!("{load}_event_instructions"), cost.instructions);
        if let Some(allocations) = cost.allocations {
            show(&format!("{load}_event_allocations"), allocations);
        }
    }
    Ok(())
}

fn show(name: &str, value: f64) {
    println!("figure {name} {value:.0}");
}

/// Threads and arenas as on a machine with two cores. The allocator returns freed memory at once, so that only memory
/// in use counts.
fn launch(binary: &Path, data: &Path) -> ServerLaunch {
    GreenroomStack::launch(binary, data)
        .with("TOKIO_WORKER_THREADS", "2")
        .with("_RJEM_MALLOC_CONF", "narenas:8,dirty_decay_ms:0,muzzy_decay_ms:0")
}

/// Code and data without debug information, as reported by `size`, which comes with every C compiler.
fn loaded_bytes(binary: &Path) -> anyhow::Result<f64> {
    let output = Command::new("size").arg(binary).output().context("cannot run `size`")?;
    ensure!(output.status.success(), "`size` failed: {}", String::from_utf8_lossy(&output.stderr));
    parse_size(&String::from_utf8_lossy(&output.stdout)).context("`size` printed something else")
}

/// The sum of the first two columns, text and data.
fn parse_size(output: &str) -> Option<f64> {
    let mut columns = output.lines().nth(1)?.split_whitespace().map(str::parse::<f64>);
    Some(columns.next()?.ok()? + columns.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn size_is_text_and_data() {
        let output =
            "   text\t   data\t    bss\t    dec\t    hex\tfilename\n   1200\t     34\t      5\t   1239\t    4d7\tx\n";
        assert_eq!(parse_size(output), Some(1234.0));
        assert_eq!(parse_size("size: x: no such file\n"), None);
    }
}
