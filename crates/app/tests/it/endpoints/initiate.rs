//! One request starts a project, a room and a run, or nothing at all.

use super::{
    binary::Binary,
    project_files::{form_with, upload},
    requests::{agent, delete, get, post, post_and_wait, response_to, room_of, wait_for_end, within},
};
use domain::run::RunStatus;
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, time::Duration};
use testkit::{client::TestClient, database::TestDatabase};
use tokio::time::sleep;

on_both_databases! {
    database: one_request_starts_a_project_a_room_and_a_run, a_refused_request_leaves_nothing,
              a_server_that_is_killed_in_between_leaves_nothing_for_long;
}

const STOP: Duration = Duration::from_secs(30);
const PATH: &str = "/api/agent/initiate";
const FORM_TYPE: &str = "multipart/form-data; boundary=greenroom-test-boundary";

async fn count(api: &TestClient, path: &str, list: &str) -> usize {
    get(api, path).await.expect_status(200)[list].as_array().unwrap().len()
}

async fn one_request_starts_a_project_a_room_and_a_run(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_PROJECTS__FREE_BYTES", "0");
    let (server, api) = binary.serve().await;
    let scripted = api.scripted_agent().await.unwrap();
    let body = json!({
        "agent_id": scripted, "prompt": "!count 3", "project": {"name": "site", "limits": {"files": 100}},
        "files": [{"path": "src/a.txt", "content": "alpha"}],
    });
    let send = || response_to(api.request(Method::POST, PATH).header("idempotency-key", "first").json(&body));
    let (first, second) = tokio::join!(send(), send());
    let started = first.expect_status(201);
    assert_eq!(started, second.expect_status(201), "the same key is the same result");
    assert_eq!(started, send().await.expect_status(201));
    let (project, room) = (started["project_id"].as_str().unwrap(), started["room_id"].as_str().unwrap());
    assert_eq!(first.header("location"), format!("/api/runs/{}", started["run_id"].as_str().unwrap()));
    let run = wait_for_end(&api, started["run_id"].as_str().unwrap().parse().unwrap()).await;
    assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
    let shown = get(&api, &format!("/api/rooms/{room}")).await.expect_status(200);
    assert_eq!((&shown["project_id"], &shown["name"]), (&json!(project), &json!("!count 3")));
    assert_eq!(get(&api, &format!("/api/projects/{project}")).await.expect_status(200)["limits"]["files"], 100);
    let file = format!("/api/projects/{project}/files/content?path=src/a.txt");
    assert_eq!(get(&api, &file).await.text, "alpha");
    assert_eq!(count(&api, "/api/projects", "projects").await, 1);
    within("the folder of the second request", async {
        while fs::read_dir(binary.launch.data_dir.join("projects")).unwrap().count() > 1 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let other = json!({"agent_id": scripted, "prompt": "!count 4"});
    let reused = api.request(Method::POST, PATH).header("idempotency-key", "first").json(&other);
    response_to(reused).await.expect_problem(409, "idempotency_conflict");

    // As a form, with files of any kind; and in a project that exists.
    let spec = json!({"agent_id": scripted, "prompt": "!count 2"}).to_string();
    let form = form_with("request", &spec, &[("data/b.bin", &[0, 255, 7]), ("c.txt", b"see")]);
    let started = upload(&api, PATH, form).await.expect_status(201);
    let project = started["project_id"].as_str().unwrap().to_owned();
    let listed = get(&api, &format!("/api/projects/{project}/files")).await.expect_status(200);
    assert_eq!(listed["entries"].as_array().unwrap().len(), 2);
    let again = json!({"agent_id": scripted, "prompt": "!count 2", "project_id": project});
    let again = post(&api, PATH, &again).await.expect_status(201);
    assert_eq!(again["project_id"], project.as_str());
    assert_eq!(count(&api, "/api/projects", "projects").await, 2);
    let ran = json!({"command": "ls; cat c.txt"});
    let ran = post(&api, &format!("/api/projects/{project}/commands"), &ran).await;
    assert!(ran.text.contains("see"), "the files belong to the commands too: {}", ran.text);
    server.terminate(STOP).await.unwrap();
}

async fn a_refused_request_leaves_nothing(database: TestDatabase) {
    let mut binary = Binary::on(&database)
        .with("GREENROOM_PROJECTS__FREE_BYTES", "0")
        .with("GREENROOM_LIMITS__PROJECTS_PER_WORKSPACE", "2");
    let (server, api) = binary.serve().await;
    let scripted = api.scripted_agent().await.unwrap();
    let broke = agent(&api, "broke", json!({})).await;
    let budget = json!({"scope": "agent", "id": broke, "period": "total", "limit_usd": 0.5});
    post(&api, "/api/budgets", &budget).await.expect_status(201);
    let spends = room_of(&api, &[broke]).await;
    post_and_wait(&api, spends, r#"!script [{"text":"dear"},{"usage":{"cost":0.75}}]"#).await;
    let rooms_before = count(&api, "/api/rooms", "rooms").await;
    let spec = |change: Value| {
        let mut spec = json!({"agent_id": scripted, "prompt": "!count 2"});
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        spec
    };
    let big = "x".repeat(300_000);
    let refused: [(Value, u16, &str); 9] = [
        (spec(json!({"agent_id": broke})), 402, "budget_exceeded"),
        (spec(json!({"agent_id": uuid::Uuid::now_v7()})), 422, "unprocessable"),
        (spec(json!({"prompt": "  "})), 422, "unprocessable"),
        (spec(json!({"project_id": uuid::Uuid::now_v7()})), 422, "unprocessable"),
        (spec(json!({"project": {"name": "p", "sandbox": "docker"}})), 422, "unprocessable"),
        (
            spec(json!({"files": [{"path": "a", "content": "x"}, {"path": "../b", "content": "x"}]})),
            422,
            "unprocessable",
        ),
        (spec(json!({"files": [{"path": "a", "content": "x"}, {"path": "a/b", "content": "x"}]})), 409, "conflict"),
        (
            spec(
                json!({"project": {"name": "p", "limits": {"disk_bytes": 200_000}}, "files": [{"path": "a", "content": big}]}),
            ),
            507,
            "storage_full",
        ),
        (json!({"prompt": "x"}), 400, "invalid_request"),
    ];
    for (body, status, code) in refused {
        post(&api, PATH, &body).await.expect_problem(status, code);
    }
    // Cut off in the middle of a file.
    let whole = form_with("request", &spec(json!({})).to_string(), &[("a", &[7; 100_000])]);
    upload(&api, PATH, whole[..whole.len() - 5000].to_vec()).await.expect_problem(400, "invalid_request");
    let nameless = form_with("other", "{}", &[]);
    upload(&api, PATH, nameless).await.expect_problem(400, "invalid_request");
    let nothing_left = async || {
        within("the end of what was begun", async {
            let folders = ["projects", "homes"].map(|name| binary.launch.data_dir.join(name));
            while folders.iter().any(|folder| fs::read_dir(folder).is_ok_and(|entries| entries.count() > 0)) {
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        assert_eq!(count(&api, "/api/projects", "projects").await, 0);
        assert_eq!(count(&api, "/api/rooms", "rooms").await, rooms_before);
    };
    nothing_left().await;
    // Among requests at the same time, the limit of projects holds; what is over it leaves nothing.
    let body = spec(json!({}));
    let sent = futures_util::future::join_all((0..6).map(|_| post(&api, PATH, &body))).await;
    let accepted = sent.iter().filter(|response| response.status == 201).count();
    assert_eq!(accepted, 2, "{sent:?}");
    sent.iter().filter(|response| response.status != 201).for_each(|response| {
        response.expect_problem(422, "unprocessable");
    });
    for response in sent.iter().filter(|response| response.status == 201) {
        let started = response.json();
        wait_for_end(&api, started["run_id"].as_str().unwrap().parse().unwrap()).await;
        let project = started["project_id"].as_str().unwrap();
        assert_eq!(delete(&api, &format!("/api/projects/{project}?purge=true")).await.status, 204);
    }
    within("the end of the projects", async {
        while fs::read_dir(binary.launch.data_dir.join("projects")).is_ok_and(|entries| entries.count() > 0) {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    server.terminate(STOP).await.unwrap();
}

async fn a_server_that_is_killed_in_between_leaves_nothing_for_long(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_PROJECTS__FREE_BYTES", "0");
    let (server, api) = binary.serve().await;
    let agent = api.scripted_agent().await.unwrap();
    let kept = post(&api, PATH, &json!({"agent_id": agent, "prompt": "!count 2"})).await.expect_status(201);
    wait_for_end(&api, kept["run_id"].as_str().unwrap().parse().unwrap()).await;
    let projects = binary.launch.data_dir.join("projects");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&projects).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names(), [kept["project_id"].as_str().unwrap()]);
    assert!(!projects.join(&names()[0]).join("unstored").exists(), "a stored project has no mark");
    // A form whose last file never ends.
    let spec = json!({"agent_id": agent, "prompt": "!count 2"}).to_string();
    let whole = form_with("request", &spec, &[("a.txt", b"here"), ("b.bin", &[7; 100_000])]);
    let sent = bytes::Bytes::from(whole[..whole.len() - 50_000].to_vec());
    let endless = futures_util::stream::once(async move { Ok::<_, std::io::Error>(sent) });
    let endless = reqwest::Body::wrap_stream(futures_util::StreamExt::chain(endless, futures_util::stream::pending()));
    let request = api.request(Method::POST, PATH).header("content-type", FORM_TYPE).body(endless).send();
    let mut requests = tokio::task::JoinSet::new();
    requests.spawn(request);
    within("the files of the new project", async {
        let is_begun = |name: &String| {
            let folder = projects.join(name);
            folder.join("unstored").exists() && fs::read_dir(folder.join("workspace")).is_ok_and(|all| all.count() > 0)
        };
        while !names().iter().any(is_begun) {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    server.kill().await.unwrap();
    assert!(requests.join_next().await.unwrap().unwrap().is_err());
    assert_eq!(names().len(), 2);
    let (server, _) = binary.serve().await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(names().len(), 2, "another server might still be receiving it");
    server.terminate(STOP).await.unwrap();
    let left = names().into_iter().find(|name| *name != kept["project_id"]).unwrap();
    let mark = fs::File::open(projects.join(&left).join("unstored")).unwrap();
    mark.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let (server, _) = binary.serve().await;
    within("the abandoned project to be removed", async {
        while projects.join(&left).exists() {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(names(), [kept["project_id"].as_str().unwrap()]);
    server.terminate(STOP).await.unwrap();
}
