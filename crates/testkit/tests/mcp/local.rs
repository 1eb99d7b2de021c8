//! Servers for daily work: files, the time, a repository.

use crate::scene::{DEADLINE, Scene, stdio};
use serde_json::json;
use std::{fs, process::Command};
use tokio::time::timeout;
use workbench::mcp::Era;

#[tokio::test]
async fn files() {
    let scene = Scene::new().await;
    let place = scene.folder.path().join("files");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("note.txt"), "remember the milk").unwrap();
    let server = stdio(&scene.servers.node, &[scene.servers.filesystem.to_str().unwrap(), place.to_str().unwrap()]);
    let read = scene.call(&server, "read_text_file", json!({"path": place.join("note.txt")})).await;
    assert!(!read.is_error && read.text().contains("remember the milk"), "{read:?}");
    let outside = scene.call(&server, "read_text_file", json!({"path": "/etc/passwd"})).await;
    assert!(outside.is_error, "{outside:?}");
    let written = scene.call(&server, "write_file", json!({"path": place.join("new.txt"), "content": "x"})).await;
    assert!(!written.is_error, "{written:?}");
    assert_eq!(fs::read_to_string(place.join("new.txt")).unwrap(), "x");
    scene.close().await;
}

#[tokio::test]
async fn the_time_in_both_eras() {
    for (era, version) in [(Era::Legacy, "2025-11-25"), (Era::Modern, "2026-07-28")] {
        let scene = Scene::with(|settings| settings.stdio_era = era).await;
        let server = stdio(&scene.servers.python, &["-m", "mcp_server_time", "--local-timezone", "UTC"]);
        let listing = timeout(DEADLINE, scene.manager.tools(&server)).await.unwrap().unwrap();
        assert_eq!((listing.protocol_version.as_str(), listing.tools.len()), (version, 2));
        let now = scene.call(&server, "get_current_time", json!({"timezone": "Europe/Berlin"})).await;
        assert!(!now.is_error && now.text().contains("Europe/Berlin"), "{now:?}");
        let nowhere = scene.call(&server, "get_current_time", json!({"timezone": "Nowhere/Land"})).await;
        assert!(nowhere.is_error, "{nowhere:?}");
        scene.close().await;
    }
}

#[tokio::test]
async fn a_repository() {
    let scene = Scene::new().await;
    let place = scene.folder.path().join("repository");
    fs::create_dir(&place).unwrap();
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&place).args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(words);
        assert!(git.output().unwrap().status.success(), "git {words:?}");
    };
    git(&["init", "--quiet"]);
    fs::write(place.join("a.txt"), "one").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "The first of many"]);
    let server = stdio(&scene.servers.python, &["-m", "mcp_server_git", "--repository", place.to_str().unwrap()]);
    let log = scene.call(&server, "git_log", json!({"repo_path": place})).await;
    assert!(!log.is_error && log.text().contains("The first of many"), "{log:?}");
    scene.close().await;
}
