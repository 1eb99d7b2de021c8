//! Starts the server, lets rooms stream, kills and restarts it; at the end drains all work and runs the checks.

use crate::{
    ChaosArguments, answerers,
    checks::{self, BrokenPromise, ChaosTally, EVENTS_A_ROOM, StoredTables},
    ledger::{ChaosRoomKind, RoomLedger, RoomProgress},
    orphans,
    power_cut::PowerCut,
    random::Random,
    readers,
    report::ChaosVerdict,
    trigger::{KillMoment, KillTrigger},
    writers::ChaosWriter,
};
use anyhow::{Context as _, bail};
use domain::{
    agent::Agent,
    ids::RoomId,
    position::{Position, Seq},
    run::RunStatus,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use testkit::client::{SeenEvent, ServerLaunch, TestClient, TestServerProcess};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

const UNTIL_STREAMS_FLOW: Duration = Duration::from_secs(10);
const UNTIL_TRIGGERED: Duration = Duration::from_secs(2);
const UNTIL_DEAD: Duration = Duration::from_secs(30);
const UNTIL_ORPHANS_EXIT: Duration = Duration::from_secs(2);
const UNTIL_DRAINED: Duration = Duration::from_secs(120);
const SIGKILL: i32 = 9;
const EVENTS_A_PAGE: usize = 2_000;

pub struct ChaosSession {
    launch: ServerLaunch,
    api: TestClient,
    ledgers: Vec<Arc<RoomLedger>>,
    trigger: Arc<KillTrigger>,
    random: Random,
    mark: String,
    power_cut: Option<PowerCut>,
    /// A planted bug must be caught, so every cycle favors conditions that expose it.
    is_planted: bool,
    tally: ChaosTally,
    broken: Vec<BrokenPromise>,
    /// The seq up to which each room's journal was compared with its ledger.
    compared: Vec<u64>,
    readers: JoinSet<()>,
    writers: JoinSet<()>,
    finish: CancellationToken,
    stop: CancellationToken,
}

impl ChaosSession {
    pub async fn run(
        arguments: &ChaosArguments,
        binary: PathBuf,
        folder: &Path,
        seed: u64,
    ) -> anyhow::Result<ChaosVerdict> {
        let mut session = Self::prepare(arguments, binary, folder, seed)?;
        let mut server = session.start().await?;
        session.create_rooms(arguments.rooms).await?;
        for cycle in 1..=arguments.cycles {
            session.cycle(cycle, server).await?;
            server = session.start().await.with_context(|| format!("after kill {cycle}"))?;
            session.compare().await?;
            if let Some(name) = &arguments.planted
                && let Some(caught) = session.broken.first()
            {
                return Ok(ChaosVerdict::Planted { name: name.clone(), caught: Some(check_name(caught)) });
            }
        }
        session.drain().await;
        let mut rooms = Vec::new();
        for ledger in &session.ledgers {
            rooms.push(checks::RoomRecord::read(&session.api, ledger.clone()).await?);
        }
        session.stop.cancel();
        let before = orphans::descendants(server.pid());
        server.kill().await?;
        session.tally.kills += 1;
        session.record_orphans(&before).await;
        // The last kill happens without running work, so it does not count as one that cut runs.
        session.tally.kills -= 1;
        let stored = StoredTables::read(&session.launch.data_dir).await?;
        let checks = checks::all(&rooms, &stored, std::mem::take(&mut session.broken), &session.tally);
        Ok(match &arguments.planted {
            None => ChaosVerdict::Checked(checks),
            Some(name) => {
                let caught = checks.iter().take(2).find(|check| !check.passed()).map(|check| check.name.to_owned());
                ChaosVerdict::Planted { name: name.clone(), caught }
            }
        })
    }

    fn prepare(arguments: &ChaosArguments, binary: PathBuf, folder: &Path, seed: u64) -> anyhow::Result<Self> {
        let mut random = Random::new(seed);
        let data = folder.join("data");
        let mark = format!("GREENROOM_CHAOS_MARK={}", uuid::Uuid::new_v4());
        let mut launch = ServerLaunch::new(binary, &data)
            .with("GREENROOM_LIMITS__REQUESTS_PER_SECOND", "1000000")
            .with("GREENROOM_LIMITS__BURST", "1000000")
            .with("GREENROOM_LIMITS__STREAMS_PER_USER", "10000");
        if let Some((name, value)) = mark.split_once('=') {
            launch = launch.with(name, value);
        }
        if let Some(name) = &arguments.planted {
            launch = launch.with("GREENROOM_PLANTED_BUG", name.as_str());
        }
        launch.log = folder.join("server.log");
        launch.listen = format!("127.0.0.1:{}", free_port(&mut random)?);
        let with_power_cut = arguments.power_cut || arguments.planted.is_some();
        let power_cut = if with_power_cut { Some(PowerCut::prepare(folder, &data)?) } else { None };
        if let Some(cut) = &power_cut {
            launch.preload = Some(cut.library.clone());
            println!("chaos: the shim passed its self test");
        }
        Ok(Self {
            api: TestClient::new(format!("http://{}", launch.listen))?,
            launch,
            ledgers: Vec::new(),
            trigger: Arc::default(),
            random,
            mark,
            tally: ChaosTally { is_power_cut: power_cut.is_some(), ..ChaosTally::default() },
            power_cut,
            is_planted: arguments.planted.is_some(),
            broken: Vec::new(),
            compared: Vec::new(),
            readers: JoinSet::new(),
            writers: JoinSet::new(),
            finish: CancellationToken::new(),
            stop: CancellationToken::new(),
        })
    }

    /// In power cuts the disk is slow in most cycles: the longer a sync takes, the more likely a missing wait is
    /// caught.
    async fn start(&mut self) -> anyhow::Result<TestServerProcess> {
        let mut launch = self.launch.clone();
        if let Some(cut) = &self.power_cut {
            let is_slow = self.is_planted || self.random.chance(70);
            let delay = Duration::from_millis(if is_slow { self.random.between(5, 15) } else { 0 });
            launch.environment.extend(cut.environment(delay));
        }
        let server = launch.start().await?;
        self.api = server.client()?;
        Ok(server)
    }

    async fn create_rooms(&mut self, rooms: u64) -> anyhow::Result<()> {
        let mut agents = vec![self.api.scripted_agent().await?];
        for name in ["second", "third"] {
            let spec = json!({"name": name, "provider": "scripted"});
            let created: Agent = self.api.send(self.api.request(Method::POST, "/api/agents").json(&spec)).await?;
            agents.push(created.id);
        }
        for number in 1..=rooms {
            let (name, kind) = (format!("chaos {number}"), ChaosRoomKind::of_room(number));
            let room = match kind {
                ChaosRoomKind::OneAgent => self.api.create_room(&name, &agents[..1]).await?,
                ChaosRoomKind::Together => {
                    self.api.create_room_with(&name, &agents, json!({"kind": "concurrent"})).await?
                }
                ChaosRoomKind::InTurn => self.api.create_room_with(&name, &agents, json!({"kind": "everyone"})).await?,
            };
            let ledger = Arc::new(RoomLedger::new(room.id, kind));
            readers::start(&mut self.readers, &self.api, &ledger, &self.trigger, &self.stop);
            answerers::start(&mut self.readers, &self.api, &ledger, &self.stop);
            let writer = ChaosWriter {
                api: self.api.clone(),
                ledger: ledger.clone(),
                trigger: self.trigger.clone(),
                random: self.random.branch(),
                finish: self.finish.clone(),
            };
            writer.start(&mut self.writers, &self.stop);
            self.ledgers.push(ledger);
            self.compared.push(0);
        }
        Ok(())
    }

    /// Waits until rooms stream, then a random time, and kills the server right after an event or an acknowledgement.
    async fn cycle(&mut self, cycle: usize, mut server: TestServerProcess) -> anyhow::Result<()> {
        let before: Vec<_> = self.ledgers.iter().map(|ledger| *ledger.progress().borrow()).collect();
        let deadline = Instant::now() + UNTIL_STREAMS_FLOW;
        for (ledger, before) in self.ledgers.iter().zip(&before) {
            // A silent room is reported by check 8, not here.
            let flows = |now: &RoomProgress| now.deltas > before.deltas && now.events >= before.events + EVENTS_A_ROOM;
            drop(timeout_at(deadline, ledger.progress().wait_for(flows)).await);
        }
        sleep(Duration::from_millis(self.random.between(100, 1500))).await;
        let is_full_at_kill = self.maybe_fill_disk().await?;

        let descendants = orphans::descendants(server.pid());
        let is_reader = self.is_planted || self.random.chance(70);
        let moment = if is_reader { KillMoment::Shown } else { KillMoment::Acknowledged };
        self.trigger.arm(server.pid(), moment);
        let status = match server.wait_for_exit(UNTIL_TRIGGERED).await {
            Ok(status) => status,
            Err(_) => {
                self.trigger.disarm();
                server.kill_now()?;
                server.wait_for_exit(UNTIL_DEAD).await?
            }
        };
        self.trigger.disarm();
        if status.signal() != Some(SIGKILL) {
            bail!("in cycle {cycle} the server ended on its own: {status}; its log is {}", self.launch.log.display());
        }
        if let Some(cut) = self.power_cut.as_ref().filter(|_| is_full_at_kill) {
            cut.free_disk()?;
        }
        self.tally.kills += 1;
        self.record_orphans(&descendants).await;
        let now = self.ledgers.iter().map(|ledger| ledger.progress().borrow().events);
        let events = now.zip(&before).map(|(now, before)| now - before.events).sum();
        self.tally.events_by_cycle.push(events);
        let mut forgotten_note = String::new();
        if let Some(cut) = &self.power_cut {
            let forgotten = cut.forget()?;
            self.tally.writes_forgotten += forgotten.writes;
            self.tally.unwatched_cuts += usize::from(forgotten.write_ahead_logs == 0);
            forgotten_note = format!(", {} unsynced writes undone in {} files", forgotten.writes, forgotten.files);
        }
        println!("cycle {cycle}: {events} events, killed right after {moment:?}{forgotten_note}");
        Ok(())
    }

    /// In some power cuts the disk is full before. Half of the time it stays full until the kill. Returns whether it does.
    async fn maybe_fill_disk(&mut self) -> anyhow::Result<bool> {
        let Some(cut) = self.power_cut.as_ref().filter(|_| !self.is_planted) else { return Ok(false) };
        if !self.random.chance(50) {
            return Ok(false);
        }
        cut.fill_disk()?;
        self.tally.full_disks += 1;
        sleep(Duration::from_millis(self.random.between(200, 1000))).await;
        if self.random.chance(50) {
            return Ok(true);
        }
        cut.free_disk()?;
        sleep(Duration::from_millis(self.random.between(100, 1000))).await;
        Ok(false)
    }

    async fn record_orphans(&mut self, descendants: &std::collections::BTreeSet<orphans::ProcessIdentity>) {
        let alive = orphans::survivors(descendants, &self.mark, UNTIL_ORPHANS_EXIT).await;
        let kill = self.tally.kills;
        self.tally
            .orphans
            .extend(alive.into_iter().map(|process| format!("after kill {kill}: process {}", process.id)));
    }

    /// Compares the new ledger entries of the last cycle with the journal, right after the restart.
    async fn compare(&mut self) -> anyhow::Result<()> {
        for (ledger, compared) in self.ledgers.iter().zip(&mut self.compared) {
            let to = ledger.entries().highest_seen_seq();
            let journal = events_between(&self.api, ledger.room, *compared, to).await?;
            self.broken.extend(checks::compare(&ledger.entries(), *compared, to, &journal));
            *compared = to;
        }
        Ok(())
    }

    /// Stops new work, waits until queued work is done and lost posts are repeated, and lets readers catch up.
    async fn drain(&mut self) {
        self.finish.cancel();
        let deadline = Instant::now() + UNTIL_DRAINED;
        let writers = async { while self.writers.join_next().await.is_some() {} };
        if timeout_at(deadline, writers).await.is_err() {
            self.tally.unfinished.push("a writer is still waiting for a response".into());
        }
        for ledger in &self.ledgers {
            // Between two cells no run may be open, and the next one begins.
            if !matches!(timeout_at(deadline, self.tape_is_idle(ledger.room)).await, Ok(Ok(()))) {
                self.tally.unfinished.push(format!("{}: something is still planned", ledger.room));
            }
            if timeout_at(deadline, ledger.progress().wait_for(|now| now.open_runs == 0)).await.is_err() {
                self.tally.unfinished.push(format!("{}: readers saw runs without an end", ledger.room));
            }
            for status in RunStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
                match self.api.runs(ledger.room, status, 10).await {
                    Ok(runs) => {
                        let texts = runs.iter().map(|run| format!("{}: run {} is {status}", ledger.room, run.id));
                        self.tally.unfinished.extend(texts);
                    }
                    Err(error) => self.tally.unfinished.push(error.to_string()),
                }
            }
        }
        // A reader that does not catch up is reported by check 9.
        drop(timeout(Duration::from_secs(20), self.readers_caught_up()).await);
    }

    async fn tape_is_idle(&self, room: RoomId) -> anyhow::Result<()> {
        loop {
            let tape: Value = self.api.send(self.api.request(Method::GET, &format!("/api/rooms/{room}/tape"))).await?;
            if tape["state"] == "idle" {
                return Ok(());
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn readers_caught_up(&self) -> anyhow::Result<()> {
        for ledger in &self.ledgers {
            let head = self.api.room(ledger.room).await?.head;
            while ledger.entries().readers.iter().any(|reader| reader.position < head) {
                sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }
}

/// Returns the events after `from`, up to `to` or the end of the journal.
async fn events_between(api: &TestClient, room: RoomId, from: Seq, to: Seq) -> anyhow::Result<Vec<SeenEvent>> {
    let mut events: Vec<SeenEvent> = Vec::new();
    loop {
        let seq = events.last().map_or(from, |event| event.seq);
        let page = match api.events(room, &Position { epoch: None, seq }, EVENTS_A_PAGE).await {
            // The journal is shorter than before, or the room is lost.
            Err(error) if matches!(error.code(), Some("position_reset" | "not_found")) => return Ok(events),
            other => other?,
        };
        let is_end = page.events.is_empty() || seq >= to;
        events.extend(page.events);
        if is_end {
            return Ok(events);
        }
    }
}

fn check_name(broken: &BrokenPromise) -> String {
    match broken {
        BrokenPromise::Acknowledged(text) => format!("1 nothing acknowledged is lost: {text}"),
        BrokenPromise::Shown(text) => format!("2 nothing shown is lost or changed: {text}"),
    }
}

/// Returns a port outside the ephemeral range: a client that retries a closed ephemeral port could connect to itself.
fn free_port(random: &mut Random) -> anyhow::Result<u64> {
    for _ in 0..100 {
        let port = random.between(20_000, 30_000);
        if TcpListener::bind(format!("127.0.0.1:{port}")).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port between 20000 and 30000")
}
