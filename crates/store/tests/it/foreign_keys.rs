//! The tables of members, plans and signals refer to rows that exist, also if another program writes them.

use sqlx::Connection as _;
use store::Backend;
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_row_without_the_row_that_it_refers_to_is_refused;
}

/// Runs a statement as another program would, on a connection of its own.
async fn execute(database: &TestDatabase, sql: &'static str) -> Result<(), sqlx::Error> {
    match database.backend() {
        Backend::Sqlite { file } => {
            let url = format!("sqlite://{}", file.display());
            sqlx::query(sql).execute(&mut sqlx::SqliteConnection::connect(&url).await?).await.map(drop)
        }
        Backend::Postgres { url } => {
            sqlx::query(sql).execute(&mut sqlx::PgConnection::connect(&url).await?).await.map(drop)
        }
    }
}

async fn a_row_without_the_row_that_it_refers_to_is_refused(database: TestDatabase) {
    let _store = database.open().await;
    // The id of a user is no room and no run.
    let foreign = [
        "INSERT INTO members (workspace, user_id, role, created_at) SELECT 'nowhere', id, 'viewer', 0 FROM users",
        "INSERT INTO tapes (room_id, version, state) SELECT id, 1, '' FROM users",
        "INSERT INTO signals (id, run_id, room_id, kind, body, created_at) SELECT id, id, id, '', '', 0 FROM users",
    ];
    for sql in foreign {
        let refused = execute(&database, sql).await.unwrap_err();
        let error = refused.as_database_error().unwrap();
        assert!(error.is_foreign_key_violation(), "{sql}: {error}");
    }
    execute(&database, "INSERT INTO workspaces (name, created_at) VALUES ('nowhere', 0)").await.unwrap();
    execute(&database, foreign[0]).await.unwrap();
}
