//! Usage of runs, summed by the database: by agent, model or room, and by time bucket.

use crate::{
    Store,
    database::{Database, reading},
    error::{Result, unsigned},
    row::row,
};
use domain::{
    owner::Owner,
    time::Timestamp,
    usage::{Cost, Usage},
};
use std::{ops::AddAssign, time::Duration};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageGrouping {
    Agent,
    Model,
    Room,
}

/// Selects runs by their queue time: `from` is inclusive, `to` is exclusive.
#[derive(Debug, Clone, Copy)]
pub struct UsageQuery {
    pub from: Timestamp,
    pub to: Timestamp,
    pub by: UsageGrouping,
    pub bucket: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageTotals {
    pub runs: u64,
    pub completed: u64,
    pub failed: u64,
    /// Cancelled or interrupted.
    pub stopped: u64,
    pub usage: Usage,
    /// The sum over runs with a known price; `None` if there are none.
    pub cost: Option<Cost>,
    /// The number of runs that used tokens of a model with an unknown price.
    pub unpriced: u64,
    pub duration_ms: u64,
}

impl AddAssign for UsageTotals {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.completed += other.completed;
        self.failed += other.failed;
        self.stopped += other.stopped;
        self.usage += other.usage;
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(more)) => Some(one + more),
            (known, None) | (None, known) => known,
        };
        self.unpriced += other.unpriced;
        self.duration_ms = self.duration_ms.saturating_add(other.duration_ms);
    }
}

/// One agent, model or room in one time bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// An id or a model name; `None` if the model is not known.
    pub key: Option<String>,
    pub name: Option<String>,
    pub at: Timestamp,
    pub totals: UsageTotals,
}

row! {
    struct UsageSumRow {
        item: Option<String>,
        name: Option<String>,
        bucket: i64,
        runs: i64,
        completed: i64,
        failed: i64,
        stopped: i64,
        input: i64,
        output: i64,
        cache_read: i64,
        cache_write: i64,
        cost: Option<i64>,
        unpriced: i64,
        duration: i64,
    }
}

/// Caps the tokens of a run: numbers reported by a provider must not overflow the sum.
macro_rules! tokens {
    (sqlite, $field:literal) => {
        concat!("MIN(COALESCE(json_extract(usage, '$.", $field, "'), 0), 1000000000000)")
    };
    (postgres, $field:literal) => {
        concat!("LEAST(COALESCE((usage::json ->> '", $field, "')::numeric, 0), 1000000000000)")
    };
}

/// $1 owner, $2 from, $3 to, $4 the length of a bucket in milliseconds. The range uses the index `runs_by_owner`.
macro_rules! select_usage {
    ($dialect:ident, $key:literal, $item:literal, $name:literal, $join:literal) => {
        concat!(
            "SELECT ",
            $item,
            " AS item, ",
            $name,
            " AS name, g.bucket, g.runs, g.completed, g.failed, g.stopped, ",
            "g.input, g.output, g.cache_read, g.cache_write, g.cost, g.unpriced, g.duration FROM (SELECT ",
            $key,
            " AS part, created_at / $4 AS bucket, COUNT(*) AS runs, ",
            "CAST(SUM(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) AS BIGINT) AS completed, ",
            "CAST(SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS BIGINT) AS failed, ",
            "CAST(SUM(CASE WHEN status IN ('cancelled', 'interrupted') THEN 1 ELSE 0 END) AS BIGINT) AS stopped, ",
            "CAST(SUM(",
            tokens!($dialect, "input_tokens"),
            ") AS BIGINT) AS input, ",
            "CAST(SUM(",
            tokens!($dialect, "output_tokens"),
            ") AS BIGINT) AS output, ",
            "CAST(SUM(",
            tokens!($dialect, "cache_read_tokens"),
            ") AS BIGINT) AS cache_read, ",
            "CAST(SUM(",
            tokens!($dialect, "cache_write_tokens"),
            ") AS BIGINT) AS cache_write, ",
            "CAST(SUM(cost) AS BIGINT) AS cost, ",
            "CAST(SUM(CASE WHEN cost IS NULL AND ",
            tokens!($dialect, "input_tokens"),
            " + ",
            tokens!($dialect, "output_tokens"),
            " + ",
            tokens!($dialect, "cache_read_tokens"),
            " + ",
            tokens!($dialect, "cache_write_tokens"),
            " > 0 THEN 1 ELSE 0 END) AS BIGINT) AS unpriced, ",
            "CAST(COALESCE(SUM(duration_ms), 0) AS BIGINT) AS duration ",
            "FROM runs WHERE owner = $1 AND created_at >= $2 AND created_at < $3 GROUP BY 1, 2) g ",
            $join,
            " ORDER BY g.bucket"
        )
    };
}

fn statement(database: &Database, by: UsageGrouping) -> &'static str {
    match (database, by) {
        (Database::Sqlite { .. }, UsageGrouping::Agent) => {
            select_usage!(sqlite, "agent_id", "lower(hex(g.part))", "a.name", "LEFT JOIN agents a ON a.id = g.part")
        }
        (Database::Sqlite { .. }, UsageGrouping::Room) => {
            select_usage!(sqlite, "room_id", "lower(hex(g.part))", "r.name", "LEFT JOIN rooms r ON r.id = g.part")
        }
        (Database::Sqlite { .. }, UsageGrouping::Model) => select_usage!(sqlite, "model", "g.part", "g.part", ""),
        (Database::Postgres(_), UsageGrouping::Agent) => {
            select_usage!(postgres, "agent_id", "g.part::text", "a.name", "LEFT JOIN agents a ON a.id = g.part")
        }
        (Database::Postgres(_), UsageGrouping::Room) => {
            select_usage!(postgres, "room_id", "g.part::text", "r.name", "LEFT JOIN rooms r ON r.id = g.part")
        }
        (Database::Postgres(_), UsageGrouping::Model) => select_usage!(postgres, "model", "g.part", "g.part", ""),
    }
}

impl Store {
    /// Returns usage in one query, oldest first. Buckets without runs are left out.
    pub async fn usage(&self, owner: &Owner, query: &UsageQuery) -> Result<Vec<UsageRow>> {
        let sql = statement(self.database(), query.by);
        let bucket = i64::try_from(query.bucket.as_millis()).unwrap_or(i64::MAX).max(1);
        let rows: Vec<UsageSumRow> = reading!(self.database(), |pool| {
            sqlx::query_as(sql)
                .bind(owner.as_str())
                .bind(query.from.as_millis())
                .bind(query.to.as_millis())
                .bind(bucket)
                .fetch_all(pool)
                .await
        })?;
        rows.into_iter().map(|row| row.read(bucket)).collect()
    }
}

impl UsageSumRow {
    fn read(self, bucket: i64) -> Result<UsageRow> {
        let figures = UsageTotals {
            runs: unsigned(self.runs)?,
            completed: unsigned(self.completed)?,
            failed: unsigned(self.failed)?,
            stopped: unsigned(self.stopped)?,
            usage: Usage {
                input_tokens: unsigned(self.input)?,
                output_tokens: unsigned(self.output)?,
                cache_read_tokens: unsigned(self.cache_read)?,
                cache_write_tokens: unsigned(self.cache_write)?,
            },
            cost: self.cost.map(Cost::from_nanos),
            unpriced: unsigned(self.unpriced)?,
            duration_ms: unsigned(self.duration)?,
        };
        let at = Timestamp::from_millis(self.bucket.saturating_mul(bucket));
        // The databases format ids differently.
        let key = self.item.map(|item| item.parse::<uuid::Uuid>().map_or(item, |id| id.to_string()));
        Ok(UsageRow { key, name: self.name, at, totals: figures })
    }
}
