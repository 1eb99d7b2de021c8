//! Secrets at rest (H3): no file and no table has them in plain text, and the key decides who can read them.

use crate::scene::{by, me, stranger};
use domain::mcp::{McpServerConfig, McpTransport};
use sqlx::Connection as _;
use std::fs;
use store::{Backend, McpServerRecord};
use testkit::{
    database::{OpenStore, TestDatabase},
    database_dump::DatabaseDump,
};

contract! {
    one thread:
        h3_no_file_and_no_table_has_a_secret,
        h3_a_moved_value_is_not_read,
        h3_values_of_an_earlier_version_are_encrypted_at_the_start,
        h3_a_rotated_key_encrypts_everything_again,
        h3_a_lost_key_costs_the_servers_and_nothing_else;
}

const SECRET: &str = "supersecretqx";

fn config(secret: &str) -> McpServerConfig {
    let env = [("TOKEN".to_owned(), secret.to_owned())].into();
    McpServerConfig::new(McpTransport::Stdio { command: "server".into(), args: Vec::new(), env })
}

async fn execute(database: &TestDatabase, sql: &'static str) {
    match database.backend() {
        Backend::Sqlite { file } => {
            let url = format!("sqlite://{}", file.display());
            let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
            sqlx::query(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
        Backend::Postgres { url } => {
            let mut connection = sqlx::PgConnection::connect(&url).await.unwrap();
            sqlx::query(sql).execute(&mut connection).await.unwrap();
        }
    }
}

async fn assert_nowhere(database: &TestDatabase, text: &str) {
    assert!(DatabaseDump::read(database).await.tables_with(text, &[]).is_empty());
    for file in fs::read_dir(database.folder()).unwrap() {
        let path = file.unwrap().path();
        // SQLite removes its log when the last connection is closed.
        let content = fs::read(&path).unwrap_or_default();
        assert!(!content.windows(text.len()).any(|part| part == text.as_bytes()), "{}", path.display());
    }
}

fn error_of(record: McpServerRecord) -> String {
    record.config.unwrap_err().to_string()
}

async fn h3_no_file_and_no_table_has_a_secret(database: TestDatabase) {
    let store = database.open().await;
    store.create_mcp_server(&by(&me()), "files", &config(SECRET), None).await.unwrap();
    assert_nowhere(&database, SECRET).await;
    store.update_mcp_server(&by(&me()), "files", &config("othersecretqx"), None).await.unwrap();
    assert_nowhere(&database, "othersecretqx").await;
    assert_eq!(store.mcp_server(&me(), "files").await.unwrap().config, Ok(config("othersecretqx")));
    assert_eq!(store.mcp_servers(&me()).await.unwrap()[0].config, Ok(config("othersecretqx")));
    store.shut_down().await;
    assert_nowhere(&database, "othersecretqx").await;
}

async fn h3_a_moved_value_is_not_read(database: TestDatabase) {
    let store = database.open().await;
    for name in ["one", "two"] {
        store.create_mcp_server(&by(&me()), name, &config(name), None).await.unwrap();
    }
    store.create_mcp_server(&by(&stranger()), "one", &config("theirs"), None).await.unwrap();
    let theirs = "UPDATE mcp_servers SET config = (SELECT config FROM mcp_servers WHERE owner = 'stranger') \
                  WHERE owner = 'local' AND name = 'one'";
    execute(&database, theirs).await;
    let refused = error_of(store.mcp_server(&me(), "one").await.unwrap());
    assert!(refused.contains("moved"), "{refused}");
    assert_eq!(store.mcp_server(&me(), "two").await.unwrap().config, Ok(config("two")), "the others work");
    let other_row = "UPDATE mcp_servers SET config = (SELECT config FROM mcp_servers WHERE owner = 'local' AND \
                     name = 'two') WHERE owner = 'local' AND name = 'one'";
    execute(&database, other_row).await;
    assert!(error_of(store.mcp_server(&me(), "one").await.unwrap()).contains("moved"));
    store.shut_down().await;
}

async fn h3_values_of_an_earlier_version_are_encrypted_at_the_start(database: TestDatabase) {
    database.open().await.shut_down().await;
    let plain = "INSERT INTO mcp_servers (owner, name, config, created_at, updated_at) VALUES ('local', 'old', \
                 '{\"command\":\"server\",\"env\":{\"TOKEN\":\"supersecretqx\"}}', 0, 0)";
    execute(&database, plain).await;
    assert_eq!(DatabaseDump::read(&database).await.tables_with(SECRET, &[]), ["mcp_servers"]);
    let store = database.open().await;
    assert_nowhere(&database, SECRET).await;
    assert_eq!(store.mcp_server(&me(), "old").await.unwrap().config, Ok(config(SECRET)));
    store.shut_down().await;
}

async fn h3_a_rotated_key_encrypts_everything_again(database: TestDatabase) {
    let store = database.open().await;
    for n in 0..150 {
        store.create_mcp_server(&by(&me()), &format!("s{n}"), &config(SECRET), None).await.unwrap();
    }
    store.shut_down().await;
    let file = database.folder().join("secrets.key");
    let old = fs::read_to_string(&file).unwrap();
    store::add_secrets_key(&file).unwrap();
    database.open().await.shut_down().await;
    // Everything is readable without the old key.
    let both = fs::read_to_string(&file).unwrap();
    fs::write(&file, both.strip_suffix(&old).unwrap()).unwrap();
    let store = database.open().await;
    let servers = store.mcp_servers(&me()).await.unwrap();
    assert!(servers.len() == 150 && servers.iter().all(|server| server.config == Ok(config(SECRET))));
    store.shut_down().await;
}

async fn h3_a_lost_key_costs_the_servers_and_nothing_else(database: TestDatabase) {
    let store = database.open().await;
    store.create_mcp_server(&by(&me()), "old", &config(SECRET), None).await.unwrap();
    store.shut_down().await;
    let file = database.folder().join("secrets.key");
    let kept = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let store: OpenStore = database.open().await;
    let refused = error_of(store.mcp_server(&me(), "old").await.unwrap());
    assert!(refused.contains("secrets.key") && refused.contains("backup"), "{refused}");
    store.create_mcp_server(&by(&me()), "new", &config("newqx"), None).await.unwrap();
    assert_eq!(store.mcp_server(&me(), "new").await.unwrap().config, Ok(config("newqx")));
    store.shut_down().await;
    // The old key comes back, as the second line.
    let now = fs::read_to_string(&file).unwrap();
    fs::write(&file, now + &kept).unwrap();
    let store = database.open().await;
    for (name, secret) in [("old", SECRET), ("new", "newqx")] {
        assert_eq!(store.mcp_server(&me(), name).await.unwrap().config, Ok(config(secret)));
    }
    store.shut_down().await;
}
