//! The real programs inside of the sandbox of their room: what they can reach, and what they cannot. All other tests of this
//! target run inside too.

use crate::{
    cli_fixture::{Cli, CliFixture},
    requests::{journal, post_and_wait},
};
use domain::{ids::RoomId, run::RunStatus};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _};

with_each_cli! {
    security_c1_an_agent_reads_nothing_of_the_server,
}

/// Tries to read everything that belongs to others. Each line says what was tried and whether it worked.
async fn security_c1_an_agent_reads_nothing_of_the_server(fixture: &CliFixture) {
    let (api, data) = (fixture.api(), fixture.data_dir());
    let agent = fixture.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let other = api.create_room("another", &[agent]).await.unwrap().id;
    post_and_wait(&api, other, "hello").await;
    let secret = fixture.workspace(other).join("secret.txt");
    fs::write(&secret, "secret").unwrap();
    assert!(data.join("greenroom.db").exists());
    let room = api.create_room("tools", &[agent]).await.unwrap().id;
    let tries = [
        format!("cat {}", data.join("greenroom.db").display()),
        format!("cat {}", data.join("local.key").display()),
        format!("cat {}", secret.display()),
        format!("cat /proc/{}/environ", fixture.server_pid()),
        "cat /proc/1/environ".to_owned(),
        format!("echo > /dev/tcp/127.0.0.1/{}", fixture.server_port()),
        "cat /etc/shadow".to_owned(),
    ];
    let script: Vec<String> =
        tries.iter().map(|attempt| format!("({attempt}) >/dev/null 2>&1 && echo REACHED || echo refused")).collect();
    // The last two show that the script can see: its own files, and the ports of the server.
    let seen = "(cat seen.txt >/dev/null && echo own); (echo > /dev/tcp/127.0.0.1/8081) 2>/dev/null && echo port";
    let script = format!("{}; {seen}", script.join("; "));
    let folder = fixture.workspace(room);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("tries.sh"), script).unwrap();
    fs::write(folder.join("seen.txt"), "x").unwrap();
    let run = post_and_wait(&api, room, "!tool bash tries.sh > tried.txt").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    let tried = fs::read_to_string(folder.join("tried.txt")).unwrap_or_else(|error| panic!("{error}\n{details}"));
    let expected = format!("{}own\nport\n", "refused\n".repeat(tries.len()));
    assert_eq!(tried, expected, "{tries:#?}\n{details}");
}

macro_rules! key_tests {
    ($($name:ident: $cli:ident),+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            real_key_is_nowhere_inside(Cli::$cli).await;
        })+
    };
}

key_tests! {
    invariant_17_secrets_stay_claude_code_has_no_real_key: ClaudeCode,
    invariant_17_secrets_stay_codex_has_no_real_key: Codex,
    invariant_17_secrets_stay_gemini_has_no_real_key: Gemini
}

const KEY: &str = "sk-the-real-key-0123456789";
const PLANTED: &str = "sk-a-planted-key-9876543210";
const SEARCH: &str = include_str!("key_search.py");

async fn real_key_is_nowhere_inside(cli: Cli) {
    let fixture = CliFixture::start_with(cli, KEY, &[]).await;
    let api = fixture.api();
    let agent = fixture.agent_with("searching", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("keys", &[agent]).await.unwrap().id;
    let run = post_and_wait(&api, room, "hello").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    // The API got it, so it was added outside.
    let shown = fixture.models().requests().iter().any(|request| format!("{request:?}").contains(KEY));
    assert!(shown, "the model API must get the real key\n{details}");
    let mut tokens = 0;
    let processes = fixture.program_processes();
    assert!(!processes.is_empty(), "{details}");
    for process in processes {
        for file in ["environ", "cmdline"] {
            let text = fs::read(format!("/proc/{process}/{file}")).unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(!text.contains(KEY), "process {process}, {file}");
            tokens += usize::from(text.contains("=grp_"));
        }
    }
    assert!(tokens > 0, "the search must see the token of the process");
    search_from_inside(&fixture, room).await;
    fixture.assert_not_in_files(KEY);
    fixture.finish().await;
}

/// Searches as the program's own shell tool: the environment, the command line and the memory of every process, and every file.
async fn search_from_inside(fixture: &CliFixture, room: RoomId) {
    let (api, folder) = (fixture.api(), fixture.workspace(room));
    let backwards = |key: &str| key.chars().rev().collect::<String>();
    let keys = json!({"real": backwards(KEY), "planted": backwards(PLANTED), "token": backwards("grp_")});
    fs::write(folder.join("key_search.py"), SEARCH).unwrap();
    fs::write(folder.join("search.sh"), format!("exec python3 key_search.py '{keys}'")).unwrap();
    for file in ["key_search.py", "search.sh"] {
        fs::set_permissions(folder.join(file), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let run = post_and_wait(&api, room, "!tool bash search.sh").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    let found = fs::read_to_string(folder.join("found.json")).unwrap_or_else(|error| panic!("{error}\n{details}"));
    let found: Value = serde_json::from_str(&found).unwrap();
    let places = |key: &str| -> Vec<&str> {
        let all = found["places"].as_array().unwrap().iter();
        all.filter(|place| place[1] == key).map(|place| place[0].as_str().unwrap()).collect()
    };
    assert_eq!(places("real"), Vec::<&str>::new(), "the real key is inside\n{details}");
    // The judge: the same search finds what is there.
    let planted = places("planted");
    for place in ["process environ", "process memory", "/tmp/.planted.txt", "/workspace/.planted.txt"] {
        assert!(planted.contains(&place), "{place} in {planted:?}\n{found}");
    }
    assert!(planted.iter().any(|place| place.starts_with("/home/agent/")), "{planted:?}");
    // The program itself was searched: its token is in its environment and in its memory.
    assert!(places("token").contains(&"process environ") && places("token").contains(&"process memory"), "{found}");
    let is_program = |process: &&Value| process["program"].as_str().unwrap().contains("/opt/programs/");
    let program = found["processes"].as_array().unwrap().iter().find(is_program);
    let searched = program.unwrap_or_else(|| panic!("{found}"))["memory"].as_u64().unwrap();
    assert!(searched > 10_000_000, "{searched} bytes of the program's memory were searched");
}
