//! Everything that a database holds, as text: for tests that look for what must not be there.

use crate::database::TestDatabase;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use std::collections::BTreeMap;
use store::Backend;
use uuid::Uuid;

/// The rows of every table, as lower case text. Ids are written without hyphens.
#[derive(Debug)]
pub struct DatabaseDump(BTreeMap<String, Vec<String>>);

impl DatabaseDump {
    #[expect(clippy::expect_used, reason = "a test that cannot read its database has failed")]
    pub async fn read(database: &TestDatabase) -> Self {
        let tables = match database.backend() {
            Backend::Sqlite { file } => {
                let url = format!("sqlite://{}", file.display());
                let mut connection = SqliteConnection::connect(&url).await.expect("a connection");
                let tables = sqlite_tables(&mut connection).await;
                connection.close().await.expect("a close");
                tables
            }
            Backend::Postgres { url } => {
                let mut connection = PgConnection::connect(&url).await.expect("a connection");
                let tables = postgres_tables(&mut connection).await;
                connection.close().await.expect("a close");
                tables
            }
        };
        Self(tables.expect("the tables can be read"))
    }

    /// The tables, other than these, that contain a text.
    pub fn tables_with(&self, text: &str, except: &[&str]) -> Vec<&str> {
        let text = text.to_lowercase();
        let has_text = |rows: &Vec<String>| rows.iter().any(|row| row.contains(&text));
        let tables = self.0.iter().filter(|(name, rows)| !except.contains(&name.as_str()) && has_text(rows));
        tables.map(|(name, _)| name.as_str()).collect()
    }

    /// The tables, other than these, that contain an id, as an id or in a text.
    pub fn tables_with_id(&self, id: Uuid, except: &[&str]) -> Vec<&str> {
        self.tables_with(&id.simple().to_string(), except)
    }

    pub fn rows(&self, table: &str) -> usize {
        self.0.get(table).map_or(0, Vec::len)
    }
}

/// Ids in texts have hyphens, those in columns have none or some, by database.
fn plain(row: String) -> String {
    row.replace('-', "").to_lowercase()
}

async fn sqlite_tables(database: &mut SqliteConnection) -> Result<BTreeMap<String, Vec<String>>, sqlx::Error> {
    let names: Vec<String> =
        sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'table'").fetch_all(&mut *database).await?;
    let mut tables = BTreeMap::new();
    for name in names {
        let columns: Vec<String> = sqlx::query_scalar("SELECT 'quote(\"' || name || '\")' FROM pragma_table_info($1)")
            .bind(&name)
            .fetch_all(&mut *database)
            .await?;
        let sql = format!("SELECT {} FROM \"{name}\"", columns.join(" || ' ' || "));
        let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut *database).await?;
        tables.insert(name, rows.into_iter().map(plain).collect());
    }
    Ok(tables)
}

async fn postgres_tables(database: &mut PgConnection) -> Result<BTreeMap<String, Vec<String>>, sqlx::Error> {
    let names: Vec<String> = sqlx::query_scalar("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
        .fetch_all(&mut *database)
        .await?;
    let mut tables = BTreeMap::new();
    for name in names {
        let sql = format!("SELECT to_jsonb(t)::text FROM \"{name}\" t");
        let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut *database).await?;
        tables.insert(name, rows.into_iter().map(plain).collect());
    }
    Ok(tables)
}
