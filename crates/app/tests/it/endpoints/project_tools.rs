//! The tools of agents in a project: an agent on a model API writes a program, tests it, fixes it and leaves a server.

use super::{
    binary::Binary,
    project_commands::{new_project, run},
    requests::{agent, data, get, journal, post, post_and_wait, post_body, wait_for_end, within},
};
use domain::{event::EventType, ids::RoomId, run::RunStatus};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase, models::ModelDouble};
use tokio::time::sleep;

const STOP: Duration = Duration::from_secs(30);

struct Workshop {
    models: ModelDouble,
    binary: Binary,
}

impl Workshop {
    async fn new() -> Self {
        let models = ModelDouble::start().await.unwrap();
        let binary = Binary::on(&TestDatabase::sqlite())
            .with("GREENROOM_PROJECTS__FREE_BYTES", "0")
            .with("GREENROOM_ANTHROPIC__BASE_URL", &models.url())
            .with("ANTHROPIC_API_KEY", "key-of-the-server");
        Self { models, binary }
    }
}

async fn room_in(api: &TestClient, project: &str, name: &str, tools: Value) -> RoomId {
    room_with(api, project, name, json!({"provider": "anthropic", "model": "double", "tools": tools})).await
}

async fn room_with(api: &TestClient, project: &str, name: &str, settings: Value) -> RoomId {
    let agent = agent(api, name, settings).await;
    let room = post(api, "/api/rooms", &json!({"name": name, "agents": [agent], "project_id": project})).await;
    room.expect_status(201)["id"].as_str().unwrap().parse().unwrap()
}

/// Lets the model call a tool, and returns the whole result.
async fn call(api: &TestClient, room: RoomId, tool: &str, input: Value) -> String {
    call_by(api, room, &format!("!call {tool} {input}")).await
}

async fn call_by(api: &TestClient, room: RoomId, prompt: &str) -> String {
    let run = post_and_wait(api, room, prompt).await;
    assert_eq!(run.status, RunStatus::Completed, "{prompt}: {:?}", run.error);
    let result = journal(api, room).await.into_iter().rfind(|event| event.kind == EventType::ToolResult).unwrap();
    match &data(&result)["content"] {
        Value::String(text) => text.clone(),
        content => content.as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_on_a_model_api_writes_tests_and_fixes_a_program_and_leaves_a_server() {
    let Workshop { models, mut binary } = Workshop::new().await;
    let (server, api) = binary.serve().await;
    let id = new_project(&api).await;
    let allowed = json!({"allow": ["create_file", "edit_file", "execute_command"]});
    let room = room_in(&api, &id, "coder", allowed.clone()).await;
    let call = async |tool: &str, input: Value| call(&api, room, tool, input).await;

    let created = call("create_file", json!({"path": "add.py", "content": "def add(a, b):\n    return a - b\n"})).await;
    assert!(created.contains("Created add.py: 2 lines, 32 bytes."), "{created}");
    let test = "from add import add\nassert add(2, 3) == 5, add(2, 3)\nprint('ok')\n";
    call("create_file", json!({"path": "test_add.py", "content": test})).await;
    let failed = call("execute_command", json!({"command": "python3 test_add.py"})).await;
    assert!(failed.contains("Exit code 1") && failed.contains("AssertionError: -1"), "{failed}");
    let found = call("search_files", json!({"pattern": "a - b", "files": "*.py"})).await;
    assert!(found.contains("add.py:2:     return a - b"), "{found}");
    let twice = call("edit_file", json!({"path": "test_add.py", "old_text": "add(2, 3)", "new_text": "x"})).await;
    assert!(twice.contains("is in test_add.py 2 times; add lines around it"), "{twice}");
    let missing = call("edit_file", json!({"path": "add.py", "old_text": "a * b", "new_text": "x"})).await;
    assert!(missing.contains("is not in add.py; read the file again"), "{missing}");
    call("edit_file", json!({"path": "add.py", "old_text": "a - b", "new_text": "a + b"})).await;
    let read = call("read_file", json!({"path": "/workspace/add.py", "first_line": 2})).await;
    assert!(read.contains("2\t    return a + b"), "{read}");
    // As XML, with every argument as text, it is the same tool.
    let in_xml =
        json!({"provider": "anthropic", "model": "double", "tools": allowed, "model_options": {"tool_calling": "xml"}});
    let in_xml = room_with(&api, &id, "coder in XML", in_xml).await;
    let passed =
        call_by(&api, in_xml, "!xml execute_command {\"command\":\"python3 test_add.py\",\"timeout_seconds\":\"30\"}")
            .await;
    assert!(passed.contains("Exit code 0") && passed.contains("ok"), "{passed}");
    let late = call("execute_command", json!({"command": "sleep 60", "timeout_seconds": 1})).await;
    assert!(late.contains("Killed at the timeout; set a larger timeout_seconds"), "{late}");
    let flood = call("execute_command", json!({"command": "seq 200000"})).await;
    assert!(flood.contains("Exit code 0") && flood.contains("199999") && flood.len() < 40_000, "{}", flood.len());

    let served =
        call("execute_command", json!({"command": "python3 -u -m http.server 8001", "background": true})).await;
    let command = served.split("with the id ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let checked = call("check_command", json!({"id": command})).await;
    assert!(checked.contains("Running in the background") && checked.contains("Serving HTTP"), "{checked}");
    let fetched =
        run(&api, &id, "exec 3<>/dev/tcp/127.0.0.1/8001; printf 'GET /add.py HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3")
            .await
            .1;
    assert!(fetched.contains("return a + b"), "people reach what the agent has started: {fetched}");
    let secrets =
        call("execute_command", json!({"command": "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"})).await;
    assert!(!secrets.contains("key-of-the-server"), "{secrets}");
    let outside = call("read_file", json!({"path": "../../local.key"})).await;
    assert!(outside.contains("is not a path in the project"), "{outside}");

    // People see the same command and the same files, and the room has the changes and the output.
    let path = format!("/api/projects/{id}/commands/{command}");
    assert_eq!(get(&api, &path).await.expect_status(200)["state"], "running");
    let stopped = call("stop_command", json!({"id": command})).await;
    assert!(stopped.contains("Stopped"), "{stopped}");
    assert_eq!(get(&api, &path).await.expect_status(200)["state"], "stopped");
    let unknown = call("check_command", json!({"id": "x"})).await;
    assert!(unknown.contains("there is no such command; none is running"), "{unknown}");
    let events = journal(&api, room).await;
    let changes: Vec<String> = events
        .iter()
        .filter(|event| event.kind == EventType::FileChanged)
        .map(|event| format!("{} {}", data(event)["change"].as_str().unwrap(), data(event)["path"].as_str().unwrap()))
        .collect();
    assert_eq!(changes, ["created add.py", "created test_add.py", "modified add.py"]);
    let streamed: String = events
        .iter()
        .filter(|event| event.kind == EventType::ToolOutputDelta)
        .map(|event| data(event)["delta"].as_str().unwrap().to_owned())
        .collect();
    assert!(streamed.contains("AssertionError: -1") && streamed.contains("[more output is not shown]"), "{streamed}");
    server.terminate(STOP).await.unwrap();
    models.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_something_waits_for_an_approval_and_a_canceled_call_kills_its_command() {
    let Workshop { models, mut binary } = Workshop::new().await;
    let (server, api) = binary.serve().await;
    let id = new_project(&api).await;
    let careful = room_in(&api, &id, "careful", json!({})).await;
    run(&api, &id, "echo kept > a.txt").await;
    assert!(call(&api, careful, "list_files", json!({})).await.contains("a.txt (5 bytes)"));
    let pending = async || {
        within("an approval", async {
            loop {
                let found = get(&api, "/api/approvals?status=pending").await.expect_status(200);
                if let Some(first) = found["approvals"].as_array().unwrap().first() {
                    return first.clone();
                }
                sleep(Duration::from_millis(50)).await;
            }
        })
        .await
    };
    let decide = async |decision: Value| {
        let approval = pending().await;
        let (run, id) = (approval["run_id"].as_str().unwrap(), approval["id"].as_str().unwrap());
        post(&api, &format!("/api/runs/{run}/approvals/{id}"), &decision).await.expect_status(204);
        wait_for_end(&api, run.parse().unwrap()).await;
        approval
    };
    post_body(&api, careful, json!({"text": "!call delete_file {\"path\":\"a.txt\"}"})).await.expect_status(202);
    let approval = decide(json!({"decision": "deny"})).await;
    assert_eq!((&approval["tool"], &approval["input"]["path"]), (&json!("delete_file"), &json!("a.txt")));
    assert!(run(&api, &id, "cat a.txt").await.1.contains("kept"));
    // A person may change what is run.
    let posted = post_body(&api, careful, json!({"text": "!call execute_command {\"command\":\"rm a.txt\"}"})).await;
    posted.expect_status(202);
    decide(json!({"decision": "allow", "input": {"command": "echo changed"}})).await;
    let events = journal(&api, careful).await;
    let result = events.iter().rfind(|event| event.kind == EventType::ToolResult).unwrap();
    assert!(data(result)["content"].to_string().contains("changed"), "{result:?}");
    assert!(run(&api, &id, "cat a.txt").await.1.contains("kept"));

    let allowed = room_in(&api, &id, "fast", json!({"allow": ["execute_command"]})).await;
    let mark = format!("canceled-{}", uuid::Uuid::now_v7());
    let line = json!({"command": format!("exec -a {mark} sleep 600")});
    post_body(&api, allowed, json!({"text": format!("!call execute_command {line}")})).await.expect_status(202);
    within("the command", async {
        while !super::project_commands::is_running(&mark) {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    post(&api, &format!("/api/rooms/{allowed}/cancel"), &json!({})).await.expect_status(200);
    super::project_commands::until_gone(&mark).await;

    // Without a project there are no such tools.
    let settings = json!({"provider": "anthropic", "model": "double"});
    let alone = agent(&api, "alone", settings).await;
    let room = post(&api, "/api/rooms", &json!({"name": "r", "agents": [alone]})).await.expect_status(201);
    let room: RoomId = room["id"].as_str().unwrap().parse().unwrap();
    post_and_wait(&api, room, "hello").await;
    let offers = |name: &str| {
        models.requests().iter().map(|request| request.body["tools"].to_string().contains(name)).collect::<Vec<_>>()
    };
    let offers = offers("execute_command");
    assert_eq!((offers.first(), offers.last()), (Some(&true), Some(&false)));
    server.terminate(STOP).await.unwrap();
    models.stop().await;
}
