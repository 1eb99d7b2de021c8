//! Real servers for filesystem_server, the time and a git repository.

use crate::fixture::{DEADLINE, McpFixture, stdio};
use serde_json::json;
use std::{fs, process::Command};
use tokio::time::timeout;
use workbench::mcp::ProtocolEra;

#[tokio::test]
async fn filesystem_server() {
    let fixture = McpFixture::new().await;
    let folder = fixture.folder.path().join("filesystem_server");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("note.txt"), "remember the milk").unwrap();
    let server =
        stdio(&fixture.servers.node, &[fixture.servers.filesystem.to_str().unwrap(), folder.to_str().unwrap()]);
    let read = fixture.call(&server, "read_text_file", json!({"path": folder.join("note.txt")})).await;
    assert!(!read.is_error && read.text().contains("remember the milk"), "{read:?}");
    let outside = fixture.call(&server, "read_text_file", json!({"path": "/etc/passwd"})).await;
    assert!(outside.is_error, "{outside:?}");
    let written = fixture.call(&server, "write_file", json!({"path": folder.join("new.txt"), "content": "x"})).await;
    assert!(!written.is_error, "{written:?}");
    assert_eq!(fs::read_to_string(folder.join("new.txt")).unwrap(), "x");
    fixture.close().await;
}

#[tokio::test]
async fn time_server_in_both_eras() {
    for (era, version) in [(ProtocolEra::Legacy, "2025-11-25"), (ProtocolEra::Modern, "2026-07-28")] {
        let fixture = McpFixture::with(|settings| settings.stdio_era = era).await;
        let server = stdio(&fixture.servers.python, &["-m", "mcp_server_time", "--local-timezone", "UTC"]);
        let listing = timeout(DEADLINE, fixture.manager.tools(&server)).await.unwrap().unwrap();
        assert_eq!((listing.protocol_version.as_str(), listing.tools.len()), (version, 2));
        let now = fixture.call(&server, "get_current_time", json!({"timezone": "Europe/Berlin"})).await;
        assert!(!now.is_error && now.text().contains("Europe/Berlin"), "{now:?}");
        let nowhere = fixture.call(&server, "get_current_time", json!({"timezone": "Nowhere/Land"})).await;
        assert!(nowhere.is_error, "{nowhere:?}");
        fixture.close().await;
    }
}

#[tokio::test]
async fn git_server() {
    let fixture = McpFixture::new().await;
    let folder = fixture.folder.path().join("repository");
    fs::create_dir(&folder).unwrap();
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&folder).args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(words);
        assert!(git.output().unwrap().status.success(), "git {words:?}");
    };
    git(&["init", "--quiet"]);
    fs::write(folder.join("a.txt"), "one").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "The first of many"]);
    let server = stdio(&fixture.servers.python, &["-m", "mcp_server_git", "--repository", folder.to_str().unwrap()]);
    let log = fixture.call(&server, "git_log", json!({"repo_path": folder})).await;
    assert!(!log.is_error && log.text().contains("The first of many"), "{log:?}");
    fixture.close().await;
}
