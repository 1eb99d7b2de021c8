//! Precedence, refusals and what they say.

use super::{Config, Database, Flags, LogFormat, layers};
use config::ValueKind;
use std::{ffi::OsString, fs, path::Path, time::Duration};

fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn load(flags: &Flags, variables: &[(&str, &str)], working_dir: &Path) -> Result<Config, String> {
    Config::load_from(flags, environment(variables), working_dir).map_err(|error| format!("{error:#}"))
}

/// The error that `text` as a file in the working directory gives.
fn refusal(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("greenroom.toml"), text).unwrap();
    load(&Flags::default(), &[], dir.path()).unwrap_err()
}

#[test]
fn defaults_are_the_documented_ones() {
    let dir = tempfile::tempdir().unwrap();
    let config = load(&Flags::default(), &[], dir.path()).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7878");
    assert_eq!((config.server.max_connections, config.server.body_bytes), (20_000, 1_048_576));
    assert_eq!(config.store.database, Database::Sqlite { path: "data/greenroom.db".into() });
    assert_eq!((config.store.read_connections, config.store.tail_bytes), (4, 67_108_864));
    assert_eq!((config.feed.heartbeat, config.feed.stall), (Duration::from_secs(15), Duration::from_secs(120)));
    assert_eq!((config.limits.requests_per_second.get(), config.limits.burst.get()), (500, 2000));
    assert_eq!((config.runs.concurrency, config.runs.lease), (64, Duration::from_secs(15)));
    assert_eq!(config.runs.limits, domain::limits::Limits::default());
    assert_eq!((config.log.level.as_str(), config.log.format), ("info", LogFormat::Text));
}

#[test]
fn file_then_environment_then_flags() {
    let dir = tempfile::tempdir().unwrap();
    let file = "[server]\nlisten = \"127.0.0.1:1\"\nbody_bytes = 2048\nmax_connections = 7\n";
    fs::write(dir.path().join("greenroom.toml"), file).unwrap();
    let flags = Flags { listen: Some("127.0.0.1:3".into()), ..Flags::default() };
    let variables = [("GREENROOM_SERVER__LISTEN", "127.0.0.1:2"), ("GREENROOM_SERVER__BODY_BYTES", "4096")];
    let config = load(&flags, &variables, dir.path()).unwrap();
    assert_eq!(config.server.listen.port(), 3, "the flag wins");
    assert_eq!(config.server.body_bytes, 4096, "the environment wins over the file");
    assert_eq!(config.server.max_connections, 7, "the file wins over the default");
    assert_eq!(config.feed.heartbeat, Duration::from_secs(15), "what nobody sets keeps its default");
}

#[test]
fn the_named_file_then_the_data_directory_then_the_working_directory() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, port: u16| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("[server]\nlisten = \"127.0.0.1:{port}\"\n")).unwrap();
    };
    let port =
        |flags: &Flags, variables: &[(&str, &str)]| load(flags, variables, dir.path()).unwrap().server.listen.port();

    write("greenroom.toml", 1);
    assert_eq!(port(&Flags::default(), &[]), 1);
    write("data/greenroom.toml", 2);
    assert_eq!(port(&Flags::default(), &[]), 2);
    write("elsewhere/greenroom.toml", 3);
    assert_eq!(port(&Flags::default(), &[("GREENROOM_STORE__DATA_DIR", "elsewhere")]), 3);
    assert_eq!(port(&Flags { data_dir: Some("elsewhere".into()), ..Flags::default() }, &[]), 3);
    write("named.toml", 4);
    assert_eq!(port(&Flags { config: Some(dir.path().join("named.toml")), ..Flags::default() }, &[]), 4);

    let missing = Flags { config: Some(dir.path().join("absent.toml")), ..Flags::default() };
    assert!(load(&missing, &[], dir.path()).unwrap_err().contains("absent.toml"));
}

#[test]
fn a_list_in_the_environment_is_comma_separated() {
    let dir = tempfile::tempdir().unwrap();
    let variables = [("GREENROOM_SERVER__PUBLIC_HOSTS", "Agents.Example.org, [::1] ,b")];
    let config = load(&Flags::default(), &variables, dir.path()).unwrap();
    assert_eq!(config.server.public_hosts, ["agents.example.org", "[::1]", "b"]);
    let config = load(&Flags::default(), &[("GREENROOM_SERVER__PUBLIC_HOSTS", "")], dir.path()).unwrap();
    assert!(config.server.public_hosts.is_empty());
}

#[test]
fn the_clients_own_variables_are_not_settings() {
    let dir = tempfile::tempdir().unwrap();
    let variables = [("GREENROOM_SERVER", "http://h"), ("GREENROOM_TOKEN", "x"), ("OTHER__KEY", "y")];
    assert!(load(&Flags::default(), &variables, dir.path()).is_ok());
}

#[test]
fn an_unknown_key_is_named_with_its_place() {
    let said = refusal("[server]\nlisen = \"127.0.0.1:1\"\n");
    assert!(said.contains("server.lisen") && said.contains("greenroom.toml") && said.contains("listen"), "{said}");
    let said = refusal("[servers]\nlisten = \"127.0.0.1:1\"\n");
    assert!(
        said.contains("servers.listen") && said.contains("the sections are acp, agents, anthropic, claude_code"),
        "{said}"
    );
    assert!(refusal("listen = 1\n").contains("listen stands outside of any [section]"));

    let dir = tempfile::tempdir().unwrap();
    let said = load(&Flags::default(), &[("GREENROOM_SERVER__LISEN", "x")], dir.path()).unwrap_err();
    assert!(said.contains("GREENROOM_SERVER__LISEN") && said.contains("server.lisen"), "{said}");
}

#[test]
fn a_bad_value_says_key_given_place_and_allowed() {
    let said = refusal("[server]\nmax_connections = 0\n");
    assert!(said.contains("server.max_connections is 0 ("), "{said}");
    assert!(said.contains("greenroom.toml") && said.contains("a whole number from 1 to 1000000"), "{said}");
    for (file, key, given) in [
        ("[server]\nlisten = \"here\"\n", "server.listen", "\"here\""),
        ("[server]\nlisten = 7878\n", "server.listen", "7878"),
        ("[server]\npublic_hosts = [\"https://a\"]\n", "server.public_hosts", "[\"https://a\"]"),
        ("[server]\npublic_hosts = \"a\"\n", "server.public_hosts", "\"a\""),
        ("[server]\nbody_bytes = 1.5\n", "server.body_bytes", "1.5"),
        ("[server]\nbody_bytes = -1\n", "server.body_bytes", "-1"),
        ("[server]\nbody_bytes = true\n", "server.body_bytes", "true"),
        ("[server.body_bytes]\na = 1\n", "server.body_bytes", "a table"),
        ("[store]\ndata_dir = \"\"\n", "store.data_dir", "\"\""),
        ("[log]\nformat = \"xml\"\n", "log.format", "\"xml\""),
        ("[log]\nlevel = \"verbose\"\n", "log.level", "\"verbose\""),
        ("[log]\nlevel = \"a=b=c\"\n", "log.level", "\"a=b=c\""),
    ] {
        let said = refusal(file);
        assert!(said.contains(&format!("{key} is {given} (")), "{file} → {said}");
    }
    let dir = tempfile::tempdir().unwrap();
    let flags = Flags { listen: Some("nowhere".into()), ..Flags::default() };
    assert!(load(&flags, &[], dir.path()).unwrap_err().contains("server.listen is \"nowhere\" (--listen)"));
}

#[test]
fn localhost_and_directives_are_understood() {
    let dir = tempfile::tempdir().unwrap();
    let variables = [("GREENROOM_SERVER__LISTEN", "localhost:9"), ("GREENROOM_LOG__LEVEL", "warn,engine=debug")];
    let config = load(&Flags::default(), &variables, dir.path()).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:9");
    assert_eq!(config.log.level, "warn,engine=debug");
}

#[test]
fn invariant_17_a_password_is_in_no_debug_output_and_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let url = "postgres://me:hunter2@db.example.org/rooms";
    let flags = Flags { database: Some(url.to_owned().into()), ..Flags::default() };
    assert!(!format!("{flags:?}").contains("hunter2"));
    let config = load(&flags, &[], dir.path()).unwrap();
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter2") && shown.contains("db.example.org"), "{shown}");
    let Database::Postgres { url: kept } = &config.store.database else { panic!("PostgreSQL was asked for") };
    assert_eq!(kept.expose(), url);

    for file in [
        "[store]\ndatabase = \"mysql://me:hunter2@db/rooms\"\n",
        "[store]\ndatabase = \"postgres//me:hunter2@db/rooms\"\n",
        "[store]\ndatabase = \"postgres://me:hunter2@db/rooms\n",
        "[store]\ndatabase = postgres://me:hunter2@db/rooms\n",
    ] {
        let said = refusal(file);
        assert!(!said.contains("hunter2"), "{said}");
        assert!(!said.contains('\n'), "one line: {said}");
    }
}

#[test]
fn the_manual_names_every_key_with_its_variable_and_default() {
    let manual = include_str!("../../../../docs/configuration.md");
    let (known, _) = layers::defaults().unwrap();
    assert!(known.len() > 20);
    for (key, kind) in &known {
        let (section, name) = key.split_once('.').unwrap();
        let variable = format!("GREENROOM_{}__{}", section.to_uppercase(), name.to_uppercase());
        let default = match kind {
            ValueKind::String(text) => format!("{text:?}"),
            ValueKind::Array(_) => "[]".to_owned(),
            other => other.to_string(),
        };
        let row = format!("| `{name}` | `{default}` | `{variable}` | ");
        assert!(manual.lines().any(|line| line.starts_with(&row)), "docs/configuration.md has no row {row}");
    }
}

#[test]
fn an_acp_agent_cannot_take_the_place_of_another_provider() {
    for agents in ["[\"codex = x\"]", "[\"mine = a\", \"mine = b\"]"] {
        let said = refusal(&format!("[acp]\nagents = {agents}\n"));
        assert!(said.contains("acp.agents") && said.contains("each name once"), "{said}");
    }
}
