//! Agents as files: export, import, and what a running room makes of a change.

use super::{
    command_line::{client_of, run_as},
    requests::{agent, get, post, post_and_wait, room_of, within},
};
use domain::ids::AgentId;
use serde_json::{Value, json};
use std::{fs, time::Duration};
use testkit::client::TestClient;

on_both_databases! {
    server: agents_are_exported_and_imported, a_room_picks_up_a_change_at_the_next_turn,
            a_folder_with_a_mistake_does_not_hold_up_the_others, the_command_line_exports_and_imports_a_folder,
            a_watched_folder_is_imported_whenever_it_changes;
}

async fn import(api: &TestClient, files: Value) -> Value {
    post(api, "/api/agents/files", &json!({"files": files})).await.expect_status(200)["agents"].clone()
}

async fn agents_are_exported_and_imported(api: &TestClient) {
    let settings = json!({"system_prompt": "You are Ann.", "tools": {"deny": ["Bash"]}, "limits": {"turns": 7}});
    let ann = agent(api, "Ann", settings).await;
    let room = room_of(api, &[ann]).await;
    post_and_wait(api, room, r#"!call memorize {"text":"likes tea"}"#).await;
    let exported = get(api, "/api/agents/files").await.expect_status(200)["files"].clone();
    assert_eq!(exported["ann/prompt.md"], "You are Ann.\n");
    assert_eq!(exported["ann/memory.md"], "likes tea\n");
    let unchanged = import(api, exported.clone()).await;
    assert!(unchanged.as_array().unwrap().iter().all(|agent| agent["outcome"] == "unchanged"), "{unchanged}");
    assert!(unchanged.as_array().unwrap().iter().all(|agent| agent["new_notes"] == 0), "{unchanged}");
    // Under another name it is another agent, with the same settings and notes.
    let settings = exported["ann/agent.toml"].as_str().unwrap().replace("\"Ann\"", "\"Zoe\"");
    let files = json!({"zoe/agent.toml": settings, "zoe/prompt.md": "You are Zoe.", "zoe/memory.md": exported["ann/memory.md"]});
    let created = import(api, files).await;
    assert_eq!((&created[0]["outcome"], &created[0]["new_notes"]), (&json!("created"), &json!(1)));
    let zoe: AgentId = created[0]["agent_id"].as_str().unwrap().parse().unwrap();
    let shown = get(api, &format!("/api/agents/{zoe}")).await.expect_status(200);
    assert_eq!((&shown["system_prompt"], &shown["limits"]["turns"]), (&json!("You are Zoe."), &json!(7)));
    assert_eq!(shown["tools"]["deny"], json!(["Bash"]));
    let notes = get(api, &format!("/api/agents/{zoe}/memories")).await.expect_status(200);
    assert_eq!(notes["memories"][0]["text"], "likes tea");
}

async fn a_room_picks_up_a_change_at_the_next_turn(api: &TestClient) {
    let files =
        |prompt: &str| json!({"ann/agent.toml": "name = \"Ann\"\nprovider = \"scripted\"\n", "ann/prompt.md": prompt});
    let created = import(api, files("Be brief.")).await;
    let ann: AgentId = created[0]["agent_id"].as_str().unwrap().parse().unwrap();
    let room = room_of(api, &[ann]).await;
    for prompt in ["Be brief.", "Be long."] {
        import(api, files(prompt)).await;
        let run = post_and_wait(api, room, "!count 2").await;
        let context = get(api, &format!("/api/runs/{}/context", run.id)).await.expect_status(200);
        assert_eq!(context["system_prompt"], prompt);
    }
}

async fn a_folder_with_a_mistake_does_not_hold_up_the_others(api: &TestClient) {
    let files = json!({
        "bad/agent.toml": "name = \"Bad\"\nprovider = \"no such provider\"\n",
        "good/agent.toml": "name = \"Good\"\nprovider = \"scripted\"\n",
        "none/prompt.md": "no settings",
        "odd/agent.toml": "name = \"Odd\"\nprovider = \"scripted\"\ncolour = 1\n",
    });
    let imported = import(api, files).await;
    let outcomes: Vec<&str> =
        imported.as_array().unwrap().iter().map(|agent| agent["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["refused", "created", "refused", "refused"]);
    assert!(imported[2]["problem"].as_str().unwrap().contains("agent.toml is missing"), "{imported}");
    let wrong = json!({"files": {"agent.toml": "name = 1"}});
    post(api, "/api/agents/files", &wrong).await.expect_problem(422, "unprocessable");
}

async fn the_command_line_exports_and_imports_a_folder(api: &TestClient) {
    agent(api, "Ann", json!({"system_prompt": "You are Ann."})).await;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("agents");
    let agents = async |command: &str| run_as(api, dir.path(), &["agents", command, folder.to_str().unwrap()]).await;
    let exported = agents("export").await;
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    assert_eq!(fs::read_to_string(folder.join("ann/prompt.md")).unwrap(), "You are Ann.\n");
    fs::write(folder.join("ann/prompt.md"), "You are somebody else.\n").unwrap();
    let imported = agents("import").await;
    assert_eq!(imported.code, Some(0), "{}", imported.stderr);
    assert!(imported.stdout.contains("ann updated, 0 new notes"), "{}", imported.stdout);
    fs::write(folder.join("ann/agent.toml"), "name = 1").unwrap();
    let refused = agents("import").await;
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(refused.stdout.contains("ann refused"), "{}", refused.stdout);
}

/// While agents are at work: a room uses the new prompt from the next turn on.
async fn a_watched_folder_is_imported_whenever_it_changes(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("agents/ann");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent.toml"), "name = \"Ann\"\nprovider = \"scripted\"\n").unwrap();
    fs::write(folder.join("prompt.md"), "Be brief.").unwrap();
    let mut watching = client_of(api, dir.path(), &["agents", "watch", "agents"]).spawn().unwrap();
    let prompt_is = async |prompt: &str| {
        within(prompt, async {
            loop {
                let agents = api.agents().await.unwrap();
                let ann = agents.into_iter().find(|agent| agent.spec.name.as_str() == "Ann");
                if let Some(ann) = ann.filter(|ann| ann.spec.system_prompt.as_deref() == Some(prompt)) {
                    return ann.id;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await
    };
    let ann = prompt_is("Be brief.").await;
    let room = room_of(api, &[ann]).await;
    post_and_wait(api, room, "!count 1").await;
    fs::write(folder.join("prompt.md"), "Be long.").unwrap();
    assert_eq!(prompt_is("Be long.").await, ann, "the same agent");
    let run = post_and_wait(api, room, "!count 1").await;
    let context = get(api, &format!("/api/runs/{}/context", run.id)).await.expect_status(200);
    assert_eq!(context["system_prompt"], "Be long.");
    assert_eq!(watching.try_wait().unwrap(), None, "it goes on watching");
    watching.kill().await.unwrap();
}
