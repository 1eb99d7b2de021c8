//! Tests of the command line and the environment.

use super::fake::ClaudeHarness;
use crate::{Provider as _, claude_code::command::ClaudeLaunchSettings, program::AgentProgram};
use domain::{
    agent::{ModelOptions, Thinking},
    mcp::{McpTransport, NamedMcpServer},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc};
use workbench::process::Supervisor;

fn program(environment: &[(&str, &str)], pass: &[&str]) -> AgentProgram {
    AgentProgram {
        command: "claude".into(),
        args: vec!["--effort=low".into()],
        allowed_variables: pass.iter().map(|name| (*name).to_owned()).collect(),
        share_login: false,
        environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        launcher: Arc::new(Supervisor::new(PathBuf::new())),
        gateway: crate::gateway::ModelGateway::default(),
    }
}

fn environment(of: &[(&str, &str)], pass: &[&str]) -> BTreeMap<OsString, OsString> {
    let harness = ClaudeHarness::new(1, 0);
    ClaudeLaunchSettings::of(&harness.workspace, "claude".into()).command(&program(of, pass), None, None).env
}

#[test]
fn full_command_line() {
    let harness = ClaudeHarness::new(1, 0);
    let fixed = ClaudeLaunchSettings::of(&harness.workspace, "claude".into());
    let command = fixed.command(&program(&[], &[]), Some("--dangerously-skip-permissions"), Some("an-id"));
    let args: Vec<&str> = command.args.iter().map(|arg| arg.to_str().unwrap()).collect();
    let mcp = format!("--mcp-config={}", fixed.mcp_file.display());
    let added = format!("--add-dir={}", harness.workspace.folder.display());
    assert_eq!(
        args,
        [
            "--print",
            "--input-format=stream-json",
            "--output-format=stream-json",
            "--verbose",
            "--include-partial-messages",
            "--permission-prompt-tool=stdio",
            "--permission-mode=default",
            "--setting-sources=user",
            "--strict-mcp-config",
            "--disallowedTools=ScheduleWakeup,Monitor,Workflow,CronCreate",
            &mcp,
            &added,
            "--allowedTools=mcp__greenroom",
            // One argument: a model name is never parsed as a flag.
            "--model=--dangerously-skip-permissions",
            "--resume=an-id",
            "--effort=low",
        ]
    );
    assert_eq!(command.folder, harness.workspace.folder);
}

#[test]
fn the_effort_that_a_room_chooses_is_a_flag_of_a_new_process() {
    let mut harness = ClaudeHarness::new(1, 0);
    let before = ClaudeLaunchSettings::of(&harness.workspace, "claude".into());
    let options = ModelOptions { thinking: Some(Thinking::High), ..ModelOptions::default() };
    harness.workspace.agent.spec.model_options = Some(options);
    let after = ClaudeLaunchSettings::of(&harness.workspace, "claude".into());
    assert_ne!(before, after, "the running process is replaced");
    let has_effort = |fixed: &ClaudeLaunchSettings| {
        fixed.command(&program(&[], &[]), None, None).args.contains(&"--effort=high".into())
    };
    assert_eq!((has_effort(&before), has_effort(&after)), (false, true));
}

#[test]
fn invariant_17_secrets_stay_only_allowed_variables_are_passed_on() {
    let servers = [
        ("HOME", "persons home"),
        ("PATH", "bin"),
        ("ANTHROPIC_API_KEY", "key"),
        ("GREENROOM_DATABASE", "secret"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "secret"),
        ("MY_OWN", "passed"),
    ];
    let env = environment(&servers, &["MY_OWN"]);
    let get = |name: &str| env.get(&OsString::from(name)).map(|value| value.to_str().unwrap());
    assert_eq!((get("PATH"), get("ANTHROPIC_API_KEY"), get("MY_OWN")), (Some("bin"), Some("key"), Some("passed")));
    assert!(get("HOME").unwrap().ends_with("agent") && get("CLAUDE_CONFIG_DIR").unwrap().ends_with("agent/claude"));
    for name in ["GREENROOM_DATABASE", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS"] {
        assert_eq!(get(name), None, "{name}");
    }
    for name in [
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_AUTOUPDATER",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    ] {
        assert_eq!(get(name), Some("1"), "{name}");
    }
    assert_eq!((get("CLAUDE_CODE_MAX_RETRIES"), get("ENABLE_TOOL_SEARCH")), (Some("4"), Some("false")));
}

#[test]
fn cloud_keys_are_passed_only_if_that_cloud_is_selected() {
    let keys = [("AWS_SECRET_ACCESS_KEY", "a"), ("GOOGLE_APPLICATION_CREDENTIALS", "g")];
    for (switch, gets, lacks) in [
        ("CLAUDE_CODE_USE_BEDROCK", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("CLAUDE_CODE_USE_VERTEX", "GOOGLE_APPLICATION_CREDENTIALS", "AWS_SECRET_ACCESS_KEY"),
    ] {
        let env = environment(&[keys[0], keys[1], (switch, "1")], &[]);
        assert!(env.contains_key(&OsString::from(switch)) && env.contains_key(&OsString::from(gets)));
        assert!(!env.contains_key(&OsString::from(lacks)));
    }
}

#[test]
fn invariant_17_secrets_stay_mcp_servers_are_passed_in_a_file() {
    let harness = ClaudeHarness::new(1, 0);
    let mut workspace = harness.workspace.clone();
    let stdio = McpTransport::Stdio {
        command: "shop-server".into(),
        args: vec!["--all".into()],
        env: [("TOKEN".into(), "hush".into())].into(),
    };
    let http = McpTransport::Http {
        url: "http://127.0.0.1/mcp".into(),
        headers: [("authorization".into(), "hush".into())].into(),
    };
    let imposter = McpTransport::Http { url: "http://127.0.0.1/evil".into(), headers: BTreeMap::new() };
    workspace.mcp_servers = vec![
        NamedMcpServer::new("shop", stdio),
        NamedMcpServer::new("web", http),
        NamedMcpServer::new("old", McpTransport::Sse { url: "http://127.0.0.1/sse".into(), headers: BTreeMap::new() }),
        NamedMcpServer::new("greenroom", imposter),
    ];
    let fixed = ClaudeLaunchSettings::of(&workspace, "claude".into());
    let command = fixed.command(&program(&[], &[]), None, None);
    assert!(!format!("{:?} {:?}", command.args, command.env).contains("hush"));
    let config: Value = serde_json::from_str(&fixed.mcp_config).unwrap();
    assert_eq!(
        config["mcpServers"],
        json!({
            "shop": {"type": "stdio", "command": "shop-server", "args": ["--all"], "env": {"TOKEN": "hush"}},
            "web": {"type": "http", "url": "http://127.0.0.1/mcp", "headers": {"authorization": "hush"}},
            "old": {"type": "sse", "url": "http://127.0.0.1/sse", "headers": {}},
            "greenroom": {"type": "sdk", "name": "greenroom"},
        })
    );
    assert!(fixed.mcp_file.starts_with(&workspace.home));
}

#[test]
fn rejects_invalid_model_names() {
    let harness = ClaudeHarness::new(1, 0);
    let mut spec = harness.workspace.agent.spec.clone();
    for (model, is_fine) in [(None, true), (Some("sonnet"), true), (Some(" "), false), (Some("a\0b"), false)] {
        spec.model = model.map(str::to_owned);
        assert_eq!(harness.provider.check(&spec).is_ok(), is_fine, "{model:?}");
    }
}
