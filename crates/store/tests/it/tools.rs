//! Tools that a user has always allowed.

use crate::scene::{append, by, creating, me, room, says};
use domain::{
    approval::{RememberScope, RememberedRule},
    ids::{AgentId, RoomId},
    time::Timestamp,
};
use store::{
    Store, StoreError,
    journal::{Commit, Guard, RowChange},
};
use testkit::database::TestDatabase;

contract! {
    one thread: a_tool_is_remembered_per_room_and_agent_until_it_is_forgotten, a_rejected_commit_remembers_no_tool,
        m12_exact_calls_and_patterns_are_remembered_beside_the_tool;
}

fn remembering(room: RoomId, agent_id: AgentId, tool: &str) -> Commit {
    remembering_calls(room, agent_id, tool, RememberScope::Tool)
}

fn remembering_calls(room: RoomId, agent_id: AgentId, tool: &str, scope: RememberScope) -> Commit {
    // A database does not store the zero byte; a command with one has no pattern.
    let command = if scope == RememberScope::Pattern { "git status" } else { "git status\u{0}" };
    let rule = RememberedRule::new(tool, &serde_json::json!({"command": command}), scope).unwrap();
    let changes = vec![RowChange::RememberTool { agent_id, rule }];
    Commit { changes, ..append(room, vec![says("allowed")]) }
}

async fn tools(store: &Store, room: RoomId) -> Vec<(AgentId, String)> {
    let remembered = store.remembered_tools(&me(), room).await.unwrap();
    assert!(remembered.iter().all(|tool| tool.created_at <= Timestamp::now()));
    remembered.into_iter().map(|tool| (tool.agent_id, tool.rule.label())).collect()
}

async fn a_tool_is_remembered_per_room_and_agent_until_it_is_forgotten(database: TestDatabase) {
    let store = database.open().await;
    let (here, there) = (room(&store).await, room(&store).await);
    let (one, two) = (AgentId::generate(), AgentId::generate());
    for tool in ["Write", "Bash", "Bash", "mcp/a b\u{0}"] {
        store.commit(remembering(here, one, tool)).await.unwrap();
    }
    store.commit(remembering(here, two, "Bash")).await.unwrap();
    let all = [(one, "Bash"), (one, "Write"), (one, "mcp/a b"), (two, "Bash")];
    let all = all.map(|(agent, tool)| (agent, tool.to_owned()));
    assert_eq!(tools(&store, here).await, all);
    assert!(tools(&store, there).await.is_empty());

    for (room, agent, tool) in [(there, one, "Bash"), (here, one, "bash"), (here, AgentId::generate(), "Bash")] {
        store.forget_tool(&by(&me()), room, agent, tool).await.unwrap();
    }
    assert_eq!(tools(&store, here).await, all, "other tools are not affected");
    for _ in 0..2 {
        store.forget_tool(&by(&me()), here, one, "Bash").await.unwrap();
        assert_eq!(tools(&store, here).await, all[1..]);
    }
    store.delete_room(&by(&me()), here, None).await.unwrap();
    assert!(matches!(store.remembered_tools(&me(), here).await, Err(StoreError::NotFound)));
}

async fn m12_exact_calls_and_patterns_are_remembered_beside_the_tool(database: TestDatabase) {
    let store = database.open().await;
    let (room, agent) = (room(&store).await, AgentId::generate());
    for scope in [RememberScope::Pattern, RememberScope::Exact, RememberScope::Pattern] {
        store.commit(remembering_calls(room, agent, "Bash", scope)).await.unwrap();
    }
    store.commit(remembering(room, agent, "Bash(git status:*)")).await.unwrap();
    let rules = store.remembered_tools(&me(), room).await.unwrap();
    let scopes: Vec<(&str, RememberScope)> =
        rules.iter().map(|tool| (tool.rule.tool.as_str(), tool.rule.scope())).collect();
    assert_eq!(
        scopes,
        [("Bash", RememberScope::Exact), ("Bash", RememberScope::Pattern), ("Bash(git status:*)", RememberScope::Tool),],
        "a tool with the name of a pattern is a tool"
    );
    store.forget_tool(&by(&me()), room, agent, "Bash").await.unwrap();
    assert_eq!(store.remembered_tools(&me(), room).await.unwrap().len(), 1);
}

async fn a_rejected_commit_remembers_no_tool(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let refused = Commit {
        guard: Guard::Unclaimed { run_id: domain::ids::RunId::generate() },
        ..remembering(room, AgentId::generate(), "Bash")
    };
    assert!(matches!(store.commit(refused).await, Err(StoreError::Fenced)));
    assert!(tools(&store, room).await.is_empty());
    let nowhere = remembering(creating(&me()).room_id, AgentId::generate(), "Bash");
    assert!(matches!(store.commit(nowhere).await, Err(StoreError::NotFound)));
}
