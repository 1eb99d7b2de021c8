//! The real programs in a project, with Greenroom's tools for it: files, commands, a server that people can open.

use crate::{
    cli_fixture::CliFixture,
    requests::{get, journal, message_of, post, post_and_wait, response_to, wait_for_end, within},
    tools::{asked, decide},
};
use domain::{
    ids::{AgentId, RoomId},
    message::Part,
    run::RunStatus,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, time::Duration};
use testkit::client::TestClient;
use tokio::time::sleep;

with_each_cli! {
    a_program_builds_something_in_a_project_and_leaves_a_server,
    tools_of_a_project_ask_before_they_change_something,
}

struct ProjectRoom {
    id: String,
    room: RoomId,
    workspace: PathBuf,
}

async fn project_room(fixture: &CliFixture, agent: AgentId) -> ProjectRoom {
    let api = fixture.api();
    let id = post(&api, "/api/projects", &json!({"name": "site"})).await.expect_status(201)["id"].clone();
    let id = id.as_str().unwrap().to_owned();
    let room = json!({"name": "building", "agents": [agent], "project_id": id});
    let room = post(&api, "/api/rooms", &room).await.expect_status(201)["id"].as_str().unwrap().parse().unwrap();
    let workspace = fixture.data_dir().join("projects").join(&id).join("workspace");
    ProjectRoom { id, room, workspace }
}

/// Lets the model call a tool, and returns the text of its result.
async fn call(fixture: &CliFixture, room: RoomId, tool: &str, input: Value) -> String {
    let api = fixture.api();
    let run = post_and_wait(&api, room, &format!("!call {tool} {input}")).await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    let message = message_of(&api, &run).await;
    let result = message.parts.iter().find_map(|part| match part {
        Part::Tool(call) if call.name.ends_with(tool) => call.result.as_ref(),
        _ => None,
    });
    let result = result.unwrap_or_else(|| panic!("{tool} was not called\n{details}"));
    assert!(!result.is_error, "{details}");
    result.content.to_string()
}

async fn page(api: &TestClient, preview: &str) -> String {
    let host = preview.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let request = reqwest::Client::new().get(format!("{}/index.html", api.base_url())).header("host", host);
    response_to(request).await.text
}

async fn a_program_builds_something_in_a_project_and_leaves_a_server(fixture: &CliFixture) {
    let api = fixture.api();
    let agent = fixture.agent_with("builder", json!({"tools": {"allow": ["*"]}})).await;
    let ProjectRoom { id, room, workspace } = project_room(fixture, agent).await;
    let page_text = "<p>vermilion</p>";
    call(fixture, room, "create_file", json!({"path": "index.html", "content": page_text})).await;
    assert_eq!(fs::read_to_string(workspace.join("index.html")).unwrap(), page_text);
    // Its own shell and the tools see the same files: one sandbox.
    let run = post_and_wait(&api, room, "!tool cat index.html > copy.txt").await;
    assert_eq!(run.status, RunStatus::Completed, "{}", fixture.details(&run, &journal(&api, room).await));
    let seen = call(fixture, room, "execute_command", json!({"command": "cat copy.txt; pwd"})).await;
    assert!(seen.contains("vermilion") && seen.contains("/workspace"), "{seen}");
    let serve = json!({"command": "python3 -m http.server 8005", "background": true});
    call(fixture, room, "execute_command", serve).await;
    let exposed = call(fixture, room, "expose_port", json!({"port": 8005})).await;
    assert!(exposed.contains("8005"), "{exposed}");
    // It outlives the turn that has started it, and people open it in a browser.
    let preview = post(&api, &format!("/api/projects/{id}/ports/8005/preview"), &json!({})).await.expect_status(201);
    let shown = page(&api, preview["url"].as_str().unwrap()).await;
    assert_eq!(shown, page_text);

    fixture.restart().await;
    let api = fixture.api();
    let run = post_and_wait(&api, room, "!recall").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    let recalled = message_of(&api, &run).await.text;
    assert!(recalled.contains("create_file") || recalled.contains("index.html"), "{recalled}\n{details}");
    // Gemini has a tool of its own that is named as ours for reading.
    let read = call(fixture, room, "execute_command", json!({"command": "cat index.html"})).await;
    assert!(read.contains("vermilion"), "{read}");
    // Servers end with the sandbox, and the program can start one again.
    let ports = get(&api, &format!("/api/projects/{id}/ports")).await.expect_status(200);
    assert!(!ports.to_string().contains("8005"), "{ports}");
    let again = json!({"command": "python3 -m http.server 8005", "background": true});
    call(fixture, room, "execute_command", again).await;
    within("the port", async {
        while !get(&api, &format!("/api/projects/{id}/ports")).await.expect_status(200).to_string().contains("8005") {
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}

async fn tools_of_a_project_ask_before_they_change_something(fixture: &CliFixture) {
    let api = fixture.api();
    let agent = fixture.agent().await;
    let ProjectRoom { room, workspace, .. } = project_room(fixture, agent).await;
    for (decision, is_written) in [("deny", false), ("allow", true)] {
        let file = format!("{decision}.txt");
        let prompt = format!("!call create_file {}", json!({"path": file, "content": "x"}));
        let (run, mut request) = asked(&api, room, &prompt).await;
        // A program may ask for the tool itself before the tool asks for what it does.
        let mut is_decided = false;
        while !is_decided {
            assert!(request["name"].as_str().unwrap().ends_with("create_file"), "{request}");
            assert!(!workspace.join(&file).exists(), "the tool must wait");
            decide(&api, run, &request, json!({"decision": decision})).await;
            is_decided = true;
            if let Some(next) = next_request(&api, run, &request).await {
                (request, is_decided) = (next, false);
            }
        }
        let run = wait_for_end(&api, run).await;
        let details = fixture.details(&run, &journal(&api, room).await);
        assert_eq!(run.status, RunStatus::Completed, "{details}");
        assert_eq!(workspace.join(&file).exists(), is_written, "{decision}\n{details}");
    }
}

/// The next approval that a run waits for, or `None` when it has ended.
async fn next_request(api: &TestClient, run: domain::ids::RunId, last: &Value) -> Option<Value> {
    within("another approval or the end", async {
        loop {
            if api.run(run).await.unwrap().status.is_terminal() {
                return None;
            }
            let pending = get(api, "/api/approvals?status=pending").await.expect_status(200);
            let mut pending = pending["approvals"].as_array().unwrap().iter();
            let next =
                pending.find(|approval| approval["run_id"] == json!(run) && approval["id"] != last["approval_id"]);
            if let Some(next) = next {
                return Some(json!({"approval_id": next["id"], "name": next["tool"]}));
            }
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}
