//! Prometheus metrics at `/metrics`. The `metrics` crate has one recorder per process: every crate writes to it by
//! name, and several servers in one process share it.

use crate::{App, auth::Caller};
use axum::{
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::{sync::OnceLock, time::Duration};

pub const REQUESTS: &str = "greenroom_http_requests_total";
pub const REQUEST_SECONDS: &str = "greenroom_http_request_seconds";
pub const RATE_LIMITED: &str = "greenroom_http_rate_limited_total";
pub const CONNECTIONS: &str = "greenroom_http_connections";
pub const CONNECTIONS_REFUSED: &str = "greenroom_http_connections_refused_total";
pub const MCP_SESSIONS: &str = "greenroom_mcp_sessions";

/// Histogram buckets in seconds, from a cached read to a slow commit.
const BUCKETS: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Installs the recorder; only the first call in a process does anything.
pub fn install() {
    handle();
}

fn handle() -> &'static PrometheusHandle {
    RECORDER.get_or_init(|| {
        // Fails only for an empty list of buckets.
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS)
            .unwrap_or_default();
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        match metrics::set_global_recorder(recorder) {
            Ok(()) => describe(),
            Err(_) => tracing::warn!("another metrics recorder is installed; /metrics will be empty"),
        }
        handle
    })
}

fn describe() {
    metrics::describe_counter!(REQUESTS, "Answered requests by method, route and status.");
    metrics::describe_histogram!(REQUEST_SECONDS, "Time to the response head, by method and route.");
    metrics::describe_counter!(RATE_LIMITED, "Requests refused by the rate limit.");
    metrics::describe_gauge!(CONNECTIONS, "Open connections, streams and WebSockets included.");
    metrics::describe_counter!(CONNECTIONS_REFUSED, "Connections of addresses that had too many.");
    metrics::describe_gauge!(MCP_SESSIONS, "Sessions and streams of MCP clients.");
    metrics::describe_counter!("greenroom_tokens_total", "Tokens of ended runs, by provider and kind.");
    metrics::describe_counter!(
        "greenroom_cost_nanodollars_total",
        "Cost of ended runs in billionths of a US dollar, by provider. Models of unknown price count nothing."
    );
    metrics::describe_gauge!("greenroom_queued_runs", "Runs of all servers that wait in the queue.");
    metrics::describe_gauge!("greenroom_running_runs", "Runs of all servers that are held by a worker.");
    metrics::describe_gauge!("greenroom_processes", "Programs of agents and MCP servers that this server runs.");
    metrics::describe_counter!("greenroom_trace_spans_dropped_total", "Spans that could not be exported.");
}

/// Aggregates histogram samples. Without it, every sample would be kept until the next scrape.
pub fn upkeep() {
    handle().run_upkeep();
}

pub(crate) fn record_request(method: &'static str, route: &str, status: StatusCode, took: Duration) {
    let route = route.to_owned();
    metrics::counter!(REQUESTS, "method" => method, "route" => route.clone(), "status" => status.as_str().to_owned())
        .increment(1);
    metrics::histogram!(REQUEST_SECONDS, "method" => method, "route" => route).record(took);
}

/// Get metrics in Prometheus text format
///
/// For the operator: routes and counts of all workspaces.
#[utoipa::path(get, path = "/metrics", tag = "server", responses(
    (status = 200, description = "All metrics of this process", body = String, content_type = "text/plain"),
))]
pub async fn prometheus(State(app): State<App>, _: Caller) -> impl IntoResponse {
    metrics::gauge!(MCP_SESSIONS).set(app.mcp.sessions() as f64);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], handle().render())
}
