//! Exports traces to an OpenTelemetry collector over OTLP, as protobuf over HTTP. Off without an endpoint; the settings are
//! the standard variables of OpenTelemetry. `otlp` encodes the spans, `settings` reads the variables.
//!
//! The export runs on the server's own runtime and never delays a run: spans that do not fit into its queue are dropped
//! and counted, and a collector that does not answer is retried with the next batch.

mod otlp;
mod settings;

use crate::{cli::client, config::Environment};
use anyhow::Context as _;
use engine::traces::{self, TraceRecorder, TraceSpan};
use settings::TraceSettings;
use std::time::{Duration, Instant};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

/// How many spans wait for the export, as in other implementations.
const QUEUE: usize = 2048;
const MAX_BATCH: usize = 512;
const MAX_DELAY: Duration = Duration::from_secs(5);
/// How often a failing export is logged.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// How long the last spans may take when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The running export, if it is enabled.
#[derive(Debug)]
pub struct TraceExport {
    task: JoinSet<()>,
    cancel: CancellationToken,
}

impl TraceExport {
    pub fn start(environment: &Environment) -> anyhow::Result<Self> {
        let (mut task, cancel) = (JoinSet::new(), CancellationToken::new());
        let Some(settings) = TraceSettings::read(environment)? else { return Ok(Self { task, cancel }) };
        client::install_cryptography();
        let client = reqwest::Client::builder()
            .timeout(settings.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .context("cannot prepare the export of traces")?;
        let (spans, received) = mpsc::channel(QUEUE);
        if !traces::install(TraceRecorder::new(spans, settings.sampling, settings.with_content)) {
            tracing::warn!("another server of this process exports traces already");
            return Ok(Self { task, cancel });
        }
        tracing::info!(endpoint = %settings.endpoint_without_secrets(), "exporting traces");
        task.spawn(export(client, settings, received, cancel.clone()));
        Ok(Self { task, cancel })
    }

    /// Exports what is left, within a few seconds.
    pub async fn shut_down(&mut self) {
        self.cancel.cancel();
        if timeout(SHUTDOWN_TIMEOUT, self.task.join_next()).await.is_err() {
            tracing::warn!("the last traces could not be exported in time");
        }
    }
}

async fn export(
    client: reqwest::Client,
    settings: TraceSettings,
    mut received: mpsc::Receiver<TraceSpan>,
    cancel: CancellationToken,
) {
    let mut last_logged: Option<Instant> = None;
    loop {
        let (batch, is_last) = next_batch(&mut received, &cancel).await;
        if !batch.is_empty()
            && let Err(problem) = send(&client, &settings, &batch).await
        {
            metrics::counter!("greenroom_trace_spans_dropped_total").increment(batch.len() as u64);
            if last_logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
                tracing::warn!(%problem, spans = batch.len(), "could not export traces; they are dropped");
                last_logged = Some(Instant::now());
            }
        }
        if is_last {
            return;
        }
    }
}

/// Waits until a batch is full, or old enough, or the server stops; then it is the last one.
async fn next_batch(received: &mut mpsc::Receiver<TraceSpan>, cancel: &CancellationToken) -> (Vec<TraceSpan>, bool) {
    let mut batch = Vec::new();
    let fill = async {
        if received.recv_many(&mut batch, MAX_BATCH).await == 0 {
            return true;
        }
        let until = tokio::time::Instant::now() + MAX_DELAY;
        while batch.len() < MAX_BATCH {
            let space = MAX_BATCH - batch.len();
            match tokio::time::timeout_at(until, received.recv_many(&mut batch, space)).await {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        false
    };
    let filled = cancel.run_until_cancelled(fill).await;
    match filled {
        Some(is_closed) => (batch, is_closed),
        None => {
            while batch.len() < QUEUE
                && let Ok(span) = received.try_recv()
            {
                batch.push(span);
            }
            (batch, true)
        }
    }
}

/// The problem never contains the endpoint or a header: both may hold a key (invariant 17).
async fn send(client: &reqwest::Client, settings: &TraceSettings, batch: &[TraceSpan]) -> Result<(), String> {
    let body = otlp::encode(&settings.resource, batch);
    let mut request = client.post(&settings.endpoint).header("content-type", "application/x-protobuf").body(body);
    for (name, value) in &settings.headers {
        request = request.header(name, value);
    }
    match request.send().await {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => Err(format!("the collector answered {}", response.status())),
        Err(error) => Err(error.without_url().to_string()),
    }
}
