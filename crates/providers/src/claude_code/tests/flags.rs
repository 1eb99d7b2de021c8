//! The command line and the environment.

use super::double::Theatre;
use crate::{Provider as _, claude_code::command::Fixed, program::Program};
use domain::mcp::{Server, Transport};
use serde_json::{Value, json};
use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};
use workbench::process::Supervisor;

fn program(environment: &[(&str, &str)], pass: &[&str]) -> Program {
    Program {
        command: "claude".into(),
        args: vec!["--effort=low".into()],
        pass: pass.iter().map(|name| (*name).to_owned()).collect(),
        share_login: false,
        environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        supervisor: Supervisor::new(PathBuf::new()),
    }
}

fn environment(of: &[(&str, &str)], pass: &[&str]) -> BTreeMap<OsString, OsString> {
    let theatre = Theatre::new(1, 0);
    Fixed::of(&theatre.place, "claude".into()).command(&program(of, pass), None, None).env
}

#[test]
fn the_whole_command_line() {
    let theatre = Theatre::new(1, 0);
    let fixed = Fixed::of(&theatre.place, "claude".into());
    let command = fixed.command(&program(&[], &[]), Some("--dangerously-skip-permissions"), Some("an-id"));
    let args: Vec<&str> = command.args.iter().map(|arg| arg.to_str().unwrap()).collect();
    let mcp = format!("--mcp-config={}", fixed.mcp_file.display());
    let added = format!("--add-dir={}", theatre.place.workplace.display());
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
            // One word: what a person chose as a model is never a flag.
            "--model=--dangerously-skip-permissions",
            "--resume=an-id",
            "--effort=low",
        ]
    );
    assert_eq!(command.folder, theatre.place.workplace);
}

#[test]
fn invariant_17_secrets_stay_the_environment_is_by_name() {
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
fn the_keys_of_a_cloud_go_to_who_chose_it() {
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
fn invariant_17_secrets_stay_mcp_servers_are_named_in_a_file() {
    let theatre = Theatre::new(1, 0);
    let mut place = theatre.place.clone();
    let stdio = Transport::Stdio {
        command: "shop-server".into(),
        args: vec!["--all".into()],
        env: [("TOKEN".into(), "hush".into())].into(),
    };
    let http = Transport::Http {
        url: "http://127.0.0.1/mcp".into(),
        headers: [("authorization".into(), "hush".into())].into(),
    };
    let imposter = Transport::Http { url: "http://127.0.0.1/evil".into(), headers: BTreeMap::new() };
    place.mcp_servers = vec![
        Server::new("shop", stdio),
        Server::new("web", http),
        Server::new("old", Transport::Sse { url: "http://127.0.0.1/sse".into(), headers: BTreeMap::new() }),
        Server::new("greenroom", imposter),
    ];
    let fixed = Fixed::of(&place, "claude".into());
    let command = fixed.command(&program(&[], &[]), None, None);
    assert!(!format!("{:?} {:?}", command.args, command.env).contains("hush"));
    let config: Value = serde_json::from_str(&fixed.mcp).unwrap();
    assert_eq!(
        config["mcpServers"],
        json!({
            "shop": {"type": "stdio", "command": "shop-server", "args": ["--all"], "env": {"TOKEN": "hush"}},
            "web": {"type": "http", "url": "http://127.0.0.1/mcp", "headers": {"authorization": "hush"}},
            "old": {"type": "sse", "url": "http://127.0.0.1/sse", "headers": {}},
            "greenroom": {"type": "sdk", "name": "greenroom"},
        })
    );
    assert!(fixed.mcp_file.starts_with(&place.home));
}

#[test]
fn a_model_has_a_name() {
    let theatre = Theatre::new(1, 0);
    let mut spec = theatre.place.agent.spec.clone();
    for (model, is_fine) in [(None, true), (Some("sonnet"), true), (Some(" "), false), (Some("a\0b"), false)] {
        spec.model = model.map(str::to_owned);
        assert_eq!(theatre.provider.check(&spec).is_ok(), is_fine, "{model:?}");
    }
}
