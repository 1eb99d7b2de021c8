//! The throwaway PostgreSQL as a developer uses it: it accepts connections while its owner runs, and is removed soon
//! after.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy takes only functions marked #[test] for tests, not what they share"
)]

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(30);

/// A running `xtask postgres` with a folder of its own for temporary files.
struct Running {
    owner: Child,
    port: u16,
    folder: PathBuf,
}

fn start(name: &str) -> Running {
    let folder = std::env::temp_dir().join(format!("xtask-it-{}-{name}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let mut owner = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("postgres")
        .env("TMPDIR", &folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let (_, address) = url.trim().rsplit_once('@').expect("a URL; without PostgreSQL use `cargo xtask test`");
    let port = address.strip_prefix("127.0.0.1:").and_then(|rest| rest.strip_suffix("/postgres")).unwrap();
    Running { owner, port: port.parse().unwrap(), folder }
}

fn answers(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

fn assert_gone(running: &Running) {
    let deadline = Instant::now() + SOON;
    while answers(running.port) || !is_empty(&running.folder) {
        assert!(Instant::now() < deadline, "PostgreSQL or its files outlived their owner");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::remove_dir(&running.folder).unwrap();
}

#[test]
fn it_ends_when_the_input_ends() {
    let mut running = start("input");
    assert!(answers(running.port));
    assert!(running.owner.wait().unwrap().success());
    assert_gone(&running);
}

#[test]
fn it_ends_when_the_owner_is_killed() {
    let mut running = start("killed");
    assert!(answers(running.port));
    running.owner.kill().unwrap();
    running.owner.wait().unwrap();
    assert_gone(&running);
}
