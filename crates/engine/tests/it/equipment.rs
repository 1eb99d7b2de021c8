//! The MCP servers that an agent is given: tiers, trust, variables, and who may say what is started.

use crate::scene::{Stage, me};
use domain::{
    agent::{AgentSpec, ToolPolicy},
    event::EventBody,
    ids::{AgentId, RoomId, RunId},
    mcp::Transport,
    name::Name,
    owner::Owner,
    room::RoomPolicy,
    run::RunStatus,
};
use engine::{
    Error, Variables,
    commands::{EffectiveState, EffectiveView, NewRoom, TrustState},
};
use serde_json::{Map, Value, json};
use std::{fs, path::PathBuf};
use testkit::database::TestDatabase;

contract! {
    a_conflict_of_three_tiers_is_decided_and_explained,
    nothing_of_a_project_is_used_until_exactly_it_is_trusted,
    what_is_wrong_with_one_server_is_told_and_the_agent_works,
    invariant_17_secrets_stay_variables_are_the_operators,
    only_the_operator_says_which_programs_start,
    the_operators_file_has_its_way,
}

fn eve() -> Owner {
    Owner::new(Name::parse("eve").unwrap())
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("{value} is no object") };
    map
}

fn spec(name: &str, skills: &[&str], servers: &[&str]) -> AgentSpec {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    AgentSpec { skills: owned(skills), mcp_servers: owned(servers), ..AgentSpec::new(Name::parse(name).unwrap(), "p") }
}

async fn add(stage: &Stage, owner: &Owner, name: &str, entry: Value) -> Result<(), Error> {
    stage.engine.create_mcp_server(owner, name, object(entry), None).await.map(|_| ())
}

fn workplace(stage: &Stage, room: RoomId) -> PathBuf {
    stage.database.folder().join("data/rooms").join(room.to_string())
}

fn write_project(stage: &Stage, room: RoomId, servers: Value) {
    fs::write(workplace(stage, room).join(".mcp.json"), json!({"mcpServers": servers}).to_string()).unwrap();
}

async fn trust(stage: &Stage, owner: &Owner, room: RoomId) {
    let digest = stage.engine.mcp_trust(owner, room).await.unwrap().digest.unwrap();
    let trusted = stage.engine.trust_project(owner, room, &digest).await.unwrap();
    assert_eq!(trusted.state, TrustState::Trusted);
}

async fn effective(stage: &Stage, agent: AgentId, room: RoomId) -> EffectiveView {
    stage.engine.effective(&me(), agent, Some(room), false).await.unwrap()
}

/// `git: agent, used, over project`
fn told(view: &EffectiveView) -> Vec<String> {
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

/// What the room was told by `status` events.
async fn remarks(stage: &Stage, room: RoomId, run: RunId) -> Vec<(String, String)> {
    let events = stage.store.run_events(room, run, 0).await.unwrap();
    let status = |body| match body {
        EventBody::Status(status) => Some((status.status, status.message)),
        _ => None,
    };
    events.iter().filter_map(|event| status(event.body().unwrap())).collect()
}

/// Asks the agent something: the servers it is given, and what the room hears.
async fn given(stage: &mut Stage, room: RoomId) -> (Vec<(String, String)>, Vec<(String, String)>) {
    let run = stage.post(room, "hello").await.runs[0].id;
    let turn = stage.turn().await;
    let address = |transport: &Transport| match transport {
        Transport::Stdio { command, .. } => command.clone(),
        Transport::Http { url, .. } | Transport::Sse { url, .. } => url.clone(),
    };
    let servers = turn.request.place.mcp_servers.iter();
    let servers = servers.map(|server| (server.name.clone(), address(&server.config.transport))).collect();
    turn.completes();
    assert_eq!(stage.ended(run).await.status, RunStatus::Completed);
    (servers, remarks(stage, room, run).await)
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
}

async fn a_conflict_of_three_tiers_is_decided_and_explained(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let skill = stage.database.folder().join("data/skills/review");
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
        add(&stage, &me(), name, entry).await.unwrap();
    }
    let ann = stage.agent_of(spec("Ann", &["review"], &["git", "time", "off", "files"])).await;
    let room = stage.room(&[&ann]).await;
    let project = json!({"git": {"command": "of-project"}, "time": {"command": "of-project"},
                         "off": {"command": "of-project"}, "own": {"command": "of-project"}});
    write_project(&stage, room, project);
    trust(&stage, &me(), room).await;

    let view = effective(&stage, ann.id, room).await;
    assert_eq!(
        told(&view),
        [
            "files: agent Used",
            "git: skill review Used over agent, project",
            "off: agent Disabled over project",
            "own: project Used",
            "time: agent Used over project",
        ]
    );
    let (servers, remarks) = given(&mut stage, room).await;
    let expected = [
        ("files", "http://127.0.0.1:1/mcp"),
        ("git", "of-skill"),
        ("own", "of-project"),
        ("time", "http://127.0.0.1:1/of-agent"),
    ];
    assert_eq!((servers, remarks), (pairs(&expected), Vec::new()), "and so it is given");

    // Without its skill the next tier has its way; without a room there is no project.
    let bob = stage.agent_of(spec("Bob", &[], &["git"])).await;
    assert_eq!(told(&effective(&stage, bob.id, room).await)[0], "git: agent Used over project");
    let nowhere = stage.engine.effective(&me(), bob.id, None, false).await.unwrap();
    assert_eq!((told(&nowhere), nowhere.project), (vec!["git: agent Used".to_owned()], None));
    stage.stop().await;
}

async fn nothing_of_a_project_is_used_until_exactly_it_is_trusted(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let none = stage.engine.mcp_trust(&me(), room).await.unwrap();
    assert_eq!((none.state, none.digest), (TrustState::None, None));
    assert!(matches!(stage.engine.trust_project(&me(), room, "x").await, Err(Error::Refused { .. })));

    write_project(&stage, room, json!({"own": {"command": "first", "cwd": "sub", "env": {"A": "s3cret-value"}}}));
    let seen = stage.engine.mcp_trust(&me(), room).await.unwrap();
    assert_eq!(seen.state, TrustState::Untrusted);
    assert_eq!(
        (seen.servers[0].entry.command.as_deref(), seen.servers[0].entry.env["A"].as_str()),
        (Some("first"), "***")
    );
    let (servers, told) = given(&mut stage, room).await;
    assert!(servers.is_empty());
    assert!(told[0].0 == "mcp_untrusted" && told[0].1.contains("own") && told.len() == 1, "{told:?}");
    assert_eq!(effective(&stage, ann.id, room).await.servers[0].state, EffectiveState::Untrusted);

    // What was looked at is trusted, and nothing that came after it.
    write_project(&stage, room, json!({"own": {"command": "second"}}));
    let late = stage.engine.trust_project(&me(), room, seen.digest.as_deref().unwrap()).await;
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    trust(&stage, &me(), room).await;
    assert_eq!(given(&mut stage, room).await, (pairs(&[("own", "second")]), Vec::new()));
    let run = stage.post(room, "where?").await.runs[0].id;
    let turn = stage.turn().await;
    assert_eq!(turn.request.place.mcp_servers[0].config.folder, Some(workplace(&stage, room)));
    turn.completes();
    stage.ended(run).await;

    write_project(&stage, room, json!({"own": {"command": "third"}}));
    assert!(given(&mut stage, room).await.0.is_empty(), "another content is another file");
    write_project(&stage, room, json!({"own": {"command": "second"}}));
    assert_eq!(given(&mut stage, room).await.0.len(), 1, "the trusted one again");
    stage.engine.distrust_project(&me(), room).await.unwrap();
    assert!(given(&mut stage, room).await.0.is_empty());

    let elsewhere = stage.room(&[&ann]).await;
    write_project(&stage, elsewhere, json!({"own": {"command": "second"}}));
    assert!(given(&mut stage, elsewhere).await.0.is_empty(), "trust is in a folder");
    fs::write(workplace(&stage, room).join(".mcp.json"), "s3cret").unwrap();
    let (_, told) = given(&mut stage, room).await;
    assert!(told[0].1.contains("not used") && !told[0].1.contains("s3cret"), "{told:?}");
    stage.stop().await;
}

async fn what_is_wrong_with_one_server_is_told_and_the_agent_works(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    add(&stage, &me(), "broken", json!({"url": "http://${NOWHERE}/mcp", "headers": {"k": "s3cret-value"}}))
        .await
        .unwrap();
    add(&stage, &me(), "defaulted", json!({"url": "http://${NOWHERE:-127.0.0.1:1}/mcp"})).await.unwrap();
    let ann = stage.agent_of(spec("Ann", &[], &["broken", "defaulted"])).await;
    let room = stage.room(&[&ann]).await;
    write_project(
        &stage,
        room,
        json!({"greenroom": {"command": "imposter"}, "a b": {"command": "x"}, "odd": {"args": []}}),
    );
    trust(&stage, &me(), room).await;
    let (servers, told) = given(&mut stage, room).await;
    assert_eq!(servers, pairs(&[("defaulted", "http://127.0.0.1:1/mcp")]));
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.iter().all(|(status, _)| status == "mcp_server_problem"));
    for says in
        ["\"broken\" needs the variable NOWHERE", "Greenroom's own tools", "\"a b\" has a name", "\"odd\" needs"]
    {
        assert!(told.iter().any(|(_, message)| message.contains(says)), "{says}: {told:?}");
    }
    assert!(!format!("{told:?}").contains("s3cret"), "{told:?}");
    let view = effective(&stage, ann.id, room).await;
    let broken = view.servers.iter().find(|server| server.name == "broken").unwrap();
    let problem = broken.problem.as_ref().unwrap();
    assert_eq!((broken.state, problem.code), (EffectiveState::Problem, "mcp_config"));
    assert!(problem.message.contains("mcp.variables"), "it says where to allow it: {problem:?}");

    // One that has gone is the agent's own mistake, and is shown as such.
    stage.engine.delete_mcp_server(&me(), "broken", None).await.unwrap();
    let view = effective(&stage, ann.id, room).await;
    let gone = view.servers.iter().find(|server| server.name == "broken").unwrap();
    assert_eq!(gone.problem.as_ref().unwrap().code, "mcp_server_missing");
    stage.stop().await;
}

async fn invariant_17_secrets_stay_variables_are_the_operators(database: TestDatabase) {
    let stage = Stage::with(database, |config| {
        let allowed = [("HOST".to_owned(), Some("127.0.0.1:1".to_owned())), ("UNSET".to_owned(), None)];
        config.mcp_variables = Variables::new(allowed);
    })
    .await;
    for owner in [me(), eve()] {
        for (name, url) in [("host", "http://${HOST}/"), ("unset", "http://${UNSET}/"), ("path", "http://${PATH}/")] {
            add(&stage, &owner, name, json!({"url": url})).await.unwrap();
        }
        let servers = stage.engine.mcp_servers(&owner).await.unwrap();
        let of = |name: &str| servers.iter().find(|server| server.name == name).unwrap();
        let variable = |name: &str| (of(name).variables[0].allowed, of(name).variables[0].set);
        let is_operator = owner == me();
        assert_eq!((variable("host"), of("host").problem.is_none()), ((is_operator, is_operator), is_operator));
        assert_eq!((variable("unset"), of("unset").problem.is_none()), ((is_operator, false), false));
        assert_eq!((variable("path"), of("path").problem.is_none()), ((false, false), false));
        let shown = serde_json::to_string(&servers).unwrap();
        assert!(!shown.contains("127.0.0.1:1/\""), "a value is never shown: {shown}");
    }
    stage.stop().await;
}

async fn only_the_operator_says_which_programs_start(database: TestDatabase) {
    let stage = Stage::new(database).await;
    let refused = add(&stage, &eve(), "mine", json!({"command": "sh"})).await;
    assert!(matches!(refused, Err(Error::OperatorOnly(_))), "{refused:?}");
    add(&stage, &eve(), "mine", json!({"type": "sse", "url": "http://127.0.0.1:1/sse"})).await.unwrap();
    let turned = object(json!({"type": "stdio", "url": null, "command": "sh"}));
    let turned = stage.engine.change_mcp_server(&eve(), "mine", turned, None).await;
    assert!(matches!(turned, Err(Error::OperatorOnly(_))), "{turned:?}");

    // Nor by way of a project's file, whoever trusts it.
    let ann = stage.store.create_agent(&eve(), spec("Ann", &[], &["files"]), None).await.unwrap();
    let name = Name::parse("A room").unwrap();
    let new = NewRoom { name, agents: vec![ann.id], project_id: None, policy: RoomPolicy::default() };
    let room = stage.engine.create_room(&eve(), new, None).await.unwrap().id;
    write_project(&stage, room, json!({"own": {"command": "sh"}, "web": {"url": "http://127.0.0.1:1/"}}));
    trust(&stage, &eve(), room).await;
    let view = stage.engine.effective(&eve(), ann.id, Some(room), false).await.unwrap();
    assert_eq!(told(&view), ["files: agent Used", "own: project Problem", "web: project Used"]);
    assert_eq!(view.servers[1].problem.as_ref().unwrap().code, "operator_only");
    assert!(matches!(stage.engine.mcp_trust(&me(), room).await, Err(Error::NotFound)), "a foreign room");
    assert!(matches!(stage.engine.effective(&me(), ann.id, None, false).await, Err(Error::NotFound)));
    let mine = stage.agent("Mine", "p").await;
    assert!(matches!(stage.engine.effective(&me(), mine.id, Some(room), false).await, Err(Error::NotFound)));
    stage.stop().await;
}

async fn the_operators_file_has_its_way(database: TestDatabase) {
    let stage = Stage::new(database).await;
    let taken = add(&stage, &me(), "files", json!({"command": "x"})).await;
    assert!(matches!(taken, Err(Error::Conflict(_))), "{taken:?}");
    // One that was there before the file had it is hidden, shown as such, and can still be deleted.
    let transport = Transport::Http { url: "http://127.0.0.1:2/".into(), headers: [].into() };
    stage.store.create_mcp_server(&me(), "files", &domain::mcp::ServerConfig::new(transport), None).await.unwrap();
    let listed: Vec<(String, bool, bool)> = stage
        .engine
        .mcp_servers(&me())
        .await
        .unwrap()
        .into_iter()
        .map(|server| (server.name, server.editable, server.shadowed))
        .collect();
    assert_eq!(listed, [("files".to_owned(), false, false), ("files".to_owned(), true, true)]);
    let policy = ToolPolicy { deny: vec!["mcp__greenroom__current_time".into()], ..ToolPolicy::default() };
    let ann = stage.agent_of(AgentSpec { tools: policy, ..spec("Ann", &[], &["files"]) }).await;
    let view = stage.engine.effective(&me(), ann.id, None, false).await.unwrap();
    assert_eq!(serde_json::to_value(view.servers[0].source).unwrap(), "file");
    let verdicts: Vec<Value> = view.built_in.iter().map(|tool| json!([tool.name, tool.verdict])).collect();
    assert_eq!(verdicts, [json!(["current_time", "deny"]), json!(["ask_user", "ask"])]);
    stage.engine.delete_mcp_server(&me(), "files", None).await.unwrap();
    assert!(matches!(stage.engine.delete_mcp_server(&me(), "files", None).await, Err(Error::Conflict(_))));
    // Others may use it, and are not told what it starts.
    let shown = stage.engine.mcp_server(&eve(), "files").await.unwrap();
    assert_eq!((shown.entry.kind.as_deref(), shown.entry.url, shown.problem), (Some("http"), None, None));
    assert!(stage.engine.mcp_logs(&eve(), "files").await.is_err_and(|error| matches!(error, Error::OperatorOnly(_))));
    stage.stop().await;
}
