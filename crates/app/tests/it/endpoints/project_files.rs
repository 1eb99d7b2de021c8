//! The files of a project through the API: uploads that leave nothing when they fail, quotas, ranges, archives, and the
//! events that tell the rooms.

use super::{
    binary::Binary,
    requests::{ApiResponse, data, delete, form, get, journal, post, response_to, within},
};
use domain::{event::EventType, ids::RoomId};
use reqwest::{Body, Method};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Cursor, Write as _},
    time::Duration,
};
use testkit::{client::TestClient, database::TestDatabase};
use tokio::time::sleep;
use zip::{ZipArchive, ZipWriter, write::SimpleFileOptions};

on_both_databases! {
    database: files_of_a_project_are_stored_read_moved_and_deleted, an_upload_that_fails_leaves_nothing,
              archives_are_unpacked_or_leave_nothing;
}

const STOP: Duration = Duration::from_secs(30);
const BOUNDARY: &str = "greenroom-test-boundary";

fn project_form(files: &[(&str, &[u8])]) -> Vec<u8> {
    let files: Vec<_> = files.iter().map(|(name, content)| (*name, "application/octet-stream", *content)).collect();
    form(BOUNDARY, &files)
}

/// A form whose first part is a text.
pub fn form_with(name: &str, text: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let part = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
    [part.into_bytes(), project_form(files)].concat()
}

pub async fn upload(api: &TestClient, path: &str, body: impl Into<Body>) -> ApiResponse {
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    response_to(api.request(Method::POST, path).header("content-type", kind).body(body)).await
}

async fn new_project(api: &TestClient, limits: Value) -> (String, RoomId) {
    let body = json!({"name": "files", "limits": limits});
    let id = post(api, "/api/projects", &body).await.expect_status(201)["id"].as_str().unwrap().to_owned();
    let room = post(api, "/api/rooms", &json!({"name": "r", "project_id": id})).await.expect_status(201);
    (id, room["id"].as_str().unwrap().parse().unwrap())
}

async fn files_of_a_project_are_stored_read_moved_and_deleted(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_PROJECTS__FREE_BYTES", "0");
    let (server, api) = binary.serve().await;
    let (id, room) = new_project(&api, json!({})).await;
    let files = format!("/api/projects/{id}/files");
    let body = project_form(&[("a.txt", b"alpha"), ("docs/b.md", b"# beta")]);
    let stored = upload(&api, &format!("{files}?path=site"), body).await.expect_status(201);
    assert_eq!(stored["files"][1], json!({"path": "site/docs/b.md", "bytes": 6, "is_new": true}));
    let listed = get(&api, &format!("{files}?path=site")).await.expect_status(200);
    let names: Vec<(&str, &str)> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("docs", "folder"), ("a.txt", "file")]);

    let content = format!("{files}/content");
    let written = api.request(Method::PUT, &format!("{content}?path=site/a.txt")).body("0123456789");
    assert_eq!(response_to(written).await.expect_status(200)["is_new"], false);
    let whole = get(&api, &format!("{content}?path=site/a.txt")).await;
    assert_eq!((whole.text.as_str(), whole.header("content-type")), ("0123456789", "application/octet-stream"));
    assert!(whole.header("content-disposition").starts_with("attachment"));
    let part =
        response_to(api.request(Method::GET, &format!("{content}?path=site/a.txt")).header("range", "bytes=2-4")).await;
    assert_eq!((part.status, part.text.as_str(), part.header("content-range")), (206, "234", "bytes 2-4/10"));
    assert_eq!(get(&api, &format!("{content}?path=site/a.txt&range=-3")).await.text, "789");
    get(&api, &format!("{content}?path=site/a.txt&range=10-")).await.expect_problem(416, "range_not_satisfiable");

    post(&api, &format!("{files}/move"), &json!({"from": "site/a.txt", "to": "moved/c.txt"})).await.expect_status(204);
    let again = json!({"from": "moved/c.txt", "to": "site/docs/b.md"});
    post(&api, &format!("{files}/move"), &again).await.expect_problem(409, "conflict");
    let archive = api.request(Method::GET, &format!("{files}/archive?path=")).send().await.unwrap();
    assert_eq!(archive.headers()["content-type"], "application/zip");
    let mut archive = ZipArchive::new(Cursor::new(archive.bytes().await.unwrap())).unwrap();
    let mut names: Vec<String> =
        (0..archive.len()).map(|at| archive.by_index(at).unwrap().name().unwrap().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["moved/c.txt", "site/docs/b.md"]);
    assert_eq!(delete(&api, &format!("{files}?path=site")).await.status, 204);
    delete(&api, &format!("{files}?path=site")).await.expect_problem(404, "not_found");
    delete(&api, &format!("{files}?path=")).await.expect_problem(422, "unprocessable");

    // The room of the project has seen it all.
    let events = journal(&api, room).await;
    let changes: Vec<(String, String)> = events
        .iter()
        .filter(|event| event.kind == EventType::FileChanged)
        .map(|event| {
            let change = data(event);
            (change["path"].as_str().unwrap().to_owned(), change["change"].as_str().unwrap().to_owned())
        })
        .collect();
    let expected = [
        ("site/a.txt", "created"),
        ("site/docs/b.md", "created"),
        ("site/a.txt", "modified"),
        ("site/a.txt", "moved"),
        ("moved/c.txt", "created"),
        ("site", "deleted"),
    ];
    assert_eq!(changes, expected.map(|(path, change)| (path.to_owned(), change.to_owned())));
    for bad in ["../secret", "/etc/passwd", "a%00b", "a%5Cb", "%2e%2e/x"] {
        get(&api, &format!("{content}?path={bad}")).await.expect_problem(422, "unprocessable");
    }
    std::os::unix::fs::symlink("/etc", binary.launch.data_dir.join("projects").join(&id).join("workspace/etc"))
        .unwrap();
    for path in ["etc", "etc/passwd"] {
        get(&api, &format!("{content}?path={path}")).await.expect_problem(422, "unprocessable");
    }
    server.terminate(STOP).await.unwrap();
}

async fn an_upload_that_fails_leaves_nothing(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_PROJECTS__FREE_BYTES", "0");
    let (server, api) = binary.serve().await;
    let (id, room) = new_project(&api, json!({"disk_bytes": 2_000_000, "files": 6})).await;
    let files = format!("/api/projects/{id}/files");
    let folder = binary.launch.data_dir.join("projects").join(&id).join("workspace");
    let left = || fs::read_dir(&folder).map(|entries| entries.count()).unwrap_or_default();
    // What was received is removed when the request has ended.
    let nothing_left = async || {
        within("the end of the upload", async {
            while left() > 0 {
                sleep(Duration::from_millis(10)).await
            }
        })
        .await
    };
    let large = vec![7; 1_500_000];
    upload(&api, &files, project_form(&[("one", &large), ("two", &large)])).await.expect_problem(507, "storage_full");
    nothing_left().await;
    let many: Vec<String> = (0..8).map(|n| n.to_string()).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    upload(&api, &files, project_form(&many)).await.expect_problem(507, "storage_full");
    nothing_left().await;
    upload(&api, &files, project_form(&[("fine", b"x"), ("../out", b"x")])).await.expect_problem(422, "unprocessable");
    nothing_left().await;
    upload(&api, &files, project_form(&[("fine", b"x"), ("a", b"x"), ("a/b", b"x")]))
        .await
        .expect_problem(409, "conflict");
    assert_eq!(delete(&api, &format!("{files}?path=a")).await.status, 204, "the folder is left, no file");
    nothing_left().await;
    // Cut off in the middle of the second file.
    let whole = project_form(&[("first", &large[..1000]), ("second", &large[..100_000])]);
    let cut = whole[..whole.len() - 5000].to_vec();
    upload(&api, &files, cut).await.expect_problem(400, "invalid_request");
    nothing_left().await;
    upload(&api, &files, project_form(&[("fine", &large)])).await.expect_status(201);
    assert_eq!(left(), 1);
    let shown = journal(&api, room).await;
    let changed = shown.iter().filter(|event| event.kind == EventType::FileChanged);
    let changed: Vec<String> = changed.map(|event| data(event)["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(changed, ["a", "fine"], "the deleted folder, and the only upload that did not fail");
    server.terminate(STOP).await.unwrap();
}

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.add_symlink("link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    archive.finish().unwrap().into_inner()
}

async fn archives_are_unpacked_or_leave_nothing(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_PROJECTS__FREE_BYTES", "0");
    let (server, api) = binary.serve().await;
    let (id, room) = new_project(&api, json!({"disk_bytes": 2_000_000})).await;
    let files = format!("/api/projects/{id}/files");
    let extract = format!("{files}?path=site&extract=true");
    let good = zipped(&[("a.txt", b"alpha"), ("docs/b.md", b"# beta")]);
    let stored = upload(&api, &extract, project_form(&[("site.zip", &good)])).await.expect_status(201);
    assert_eq!((&stored["total"], &stored["skipped"]), (&json!(2), &json!(["link"])));
    assert_eq!(get(&api, &format!("{files}/content?path=site/docs/b.md")).await.text, "# beta");
    let again = upload(&api, &extract, project_form(&[("again.zip", &good)])).await.expect_status(201);
    assert_eq!(again["files"][0]["is_new"], false);
    for (evil, status, code) in [
        (zipped(&[("new.txt", b"x"), ("../../out.txt", b"x")]), 422, "unprocessable"),
        (b"no archive".to_vec(), 422, "unprocessable"),
        (zipped(&[("new.txt", b"x"), ("large", &vec![7; 2_100_000])]), 507, "storage_full"),
    ] {
        upload(&api, &extract, project_form(&[("evil.zip", &evil)])).await.expect_problem(status, code);
    }
    let names = async |folder: &str| {
        let listed = get(&api, &format!("{files}?path={folder}")).await.expect_status(200);
        let entries = listed["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names("").await, names("site").await),
        (vec!["site".to_owned()], vec!["docs".to_owned(), "a.txt".to_owned()])
    );
    let folder = binary.launch.data_dir.join("projects").join(&id).join("workspace");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing hidden is left");
    let shown = journal(&api, room).await;
    let changed = shown.iter().filter(|event| event.kind == EventType::FileChanged).count();
    assert_eq!(changed, 4, "two files, twice");
    server.terminate(STOP).await.unwrap();
}
