//! Configured MCP servers, and trusted project files.

use crate::scene::{attempt, by, me, stranger};
use domain::{
    audit::AuditedObject,
    ids::RoomId,
    mcp::{McpServerConfig, McpTransport},
};
use store::{MAX_MCP_SERVERS, McpServerImport, Store, StoreError};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_server_reads_back_as_created,
        server_names_are_unique_per_owner,
        an_import_is_atomic,
        l8_the_limit_of_servers_holds_for_concurrent_writers,
        invariant_07_idempotent_a_server_is_created_once_per_key,
        invariant_15_owner_foreign_servers_and_files_are_unknown,
        a_file_is_trusted_by_its_content;
}

fn stdio(command: &str) -> McpServerConfig {
    let transport = McpTransport::Stdio {
        command: command.into(),
        args: vec!["-y".into(), "ö 🎭".into()],
        env: [("TOKEN".to_owned(), "s3cret".to_owned())].into(),
    };
    McpServerConfig { disabled: true, ..McpServerConfig::new(transport) }
}

fn http(url: &str) -> McpServerConfig {
    McpServerConfig::new(McpTransport::Http { url: url.into(), headers: [("a".to_owned(), "b".to_owned())].into() })
}

async fn names(store: &Store) -> Vec<String> {
    store.mcp_servers(&me()).await.unwrap().into_iter().map(|server| server.name).collect()
}

async fn a_server_reads_back_as_created(database: TestDatabase) {
    let store = database.open().await;
    for (name, config) in [("b", stdio("npx")), ("B", http("http://h")), ("a-b", http("https://h/x"))] {
        store.create_mcp_server(&by(&me()), name, &config, None).await.unwrap();
        assert_eq!(store.mcp_server(&me(), name).await.unwrap().config, Ok(config));
    }
    assert_eq!(names(&store).await, ["B", "a-b", "b"], "sorted by bytes, on every database");
    let made = store.mcp_server(&me(), "b").await.unwrap();
    store.update_mcp_server(&by(&me()), "b", &http("http://other"), None).await.unwrap();
    let changed = store.mcp_server(&me(), "b").await.unwrap();
    assert_eq!((changed.config, changed.created_at), (Ok(http("http://other")), made.created_at));
    assert!(changed.updated_at >= made.updated_at);
    store.delete_mcp_server(&by(&me()), "b", None).await.unwrap();
    assert!(matches!(store.mcp_server(&me(), "b").await, Err(StoreError::NotFound)));
    assert!(matches!(store.delete_mcp_server(&by(&me()), "b", None).await, Err(StoreError::NotFound)));
    assert!(matches!(store.update_mcp_server(&by(&me()), "b", &stdio("x"), None).await, Err(StoreError::NotFound)));
    assert_eq!(names(&store).await, ["B", "a-b"]);
}

async fn server_names_are_unique_per_owner(database: TestDatabase) {
    let store = database.open().await;
    store.create_mcp_server(&by(&me()), "one", &stdio("x"), None).await.unwrap();
    let taken = store.create_mcp_server(&by(&me()), "one", &stdio("y"), None).await;
    assert!(matches!(taken, Err(StoreError::McpServerExists(name)) if name == "one"));
    assert_eq!(store.mcp_server(&me(), "one").await.unwrap().config, Ok(stdio("x")));
    store.create_mcp_server(&by(&stranger()), "one", &stdio("y"), None).await.unwrap();
}

async fn an_import_is_atomic(database: TestDatabase) {
    let store = database.open().await;
    store.create_mcp_server(&by(&me()), "there", &stdio("x"), None).await.unwrap();
    let one = |name: &str, replaces| McpServerImport { name: name.into(), config: stdio("new"), replaces };
    let in_the_way = [one("fresh", false), one("there", false)];
    let refused = store.import_mcp_servers(&by(&me()), &in_the_way, "", None).await;
    assert!(matches!(refused, Err(StoreError::McpServerExists(_))));
    let gone = store.import_mcp_servers(&by(&me()), &[one("fresh", false), one("gone", true)], "", None).await;
    assert!(matches!(gone, Err(StoreError::NotFound)));
    assert_eq!(names(&store).await, ["there"]);
    store.import_mcp_servers(&by(&me()), &[one("fresh", false), one("there", true)], "", None).await.unwrap();
    assert_eq!(names(&store).await, ["fresh", "there"]);
    assert_eq!(store.mcp_server(&me(), "there").await.unwrap().config, Ok(stdio("new")));
}

async fn l8_the_limit_of_servers_holds_for_concurrent_writers(database: TestDatabase) {
    let store = database.open().await;
    let server =
        |number: i64| McpServerImport { name: format!("s{number}"), config: http("http://h"), replaces: false };
    let almost: Vec<McpServerImport> = (1..MAX_MCP_SERVERS).map(server).collect();
    store.import_mcp_servers(&by(&me()), &almost, "", None).await.unwrap();
    let (me, config) = (by(&me()), http("http://h"));
    let names: Vec<String> = (0..10).map(|number| format!("new{number}")).collect();
    let made = names.iter().map(|name| store.create_mcp_server(&me, name, &config, None));
    let made = futures_util::future::join_all(made).await;
    let created = made.iter().filter(|made| made.is_ok()).count();
    assert_eq!(created, 1, "one place was left: {made:?}");
    assert!(made.iter().all(|made| matches!(made, Ok(()) | Err(StoreError::McpServerLimit))), "{made:?}");
    store.update_mcp_server(&me, "s1", &config, None).await.unwrap();
    store.delete_mcp_server(&me, "s1", None).await.unwrap();
    store.create_mcp_server(&me, "another", &config, None).await.unwrap();
}

async fn invariant_07_idempotent_a_server_is_created_once_per_key(database: TestDatabase) {
    let store = database.open().await;
    let key = attempt("key", 1);
    store.create_mcp_server(&by(&me()), "one", &stdio("x"), Some(&key)).await.unwrap();
    let again = store.create_mcp_server(&by(&me()), "two", &stdio("x"), Some(&key)).await;
    assert!(matches!(again, Err(StoreError::KeyUsed)));
    assert_eq!(names(&store).await, ["one"]);
    assert_eq!(store.earlier_result(&me(), &key).await.unwrap().unwrap().result, "one");
    assert!(matches!(store.delete_mcp_server(&by(&me()), "one", Some(&key)).await, Err(StoreError::KeyUsed)));
    assert!(matches!(
        store.update_mcp_server(&by(&me()), "one", &stdio("y"), Some(&key)).await,
        Err(StoreError::KeyUsed)
    ));
    // A rejected write does not use its key.
    let other = attempt("other", 1);
    assert!(store.create_mcp_server(&by(&me()), "one", &stdio("x"), Some(&other)).await.is_err());
    assert_eq!(store.earlier_result(&me(), &other).await.unwrap(), None);
}

async fn invariant_15_owner_foreign_servers_and_files_are_unknown(database: TestDatabase) {
    let store = database.open().await;
    store.create_mcp_server(&by(&me()), "mine", &stdio("x"), None).await.unwrap();
    store.trust_content(&by(&me()), RoomId::generate(), b"/folder", &[1; 32], AuditedObject::McpFile).await.unwrap();
    let them = stranger();
    assert!(store.mcp_servers(&them).await.unwrap().is_empty());
    assert!(matches!(store.mcp_server(&them, "mine").await, Err(StoreError::NotFound)));
    assert!(matches!(store.update_mcp_server(&by(&them), "mine", &stdio("y"), None).await, Err(StoreError::NotFound)));
    assert!(matches!(store.delete_mcp_server(&by(&them), "mine", None).await, Err(StoreError::NotFound)));
    assert_eq!(store.trusted_content(&them, b"/folder").await.unwrap(), None);
    store.distrust_content(&by(&them), RoomId::generate(), b"/folder", AuditedObject::McpFile).await.unwrap();
    assert_eq!(store.mcp_server(&me(), "mine").await.unwrap().config, Ok(stdio("x")), "nothing was changed");
    assert!(store.trusted_content(&me(), b"/folder").await.unwrap().is_some());
}

async fn a_file_is_trusted_by_its_content(database: TestDatabase) {
    let store = database.open().await;
    let digest = async || store.trusted_content(&me(), b"/a\xff").await.unwrap().map(|file| file.digest);
    assert_eq!(digest().await, None);
    for content in [[1; 32], [2; 32], [2; 32]] {
        let file = store
            .trust_content(&by(&me()), RoomId::generate(), b"/a\xff", &content, AuditedObject::McpFile)
            .await
            .unwrap();
        assert_eq!((file.digest, digest().await), (content, Some(content)));
    }
    assert_eq!(store.trusted_content(&me(), b"/a").await.unwrap(), None);
    for _ in 0..2 {
        store.distrust_content(&by(&me()), RoomId::generate(), b"/a\xff", AuditedObject::McpFile).await.unwrap();
        assert_eq!(digest().await, None);
    }
}
