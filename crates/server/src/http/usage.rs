//! What runs took: by agent, model or room, over time.

use crate::{App, auth::Caller, error::Problem, extract::Params};
use axum::{Json, extract::State};
use domain::{time::Timestamp, usage::Cost};
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, collections::BTreeMap, time::Duration};
use store::{Figures, UsageBy, UsageQuery, UsageRow};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How many stretches one answer may have.
const MAX_BUCKETS: u32 = 800;
/// Beyond these, the largest, a chart shows nothing any more; they are counted in the total.
const MAX_SERIES: usize = 100;

#[derive(Clone, Copy, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Agent,
    Model,
    Room,
}

#[derive(Clone, Copy, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bucket {
    Hour,
    Day,
}

impl Bucket {
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
pub struct Range {
    /// Runs queued from here on; a week before `to` when left out.
    from: Option<Timestamp>,
    /// Runs queued before this; now when left out.
    to: Option<Timestamp>,
    /// `agent` when left out.
    #[param(inline)]
    by: Option<By>,
    /// In UTC. `day` when left out.
    #[param(inline)]
    bucket: Option<Bucket>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct UsageReport {
    from: Timestamp,
    to: Timestamp,
    bucket: Bucket,
    total: FiguresView,
    /// The largest first.
    series: Vec<Series>,
    /// How many agents, models or rooms are in the total only.
    left_out: usize,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct Series {
    /// The id of the agent or room, or the model; empty where the model is not known.
    key: String,
    name: String,
    total: FiguresView,
    /// Oldest first; stretches in which nothing ran are not there.
    points: Vec<Point>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct Point {
    /// Where the stretch begins.
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
    /// US dollars, of the runs whose price is known; `null` when that is none.
    cost: Option<Cost>,
    /// Runs that used a model whose price is not known; they are not in `cost`.
    unpriced: u64,
    /// Of all runs together.
    duration_ms: u64,
}

impl From<Figures> for FiguresView {
    fn from(figures: Figures) -> Self {
        let Figures { runs, completed, failed, stopped, usage, cost, unpriced, duration_ms } = figures;
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

/// What was used
///
/// Sums over your runs, by when they were queued. At most 800 stretches: a month of hours, two years of days.
#[utoipa::path(get, path = "/api/usage", tag = "usage", params(Range), responses((status = 200, body = UsageReport)))]
pub async fn usage(
    State(app): State<App>,
    caller: Caller,
    Params(range): Params<Range>,
) -> Result<Json<UsageReport>, Problem> {
    let bucket = range.bucket.unwrap_or(Bucket::Day);
    let to = range.to.unwrap_or_else(Timestamp::now);
    let week_before = Timestamp::from_millis(to.as_millis().saturating_sub(7 * 24 * 3600 * 1000));
    let from = range.from.unwrap_or(week_before);
    if from.as_millis() < 0 || from >= to {
        return Err(Problem::invalid("from and to: `from` is a time before `to`."));
    }
    if to.since(from) > bucket.length() * MAX_BUCKETS {
        return Err(Problem::invalid(format!(
            "from and to: at most {MAX_BUCKETS} stretches; ask for a shorter time, or for days instead of hours."
        )));
    }
    let by = match range.by.unwrap_or(By::Agent) {
        By::Agent => UsageBy::Agent,
        By::Model => UsageBy::Model,
        By::Room => UsageBy::Room,
    };
    let query = UsageQuery { from, to, by, bucket: bucket.length() };
    let rows = app.engine.store().usage(&caller.owner, &query).await?;
    Ok(Json(report(rows, from, to, bucket)))
}

fn report(rows: Vec<UsageRow>, from: Timestamp, to: Timestamp, bucket: Bucket) -> UsageReport {
    let mut total = Figures::default();
    let mut series: BTreeMap<String, (Option<String>, Figures, Vec<Point>)> = BTreeMap::new();
    for UsageRow { key, name, at, figures } in rows {
        total += figures;
        let (known, sum, points) = series.entry(key.unwrap_or_default()).or_default();
        *known = name;
        *sum += figures;
        points.push(Point { at, figures: figures.into() });
    }
    let mut series: Vec<_> = series.into_iter().collect();
    series.sort_by_key(|(_, (_, sum, _))| Reverse((sum.usage.total(), sum.runs)));
    let left_out = series.len().saturating_sub(MAX_SERIES);
    series.truncate(MAX_SERIES);
    let view = |(key, (name, sum, points)): (String, (Option<String>, Figures, Vec<Point>))| {
        let name = name.unwrap_or_else(|| "unknown".to_owned());
        Series { key, name, total: sum.into(), points }
    };
    let series = series.into_iter().map(view).collect();
    UsageReport { from, to, bucket, total: total.into(), series, left_out }
}

#[cfg(test)]
mod tests {
    use super::{Bucket, MAX_SERIES, report};
    use domain::{
        time::Timestamp,
        usage::{Cost, Usage},
    };
    use store::{Figures, UsageRow};

    #[test]
    fn the_total_counts_what_the_series_leave_out_and_unknown_prices_are_told() {
        let row = |n: u64| UsageRow {
            key: Some(format!("{n:04}")),
            name: None,
            at: Timestamp::from_millis(0),
            figures: Figures {
                runs: 1,
                usage: Usage { input_tokens: n, ..Usage::default() },
                cost: (n > 0).then(|| Cost::from_nanos(1)),
                unpriced: u64::from(n == 0),
                ..Figures::default()
            },
        };
        let most = MAX_SERIES as u64;
        let rows = (0..most + 5).map(row).collect();
        let report = report(rows, Timestamp::from_millis(0), Timestamp::from_millis(1), Bucket::Day);
        assert_eq!((report.series.len(), report.left_out), (MAX_SERIES, 5));
        assert_eq!(report.series[0].key, format!("{:04}", most + 4), "the largest first");
        assert_eq!((report.total.runs, report.total.unpriced), (most + 5, 1));
        assert_eq!(report.total.cost, Some(Cost::from_nanos(i64::try_from(most).unwrap() + 4)));
    }
}
