//! A whole server inside the test process, with its own database and port.
//!
//! Tests use only its public endpoints. At the end, a test calls [`TestServer::stop`] or [`TestServer::finish`]; the
//! latter checks the general invariants: no unfinished runs, gapless journals, one end per run, no leftover processes.
//! A test that calls neither fails.
#![expect(clippy::expect_used, reason = "a test without its server has failed")]

use crate::{
    client::{SeenEvent, TestClient},
    database::TestDatabase,
};
use domain::{
    event::EventBody,
    fold::Answer,
    ids::{RoomId, RunId},
    message::Part,
    room::Room,
    run::{Run, RunStatus},
};
use greenroom::{
    config::{AppConfig, ConfigFlags},
    serve::RunningServer,
};
use reqwest::Method;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    future::Future,
    path::Path,
    time::Duration,
};
use store::Backend;
use tokio::time::{Instant, sleep, timeout};

/// Longer than anything takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// A stop takes no longer than this (invariant 20).
/// How many of a room's newest messages are compared with its journal.
const CHECKED_MESSAGES: usize = 1000;
const STOP: Duration = Duration::from_secs(30);
/// How long leftover processes may take to exit (invariant 5).
const EXIT_TIME: Duration = Duration::from_secs(2);
const PAGE: usize = 10_000;

pub struct TestServer {
    running: Option<RunningServer>,
    database: Option<TestDatabase>,
    api: TestClient,
    settings: Vec<(String, String)>,
    environment: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct RoomList {
    rooms: Vec<Room>,
}

#[derive(Deserialize)]
struct RunList {
    runs: Vec<Run>,
}

impl TestServer {
    pub async fn start(database: TestDatabase) -> Self {
        Self::start_with(database, &[]).await
    }

    /// `settings` are `section.key` and a value, as in `default.toml`.
    pub async fn start_with(database: TestDatabase, settings: &[(&str, &str)]) -> Self {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Self::open(database, settings.iter().map(owned).collect()).await
    }

    /// Starts with environment variables that may be passed to the agents' programs.
    pub async fn start_with_environment(
        database: TestDatabase,
        settings: &[(&str, &str)],
        environment: &[(&str, &str)],
    ) -> Self {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let environment = environment.iter().map(owned).collect();
        Self::open_with_environment(database, settings.iter().map(owned).collect(), environment).await
    }

    async fn open(database: TestDatabase, settings: Vec<(String, String)>) -> Self {
        Self::open_with_environment(database, settings, Vec::new()).await
    }

    /// Starts with `--no-auth`; the client has no credential.
    pub async fn start_without_auth(database: TestDatabase) -> Self {
        let mut config = config(&database, &[]);
        config.server.no_auth = true;
        let running = within("the server to start", RunningServer::start(&config)).await.expect("the server starts");
        let api = operator_of(&running).anonymous();
        Self { running: Some(running), database: Some(database), api, settings: Vec::new(), environment: Vec::new() }
    }

    async fn open_with_environment(
        database: TestDatabase,
        settings: Vec<(String, String)>,
        environment: Vec<(String, String)>,
    ) -> Self {
        let config = config_in_environment(&database, &settings, &environment);
        let running = within("the server to start", RunningServer::start(&config)).await.expect("the server starts");
        let api = operator_of(&running);
        Self { running: Some(running), database: Some(database), api, settings, environment }
    }

    pub fn api(&self) -> &TestClient {
        &self.api
    }

    /// The running server, for tests of its start.
    pub fn running(&self) -> &RunningServer {
        self.running.as_ref().expect("the server runs until the test ends")
    }

    /// Uses this token for all further requests, instead of the local key.
    pub fn use_token(&mut self, token: &str) {
        self.api = self.api.clone().with_token(token);
    }

    pub fn database(&self) -> &TestDatabase {
        self.database.as_ref().expect("the database exists until the server stops")
    }

    /// Stops as on SIGTERM and starts again on the same database and another port.
    pub async fn restart(mut self) -> Self {
        self.close().await;
        let database = self.database.take().expect("the database exists until the server stops");
        Self::open_with_environment(database, std::mem::take(&mut self.settings), std::mem::take(&mut self.environment))
            .await
    }

    /// Stops without checking for unfinished runs.
    pub async fn stop(mut self) -> TestDatabase {
        self.close().await;
        self.database.take().expect("the database exists until the server stops")
    }

    /// Checks the general invariants and stops.
    pub async fn finish(mut self) {
        self.assert_nothing_unfinished().await;
        let rooms: RoomList = self.get("/api/rooms?limit=1000").await;
        // A few rooms are enough.
        for room in rooms.rooms.iter().take(20) {
            let journal = self.api.journal(room.id, PAGE).await.expect("a journal");
            assert_eq!(journal.len() as u64, room.head, "the journal must end at the room's head");
            assert_journal_valid(&journal);
            self.assert_history_agrees(room.id, &journal).await;
        }
        self.close().await;
        assert_no_children().await;
    }

    /// Asserts that no run is unfinished.
    pub async fn assert_nothing_unfinished(&self) {
        for status in RunStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
            let found: RunList = self.get(&format!("/api/runs?status={status}&limit=1000")).await;
            assert!(found.runs.is_empty(), "runs left {status}: {:?}", found.runs);
        }
    }

    /// Asserts that every message is stored once and agrees with the journal.
    async fn assert_history_agrees(&self, room: RoomId, journal: &[SeenEvent]) {
        let (mut stored, mut before) = (BTreeMap::new(), None);
        // Pages are limited by size, too.
        while stored.len() < CHECKED_MESSAGES {
            let limit = CHECKED_MESSAGES - stored.len();
            let page = self.api.messages(room, before, limit).await.expect("a history").messages;
            let Some(first) = page.first() else { break };
            before = Some(first.seq);
            for message in page {
                let id = message.id;
                assert!(stored.insert(id, message.text).is_none(), "message {id} is stored twice");
            }
        }
        for event in journal {
            let (id, text) = match event.body().expect("a body") {
                EventBody::StreamEnd(end) => (end.stream_id, end.response_text),
                EventBody::MessagePosted(posted) => (posted.message_id, posted.text),
                _ => continue,
            };
            match stored.get(&id) {
                Some(kept) => assert_eq!(*kept, text, "message {id} as the journal has it"),
                None => assert_eq!(stored.len(), CHECKED_MESSAGES, "message {id} is not in the history"),
            }
        }
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> T {
        self.api.send(self.api.request(Method::GET, path)).await.expect("an answer")
    }

    async fn close(&mut self) {
        let running = self.running.take().expect("a server stops once");
        let stopped = timeout(STOP, running.stop()).await;
        assert!(stopped.is_ok(), "the server did not stop within {STOP:?}");
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let forgotten = self.running.is_some() && !std::thread::panicking();
        assert!(!forgotten, "a test must end with finish() or stop()");
    }
}

/// A client with the local key of the server.
pub fn operator_of(running: &RunningServer) -> TestClient {
    let api = TestClient::new(running.url()).expect("a client");
    api.with_token(running.local_key())
}

/// The configuration of a server on this database, on any free port of this machine.
pub fn config(database: &TestDatabase, settings: &[(String, String)]) -> AppConfig {
    config_in_environment(database, settings, &[])
}

fn config_in_environment(
    database: &TestDatabase,
    settings: &[(String, String)],
    environment: &[(String, String)],
) -> AppConfig {
    let backend = match database.backend() {
        Backend::Sqlite { file } => format!("sqlite://{}", file.display()),
        Backend::Postgres { url } => url,
    };
    let flags = ConfigFlags {
        listen: Some("127.0.0.1:0".into()),
        data_dir: Some(database.folder().display().to_string()),
        database: Some(backend.into()),
        ..ConfigFlags::default()
    };
    let variable = |(key, value): &(String, String)| -> (OsString, OsString) {
        (format!("GREENROOM_{}", key.replace('.', "__").to_uppercase()).into(), value.into())
    };
    // Tests of the sandbox set it; the others start programs that exist only outside.
    let settings = [("sandbox.agents".to_owned(), "none".to_owned())].into_iter().chain(settings.iter().cloned());
    let settings: Vec<(String, String)> = settings.collect();
    // A nonexistent folder, so that no configuration file interferes.
    let variables = environment.iter().map(|(name, value)| (name.into(), value.into()));
    let variables = variables.chain(settings.iter().map(variable));
    let config = AppConfig::load_from(&flags, variables, Path::new("/nowhere"));
    let own_program = crate::programs::greenroom();
    AppConfig { keeper: own_program.clone(), own_program, ..config.expect("a configuration") }
}

/// Asserts the invariants of a complete journal: seqs are 1, 2, 3 …; each run has one end, which is its last event; the
/// text of `stream_end` equals the deltas.
pub fn assert_journal_valid(journal: &[SeenEvent]) {
    assert_journal(journal, Answer::texts);
}

/// The same for a journal that an earlier version wrote, which put no paragraph between the texts before and after a tool call.
pub fn assert_old_journal_valid(journal: &[SeenEvent]) {
    let without_paragraphs = |answer: &Answer| {
        let texts = answer.parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        (texts.collect(), answer.texts().1)
    };
    assert_journal(journal, without_paragraphs);
}

fn assert_journal(journal: &[SeenEvent], texts: impl Fn(&Answer) -> (String, String)) {
    let mut ids = BTreeSet::new();
    let mut runs: BTreeMap<RunId, RunEvents> = BTreeMap::new();
    for (event, seq) in journal.iter().zip(1..) {
        assert_eq!(event.seq, seq, "seqs must be 1, 2, 3 …");
        assert!(ids.insert(event.id), "event {} is in the journal twice", event.id);
        if let Some(run) = event.run_id {
            runs.entry(run).or_default().add(event, &texts);
        }
    }
    for (run, events) in runs {
        assert!(events.ended, "run {run} has no end");
        assert_eq!(events.streams, events.closed, "run {run}: every started stream must be closed");
    }
}

/// The state of one run, built from its events.
#[derive(Default)]
struct RunEvents {
    ended: bool,
    streams: u32,
    closed: u32,
    answer: Answer,
}

impl RunEvents {
    fn add(&mut self, event: &SeenEvent, texts: impl Fn(&Answer) -> (String, String)) {
        assert!(!self.ended, "{} is after the end of its run", event.json);
        let body = event.body().expect("a body");
        self.ended = event.kind.ends_a_run();
        match &body {
            EventBody::StreamStart(_) => self.streams += 1,
            EventBody::StreamEnd(end) => {
                self.closed += 1;
                let (text, thinking) = texts(&self.answer);
                assert_eq!((&end.response_text, &end.thinking_text), (&text, &thinking), "{}", event.json);
            }
            _ => {}
        }
        self.answer.apply(&body);
    }
}

/// Waits until no process has this in its environment.
pub async fn assert_no_process_with_env(mark: &str) {
    assert_all_exit(|| processes_with_env(mark)).await;
}

/// Returns the processes that have this in their environment.
pub fn processes_with_env(mark: &str) -> Vec<u32> {
    processes().filter(|id| has_in_environment(*id, mark)).collect()
}

/// Asserts that this process has no children, except servers started by other tests.
async fn assert_no_children() {
    assert_all_exit(|| processes().filter(|id| is_stray_child(*id)).collect()).await;
}

async fn assert_all_exit(alive: impl Fn() -> Vec<u32>) {
    let end = Instant::now() + EXIT_TIME;
    loop {
        let left = alive();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "still alive: {left:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn has_in_environment(id: u32, mark: &str) -> bool {
    // Unreadable means that the process has ended or belongs to another user: not ours in both cases.
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    environment.windows(mark.len()).any(|window| window == mark.as_bytes())
}

fn is_stray_child(id: u32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let Some((name, fields)) = text.rsplit_once(") ") else { return false };
    let mut fields = fields.split(' ');
    let (state, parent) = (fields.next(), fields.next());
    // A zombie has ended but is not reaped yet.
    let is_expected = name.ends_with("(greenroom") || name.ends_with("(gr-keeper");
    parent == Some(&std::process::id().to_string()) && state != Some("Z") && !is_expected
}

async fn within<F: Future>(what: &str, future: F) -> F::Output {
    timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}
