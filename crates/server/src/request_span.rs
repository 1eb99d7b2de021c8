//! The span of a request in the traces: the runs that it queues link to it.

use axum::http::{HeaderMap, StatusCode};
use domain::time::Timestamp;
use engine::traces::{self, AttributeValue, SpanContext, SpanError, TraceSpan, TraceSpanKind};

const TRACEPARENT: &str = "traceparent";

pub(crate) struct RequestSpan {
    context: SpanContext,
    parent: Option<[u8; 8]>,
    started_at: Timestamp,
}

impl RequestSpan {
    /// Returns `None` if the request is not traced.
    pub fn begin(headers: &HeaderMap) -> Option<Self> {
        let caller = headers.get(TRACEPARENT).and_then(|value| value.to_str().ok()).and_then(SpanContext::parse);
        let context = traces::begin_request(caller)?;
        Some(Self { context, parent: caller.map(|caller| caller.span_id), started_at: Timestamp::now() })
    }

    /// Runs the handler, so that the runs that it queues link to the request.
    pub async fn run<T>(&self, handler: impl Future<Output = T>) -> T {
        traces::within_request(self.context, handler).await
    }

    /// The path is that of the route, without ids.
    pub fn end(self, method: &str, route: &str, status: StatusCode) {
        let failed = || SpanError { code: status.as_str().to_owned(), message: "the server failed".to_owned() };
        traces::record(TraceSpan {
            context: self.context,
            parent: self.parent,
            name: format!("{method} {route}"),
            kind: TraceSpanKind::Server,
            started_at: self.started_at,
            ended_at: Timestamp::now(),
            attributes: vec![
                ("http.request.method", method.into()),
                ("http.route", route.into()),
                ("http.response.status_code", AttributeValue::Integer(status.as_u16().into())),
            ],
            links: Vec::new(),
            error: status.is_server_error().then(failed),
        });
    }
}
