//! Commands in the sandbox of a project through the API, with the native sandbox.

use super::{
    binary::Binary,
    requests::{delete, get, post, response_to, within},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, time::Duration};
use testkit::{client::TestClient, database::TestDatabase};
use tokio::time::sleep;

on_both_databases! {
    database: a_command_runs_in_the_sandbox_of_its_project, services_outlive_their_command_and_end_when_stopped;
}

const STOP: Duration = Duration::from_secs(30);

pub async fn new_project(api: &TestClient) -> String {
    let created = post(api, "/api/projects", &json!({"name": "work"})).await.expect_status(201);
    created["id"].as_str().unwrap().to_owned()
}

/// Runs a command to its end; returns how it ended, and all text of its stream.
pub async fn run(api: &TestClient, project: &str, command: &str) -> (Value, String) {
    run_with(api, project, json!({"command": command})).await
}

async fn run_with(api: &TestClient, project: &str, body: Value) -> (Value, String) {
    let response = post(api, &format!("/api/projects/{project}/commands"), &body).await;
    assert_eq!((response.status, response.header("content-type")), (200, "text/event-stream"), "{response:?}");
    let events = events(&response.text);
    assert_eq!((&*events[0].0, &events[0].1["state"]), ("started", &json!("running")), "{events:?}");
    let (last, data) = events.last().unwrap();
    assert_eq!(last, "ended", "{events:?}");
    let output = events.iter().filter(|(kind, _)| kind == "output").map(|(_, data)| data["text"].as_str().unwrap());
    (data.clone(), output.collect())
}

fn events(stream: &str) -> Vec<(String, Value)> {
    let field = |frame: &str, name: &str| {
        frame.lines().find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
    };
    let frame = |frame: &str| Some((field(frame, "event:")?, serde_json::from_str(&field(frame, "data:")?).unwrap()));
    stream.split("\n\n").filter_map(frame).collect()
}

/// Whether a process of this machine has this text in its command line.
pub fn is_running(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line.windows(mark.len()).any(|part| part == mark.as_bytes()))
}

pub async fn until_gone(mark: &str) {
    within("the end of a process", async {
        while is_running(mark) {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

async fn a_command_runs_in_the_sandbox_of_its_project(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_PROJECTS__FREE_BYTES", "0");
    let token = async |user: &str, workspace: &str, role: &str| {
        let arguments =
            ["token", "create", "--user", user, "--workspace", workspace, "--role", role, "--scopes", "all"];
        binary.run_command(&arguments).await.stdout.trim().to_owned()
    };
    let (stranger, viewer) = (token("sue", "elsewhere", "owner").await, token("vic", "local", "viewer").await);
    let (server, api) = binary.serve().await;
    // The endpoints inside of sandboxes have a router of their own, and the document is of the other one.
    let document = get(&api, "/openapi.json").await.expect_status(200);
    assert!(document["paths"]["/api/projects/{id}/commands"]["post"].is_object());
    let id = new_project(&api).await;
    let commands = format!("/api/projects/{id}/commands");
    let content = format!("/api/projects/{id}/files/content");
    let put = api.request(Method::PUT, &format!("{content}?path=in.txt")).body("from outside ");
    response_to(put).await.expect_status(200);

    let line = "cat in.txt; pwd; id -un; echo made > out.txt; echo öl >&2; exit 3";
    let (end, output) = run(&api, &id, line).await;
    assert_eq!((&end["state"], &end["exit_code"], &end["command"]), (&json!("exited"), &json!(3), &json!(line)));
    assert_eq!(output, "from outside /workspace\nagent\nöl\n");
    assert_eq!(get(&api, &format!("{content}?path=out.txt")).await.text, "made\n");
    // The same again, by position; and a stream that goes on where an earlier one was cut.
    let path = format!("{commands}/{}", end["id"].as_str().unwrap());
    let seen = get(&api, &path).await.expect_status(200);
    assert_eq!((&seen["output"], &seen["omitted_bytes"]), (&json!(output), &json!(0)));
    assert_eq!(seen["position"], output.len());
    assert_eq!(get(&api, &format!("{path}?after=13")).await.expect_status(200)["output"], output[13..]);
    let resumed = api.request(Method::GET, &format!("{path}/stream")).header("last-event-id", "13");
    let resumed = events(&response_to(resumed).await.text);
    assert_eq!(resumed[1], ("output".to_owned(), json!({"text": output[13..], "omitted_bytes": 0})));
    let complete = api.request(Method::GET, &format!("{path}/stream")).header("last-event-id", "end");
    assert_eq!(response_to(complete).await.status, 204);

    // Neither the data folder, nor another project, nor the API is inside.
    let data_folder = binary.launch.data_dir.display().to_string();
    let port = api.base_url().rsplit(':').next().unwrap().to_owned();
    let look = format!(
        "ls -A {data_folder} /root; ls /home; ls -A /workspace; env; cat /proc/*/environ | tr '\\0' '\\n'; \
         (exec 3<>/dev/tcp/127.0.0.1/{port}) && echo reached the server"
    );
    let (_, output) = run(&api, &id, &look).await;
    assert!(output.contains("in.txt") && output.contains("agent"), "{output}");
    for secret in ["local.key", "greenroom.db", "GREENROOM_", &binary.mark, "reached"] {
        assert!(!output.contains(secret), "{secret} in {output}");
    }
    let (end, _) = run_with(&api, &id, json!({"command": "sleep 61 & sleep 61", "timeout_seconds": 1})).await;
    assert_eq!(
        (&end["state"], &end["exit_code"], &end["has_processes"]),
        (&json!("timed_out"), &Value::Null, &json!(false))
    );
    let (end, _) = run(&api, &id, "yes 0123456789012345678901234567890123456789").await;
    assert_eq!(end["state"], "too_much_output");
    let flood = get(&api, &format!("{commands}/{}", end["id"].as_str().unwrap())).await.expect_status(200);
    let (kept, omitted) = (flood["output"].as_str().unwrap().len() as u64, flood["omitted_bytes"].as_u64().unwrap());
    assert!(kept < 100_000 && omitted > 60_000_000, "{kept} {omitted}");

    for (method, path) in [(Method::GET, &path), (Method::DELETE, &path), (Method::GET, &commands)] {
        let request = api.clone().with_token(stranger.clone()).request(method, path);
        response_to(request).await.expect_problem(404, "not_found");
    }
    let viewer = api.clone().with_token(viewer);
    post(&viewer, &commands, &json!({"command": "true"})).await.expect_problem(403, "forbidden");
    delete(&viewer, &path).await.expect_problem(403, "forbidden");
    assert_eq!(get(&viewer, &path).await.status, 200);
    for wrong in [json!({"command": " "}), json!({"command": "x", "timeout_seconds": 0}), json!({"command": "a\u{0}b"})]
    {
        post(&api, &commands, &wrong).await.expect_problem(400, "invalid_request");
    }
    let listed = get(&api, &commands).await.expect_status(200);
    assert_eq!(listed["commands"].as_array().unwrap().len(), 4);
    assert_eq!(listed["commands"][3]["command"], line, "the newest first");
    let log = get(&api, "/api/audit?object=command").await.expect_status(200);
    assert!(log.to_string().contains(end["id"].as_str().unwrap()), "{log}");
    assert!(!log.to_string().contains("from outside"), "the audit log has no output and no command line");
    server.terminate(STOP).await.unwrap();
}

async fn services_outlive_their_command_and_end_when_stopped(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_LIMITS__COMMANDS_PER_WORKSPACE", "3");
    let (server, api) = binary.serve().await;
    let id = new_project(&api).await;
    let commands = format!("/api/projects/{id}/commands");
    let service =
        json!({"command": "echo hello > page; exec python3 -m http.server 8000 --bind 127.0.0.1", "background": true});
    let response = post(&api, &commands, &service).await;
    let started = response.expect_status(202);
    let path = format!("{commands}/{}", started["id"].as_str().unwrap());
    assert_eq!((&started["state"], response.header("location")), (&json!("running"), path.as_str()));
    let fetch =
        "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/page').read().decode())\"";
    let fetched = async {
        loop {
            let (end, output) = run(&api, &id, fetch).await;
            if end["exit_code"] == 0 {
                return output;
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    assert_eq!(within("the service", fetched).await, "hello\n\n");
    assert!(tokio::net::TcpStream::connect("127.0.0.1:8000").await.is_err(), "the port is inside only");
    // A command that has ended and left a process has not ended for good.
    let mark = format!("left-{}", uuid::Uuid::now_v7());
    let (end, _) = run(&api, &id, &format!("setsid bash -c 'exec -a {mark} sleep 600' & sleep 0.2")).await;
    assert_eq!((&end["exit_code"], &end["has_processes"]), (&json!(0), &json!(true)));
    assert!(is_running(&mark));
    post(&api, &commands, &json!({"command": "sleep 60", "background": true})).await.expect_status(202);
    post(&api, &commands, &json!({"command": "true"})).await.expect_problem(429, "too_many_requests");
    let left = format!("{commands}/{}", end["id"].as_str().unwrap());
    assert_eq!(delete(&api, &left).await.status, 204);
    assert!(!is_running(&mark), "nothing is left when the request returns");
    let ended = get(&api, &left).await.expect_status(200);
    assert_eq!((&ended["state"], &ended["has_processes"]), (&json!("exited"), &json!(false)));
    assert_eq!(delete(&api, &path).await.status, 204);
    assert_eq!(get(&api, &path).await.expect_status(200)["state"], "stopped");
    assert_eq!(delete(&api, &path).await.status, 204, "stopping it again succeeds");
    assert_ne!(run(&api, &id, fetch).await.0["exit_code"], 0);

    // A changed network needs another sandbox; a deleted project and a killed server leave no process.
    let mark = format!("kept-{}", uuid::Uuid::now_v7());
    let keep = json!({"command": format!("exec -a {mark} sleep 600"), "background": true});
    let kept = post(&api, &commands, &keep).await.expect_status(202)["id"].as_str().unwrap().to_owned();
    within("the process", async {
        while !is_running(&mark) {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let change = api.request(Method::PATCH, &format!("/api/projects/{id}"));
    response_to(change.json(&json!({"limits": {"files": 1000}}))).await.expect_status(200);
    assert_eq!(get(&api, &format!("{commands}/{kept}")).await.expect_status(200)["state"], "running");
    let change = api.request(Method::PATCH, &format!("/api/projects/{id}"));
    response_to(change.json(&json!({"network": {"allow": ["example.org"]}}))).await.expect_status(200);
    until_gone(&mark).await;
    assert_eq!(get(&api, &format!("{commands}/{kept}")).await.expect_status(200)["state"], "sandbox_ended");
    assert!(run(&api, &id, "env").await.1.contains("HTTPS_PROXY=http://127.0.0.1:"));
    post(&api, &commands, &keep).await.expect_status(202);
    assert_eq!(delete(&api, &format!("/api/projects/{id}")).await.status, 204);
    until_gone(&mark).await;
    get(&api, &commands).await.expect_problem(404, "not_found");
    let id = new_project(&api).await;
    post(&api, &format!("/api/projects/{id}/commands"), &keep).await.expect_status(202);
    server.kill().await.unwrap();
    until_gone(&mark).await;
}
