//! Where what agents run runs: their programs and their MCP servers, by the choice of the project and of the operator.

use super::{
    binary::Binary,
    requests::{agent, data, get, journal, post, post_and_wait},
};
use domain::{event::EventType, ids::RoomId, run::RunStatus};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};
use testkit::{client::TestClient, database::TestDatabase, models::ModelDouble};

const STOP: Duration = Duration::from_secs(30);

/// A room with this agent, in a project with these settings. Returns the project's folder too.
async fn room_in(binary: &Binary, api: &TestClient, project: Value, agent: Value) -> (RoomId, PathBuf) {
    let id = post(api, "/api/projects", &project).await.expect_status(201)["id"].as_str().unwrap().to_owned();
    let shown = get(api, &format!("/api/projects/{id}")).await.expect_status(200);
    // Said in every answer about the project.
    let tier = if project["sandbox"] == "none" { "none" } else { "native" };
    assert_eq!(shown["isolation"]["tier"], tier, "{shown}");
    let room = json!({"name": "r", "agents": [agent], "project_id": id});
    let room = post(api, "/api/rooms", &room).await.expect_status(201)["id"].as_str().unwrap().parse().unwrap();
    (room, binary.launch.data_dir.join("projects").join(&id).join("workspace"))
}

/// Says where it runs, and ends.
const PROBE: &str = "#!/bin/sh\npwd > where.txt\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_26_contained_the_sandbox_of_a_project_counts_for_the_programs_of_its_agents() {
    let folder = tempfile::tempdir().unwrap();
    let probe = folder.path().canonicalize().unwrap().join("probe");
    fs::write(&probe, PROBE).unwrap();
    fs::set_permissions(&probe, fs::Permissions::from_mode(0o755)).unwrap();
    for setting in ["auto", "none"] {
        let mut binary = Binary::on(&TestDatabase::sqlite())
            .with("GREENROOM_SANDBOX__AGENTS", setting)
            .with("GREENROOM_ACP__AGENTS", &format!("probe = '{}'", probe.display()));
        let (server, api) = binary.serve().await;
        for choice in ["auto", "native", "none"] {
            let agent = agent(&api, choice, json!({"provider": "probe"})).await;
            let project = json!({"name": choice, "sandbox": choice});
            let (room, workspace) = room_in(&binary, &api, project, json!(agent)).await;
            let run = post_and_wait(&api, room, "where are you?").await;
            assert_eq!(run.status, RunStatus::Failed, "it is no agent");
            let seen = fs::read_to_string(workspace.join("where.txt"));
            let seen = seen.unwrap_or_else(|error| panic!("{setting} {choice}: {error} {:?}", run.error));
            let is_inside = choice == "native" || (choice == "auto" && setting == "auto");
            let expected = if is_inside { PathBuf::from("/workspace") } else { workspace.canonicalize().unwrap() };
            assert_eq!(seen.trim(), expected.to_str().unwrap(), "{setting} {choice}");
        }
        server.terminate(STOP).await.unwrap();
    }
}

/// An MCP server in a few lines, with a tool that says where it runs and what it sees there.
const MCP_SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"probe","version":"1"}}';;
    *'"tools/list"'*) result='{"tools":[{"name":"where","description":"Says where it is.","inputSchema":{"type":"object"}}]}';;
    *'"tools/call"'*)
      cat "$SECRET_FILE" >/dev/null 2>&1 && secret=read || secret=refused
      result='{"content":[{"type":"text","text":"'"$(pwd) $secret $HOME"'"}]}';;
    *) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_26_contained_stdio_mcp_servers_of_agents_on_model_apis_run_in_the_sandbox_of_their_project() {
    let models = ModelDouble::start().await.unwrap();
    let mut binary = Binary::on(&TestDatabase::sqlite())
        .with("GREENROOM_SANDBOX__AGENTS", "auto")
        .with("GREENROOM_ANTHROPIC__BASE_URL", &models.url())
        .with("ANTHROPIC_API_KEY", "key-of-the-server");
    let (server, api) = binary.serve().await;
    let secret = binary.launch.data_dir.join("local.key");
    assert!(secret.exists());
    let probe = json!({"name": "probe", "command": "bash", "args": ["-c", MCP_SERVER],
                       "env": {"SECRET_FILE": secret.to_str().unwrap()}});
    post(&api, "/api/mcp-servers", &probe).await.expect_status(201);
    let settings = json!({"provider": "anthropic", "model": "double", "mcp_servers": ["probe"],
                          "tools": {"allow": ["mcp__probe__*"]}});
    let agent = agent(&api, "caller", settings).await;
    let ask = async |room: RoomId| {
        let run = post_and_wait(&api, room, "!call mcp__probe__where {}").await;
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
        let events = journal(&api, room).await;
        let result = events.iter().rfind(|event| event.kind == EventType::ToolResult);
        let result = result.unwrap_or_else(|| panic!("{events:#?}"));
        data(result)["content"].to_string()
    };
    let (inside, _) = room_in(&binary, &api, json!({"name": "a"}), json!(agent)).await;
    for _ in 0..2 {
        let seen = ask(inside).await;
        assert!(seen.contains("/workspace refused /home/agent"), "{seen}");
    }
    let view = get(&api, &format!("/api/agents/{agent}/effective?room={inside}")).await.expect_status(200);
    assert_eq!(view["servers"][0]["tools"][0]["name"], "where", "{view}");
    // Another project has a server of its own; the script can see where it is allowed to.
    let (outside, _) = room_in(&binary, &api, json!({"name": "b", "sandbox": "none"}), json!(agent)).await;
    let seen = ask(outside).await;
    assert!(seen.contains(" read ") && !seen.contains("/workspace"), "{seen}");
    server.terminate(STOP).await.unwrap();
}
