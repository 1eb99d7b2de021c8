//! Usage of runs over time: by agent, model or room.

use crate::{App, auth::Caller, error::Problem, extract::QueryParams};
use axum::{Json, extract::State};
use domain::{time::Timestamp, usage::Cost};
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, collections::BTreeMap, time::Duration};
use store::{UsageGrouping, UsageQuery, UsageRow, UsageTotals};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of buckets in one response.
const MAX_BUCKETS: u32 = 800;
/// Only the largest series are returned, because a chart cannot show more. The total includes all.
const MAX_SERIES: usize = 100;

#[derive(Clone, Copy, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageGroupParam {
    Agent,
    Model,
    Room,
}

#[derive(Clone, Copy, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Bucket)]
pub enum UsageBucket {
    Hour,
    Day,
}

impl UsageBucket {
    fn length(self) -> Duration {
        match self {
            Self::Hour => HOUR,
            Self::Day => DAY,
        }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageParams {
    /// Runs queued at or after this time; by default a week before `to`.
    from: Option<Timestamp>,
    /// Runs queued before this time; by default now.
    to: Option<Timestamp>,
    /// `agent` by default.
    #[param(inline)]
    by: Option<UsageGroupParam>,
    /// In UTC. `day` by default.
    #[param(inline)]
    bucket: Option<UsageBucket>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct UsageReport {
    from: Timestamp,
    to: Timestamp,
    bucket: UsageBucket,
    total: FiguresView,
    /// Largest first.
    series: Vec<UsageSeries>,
    /// The number of agents, models or rooms that are only in the total.
    left_out: usize,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Series)]
pub struct UsageSeries {
    /// The id of the agent or room, or the model; empty if the model is unknown.
    key: String,
    name: String,
    total: FiguresView,
    /// Oldest first; buckets without runs are left out.
    points: Vec<UsagePoint>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Point)]
pub struct UsagePoint {
    /// The start of the bucket.
    at: Timestamp,
    #[serde(flatten)]
    figures: FiguresView,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Figures)]
pub struct FiguresView {
    runs: u64,
    completed: u64,
    failed: u64,
    /// Cancelled or interrupted.
    stopped: u64,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    /// US dollars, for runs with a known price; `null` if there are none.
    cost: Option<Cost>,
    /// Runs that used a model with an unknown price; they are not in `cost`.
    unpriced: u64,
    /// The sum over all runs.
    duration_ms: u64,
}

impl From<UsageTotals> for FiguresView {
    fn from(figures: UsageTotals) -> Self {
        let UsageTotals { runs, completed, failed, stopped, usage, cost, unpriced, duration_ms } = figures;
        Self {
            runs,
            completed,
            failed,
            stopped,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            cost,
            unpriced,
            duration_ms,
        }
    }
}

/// Get usage
///
/// Sums over your runs, by the time they were queued. At most 800 buckets: a month of hours, two years of days.
#[utoipa::path(get, path = "/api/usage", tag = "usage", params(UsageParams), responses((status = 200, body = UsageReport)))]
pub async fn usage(
    State(app): State<App>,
    caller: Caller,
    QueryParams(range): QueryParams<UsageParams>,
) -> Result<Json<UsageReport>, Problem> {
    let bucket = range.bucket.unwrap_or(UsageBucket::Day);
    let to = range.to.unwrap_or_else(Timestamp::now);
    let week_before = Timestamp::from_millis(to.as_millis().saturating_sub(7 * 24 * 3600 * 1000));
    let from = range.from.unwrap_or(week_before);
    if from.as_millis() < 0 || from >= to {
        return Err(Problem::unprocessable("from and to: `from` must be before `to`."));
    }
    if to.since(from) > bucket.length() * MAX_BUCKETS {
        return Err(Problem::unprocessable(format!(
            "from and to: at most {MAX_BUCKETS} buckets; use a shorter time range, or days instead of hours."
        )));
    }
    let by = match range.by.unwrap_or(UsageGroupParam::Agent) {
        UsageGroupParam::Agent => UsageGrouping::Agent,
        UsageGroupParam::Model => UsageGrouping::Model,
        UsageGroupParam::Room => UsageGrouping::Room,
    };
    let query = UsageQuery { from, to, by, bucket: bucket.length() };
    let rows = app.engine.queries().usage(&caller.workspace, &query).await?;
    Ok(Json(report(rows, from, to, bucket)))
}

fn report(rows: Vec<UsageRow>, from: Timestamp, to: Timestamp, bucket: UsageBucket) -> UsageReport {
    let mut total = UsageTotals::default();
    let mut series: BTreeMap<String, (Option<String>, UsageTotals, Vec<UsagePoint>)> = BTreeMap::new();
    for UsageRow { key, name, at, totals: figures } in rows {
        total += figures;
        let (known, sum, points) = series.entry(key.unwrap_or_default()).or_default();
        *known = name;
        *sum += figures;
        points.push(UsagePoint { at, figures: figures.into() });
    }
    let mut series: Vec<_> = series.into_iter().collect();
    series.sort_by_key(|(_, (_, sum, _))| Reverse((sum.usage.total(), sum.runs)));
    let left_out = series.len().saturating_sub(MAX_SERIES);
    series.truncate(MAX_SERIES);
    let view = |(key, (name, sum, points)): (String, (Option<String>, UsageTotals, Vec<UsagePoint>))| {
        let name = name.unwrap_or_else(|| "unknown".to_owned());
        UsageSeries { key, name, total: sum.into(), points }
    };
    let series = series.into_iter().map(view).collect();
    UsageReport { from, to, bucket, total: total.into(), series, left_out }
}

#[cfg(test)]
mod tests {
    use super::{MAX_SERIES, UsageBucket, report};
    use domain::{
        time::Timestamp,
        usage::{Cost, Usage},
    };
    use store::{UsageRow, UsageTotals};

    #[test]
    fn the_total_includes_omitted_series_and_unpriced_runs_are_counted() {
        let row = |n: u64| UsageRow {
            key: Some(format!("{n:04}")),
            name: None,
            at: Timestamp::from_millis(0),
            totals: UsageTotals {
                runs: 1,
                usage: Usage { input_tokens: n, ..Usage::default() },
                cost: (n > 0).then(|| Cost::from_nanos(1)),
                unpriced: u64::from(n == 0),
                ..UsageTotals::default()
            },
        };
        let most = MAX_SERIES as u64;
        let rows = (0..most + 5).map(row).collect();
        let report = report(rows, Timestamp::from_millis(0), Timestamp::from_millis(1), UsageBucket::Day);
        assert_eq!((report.series.len(), report.left_out), (MAX_SERIES, 5));
        assert_eq!(report.series[0].key, format!("{:04}", most + 4), "the largest first");
        assert_eq!((report.total.runs, report.total.unpriced), (most + 5, 1));
        assert_eq!(report.total.cost, Some(Cost::from_nanos(i64::try_from(most).unwrap() + 4)));
    }
}
