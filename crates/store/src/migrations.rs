//! The migrations, embedded in the program. Replaces `sqlx::migrate!`: sqlx's procedural macros would make cargo build
//! sqlx, SQLite and TLS a second time.

use sqlx::{
    SqlSafeStr as _,
    migrate::{Migration, MigrationType, Migrator},
};

/// The names and texts of a dialect's files, in order. Both dialects have the same names; add a new one here.
macro_rules! files {
    ($dialect:literal) => {
        files!($dialect,
            "0001_spine.sql",
            "0002_sessions_and_tools.sql",
            "0003_skills.sql",
            "0004_mcp_servers.sql",
            "0005_uploads_and_visits.sql",
            "0006_memory.sql",
            "0007_signals_and_cells.sql",
            "0008_workspaces.sql",
            "0009_credentials.sql",
            "0010_settled_signals.sql",
            "0011_foreign_keys.sql",
            "0012_budgets.sql",
            "0013_skill_reviews.sql",
            "0014_remembered_rules.sql",
            "0015_security_log.sql",
            "0016_erasures.sql",
            "0017_stored_bytes.sql",
            "0018_projects.sql",
            "0019_paused_rooms.sql",
            "0020_run_contexts.sql",
            "0021_mcp_variables.sql",
            "0022_run_trees.sql",
            "0023_provider_settings.sql",
            "0024_search.sql",
            "0025_room_placement.sql",
            "0026_room_forks.sql",
        )
    };
    ($dialect:literal, $($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../migrations/", $dialect, "/", $name)))),*]
    };
}

pub(crate) fn sqlite() -> Migrator {
    migrator(files!("sqlite"))
}

pub(crate) fn postgres() -> Migrator {
    migrator(files!("postgres"))
}

/// Numbers and describes the files as sqlx does. A database rejects a program whose file has another checksum than the
/// one it stored.
fn migrator(files: &[(&'static str, &'static str)]) -> Migrator {
    let migrations = (1..).zip(files).map(|(version, &(name, sql))| {
        let words = name.split_once('_').map_or(name, |(_, words)| words);
        let description = words.trim_end_matches(".sql").replace('_', " ");
        let outside_transaction = sql.starts_with("-- no-transaction");
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), outside_transaction)
    });
    Migrator::with_migrations(migrations.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Reads the folders with sqlx's own code, which `sqlx::migrate!` called too.
    #[tokio::test]
    async fn the_list_holds_every_file_as_sqlx_reads_it() {
        for (dialect, embedded) in [("sqlite", sqlite()), ("postgres", postgres())] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(dialect);
            let files = std::fs::read_dir(&folder).unwrap().count();
            assert_eq!(embedded.iter().count(), files, "{dialect}: the list must name every file of the folder");
            let read = Migrator::new(folder).await.unwrap();
            for (embedded, read) in embedded.iter().zip(read.iter()) {
                assert_eq!(embedded.version, read.version);
                assert_eq!(embedded.description, read.description);
                assert_eq!(embedded.migration_type, read.migration_type);
                assert_eq!(embedded.sql.as_str(), read.sql.as_str());
                assert_eq!(embedded.checksum, read.checksum);
                assert_eq!(embedded.no_tx, read.no_tx);
            }
        }
    }

    /// The checksums that `sha384sum` prints, and that databases of earlier builds have stored.
    #[test]
    fn the_checksums_are_those_of_earlier_builds() {
        let first = |migrator: Migrator| -> String {
            let checksum = migrator.iter().next().unwrap().checksum.clone();
            checksum.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(
            first(sqlite()),
            "01af142841b27e9af7c6c0d9cc1d2080c12f53c434998bb141954a2bd3f299d722797b3532f32c31438aca11ad228581"
        );
        assert_eq!(
            first(postgres()),
            "3603b1a4b10e65ab92290e2f061951b7887e5fe466f9d333e0dbc96d32cacba45445e66e227e94f779d9038f5c989d5c"
        );
    }
}
