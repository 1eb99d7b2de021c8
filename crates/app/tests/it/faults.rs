//! Faulty programs behind the whole server: each run gets one end with a readable message, and no process is left.
//!
//! The program is testkit's `replay`, which does the handshake of a real CLI and then shows the fault named by
//! `--fault`.

use crate::endpoints::requests::{
    RoomFollower, journal, message_of, post, post_and_wait, post_text, wait_for_end, within,
};
use domain::{
    event::EventType,
    ids::RoomId,
    run::{Run, RunStatus},
};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::TestClient,
    database::TestDatabase,
    programs,
    server::{TestServer, assert_no_process_with_env},
};
use uuid::Uuid;

/// The protocol names of `replay`.
const CLAUDE: &str = "claude";
const CODEX: &str = "codex";
const ACP: &str = "acp";

struct FaultyAgent {
    server: TestServer,
    room: RoomId,
    /// In the environment of all processes that the program starts.
    mark: String,
}

impl FaultyAgent {
    async fn start(speaks: &str, fault: &str) -> Self {
        let replay = programs::replay().display().to_string();
        let mark = Uuid::now_v7().to_string();
        let arguments = format!("--fault,{fault},--speaks,{speaks}");
        let command_line = format!("double = '{replay}' --fault {fault} --speaks acp");
        let settings: Vec<(&str, &str)> = vec![
            ("claude_code.command", &replay),
            ("claude_code.args", &arguments),
            ("claude_code.pass_env", "FAULT_MARK"),
            ("codex.command", &replay),
            ("codex.args", &arguments),
            ("codex.pass_env", "FAULT_MARK"),
            ("acp.agents", &command_line),
            ("acp.pass_env", "FAULT_MARK"),
        ];
        let environment = [("FAULT_MARK", mark.as_str())];
        let server = TestServer::start_with_environment(TestDatabase::sqlite(), &settings, &environment).await;
        let provider = match speaks {
            CLAUDE => "claude_code",
            CODEX => "codex",
            _ => "double",
        };
        // Short enough for a test, long enough to start a program on a busy machine.
        let limits = json!({"first_byte_seconds": 5, "idle_seconds": 5});
        let spec = json!({"name": "broken", "provider": provider, "limits": limits});
        let agent: Value = post(server.api(), "/api/agents", &spec).await.expect_status(201);
        let agent = agent["id"].as_str().unwrap().parse().unwrap();
        let room = server.api().create_room("A room", &[agent]).await.unwrap().id;
        Self { server, room, mark }
    }

    fn api(&self) -> &TestClient {
        self.server.api()
    }

    async fn run_hello(&self) -> Run {
        post_and_wait(self.api(), self.room, "hello").await
    }

    /// Asserts that the run failed with one of these codes, and returns the message.
    async fn expect_failure(&self, run: &Run, codes: &[&str]) -> String {
        let details = format!("{run:?}\n{:#?}", journal(self.api(), self.room).await);
        assert_eq!(run.status, RunStatus::Failed, "{details}");
        let error = run.error.as_ref().unwrap();
        assert!(codes.contains(&error.code.as_str()), "{details}");
        assert!(error.message.split(' ').count() > 3, "the message must be readable: {details}");
        error.message.clone()
    }

    /// Checks the general invariants, and that no process is left.
    async fn finish(self) {
        self.server.finish().await;
        assert_no_process_with_env(&self.mark).await;
    }
}

macro_rules! with_each_protocol {
    ($($fault:ident),+ $(,)?) => {
        with_each_protocol!(@one claude, CLAUDE, $($fault),+);
        with_each_protocol!(@one codex, CODEX, $($fault),+);
        with_each_protocol!(@one acp, ACP, $($fault),+);
    };
    (@one $name:ident, $speaks:ident, $($fault:ident),+) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $fault() {
                super::$fault(super::$speaks).await;
            })+
        }
    };
}

with_each_protocol! {
    garbage_line_is_skipped,
    incomplete_last_line,
    line_of_100_megabytes,
    silence_after_the_prompt,
    silence_during_the_answer,
    exit_at_start,
    exit_after_the_prompt,
    ignores_eof_and_sigterm,
    grandchild_in_another_session,
    ten_thousand_deltas_at_once,
}

async fn garbage_line_is_skipped(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "garbage").await;
    let run = faulty.run_hello().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}\n{:#?}", journal(faulty.api(), faulty.room).await);
    assert!(!message_of(faulty.api(), &run).await.text.is_empty());
    faulty.finish().await;
}

async fn incomplete_last_line(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "half-line").await;
    let run = faulty.run_hello().await;
    faulty.expect_failure(&run, &["bad_output", "program_crashed"]).await;
    faulty.finish().await;
}

async fn line_of_100_megabytes(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "long-line").await;
    let run = faulty.run_hello().await;
    let message = faulty.expect_failure(&run, &["bad_output"]).await;
    assert!(message.contains("16 MB"), "{message}");
    faulty.finish().await;
}

async fn silence_after_the_prompt(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "silence").await;
    let run = faulty.run_hello().await;
    faulty.expect_failure(&run, &["limit_first_byte", "limit_idle"]).await;
    faulty.finish().await;
}

async fn silence_during_the_answer(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "stall").await;
    let run = faulty.run_hello().await;
    faulty.expect_failure(&run, &["limit_idle"]).await;
    faulty.finish().await;
}

async fn exit_at_start(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "exit-at-start").await;
    let run = faulty.run_hello().await;
    faulty.expect_failure(&run, &["program_crashed"]).await;
    faulty.finish().await;
}

async fn exit_after_the_prompt(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "exit").await;
    let run = faulty.run_hello().await;
    let message = faulty.expect_failure(&run, &["program_crashed"]).await;
    assert!(
        message.contains('1') && message.contains("out of luck"),
        "the message must have the exit code and stderr: {message}"
    );
    faulty.finish().await;
}

async fn ignores_eof_and_sigterm(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "hang-on-eof").await;
    let (api, room) = (faulty.api(), faulty.room);
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, "hello").await;
    follower.first_delta(run).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    let signals = &cancelled.receipt.signals;
    assert!(signals.iter().any(|signal| signal == "SIGKILL") && cancelled.receipt.processes > 0, "{cancelled:?}");
    assert!(cancelled.receipt.millis < 9000, "{cancelled:?}");
    faulty.finish().await;
}

async fn grandchild_in_another_session(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "setsid-child").await;
    let run = faulty.run_hello().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    let text = message_of(faulty.api(), &run).await.text;
    let pid: u32 =
        text.trim().rsplit(' ').next().unwrap().trim_end_matches('.').parse().unwrap_or_else(|_| panic!("{text}"));
    // A process that serves one conversation is cleaned up after each turn. Codex serves many: there the commands of a
    // turn have a marker, which this fake child lacks, so it ends with the process.
    if speaks != CODEX {
        let there = || std::path::Path::new(&format!("/proc/{pid}")).exists();
        within("the child to go", async {
            while there() {
                tokio::time::sleep(Duration::from_millis(10)).await
            }
        })
        .await;
    }
    faulty.finish().await;
}

async fn ten_thousand_deltas_at_once(speaks: &str) {
    let faulty = FaultyAgent::start(speaks, "burst").await;
    let run = faulty.run_hello().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    let events = journal(faulty.api(), faulty.room).await;
    let text = message_of(faulty.api(), &run).await.text;
    let deltas = crate::endpoints::requests::text_of(&events);
    assert_eq!(text, deltas);
    assert!(text.len() >= 10_000, "{}", text.len());
    assert!(events.iter().filter(|event| event.kind == EventType::ContentDelta).count() > 1);
    let next = wait_for_end(faulty.api(), post_text(faulty.api(), faulty.room, "and now?").await).await;
    assert_eq!(next.status, RunStatus::Completed);
    faulty.finish().await;
}
