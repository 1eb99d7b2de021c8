//! A server with one real program, or several, which use a double of the model APIs.

use crate::requests::{post, within};
use domain::{
    event::EventType,
    ids::{AgentId, RoomId},
    run::Run,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, sync::Mutex, time::Duration};
use testkit::{
    client::{SeenEvent, ServerLaunch, TestClient, TestServerProcess},
    models::ModelDouble,
    programs::CliPrograms,
    server::{assert_journal_valid, assert_no_process_with_env, processes_with_env},
};
use uuid::Uuid;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cli {
    ClaudeCode,
    Codex,
    Gemini,
}

impl Cli {
    pub fn provider(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    pub fn program(self) -> PathBuf {
        let programs = CliPrograms::from_env();
        match self {
            Self::ClaudeCode => programs.claude,
            Self::Codex => programs.codex,
            Self::Gemini => programs.gemini,
        }
    }

    pub fn model(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-sonnet-4-5",
            Self::Codex => "gpt-5.5",
            Self::Gemini => "gemini-2.5-pro",
        }
    }

    /// The name of its shell tool in approvals and policies.
    pub fn shell(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Bash",
            Self::Codex => "shell",
            Self::Gemini => "run_shell_command",
        }
    }

    /// The name of Greenroom's question tool. Gemini hides tools named `ask_user` from its model.
    pub fn asking(self) -> &'static str {
        if self == Self::Gemini { "ask_people" } else { "ask_user" }
    }

    /// The settings that make the server use this program and that double.
    fn environment(self, models: &str, key: &str) -> Vec<(&'static str, String)> {
        let program = self.program().display().to_string();
        match self {
            Self::ClaudeCode => vec![
                ("GREENROOM_CLAUDE_CODE__COMMAND", program),
                ("GREENROOM_CLAUDE_CODE__SHARE_LOGIN", "false".into()),
                ("GREENROOM_CLAUDE_CODE__PASS_ENV", MARK.into()),
                ("ANTHROPIC_BASE_URL", models.into()),
                ("ANTHROPIC_API_KEY", key.into()),
            ],
            Self::Codex => vec![
                ("GREENROOM_CODEX__COMMAND", program),
                ("GREENROOM_CODEX__SHARE_LOGIN", "false".into()),
                ("GREENROOM_CODEX__PASS_ENV", MARK.into()),
                ("GREENROOM_CODEX__ARGS", codex_arguments()),
                ("OPENAI_BASE_URL", format!("{models}/v1")),
                ("OPENAI_API_KEY", key.into()),
            ],
            Self::Gemini => vec![
                ("GREENROOM_ACP__AGENTS", format!("gemini = '{program}' --acp")),
                ("GREENROOM_ACP__SHARE_LOGIN", "false".into()),
                ("GREENROOM_ACP__PASS_ENV", MARK.into()),
                ("GOOGLE_GEMINI_BASE_URL", models.into()),
                ("GEMINI_API_KEY", key.into()),
            ],
        }
    }
}

/// Failures of the double must not take long.
fn codex_arguments() -> String {
    let settings =
        ["model_providers.greenroom.request_max_retries=1", "model_providers.greenroom.stream_max_retries=1"];
    settings.iter().flat_map(|setting| ["-c", setting]).collect::<Vec<_>>().join(",")
}

/// A variable that all processes started by the server inherit.
const MARK: &str = "SCENE_MARK";

pub struct CliFixture {
    pub cli: Cli,
    /// The model double; stops when dropped.
    models: ModelDouble,
    launch: ServerLaunch,
    mark: String,
    process: Mutex<Option<TestServerProcess>>,
    api: Mutex<TestClient>,
    agent: Mutex<Option<AgentId>>,
    _folder: tempfile::TempDir,
}

impl CliFixture {
    pub async fn start(cli: Cli) -> Self {
        Self::start_with(cli, "test-key", &[]).await
    }

    pub async fn start_with(cli: Cli, key: &str, settings: &[(&str, &str)]) -> Self {
        Self::start_all(&[cli], key, settings).await
    }

    /// Starts a server with several programs; the default agent uses the first.
    pub async fn start_all(clis: &[Cli], key: &str, settings: &[(&str, &str)]) -> Self {
        let models = ModelDouble::start().await.unwrap();
        // Not in the system's temporary folder: Codex refuses to create its sandbox there.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mark = Uuid::now_v7().to_string();
        let launch = ServerLaunch::new(env!("CARGO_BIN_EXE_greenroom"), folder.path().join("data"));
        let mut launch = launch.with("GREENROOM_SANDBOX__AGENTS", "auto");
        for (name, value) in clis.iter().flat_map(|cli| cli.environment(&models.url(), key)) {
            launch = launch.with(name, value);
        }
        for (name, value) in settings {
            launch = launch.with(name, *value);
        }
        launch = launch.with(MARK, &mark).with("GREENROOM_RUNS__LEASE_SECONDS", "2");
        let process = launch.start().await.unwrap();
        let api = Mutex::new(process.client().unwrap());
        let process = Mutex::new(Some(process));
        Self { cli: clis[0], models, launch, mark, process, api, agent: Mutex::default(), _folder: folder }
    }

    pub fn models(&self) -> &ModelDouble {
        &self.models
    }

    pub fn api(&self) -> TestClient {
        self.api.lock().unwrap().clone()
    }

    /// The default agent, created on first use. All its tools need approval.
    pub async fn agent(&self) -> AgentId {
        let known = *self.agent.lock().unwrap();
        match known {
            Some(agent) => agent,
            None => {
                let agent = self.agent_with("the one", json!({})).await;
                *self.agent.lock().unwrap() = Some(agent);
                agent
            }
        }
    }

    pub async fn agent_with(&self, name: &str, settings: Value) -> AgentId {
        self.agent_of(self.cli, name, settings).await
    }

    pub async fn agent_of(&self, cli: Cli, name: &str, settings: Value) -> AgentId {
        let mut spec = json!({"name": name, "provider": cli.provider(), "model": cli.model()});
        for (key, value) in settings.as_object().unwrap() {
            spec[key] = value.clone();
        }
        post(&self.api(), "/api/agents", &spec).await.expect_status(201)["id"].as_str().unwrap().parse().unwrap()
    }

    pub async fn room(&self) -> RoomId {
        let agent = self.agent().await;
        self.api().create_room("A room", &[agent]).await.unwrap().id
    }

    /// The agent workspace of a room.
    pub fn workspace(&self, room: RoomId) -> PathBuf {
        self.launch.data_dir.join("rooms").join(room.to_string())
    }

    /// The home folder of an agent's program in the sandbox of a room.
    pub fn home(&self, room: RoomId, agent: AgentId) -> PathBuf {
        self.data_dir().join("homes").join(format!("room-{room}")).join(agent.to_string())
    }

    pub fn data_dir(&self) -> PathBuf {
        self.launch.data_dir.clone()
    }

    pub fn server_pid(&self) -> u32 {
        self.process.lock().unwrap().as_ref().unwrap().pid()
    }

    pub fn server_port(&self) -> u16 {
        let process = self.process.lock().unwrap();
        process.as_ref().unwrap().base_url().rsplit(':').next().unwrap().parse().unwrap()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.launch.log).unwrap_or_default()
    }

    /// Asserts that neither the log nor any file of the server or its agents contains this.
    pub fn assert_not_in_files(&self, words: &str) {
        assert!(!self.log().contains(words), "found in the log");
        let mut folders = vec![self.launch.data_dir.clone()];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let (kind, path) = (entry.file_type().unwrap(), entry.path());
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    let bytes = fs::read(&path).unwrap_or_default();
                    let found = bytes.windows(words.len()).any(|window| window == words.as_bytes());
                    assert!(!found, "found in {}", path.display());
                    files += 1;
                }
            }
        }
        assert!(files > 1, "the server and its agents must have files");
    }

    /// Stops with SIGTERM and starts again.
    pub async fn restart(&self) {
        let process = self.process.lock().unwrap().take().unwrap();
        process.terminate(Duration::from_secs(30)).await.unwrap();
        assert_no_process_with_env(&self.mark).await;
        self.begin().await;
    }

    /// Kills the server with SIGKILL; within two seconds all its processes must end (invariant 5).
    pub async fn kill_server(&self) {
        let process = self.process.lock().unwrap().take().unwrap();
        process.kill().await.unwrap();
        assert_no_process_with_env(&self.mark).await;
    }

    pub async fn begin(&self) {
        let process = self.launch.start().await.unwrap();
        *self.api.lock().unwrap() = process.client().unwrap();
        *self.process.lock().unwrap() = Some(process);
    }

    /// The processes of the program itself, without keepers.
    pub fn program_processes(&self) -> Vec<u32> {
        // Inside it has another path.
        let program = self.cli.program().canonicalize().unwrap().file_name().unwrap().to_owned();
        let runs_it = |pid: &u32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            let is_ours = executable.file_name().is_some_and(|name| name.to_string_lossy().starts_with("greenroom"));
            let named = command
                .split(|byte| *byte == 0)
                .take(2)
                .any(|word| PathBuf::from(String::from_utf8_lossy(word).into_owned()).file_name() == Some(&program));
            !is_ours && (executable.file_name() == Some(&program) || named)
        };
        processes_with_env(&self.mark).into_iter().filter(runs_it).collect()
    }

    /// Waits until a process with this command line exists, or does not.
    pub async fn wait_for_process(&self, words: &str, there: bool) {
        within(if there { "a process to appear" } else { "a process to go" }, async {
            loop {
                let found = processes_with_env(&self.mark).into_iter().any(|pid| {
                    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                    let words: Vec<&str> = words.split(' ').collect();
                    let line: Vec<String> = command
                        .split(|byte| *byte == 0)
                        .filter(|word| !word.is_empty())
                        .map(|word| String::from_utf8_lossy(word).into_owned())
                        .collect();
                    line == words
                });
                if found == there {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    /// Checks that the journals are valid and that no process is left after the server has stopped.
    pub async fn finish(self) {
        let api = self.api();
        let rooms: Value = crate::requests::get(&api, "/api/rooms?limit=1000").await.expect_status(200);
        for room in rooms["rooms"].as_array().unwrap() {
            let journal = api.journal(room["id"].as_str().unwrap().parse().unwrap(), 10_000).await.unwrap();
            assert_journal_valid(&journal);
        }
        let process = self.process.lock().unwrap().take().unwrap();
        process.terminate(Duration::from_secs(30)).await.unwrap();
        assert_no_process_with_env(&self.mark).await;
    }

    /// The run, its events and the log, for failed assertions.
    pub fn details(&self, run: &Run, journal: &[SeenEvent]) -> String {
        let events: Vec<&str> =
            journal.iter().filter(|event| event.run_id == Some(run.id)).map(|event| &*event.json).collect();
        format!("{run:?}\n{}\n{}", events.join("\n"), self.log())
    }
}

/// Returns the status codes of the `status` events of a run.
pub fn statuses(journal: &[SeenEvent], run: &Run) -> Vec<String> {
    let of_run = journal.iter().filter(|event| event.kind == EventType::Status && event.run_id == Some(run.id));
    of_run.map(|event| crate::requests::data(event)["status"].as_str().unwrap().to_owned()).collect()
}
