//! `greenroom upgrade-check` on the database of a server: before its first start, while it runs, and after it was killed.

use super::{
    binary::Binary,
    requests::{get, within},
};
use std::path::Path;
use testkit::database::TestDatabase;

on_both_databases! {
    database: an_upgrade_check_changes_nothing;
}

async fn an_upgrade_check_changes_nothing(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let new = binary.run_command(&["upgrade-check"]).await;
    assert_eq!(new.code, Some(0), "{}", new.stderr);
    assert!(new.stdout.starts_with("no database yet: "), "{}", new.stdout);
    if database.is_sqlite() {
        assert!(!database.file().exists(), "a check must not create the database");
    }

    let (server, api) = binary.serve().await;
    assert_up_to_date(&binary).await;
    get(&api, "/readyz").await.expect_status(200);
    within("the server to be killed", server.kill()).await.unwrap();
    assert_up_to_date(&binary).await;

    let (server, api) = binary.serve().await;
    get(&api, "/readyz").await.expect_status(200);
    within("the server to stop", server.terminate(crate::DEADLINE)).await.unwrap();
    assert_up_to_date(&binary).await;
    if database.is_sqlite() {
        let log = database.file().with_extension("db-wal");
        assert!(!Path::new(&log).exists(), "the check of a stopped server must not leave a log");
    } else {
        database.execute_sql("DELETE FROM _sqlx_migrations WHERE version > 4");
        let behind = binary.run_command(&["upgrade-check"]).await;
        assert_eq!(behind.code, Some(1), "{}", behind.stderr);
        assert!(behind.stdout.starts_with("schema 4 of "), "{}", behind.stdout);
        assert!(behind.stdout.contains(": would apply 0005_"), "{}", behind.stdout);
        database.execute_sql("UPDATE _sqlx_migrations SET version = 9999 WHERE version = 4");
        let newer = binary.run_command(&["upgrade-check"]).await;
        assert_eq!(newer.code, Some(2), "{}", newer.stderr);
        assert!(newer.stdout.starts_with("written by a newer version (schema 9999, "), "{}", newer.stdout);
    }
}

async fn assert_up_to_date(binary: &Binary) {
    let current = binary.run_command(&["upgrade-check"]).await;
    assert_eq!(current.code, Some(0), "{}{}", current.stdout, current.stderr);
    assert!(current.stdout.starts_with("up to date: schema "), "{}", current.stdout);
}
