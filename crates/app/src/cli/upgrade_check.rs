//! `greenroom upgrade-check`: says what a start of this binary would do to the schema of the database. Changes nothing, and
//! works while a server is running.

use super::{DataArgs, Exit};
use crate::{config::AppConfig, serve::store_config};
use anyhow::Context as _;
use std::{
    io::{self, Write as _},
    time::Duration,
};
use store::SchemaState;

const DEADLINE: Duration = Duration::from_secs(30);

pub async fn run(data: &DataArgs) -> anyhow::Result<Exit> {
    let config = AppConfig::load(&data.flags())?;
    let store = store_config(&config)?;
    let checked = tokio::time::timeout(DEADLINE, store::schema_state(&store.backend)).await;
    let state = checked.with_context(|| format!("{} did not answer in time", config.store.database))??;
    writeln!(io::stdout().lock(), "{}", describe(&state))?;
    Ok(exit(&state))
}

fn describe(state: &SchemaState) -> String {
    const REFUSAL: &str = "do not start this binary on it";
    match state {
        SchemaState::New { known } => format!("no database yet: the first start creates it with schema {known}"),
        SchemaState::UpToDate { schema } => format!("up to date: schema {schema}"),
        SchemaState::Behind { schema, known, pending } => {
            format!("schema {schema} of {known}: would apply {}", pending.join(", "))
        }
        SchemaState::Newer { schema, known } => {
            format!("written by a newer version (schema {schema}, this binary knows {known}): {REFUSAL}")
        }
        SchemaState::Altered { migration } => {
            format!("migration {migration} differs from the one that was applied: {REFUSAL}")
        }
        SchemaState::Unfinished { migration } => {
            format!("migration {migration} was interrupted: {REFUSAL}; restore a backup first")
        }
    }
}

/// Whether a start changes nothing, migrates, or fails.
fn exit(state: &SchemaState) -> Exit {
    match state {
        SchemaState::New { .. } | SchemaState::UpToDate { .. } => Exit::Success,
        SchemaState::Behind { .. } => Exit::Failed,
        SchemaState::Newer { .. } | SchemaState::Altered { .. } | SchemaState::Unfinished { .. } => Exit::Usage,
    }
}

#[cfg(test)]
mod tests {
    use super::{describe, exit};
    use store::SchemaState;

    #[test]
    fn each_state_has_its_line_and_exit_code() {
        let pending = vec!["0018_room_topics".to_owned(), "0019_tags".to_owned()];
        let name = || "0003_skills".to_owned();
        let table = [
            (SchemaState::New { known: 19 }, 0, "no database yet: the first start creates it with schema 19"),
            (SchemaState::UpToDate { schema: 19 }, 0, "up to date: schema 19"),
            (
                SchemaState::Behind { schema: 17, known: 19, pending },
                1,
                "schema 17 of 19: would apply 0018_room_topics, 0019_tags",
            ),
            (
                SchemaState::Newer { schema: 21, known: 19 },
                2,
                "written by a newer version (schema 21, this binary knows 19): do not start this binary on it",
            ),
            (
                SchemaState::Altered { migration: name() },
                2,
                "migration 0003_skills differs from the one that was applied: do not start this binary on it",
            ),
            (
                SchemaState::Unfinished { migration: name() },
                2,
                "migration 0003_skills was interrupted: do not start this binary on it; restore a backup first",
            ),
        ];
        for (state, code, line) in table {
            assert_eq!((exit(&state).code(), describe(&state).as_str()), (code, line));
        }
    }
}
