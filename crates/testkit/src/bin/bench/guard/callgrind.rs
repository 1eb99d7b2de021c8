//! Instructions and allocations per event from the provider to one SSE reader, counted by valgrind's callgrind.
//!
//! The same load runs with N and with 2N events on one server, and the difference is divided by N: what a run costs
//! once cancels out. Instrumentation starts after the warm-up, because it is slow.

use super::launch;
use crate::{Bench, scenarios::counting_script, stack::GreenroomStack, stream::RawStream, tokens::TokenCounter};
use anyhow::{Context as _, ensure};
use domain::ids::RoomId;
use std::{
    collections::HashMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use testkit::client::TestPost;
use tokio::{
    process::Command,
    time::{sleep, timeout},
};

const WARM_UP: u32 = 20;
/// In milliseconds. Each event is a commit of its own if the server keeps this pace.
const PACE: u32 = 50;
const PACED_EVENTS: u32 = 50;
const UNPACED_EVENTS: u32 = 200;
const START: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(60);
/// Lets the work after a run finish, so that it counts for that run.
const SETTLE_TIME: Duration = Duration::from_millis(300);
/// In the feed, at the end of a run.
const END: &[u8] = b"event: run_completed\n";
/// The calls that a Rust program makes for memory. SQLite uses the system's allocator, and how often depends on what
/// is in its page cache.
const ALLOCATORS: [&str; 3] = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"];

/// Per event.
pub struct EventCost {
    pub instructions: f64,
    /// `None` for a binary without symbols.
    pub allocations: Option<f64>,
}

pub struct EventCosts {
    /// Events at a natural pace: one per commit.
    pub single: EventCost,
    /// Events as fast as possible: many per commit.
    pub grouped: EventCost,
}

pub async fn measure(bench: &Bench) -> anyhow::Result<EventCosts> {
    let folder = bench.new_folder("callgrind");
    fs::create_dir_all(&folder)?;
    let mut launch = launch(&wrapper(&folder, &bench.binary)?, &folder.join("data"));
    launch.deadline = START;
    let stack = GreenroomStack::start_with(&launch).await?;
    let room = stack.room().await?;
    let feed = RawStream::open(stack.address, &format!("/api/rooms/{room}/events?after=0")).await?;
    let mut server = ProfiledServer { stack, room, feed, folder, dumps: 0 };
    server.deliver(WARM_UP, 0).await?;
    server.command(&["instrumentation", "on"]).await?;
    // The first large message costs more than the later ones.
    server.deliver(2 * UNPACED_EVENTS, 0).await?;
    server.profile().await?;
    let single = server.cost(PACED_EVENTS, PACE).await?;
    let grouped = server.cost(UNPACED_EVENTS, 0).await?;
    server.stack.server.kill().await?;
    Ok(EventCosts { single, grouped })
}

/// A program that starts the server under callgrind in the same process.
fn wrapper(folder: &Path, binary: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join("server");
    let [folder, binary] = [folder, binary].map(Path::display);
    let script = format!(
        "#!/bin/sh\nexec valgrind --tool=callgrind --instr-atstart=no --vgdb-prefix='{folder}/vgdb' \
         --callgrind-out-file='{folder}/profile' '{binary}' \"$@\"\n"
    );
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

struct ProfiledServer {
    stack: GreenroomStack,
    room: RoomId,
    feed: RawStream,
    folder: PathBuf,
    dumps: usize,
}

impl ProfiledServer {
    async fn cost(&mut self, events: u32, pace: u32) -> anyhow::Result<EventCost> {
        self.deliver(events, pace).await?;
        let once = self.profile().await?;
        self.deliver(2 * events, pace).await?;
        let twice = self.profile().await?;
        let per_event = |once: u32, twice: u32| (f64::from(twice) - f64::from(once)) / f64::from(events);
        Ok(EventCost {
            instructions: (twice.instructions - once.instructions) / f64::from(events),
            allocations: once.allocations.zip(twice.allocations).map(|(once, twice)| per_event(once, twice)),
        })
    }

    /// Streams this many events, none of which can be joined, to the reader.
    async fn deliver(&mut self, events: u32, pace: u32) -> anyhow::Result<()> {
        self.stack.api.post_message(self.room, &TestPost::new(counting_script(events, pace))).await?;
        let mut counted = TokenCounter::default();
        let (mut body, mut is_completed) = (Vec::new(), false);
        while !is_completed {
            let end = body.len();
            self.feed.read(&mut body, TIMEOUT).await?;
            counted.push(&body[end..])?;
            let unseen = &body[end.saturating_sub(END.len())..];
            is_completed = unseen.windows(END.len()).any(|window| window == END);
        }
        ensure!(counted.count == events, "{} of {events} events", counted.count);
        sleep(SETTLE_TIME).await;
        Ok(())
    }

    /// Returns the counts since the last profile.
    async fn profile(&mut self) -> anyhow::Result<CallgrindProfile> {
        self.command(&["dump"]).await?;
        self.dumps += 1;
        let path = self.folder.join(format!("profile.{}", self.dumps));
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        CallgrindProfile::parse(&String::from_utf8_lossy(&text)).context("an incomplete profile")
    }

    /// Sends a command to callgrind.
    async fn command(&self, words: &[&str]) -> anyhow::Result<()> {
        let mut vgdb = Command::new("vgdb");
        vgdb.arg(format!("--vgdb-prefix={}", self.folder.join("vgdb").display()));
        vgdb.arg(format!("--pid={}", self.stack.server.pid())).args(words).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(TIMEOUT, vgdb.output()).await.context("vgdb does not end")??;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "vgdb failed; it needs permission to trace processes: {text}");
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct CallgrindProfile {
    instructions: f64,
    allocations: Option<u32>,
}

impl CallgrindProfile {
    /// Reads callgrind's format: names are defined once, as `fn=(ID) NAME`, and a call is `cfn=(ID)` followed by
    /// `calls=COUNT …`.
    fn parse(text: &str) -> Option<Self> {
        let mut names: HashMap<&str, &str> = HashMap::new();
        let (mut callee, mut allocations, mut instructions) = ("", 0, None);
        for line in text.lines() {
            if let Some(function) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
                let (id, name) = function.split_once(')')?;
                let name = match name.trim() {
                    "" => names.get(id).copied()?,
                    name => names.entry(id).or_insert(name),
                };
                if line.starts_with('c') {
                    callee = name;
                }
            } else if let Some(counts) = line.strip_prefix("calls=") {
                let is_allocation = ALLOCATORS.iter().any(|allocator| callee.rsplit(':').next() == Some(allocator));
                let count: u32 = counts.split(' ').next()?.parse().ok()?;
                allocations += if is_allocation { count } else { 0 };
            } else if let Some(total) = line.strip_prefix("totals: ") {
                instructions = Some(total.trim().parse().ok()?);
            }
        }
        Some(Self { instructions: instructions?, allocations: (allocations > 0).then_some(allocations) })
    }
}

#[cfg(test)]
mod tests {
    use super::CallgrindProfile;

    #[test]
    fn instructions_and_allocations_are_counted() {
        let text = "events: Ir\nfn=(1) main\n10 5\ncfn=(2) __rustc::__rust_alloc\ncalls=3 7\n10 60\ncfn=(3) my_rust_alloc\n\
                    calls=8 1\n11 9\nfn=(3)\n1 2\ncfn=(2)\ncalls=4 7\n12 80\ncfn=(1)\ncalls=1 1\n13 1\ntotals: 1234\n";
        let profile = CallgrindProfile { instructions: 1234.0, allocations: Some(7) };
        assert_eq!(CallgrindProfile::parse(text), Some(profile));
    }

    #[test]
    fn without_symbols_allocations_are_unknown() {
        let text = "fn=(1) 0x0000000000012345\n10 5\ncfn=(2) 0x0000000000012399\ncalls=3 7\n10 60\ntotals: 65\n";
        let profile = CallgrindProfile { instructions: 65.0, allocations: None };
        assert_eq!(CallgrindProfile::parse(text), Some(profile));
        assert_eq!(CallgrindProfile::parse("fn=(1) main\n10 5\n"), None, "the dump was cut off");
    }
}
