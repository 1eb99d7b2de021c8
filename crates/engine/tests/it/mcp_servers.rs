//! The MCP servers of an agent: tiers, trust, variables, and who may configure programs.

use crate::harness::{EngineHarness, me};
use domain::{
    actor::Actor,
    agent::{AgentSpec, ToolPolicy},
    event::EventBody,
    ids::{AgentId, RoomId, RunId},
    mcp::McpTransport,
    name::Name,
    owner::Owner,
    permission::Role,
    room::RoomPolicy,
    run::RunStatus,
};
use engine::{
    EngineError, McpVariables, TrustState,
    commands::{EffectiveState, EffectiveView, NewRoom},
};
use serde_json::{Map, Value, json};
use std::{fs, path::PathBuf};
use testkit::database::TestDatabase;

contract! {
    the_strongest_tier_wins_and_shadowed_tiers_are_listed,
    a_workspace_file_is_used_only_while_its_content_is_trusted,
    a_broken_server_is_reported_and_the_agent_runs_without_it,
    invariant_17_secrets_stay_variables_are_for_the_operator,
    only_the_operator_may_configure_programs,
    h5_a_viewer_starts_no_mcp_server,
    the_operators_file_overrides_stored_servers,
}

/// Who may only read gets the tools of a server that runs, and starts none.
async fn h5_a_viewer_starts_no_mcp_server(database: TestDatabase) {
    let harness = EngineHarness::new(database).await;
    let as_role = |role| Actor { role, ..me() };
    let refused = harness.engine.mcp_tools(&as_role(Role::Viewer), "files").await.unwrap_err();
    assert!(matches!(&refused, EngineError::Conflict(why) if why.contains("not running")), "{refused}");
    let status = harness.engine.mcp_status(&me(), "files").await.unwrap();
    assert_eq!(serde_json::to_value(&status).unwrap()["state"], "stopped", "nothing was tried");
    let failed = harness.engine.mcp_tools(&as_role(Role::Member), "files").await.unwrap_err();
    assert!(matches!(failed, EngineError::McpFailed { .. }), "{failed}");
    harness.stop().await;
}

/// The owner of another workspace than the operator's.
fn eve() -> Actor {
    Actor { workspace: Owner::new(Name::parse("eve").unwrap()), ..Actor::local() }
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("{value} is not an object") };
    map
}

fn spec(name: &str, skills: &[&str], servers: &[&str]) -> AgentSpec {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    AgentSpec { skills: owned(skills), mcp_servers: owned(servers), ..AgentSpec::new(Name::parse(name).unwrap(), "p") }
}

async fn add(harness: &EngineHarness, actor: &Actor, name: &str, entry: Value) -> Result<(), EngineError> {
    harness.engine.create_mcp_server(actor, name, object(entry), None).await.map(|_| ())
}

fn workspace_folder(harness: &EngineHarness, room: RoomId) -> PathBuf {
    harness.database.folder().join("data/rooms").join(room.to_string())
}

fn write_mcp_file(harness: &EngineHarness, room: RoomId, servers: Value) {
    fs::write(workspace_folder(harness, room).join(".mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
}

async fn trust(harness: &EngineHarness, actor: &Actor, room: RoomId) {
    let digest = harness.engine.mcp_trust(actor, room).await.unwrap().digest.unwrap();
    let trusted = harness.engine.trust_mcp_file(actor, room, &digest).await.unwrap();
    assert_eq!(trusted.state, TrustState::Trusted);
}

async fn effective(harness: &EngineHarness, agent: AgentId, room: RoomId) -> EffectiveView {
    harness.engine.effective(&me(), agent, Some(room), false).await.unwrap()
}

/// `git: agent, used, over project`
fn server_lines(view: &EffectiveView) -> Vec<String> {
    let tier = |tier: &engine::commands::TierView| match &tier.skill {
        Some(skill) => format!("skill {skill}"),
        None => tier.tier.to_owned(),
    };
    let server = |server: &engine::commands::EffectiveServer| {
        let over: Vec<String> = server.shadowed.iter().map(tier).collect();
        let over = if over.is_empty() { String::new() } else { format!(" over {}", over.join(", ")) };
        format!("{}: {} {:?}{over}", server.name, tier(&server.tier), server.state)
    };
    view.servers.iter().map(server).collect()
}

/// The `status` events of a run.
async fn notices(harness: &EngineHarness, room: RoomId, run: RunId) -> Vec<(String, String)> {
    let events = harness.store.run_events(room, run, 0).await.unwrap();
    let status = |body| match body {
        EventBody::Status(status) => Some((status.status, status.message)),
        _ => None,
    };
    events.iter().filter_map(|event| status(event.body().unwrap())).collect()
}

/// Posts a message. Returns the servers that the agent gets and the notices in the room.
async fn given_servers(harness: &mut EngineHarness, room: RoomId) -> (Vec<(String, String)>, Vec<(String, String)>) {
    let run = harness.post(room, "hello").await.runs[0].id;
    let turn = harness.turn().await;
    let address = |transport: &McpTransport| match transport {
        McpTransport::Stdio { command, .. } => command.clone(),
        McpTransport::Http { url, .. } | McpTransport::Sse { url, .. } => url.clone(),
    };
    let servers = turn.request.workspace.mcp_servers.iter();
    let servers = servers.map(|server| (server.name.clone(), address(&server.config.transport))).collect();
    turn.complete();
    assert_eq!(harness.ended(run).await.status, RunStatus::Completed);
    (servers, notices(harness, room, run).await)
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
}

async fn the_strongest_tier_wins_and_shadowed_tiers_are_listed(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let skill = harness.database.folder().join("data/skills/review");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "# Review").unwrap();
    let brought = json!({"mcpServers": {"git": {"command": "of-skill"}}});
    fs::write(skill.join(".mcp.json"), brought.to_string()).unwrap();
    for (name, entry) in [
        ("git", json!({"command": "of-agent"})),
        ("time", json!({"url": "http://127.0.0.1:1/of-agent"})),
        ("off", json!({"command": "of-agent", "disabled": true})),
        ("unnamed", json!({"command": "of-nobody"})),
    ] {
        add(&harness, &me(), name, entry).await.unwrap();
    }
    let ann = harness.agent_of(spec("Ann", &["review"], &["git", "time", "off", "files"])).await;
    let room = harness.room(&[&ann]).await;
    let project = json!({"git": {"command": "of-project"}, "time": {"command": "of-project"},
                         "off": {"command": "of-project"}, "own": {"command": "of-project"}});
    write_mcp_file(&harness, room, project);
    trust(&harness, &me(), room).await;

    let view = effective(&harness, ann.id, room).await;
    assert_eq!(
        server_lines(&view),
        [
            "files: agent Used",
            "git: skill review Used over agent, project",
            "off: agent Disabled over project",
            "own: project Used",
            "time: agent Used over project",
        ]
    );
    let (servers, notices) = given_servers(&mut harness, room).await;
    let expected = [
        ("files", "http://127.0.0.1:1/mcp"),
        ("git", "of-skill"),
        ("own", "of-project"),
        ("time", "http://127.0.0.1:1/of-agent"),
    ];
    assert_eq!((servers, notices), (pairs(&expected), Vec::new()), "the run gets the same servers");

    // Without its skill the next tier wins; without a room there is no workspace file.
    let bob = harness.agent_of(spec("Bob", &[], &["git"])).await;
    assert_eq!(server_lines(&effective(&harness, bob.id, room).await)[0], "git: agent Used over project");
    let without_room = harness.engine.effective(&me(), bob.id, None, false).await.unwrap();
    assert_eq!((server_lines(&without_room), without_room.project), (vec!["git: agent Used".to_owned()], None));
    harness.stop().await;
}

async fn a_workspace_file_is_used_only_while_its_content_is_trusted(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let none = harness.engine.mcp_trust(&me(), room).await.unwrap();
    assert_eq!((none.state, none.digest), (TrustState::None, None));
    assert!(matches!(harness.engine.trust_mcp_file(&me(), room, "x").await, Err(EngineError::Refused { .. })));

    write_mcp_file(&harness, room, json!({"own": {"command": "first", "cwd": "sub", "env": {"A": "s3cret-value"}}}));
    let seen = harness.engine.mcp_trust(&me(), room).await.unwrap();
    assert_eq!(seen.state, TrustState::Untrusted);
    assert_eq!(
        (seen.servers[0].entry.command.as_deref(), seen.servers[0].entry.env["A"].as_str()),
        (Some("first"), "***")
    );
    let (servers, notices) = given_servers(&mut harness, room).await;
    assert!(servers.is_empty());
    assert!(notices[0].0 == "mcp_untrusted" && notices[0].1.contains("own") && notices.len() == 1, "{notices:?}");
    assert_eq!(effective(&harness, ann.id, room).await.servers[0].state, EffectiveState::Untrusted);

    // Only the file that was reviewed is trusted, not a later change.
    write_mcp_file(&harness, room, json!({"own": {"command": "second"}}));
    let late = harness.engine.trust_mcp_file(&me(), room, seen.digest.as_deref().unwrap()).await;
    assert!(matches!(late, Err(EngineError::Conflict(_))), "{late:?}");
    trust(&harness, &me(), room).await;
    assert_eq!(given_servers(&mut harness, room).await, (pairs(&[("own", "second")]), Vec::new()));
    let run = harness.post(room, "where?").await.runs[0].id;
    let turn = harness.turn().await;
    assert_eq!(turn.request.workspace.mcp_servers[0].config.folder, Some(workspace_folder(&harness, room)));
    turn.complete();
    harness.ended(run).await;

    write_mcp_file(&harness, room, json!({"own": {"command": "third"}}));
    assert!(given_servers(&mut harness, room).await.0.is_empty(), "a changed file is not trusted");
    write_mcp_file(&harness, room, json!({"own": {"command": "second"}}));
    assert_eq!(given_servers(&mut harness, room).await.0.len(), 1, "the trusted content again");
    harness.engine.distrust_mcp_file(&me(), room).await.unwrap();
    assert!(given_servers(&mut harness, room).await.0.is_empty());

    let elsewhere = harness.room(&[&ann]).await;
    write_mcp_file(&harness, elsewhere, json!({"own": {"command": "second"}}));
    assert!(given_servers(&mut harness, elsewhere).await.0.is_empty(), "trust is per folder");
    fs::write(workspace_folder(&harness, room).join(".mcp.json"), "s3cret").unwrap();
    let (_, notices) = given_servers(&mut harness, room).await;
    assert!(notices[0].1.contains("not used") && !notices[0].1.contains("s3cret"), "{notices:?}");
    harness.stop().await;
}

async fn a_broken_server_is_reported_and_the_agent_runs_without_it(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    add(&harness, &me(), "broken", json!({"url": "http://${NOWHERE}/mcp", "headers": {"k": "s3cret-value"}}))
        .await
        .unwrap();
    add(&harness, &me(), "defaulted", json!({"url": "http://${NOWHERE:-127.0.0.1:1}/mcp"})).await.unwrap();
    let ann = harness.agent_of(spec("Ann", &[], &["broken", "defaulted"])).await;
    let room = harness.room(&[&ann]).await;
    write_mcp_file(
        &harness,
        room,
        json!({"greenroom": {"command": "imposter"}, "a b": {"command": "x"}, "odd": {"args": []}}),
    );
    trust(&harness, &me(), room).await;
    let (servers, notices) = given_servers(&mut harness, room).await;
    assert_eq!(servers, pairs(&[("defaulted", "http://127.0.0.1:1/mcp")]));
    assert_eq!(notices.len(), 4, "{notices:?}");
    assert!(notices.iter().all(|(status, _)| status == "mcp_server_problem"));
    for expected in [
        "\"broken\" needs the variable NOWHERE",
        "Greenroom's own tools",
        "\"a b\" has an invalid name",
        "\"odd\" needs",
    ] {
        assert!(notices.iter().any(|(_, message)| message.contains(expected)), "{expected}: {notices:?}");
    }
    assert!(!format!("{notices:?}").contains("s3cret"), "{notices:?}");
    let view = effective(&harness, ann.id, room).await;
    let broken = view.servers.iter().find(|server| server.name == "broken").unwrap();
    let problem = broken.problem.as_ref().unwrap();
    assert_eq!((broken.state, problem.code), (EffectiveState::Problem, "mcp_config"));
    assert!(problem.message.contains("mcp.variables"), "the message names the setting: {problem:?}");

    // A deleted server that the agent still names is reported as missing.
    harness.engine.delete_mcp_server(&me(), "broken", None).await.unwrap();
    let view = effective(&harness, ann.id, room).await;
    let missing = view.servers.iter().find(|server| server.name == "broken").unwrap();
    assert_eq!(missing.problem.as_ref().unwrap().code, "mcp_server_missing");
    harness.stop().await;
}

async fn invariant_17_secrets_stay_variables_are_for_the_operator(database: TestDatabase) {
    let harness = EngineHarness::with(database, |config| {
        let allowed = [("HOST".to_owned(), Some("127.0.0.1:1".to_owned())), ("UNSET".to_owned(), None)];
        config.mcp_variables = McpVariables::new(allowed);
    })
    .await;
    for actor in [me(), eve()] {
        for (name, url) in [("host", "http://${HOST}/"), ("unset", "http://${UNSET}/"), ("path", "http://${PATH}/")] {
            add(&harness, &actor, name, json!({"url": url})).await.unwrap();
        }
        let servers = harness.engine.mcp_servers(&actor).await.unwrap();
        let of = |name: &str| servers.iter().find(|server| server.name == name).unwrap();
        let variable = |name: &str| (of(name).variables[0].allowed, of(name).variables[0].set);
        let is_operator = actor == me();
        assert_eq!((variable("host"), of("host").problem.is_none()), ((is_operator, is_operator), is_operator));
        assert_eq!((variable("unset"), of("unset").problem.is_none()), ((is_operator, false), false));
        assert_eq!((variable("path"), of("path").problem.is_none()), ((false, false), false));
        let shown = serde_json::to_string(&servers).unwrap();
        assert!(!shown.contains("127.0.0.1:1/\""), "a value is never shown: {shown}");
    }
    harness.stop().await;
}

async fn only_the_operator_may_configure_programs(database: TestDatabase) {
    let harness = EngineHarness::new(database).await;
    let refused = add(&harness, &eve(), "mine", json!({"command": "sh"})).await;
    assert!(matches!(refused, Err(EngineError::OperatorOnly(_))), "{refused:?}");
    add(&harness, &eve(), "mine", json!({"type": "sse", "url": "http://127.0.0.1:1/sse"})).await.unwrap();
    let turned = object(json!({"type": "stdio", "url": null, "command": "sh"}));
    let turned = harness.engine.change_mcp_server(&eve(), "mine", turned, None).await;
    assert!(matches!(turned, Err(EngineError::OperatorOnly(_))), "{turned:?}");

    // Nor through a trusted `.mcp.json` in the workspace.
    let ann = harness.store.create_agent(&eve(), spec("Ann", &[], &["files"]), None).await.unwrap();
    let name = Name::parse("A room").unwrap();
    let new = NewRoom { name, agents: vec![ann.id], project_id: None, policy: RoomPolicy::default() };
    let room = harness.engine.create_room(&eve(), new, None).await.unwrap().id;
    write_mcp_file(&harness, room, json!({"own": {"command": "sh"}, "web": {"url": "https://mcp.example.org/"}}));
    trust(&harness, &eve(), room).await;
    let view = harness.engine.effective(&eve(), ann.id, Some(room), false).await.unwrap();
    assert_eq!(server_lines(&view), ["files: agent Used", "own: project Problem", "web: project Used"]);
    assert_eq!(view.servers[1].problem.as_ref().unwrap().code, "operator_only");
    assert!(
        matches!(harness.engine.mcp_trust(&me(), room).await, Err(EngineError::NotFound)),
        "a room of another owner"
    );
    assert!(matches!(harness.engine.effective(&me(), ann.id, None, false).await, Err(EngineError::NotFound)));
    let mine = harness.agent("Mine", "p").await;
    assert!(matches!(harness.engine.effective(&me(), mine.id, Some(room), false).await, Err(EngineError::NotFound)));
    harness.stop().await;
}

async fn the_operators_file_overrides_stored_servers(database: TestDatabase) {
    let harness = EngineHarness::new(database).await;
    let taken = add(&harness, &me(), "files", json!({"command": "x"})).await;
    assert!(matches!(taken, Err(EngineError::Conflict(_))), "{taken:?}");
    // A server stored before the file had this name is listed as shadowed and can still be deleted.
    let transport = McpTransport::Http { url: "http://127.0.0.1:2/".into(), headers: [].into() };
    harness.store.create_mcp_server(&me(), "files", &domain::mcp::McpServerConfig::new(transport), None).await.unwrap();
    let listed: Vec<(String, bool, bool)> = harness
        .engine
        .mcp_servers(&me())
        .await
        .unwrap()
        .into_iter()
        .map(|server| (server.name, server.editable, server.shadowed))
        .collect();
    assert_eq!(listed, [("files".to_owned(), false, false), ("files".to_owned(), true, true)]);
    let policy = ToolPolicy { deny: vec!["mcp__greenroom__current_time".into()], ..ToolPolicy::default() };
    let ann = harness.agent_of(AgentSpec { tools: policy, ..spec("Ann", &[], &["files"]) }).await;
    let view = harness.engine.effective(&me(), ann.id, None, false).await.unwrap();
    assert_eq!(serde_json::to_value(view.servers[0].source).unwrap(), "file");
    let verdicts: Vec<Value> = view.built_in.iter().map(|tool| json!([tool.name, tool.verdict])).collect();
    let expected =
        [("current_time", "deny"), ("ask_user", "ask"), ("memorize", "ask"), ("recall", "ask"), ("delegate", "ask")];
    assert_eq!(verdicts, expected.map(|(tool, verdict)| json!([tool, verdict])));
    harness.engine.delete_mcp_server(&me(), "files", None).await.unwrap();
    assert!(matches!(harness.engine.delete_mcp_server(&me(), "files", None).await, Err(EngineError::Conflict(_))));
    // Other owners may use it, but do not see its settings.
    let shown = harness.engine.mcp_server(&eve(), "files").await.unwrap();
    assert_eq!((shown.entry.kind.as_deref(), shown.entry.url, shown.problem), (Some("http"), None, None));
    assert!(
        harness
            .engine
            .mcp_logs(&eve(), "files")
            .await
            .is_err_and(|error| matches!(error, EngineError::OperatorOnly(_)))
    );
    harness.stop().await;
}
