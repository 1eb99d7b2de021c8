//! Traces: what a request, a run, its model calls, tools and approvals took, as spans with the names of OpenTelemetry's
//! GenAI conventions. There are spans per call, never per token.
//!
//! Like the metrics, they have one recorder per process; without one, nothing is recorded. `run_trace` builds the spans
//! of a run; the app installs the recorder and exports what it receives. A run outlives its request, so its trace is its
//! own and only links to the request. Content is in spans only if the operator has enabled that.

mod run_trace;
mod span;

pub(crate) use run_trace::{RunTrace, TracedRun};
pub use span::{AttributeValue, SpanContext, SpanError, TraceSpan, TraceSpanKind};

use domain::ids::RunId;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, OnceLock, PoisonError},
};
use tokio::sync::mpsc;

/// How many runs are remembered with the request that queued them.
const MAX_LINKED_RUNS: usize = 4096;

static RECORDER: OnceLock<TraceRecorder> = OnceLock::new();

tokio::task_local! {
    /// The request that this task answers.
    static REQUEST: SpanContext;
}

/// Which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceSampling {
    /// The share of the traces that begin here, from 0 to 1.
    pub ratio: f64,
    /// Whether a caller that has made the decision already is followed.
    pub follows_caller: bool,
}

impl TraceSampling {
    fn records(&self, trace_id: [u8; 16]) -> bool {
        let [.., a, b, c, d, e, f, g] = trace_id;
        // The last 56 bits are compared, as other implementations do. They are random in our ids; the bits before are not.
        let random = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
        (random as f64) < self.ratio * (1_u64 << 56) as f64
    }
}

/// Receives the spans of this process.
#[derive(Debug)]
pub struct TraceRecorder {
    spans: mpsc::Sender<TraceSpan>,
    sampling: TraceSampling,
    with_content: bool,
    linked: Mutex<LinkedRuns>,
}

#[derive(Debug, Default)]
struct LinkedRuns {
    requests: BTreeMap<RunId, SpanContext>,
    oldest: VecDeque<RunId>,
}

impl TraceRecorder {
    /// If the channel is full, spans are dropped and counted: recording never waits.
    pub fn new(spans: mpsc::Sender<TraceSpan>, sampling: TraceSampling, with_content: bool) -> Self {
        Self { spans, sampling, with_content, linked: Mutex::default() }
    }

    fn record(&self, span: TraceSpan) {
        if self.spans.try_send(span).is_err() {
            metrics::counter!("greenroom_trace_spans_dropped_total").increment(1);
        }
    }

    fn link(&self, run: RunId, request: SpanContext) {
        let mut linked = self.linked.lock().unwrap_or_else(PoisonError::into_inner);
        if linked.requests.insert(run, request).is_none() {
            linked.oldest.push_back(run);
        }
        if linked.oldest.len() > MAX_LINKED_RUNS
            && let Some(oldest) = linked.oldest.pop_front()
        {
            linked.requests.remove(&oldest);
        }
    }

    fn linked(&self, run: RunId) -> Option<SpanContext> {
        self.linked.lock().unwrap_or_else(PoisonError::into_inner).requests.get(&run).copied()
    }
}

/// Sets the recorder of this process. Returns false if it has one.
pub fn install(recorder: TraceRecorder) -> bool {
    RECORDER.set(recorder).is_ok()
}

/// The span of a request that begins now; `caller` is the context that the client sent. `None` if it is not recorded.
pub fn begin_request(caller: Option<SpanContext>) -> Option<SpanContext> {
    let recorder = RECORDER.get()?;
    let context = SpanContext::beneath(caller);
    let is_recorded = match caller {
        Some(caller) if recorder.sampling.follows_caller => caller.is_sampled,
        _ => recorder.sampling.records(context.trace_id),
    };
    is_recorded.then_some(context)
}

/// Runs the handler of a request, so that the runs that it queues link to it.
pub async fn within_request<T>(request: SpanContext, handler: impl Future<Output = T>) -> T {
    REQUEST.scope(request, handler).await
}

/// Records a span that has ended.
pub fn record(span: TraceSpan) {
    if let Some(recorder) = RECORDER.get() {
        recorder.record(span);
    }
}

/// Remembers that the request of this task has queued a run.
pub(crate) fn queued_by_request(run: RunId) {
    if let (Some(recorder), Ok(request)) = (RECORDER.get(), REQUEST.try_with(|request| *request)) {
        recorder.link(run, request);
    }
}

/// The trace of a run that starts now; `None` if it is not recorded.
pub(crate) fn begin_run(id: RunId, run: impl FnOnce() -> TracedRun) -> Option<RunTrace> {
    let recorder = RECORDER.get()?;
    let is_recorded = recorder.sampling.records(*id.0.as_bytes());
    is_recorded.then(|| RunTrace::new(run(), recorder.with_content))
}

/// The request that queued a run on this server.
pub(crate) fn request_of(run: RunId) -> Option<SpanContext> {
    RECORDER.get()?.linked(run)
}

/// Records the spans of a run that have ended.
pub(crate) fn record_all(trace: &mut RunTrace) {
    let Some(recorder) = RECORDER.get() else { return };
    trace.take_ended().into_iter().for_each(|span| recorder.record(span));
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINKED_RUNS, SpanContext, TraceRecorder, TraceSampling};
    use domain::ids::RunId;
    use tokio::sync::mpsc;

    #[test]
    fn a_ratio_records_that_share_of_the_traces() {
        let recorded = |ratio: f64| {
            let sampling = TraceSampling { ratio, follows_caller: true };
            (0..2000).filter(|_| sampling.records(SpanContext::beneath(None).trace_id)).count()
        };
        assert_eq!((recorded(0.0), recorded(1.0)), (0, 2000));
        let half = recorded(0.5);
        assert!((800..1200).contains(&half), "{half} of 2000");
    }

    #[test]
    fn links_are_bounded_and_the_oldest_go_first() {
        let sampling = TraceSampling { ratio: 1.0, follows_caller: true };
        let recorder = TraceRecorder::new(mpsc::channel(1).0, sampling, false);
        let runs: Vec<RunId> = (0..MAX_LINKED_RUNS + 10).map(|_| RunId::generate()).collect();
        runs.iter().for_each(|run| recorder.link(*run, SpanContext::beneath(None)));
        assert!(recorder.linked(runs[0]).is_none() && recorder.linked(runs[10]).is_some());
        let linked = recorder.linked.lock().unwrap();
        assert_eq!((linked.requests.len(), linked.oldest.len()), (MAX_LINKED_RUNS, MAX_LINKED_RUNS));
    }
}
