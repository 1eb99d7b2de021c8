//! Precedence, refusals and error messages.

use super::{AppConfig, ConfigFlags, DatabaseSetting, LogFormat, NodeRole, TlsSetting, layers};
use config::ValueKind;
use std::{ffi::OsString, fs, path::Path, time::Duration};

fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn load(flags: &ConfigFlags, variables: &[(&str, &str)], working_dir: &Path) -> Result<AppConfig, String> {
    AppConfig::load_from(flags, environment(variables), working_dir).map_err(|error| format!("{error:#}"))
}

/// The error for a configuration file with this text in the working directory.
fn refusal(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("greenroom.toml"), text).unwrap();
    load(&ConfigFlags::default(), &[], dir.path()).unwrap_err()
}

#[test]
fn defaults_are_the_documented_ones() {
    let dir = tempfile::tempdir().unwrap();
    let config = load(&ConfigFlags::default(), &[], dir.path()).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7878");
    assert!(config.server.cors_origins.is_empty() && !config.server.cors_credentials);
    assert_eq!((config.server.max_connections, config.server.body_bytes), (20_000, 1_048_576));
    assert_eq!(config.store.database, DatabaseSetting::Sqlite { path: "data/greenroom.db".into() });
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
    let flags = ConfigFlags { listen: Some("127.0.0.1:3".into()), ..ConfigFlags::default() };
    let variables = [("GREENROOM_SERVER__LISTEN", "127.0.0.1:2"), ("GREENROOM_SERVER__BODY_BYTES", "4096")];
    let config = load(&flags, &variables, dir.path()).unwrap();
    assert_eq!(config.server.listen.port(), 3, "the flag wins");
    assert_eq!(config.server.body_bytes, 4096, "the environment wins over the file");
    assert_eq!(config.server.max_connections, 7, "the file wins over the default");
    assert_eq!(config.feed.heartbeat, Duration::from_secs(15), "an unset key keeps its default");
}

#[test]
fn the_file_is_the_named_one_then_the_data_directorys_then_the_working_directorys() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, port: u16| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("[server]\nlisten = \"127.0.0.1:{port}\"\n")).unwrap();
    };
    let port = |flags: &ConfigFlags, variables: &[(&str, &str)]| {
        load(flags, variables, dir.path()).unwrap().server.listen.port()
    };

    write("greenroom.toml", 1);
    assert_eq!(port(&ConfigFlags::default(), &[]), 1);
    write("data/greenroom.toml", 2);
    assert_eq!(port(&ConfigFlags::default(), &[]), 2);
    write("elsewhere/greenroom.toml", 3);
    assert_eq!(port(&ConfigFlags::default(), &[("GREENROOM_STORE__DATA_DIR", "elsewhere")]), 3);
    assert_eq!(port(&ConfigFlags { data_dir: Some("elsewhere".into()), ..ConfigFlags::default() }, &[]), 3);
    write("named.toml", 4);
    assert_eq!(port(&ConfigFlags { config: Some(dir.path().join("named.toml")), ..ConfigFlags::default() }, &[]), 4);

    let missing = ConfigFlags { config: Some(dir.path().join("absent.toml")), ..ConfigFlags::default() };
    assert!(load(&missing, &[], dir.path()).unwrap_err().contains("absent.toml"));
}

#[test]
fn a_list_in_the_environment_is_comma_separated() {
    let dir = tempfile::tempdir().unwrap();
    let variables = [("GREENROOM_SERVER__PUBLIC_HOSTS", "Agents.Example.org, [::1] ,b")];
    let config = load(&ConfigFlags::default(), &variables, dir.path()).unwrap();
    assert_eq!(config.server.public_hosts, ["agents.example.org", "[::1]", "b"]);
    let config = load(&ConfigFlags::default(), &[("GREENROOM_SERVER__PUBLIC_HOSTS", "")], dir.path()).unwrap();
    assert!(config.server.public_hosts.is_empty());
}

#[test]
fn an_origin_is_written_as_browsers_send_it() {
    let dir = tempfile::tempdir().unwrap();
    let given = "HTTPS://App.Example.org:443, http://localhost:6274,http://[::1]:80,https://[::1]:8443";
    let config = load(&ConfigFlags::default(), &[("GREENROOM_SERVER__CORS_ORIGINS", given)], dir.path()).unwrap();
    let expected = ["https://app.example.org", "http://localhost:6274", "http://[::1]", "https://[::1]:8443"];
    assert_eq!(config.server.cors_origins, expected);
    assert!(!config.server.cors_credentials);
    for bad in [
        "*",
        "null",
        "app.example.org",
        "https://",
        "https://a/",
        "https://*.a",
        "file://x",
        "https://u@a",
        "http://a:x",
    ] {
        let variables = [("GREENROOM_SERVER__CORS_ORIGINS", bad)];
        let said = load(&ConfigFlags::default(), &variables, dir.path()).unwrap_err();
        assert!(said.contains("server.cors_origins") && said.contains("exact origins"), "{bad}: {said}");
    }
}

#[test]
fn the_clients_own_variables_are_not_settings() {
    let dir = tempfile::tempdir().unwrap();
    let variables = [("GREENROOM_SERVER", "http://h"), ("GREENROOM_TOKEN", "x"), ("OTHER__KEY", "y")];
    assert!(load(&ConfigFlags::default(), &variables, dir.path()).is_ok());
}

#[test]
fn an_unknown_key_is_reported_with_its_origin() {
    let said = refusal("[server]\nlisen = \"127.0.0.1:1\"\n");
    assert!(said.contains("server.lisen") && said.contains("greenroom.toml") && said.contains("listen"), "{said}");
    let said = refusal("[servers]\nlisten = \"127.0.0.1:1\"\n");
    assert!(
        said.contains("servers.listen") && said.contains("the sections are acp, agents, anthropic, claude_code"),
        "{said}"
    );
    assert!(refusal("listen = 1\n").contains("listen is not inside a [section]"));

    let dir = tempfile::tempdir().unwrap();
    let said = load(&ConfigFlags::default(), &[("GREENROOM_SERVER__LISEN", "x")], dir.path()).unwrap_err();
    assert!(said.contains("GREENROOM_SERVER__LISEN") && said.contains("server.lisen"), "{said}");
}

#[test]
fn a_bad_value_is_reported_with_key_value_origin_and_allowed_values() {
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
    let flags = ConfigFlags { listen: Some("nowhere".into()), ..ConfigFlags::default() };
    assert!(load(&flags, &[], dir.path()).unwrap_err().contains("server.listen is \"nowhere\" (--listen)"));
}

#[test]
fn localhost_and_log_directives_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let variables = [("GREENROOM_SERVER__LISTEN", "localhost:9"), ("GREENROOM_LOG__LEVEL", "warn,engine=debug")];
    let config = load(&ConfigFlags::default(), &variables, dir.path()).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:9");
    assert_eq!(config.log.level, "warn,engine=debug");
}

#[test]
fn invariant_17_a_password_is_in_no_debug_output_and_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let url = "postgres://me:hunter2@db.example.org/rooms";
    let flags = ConfigFlags { database: Some(url.to_owned().into()), ..ConfigFlags::default() };
    assert!(!format!("{flags:?}").contains("hunter2"));
    let config = load(&flags, &[], dir.path()).unwrap();
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter2") && shown.contains("db.example.org"), "{shown}");
    let DatabaseSetting::Postgres { url: kept } = &config.store.database else { panic!("PostgreSQL was asked for") };
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
            ValueKind::Array(entries) => {
                let entries: Vec<String> = entries.iter().map(|entry| format!("{:?}", entry.to_string())).collect();
                format!("[{}]", entries.join(", "))
            }
            other => other.to_string(),
        };
        let row = format!("| `{name}` | `{default}` | `{variable}` | ");
        assert!(manual.lines().any(|line| line.starts_with(&row)), "docs/configuration.md has no row {row}");
    }
}

#[test]
fn web_and_worker_need_a_database_that_servers_can_share() {
    let said = refusal("[server]\nrole = \"worker\"\n");
    assert!(said.contains("server.role is \"worker\"") && said.contains("postgres://"), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let with = |role: Option<&str>, database: &str| {
        let (role, database) = (role.map(str::to_owned), Some(database.to_owned().into()));
        let config = load(&ConfigFlags { role, database, ..ConfigFlags::default() }, &[], dir.path());
        config.map(|config| config.server.role)
    };
    assert_eq!(with(None, "sqlite://file.db"), Ok(NodeRole::All));
    assert_eq!(with(Some("all"), "sqlite://file.db"), Ok(NodeRole::All));
    assert_eq!(with(Some("web"), "postgres://db/rooms"), Ok(NodeRole::Web));
    assert_eq!(with(Some("worker"), "postgres://db/rooms"), Ok(NodeRole::Worker));
    let said = with(Some("both"), "postgres://db/rooms").unwrap_err();
    assert!(said.contains("(--role)") && said.contains("\"web\" or \"worker\""), "{said}");
}

#[test]
fn an_acp_agent_cannot_replace_another_provider() {
    for agents in ["[\"codex = x\"]", "[\"mine = a\", \"mine = b\"]"] {
        let said = refusal(&format!("[acp]\nagents = {agents}\n"));
        assert!(said.contains("acp.agents") && said.contains("each name once"), "{said}");
    }
}

#[test]
fn m13_tls_is_off_from_files_or_self_signed_and_never_half() {
    let dir = tempfile::tempdir().unwrap();
    let read = |file: &str| {
        fs::write(dir.path().join("greenroom.toml"), file).unwrap();
        load(&ConfigFlags::default(), &[], dir.path()).map(|config| config.tls)
    };
    let files = TlsSetting::Files { certificate: "a.pem".into(), key: "a.key".into() };
    assert_eq!(read(""), Ok(TlsSetting::Off));
    assert_eq!(read("[tls]\nself_signed = true\n"), Ok(TlsSetting::SelfSigned));
    assert_eq!(read("[tls]\ncertificate = \"a.pem\"\nkey = \"a.key\"\n"), Ok(files));
    for (half, key) in [
        ("[tls]\ncertificate = \"a.pem\"\n", "tls.key is \"\""),
        ("[tls]\nkey = \"a.key\"\n", "tls.key is \"a.key\""),
        ("[tls]\nself_signed = true\ncertificate = \"a.pem\"\nkey = \"a.key\"\n", "tls.certificate is \"a.pem\""),
    ] {
        let refused = read(half).unwrap_err();
        assert!(refused.starts_with(key), "{refused}");
    }
    let flags = ConfigFlags { tls_self_signed: true, behind_tls_proxy: true, ..ConfigFlags::default() };
    fs::write(dir.path().join("greenroom.toml"), "").unwrap();
    let config = load(&flags, &[], dir.path()).unwrap();
    assert!(config.tls == TlsSetting::SelfSigned && config.server.behind_tls_proxy);
}
