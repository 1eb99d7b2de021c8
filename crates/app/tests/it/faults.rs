//! Programs that break in every way there is, behind the whole server: one end for each run, with a message that a person
//! understands, and nothing left running.
//!
//! The program is testkit's `replay`, which keeps the handshake of a real one and then does what its `--fault` says.

use crate::doors::scene::{Audience, answered, ended, journal, message_of, post, say, within};
use domain::{
    event::EventType,
    ids::RoomId,
    run::{Run, RunStatus},
};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::Api,
    database::TestDatabase,
    programs,
    server::{TestServer, assert_none_carries},
};
use uuid::Uuid;

/// The protocols, as `replay` calls them.
const CLAUDE: &str = "claude";
const CODEX: &str = "codex";
const ACP: &str = "acp";

struct Broken {
    server: TestServer,
    room: RoomId,
    /// Whatever the program leaves carries this.
    mark: String,
}

impl Broken {
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
        let server = TestServer::start_in(TestDatabase::sqlite(), &settings, &environment).await;
        let provider = match speaks {
            CLAUDE => "claude_code",
            CODEX => "codex",
            _ => "double",
        };
        // Short enough to be waited for, long enough for a busy machine to start a program.
        let limits = json!({"first_byte_seconds": 5, "idle_seconds": 5});
        let spec = json!({"name": "broken", "provider": provider, "limits": limits});
        let agent: Value = post(server.api(), "/api/agents", &spec).await.is(201);
        let agent = agent["id"].as_str().unwrap().parse().unwrap();
        let room = server.api().create_room("A room", &[agent]).await.unwrap().id;
        Self { server, room, mark }
    }

    fn api(&self) -> &Api {
        self.server.api()
    }

    async fn answered(&self) -> Run {
        answered(self.api(), self.room, "hello").await
    }

    /// The run failed with one of these codes, and says so in words.
    async fn failed(&self, run: &Run, codes: &[&str]) -> String {
        let story = format!("{run:?}\n{:#?}", journal(self.api(), self.room).await);
        assert_eq!(run.status, RunStatus::Failed, "{story}");
        let error = run.error.as_ref().unwrap();
        assert!(codes.contains(&error.code.as_str()), "{story}");
        assert!(error.message.split(' ').count() > 3, "a person understands it: {story}");
        error.message.clone()
    }

    /// Checks what must hold after anything, and that no process is left.
    async fn finish(self) {
        self.server.finish().await;
        assert_none_carries(&self.mark).await;
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
    a_garbage_line_is_skipped,
    half_a_line_at_the_end,
    a_line_of_100_megabytes,
    silence_after_the_question,
    silence_in_the_middle,
    an_exit_at_once,
    an_exit_in_the_middle,
    deaf_to_everything,
    a_grandchild_that_left_the_group,
    ten_thousand_deltas_at_once,
}

async fn a_garbage_line_is_skipped(speaks: &str) {
    let broken = Broken::start(speaks, "garbage").await;
    let run = broken.answered().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}\n{:#?}", journal(broken.api(), broken.room).await);
    assert!(!message_of(broken.api(), &run).await.text.is_empty());
    broken.finish().await;
}

async fn half_a_line_at_the_end(speaks: &str) {
    let broken = Broken::start(speaks, "half-line").await;
    let run = broken.answered().await;
    broken.failed(&run, &["bad_output", "program_crashed"]).await;
    broken.finish().await;
}

async fn a_line_of_100_megabytes(speaks: &str) {
    let broken = Broken::start(speaks, "long-line").await;
    let run = broken.answered().await;
    let message = broken.failed(&run, &["bad_output"]).await;
    assert!(message.contains("16 MB"), "{message}");
    broken.finish().await;
}

async fn silence_after_the_question(speaks: &str) {
    let broken = Broken::start(speaks, "silence").await;
    let run = broken.answered().await;
    broken.failed(&run, &["limit_first_byte", "limit_idle"]).await;
    broken.finish().await;
}

async fn silence_in_the_middle(speaks: &str) {
    let broken = Broken::start(speaks, "stall").await;
    let run = broken.answered().await;
    broken.failed(&run, &["limit_idle"]).await;
    broken.finish().await;
}

async fn an_exit_at_once(speaks: &str) {
    let broken = Broken::start(speaks, "exit-at-start").await;
    let run = broken.answered().await;
    broken.failed(&run, &["program_crashed"]).await;
    broken.finish().await;
}

async fn an_exit_in_the_middle(speaks: &str) {
    let broken = Broken::start(speaks, "exit").await;
    let run = broken.answered().await;
    let message = broken.failed(&run, &["program_crashed"]).await;
    assert!(message.contains('1') && message.contains("out of luck"), "how it ended, and its last words: {message}");
    broken.finish().await;
}

async fn deaf_to_everything(speaks: &str) {
    let broken = Broken::start(speaks, "hang-on-eof").await;
    let (api, room) = (broken.api(), broken.room);
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, "hello").await;
    audience.first_word(run).await;
    let cancelled = api.cancel_run(run).await.unwrap();
    assert_eq!(cancelled.status, RunStatus::Cancelled);
    let signals = &cancelled.receipt.signals;
    assert!(signals.iter().any(|signal| signal == "SIGKILL") && cancelled.receipt.processes > 0, "{cancelled:?}");
    assert!(cancelled.receipt.millis < 9000, "{cancelled:?}");
    broken.finish().await;
}

async fn a_grandchild_that_left_the_group(speaks: &str) {
    let broken = Broken::start(speaks, "setsid-child").await;
    let run = broken.answered().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    let text = message_of(broken.api(), &run).await.text;
    let pid: u32 =
        text.trim().rsplit(' ').next().unwrap().trim_end_matches('.').parse().unwrap_or_else(|_| panic!("{text}"));
    // Where a process serves one conversation, whatever its turn has left is the turn's. Codex's serves many: there the
    // commands of a turn are known by a mark, which this double's child does not carry, and it ends with the process.
    if speaks != CODEX {
        let there = || std::path::Path::new(&format!("/proc/{pid}")).exists();
        within("the child to go", async {
            while there() {
                tokio::time::sleep(Duration::from_millis(10)).await
            }
        })
        .await;
    }
    broken.finish().await;
}

async fn ten_thousand_deltas_at_once(speaks: &str) {
    let broken = Broken::start(speaks, "burst").await;
    let run = broken.answered().await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    let events = journal(broken.api(), broken.room).await;
    let text = message_of(broken.api(), &run).await.text;
    let deltas = crate::doors::scene::text_of(&events);
    assert_eq!(text, deltas);
    assert!(text.len() >= 10_000, "{}", text.len());
    assert!(events.iter().filter(|event| event.kind == EventType::ContentDelta).count() > 1);
    let next = ended(broken.api(), say(broken.api(), broken.room, "and now?").await).await;
    assert_eq!(next.status, RunStatus::Completed);
    broken.finish().await;
}
