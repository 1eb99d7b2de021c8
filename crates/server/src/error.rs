//! The single map from errors to problem details (RFC 9457): status, stable `code`, and a sentence that says what to
//! do. Causes are logged once, when the response leaves, and never sent.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use domain::{
    permission::Forbidden,
    position::{Epoch, Seq},
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{borrow::Cow, error::Error, fmt, sync::Arc};

pub type BoxError = Box<dyn Error + Send + Sync>;

/// Details quote the request. The limit keeps a hostile body from being echoed in full.
const MAX_DETAIL_CHARS: usize = 600;

macro_rules! codes {
    // `tt`, not `literal`: utoipa does not see a rename that is wrapped in a literal fragment's group.
    ($($variant:ident = $name:tt, $status:ident, $title:literal;)*) => {
        /// The stable error code for programs. A released code keeps its meaning and its status.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, utoipa::ToSchema)]
        pub enum Code {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

codes! {
    InvalidRequest = "invalid_request", BAD_REQUEST, "The request is not valid";
    Unsupported = "unsupported", BAD_REQUEST, "Not supported here";
    Unauthorized = "unauthorized", UNAUTHORIZED, "A valid token is required";
    ForbiddenHost = "forbidden_host", FORBIDDEN, "Unknown host name";
    ForbiddenOrigin = "forbidden_origin", FORBIDDEN, "Requests from this origin are not allowed";
    Forbidden = "forbidden", FORBIDDEN, "Your role does not allow this";
    OperatorOnly = "operator_only", FORBIDDEN, "Only the operator may do this";
    NotFound = "not_found", NOT_FOUND, "Not found";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "Method not allowed";
    NotAcceptable = "not_acceptable", NOT_ACCEPTABLE, "No acceptable media type";
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The request took too long to arrive";
    Conflict = "conflict", CONFLICT, "Conflict with the current state";
    RoomBusy = "room_busy", CONFLICT, "The room is busy";
    RunEnded = "run_ended", CONFLICT, "The run has ended";
    IdempotencyConflict = "idempotency_conflict", CONFLICT, "The key was used for another request";
    PositionReset = "position_reset", CONFLICT, "The position is not in this journal";
    Unprocessable = "unprocessable", UNPROCESSABLE_ENTITY, "The request cannot be processed";
    PayloadTooLarge = "payload_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
    RangeNotSatisfiable = "range_not_satisfiable", RANGE_NOT_SATISFIABLE, "The file does not have this part";
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body is not JSON";
    ExpectationFailed = "expectation_failed", EXPECTATION_FAILED, "The expectation cannot be met";
    TooManyRequests = "too_many_requests", TOO_MANY_REQUESTS, "Too many requests";
    QueueFull = "queue_full", TOO_MANY_REQUESTS, "Too many runs are waiting";
    TooManyStreams = "too_many_streams", TOO_MANY_REQUESTS, "Too many streams are open";
    TooManyRooms = "too_many_rooms", FORBIDDEN, "The workspace has too many rooms";
    StorageFull = "storage_full", INSUFFICIENT_STORAGE, "The workspace stores too much";
    BudgetExceeded = "budget_exceeded", PAYMENT_REQUIRED, "A budget is used up";
    Internal = "internal", INTERNAL_SERVER_ERROR, "Something went wrong";
    McpFailed = "mcp_failed", BAD_GATEWAY, "The MCP server failed";
    ProviderFailed = "provider_failed", BAD_GATEWAY, "The provider failed";
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "Not available right now";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error response. Boxed, so that a `Result` stays small.
#[derive(Debug)]
pub struct Problem(Box<ProblemParts>);

#[derive(Debug)]
struct ProblemParts {
    code: Code,
    detail: Cow<'static, str>,
    members: Map<String, Value>,
    headers: HeaderMap,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = shortened(detail.into());
        Self(Box::new(ProblemParts { code, detail, members: Map::new(), headers: HeaderMap::new(), cause: None }))
    }

    pub fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// A request that fits the document, but cannot be carried out: fields that exclude each other, or names of what does
    /// not exist.
    pub fn unprocessable(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Unprocessable, detail)
    }

    /// The same response for an unknown id, another owner's id and a malformed id (invariant 15).
    pub fn not_found() -> Self {
        Self::new(Code::NotFound, "Nothing with this id exists.")
    }

    pub fn internal(cause: impl Into<BoxError>) -> Self {
        Self::new(Code::Internal, "The server failed; its log has the cause under this response's x-request-id.")
            .caused_by(cause)
    }

    pub fn unavailable(cause: impl Into<BoxError>) -> Self {
        Self::new(Code::Unavailable, "The server cannot do this right now; retry in a moment.")
            .header(header::RETRY_AFTER, HeaderValue::from_static("1"))
            .caused_by(cause)
    }

    /// Adds an extension member, such as `epoch`, `head` or `pointer`.
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.0.members.insert(member.to_owned(), value.into());
        self
    }

    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// Attaches the cause, which is logged and never sent.
    pub fn caused_by(mut self, cause: impl Into<BoxError>) -> Self {
        self.0.cause = Some(Arc::from(cause.into()));
        self
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// JSON pointer to the mistake in the body (RFC 6901), or an empty string.
    pub fn pointer(&self) -> &str {
        self.0.members.get("pointer").and_then(Value::as_str).unwrap_or_default()
    }

    /// Logs the cause of a problem that is reported inside a stream, where [`log_cause`] does not see it.
    pub fn log(&self, transport: &str) {
        if let Some(cause) = &self.0.cause {
            tracing::error!(transport, code = self.0.code.as_str(), error = %chain(cause.as_ref()), "a stream failed");
        }
    }
}

impl From<engine::EngineError> for Problem {
    fn from(error: engine::EngineError) -> Self {
        use engine::EngineError as E;
        match error {
            E::NotFound => Self::not_found(),
            E::Invalid(detail) => Self::invalid(detail),
            E::InvalidField { pointer, detail } => Self::invalid(detail).with("pointer", pointer.as_ref()),
            E::Refused { pointer, detail } => Self::unprocessable(detail).with("pointer", pointer.as_ref()),
            E::Findings(findings) => {
                let pointer = findings.first().map(|finding| finding.pointer.clone()).unwrap_or_default();
                let detail = findings.first().map(|finding| finding.message.clone()).unwrap_or_default();
                let findings = serde_json::to_value(findings).unwrap_or_default();
                Self::unprocessable(detail).with("pointer", pointer).with("findings", findings)
            }
            E::Forbidden(refusal) => Self::from(refusal),
            E::OperatorOnly(detail) => Self::new(Code::OperatorOnly, detail),
            E::ProviderFailed(message) => Self::new(Code::ProviderFailed, message),
            E::McpFailed { code, message } => Self::new(Code::McpFailed, message).with("failure", code),
            E::Unsupported(detail) => Self::new(Code::Unsupported, detail),
            E::Conflict(detail) => Self::new(Code::Conflict, detail),
            E::RoomBusy => Self::new(Code::RoomBusy, error.to_string()),
            E::QueueFull { .. } | E::PlanFull { .. } => Self::new(Code::QueueFull, error.to_string()),
            E::TooManyRooms { .. } => Self::new(Code::TooManyRooms, error.to_string()),
            E::StorageFull { .. } | E::ProjectFull(_) => Self::new(Code::StorageFull, error.to_string()),
            E::TooManyTransfers { .. } | E::TooManyCommands(_) => Self::new(Code::TooManyRequests, error.to_string()),
            E::NoSuchFile(detail) => Self::new(Code::NotFound, detail),
            E::BudgetExceeded(ref status) => Self::new(Code::BudgetExceeded, error.to_string())
                .with("budget", status.budget.id.to_string())
                .with("limit", status.budget.limit.as_dollars())
                .with("spent", status.spent.as_dollars())
                .with("resets_at", status.resets_at.map(|at| at.to_string())),
            E::RunEnded => Self::new(Code::RunEnded, error.to_string()),
            E::KeyConflict => Self::new(Code::IdempotencyConflict, error.to_string()),
            E::Unavailable(why) => Self::unavailable(why),
            E::StoreUnavailable(failure) => Self::unavailable(failure),
            E::TaskFailed(failed) => Self::unavailable(failed),
            E::Store(_) => Self::internal(error),
        }
    }
}

impl From<Forbidden> for Problem {
    fn from(refusal: Forbidden) -> Self {
        Self::new(Code::Forbidden, refusal.to_string())
    }
}

impl From<store::StoreError> for Problem {
    fn from(error: store::StoreError) -> Self {
        engine::EngineError::from(error).into()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.detail)
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.cause.as_ref().map(|cause| cause.as_ref() as _)
    }
}

#[derive(Serialize)]
struct ProblemDetails<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    title: &'a str,
    status: u16,
    code: Code,
    detail: &'a str,
    #[serde(flatten)]
    members: &'a Map<String, Value>,
}

/// Problem details (RFC 9457), with the members that some codes add.
#[derive(utoipa::ToSchema)]
#[schema(as = Problem)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct ProblemSchema {
    /// A URI that names the kind of problem: `urn:greenroom:problem:` and the code.
    #[schema(rename = "type", format = "uri", examples("urn:greenroom:problem:not_found"))]
    kind: String,
    /// A short title of the kind of problem, in English.
    #[schema(examples("Not found"))]
    title: String,
    /// The status of the response.
    #[schema(minimum = 400, maximum = 599, examples(404))]
    status: u16,
    code: Code,
    /// For people: what is wrong and what to do.
    #[schema(examples("Nothing with this id exists."))]
    detail: String,
    /// A URI that names this response: `urn:greenroom:request:` and its `x-request-id`, as in the log of the server.
    #[schema(format = "uri-reference", examples("urn:greenroom:request:0199c1de-7d3f-7000-8000-000000000001"))]
    instance: Option<String>,
    /// JSON pointer to the mistake in the body (RFC 6901).
    pointer: Option<String>,
    /// The name of the query parameter that is wrong.
    parameter: Option<String>,
    /// With `payload_too_large`: how large a body may be.
    max_bytes: Option<u64>,
    /// With `unprocessable` for a skill: every rule that it breaks.
    findings: Option<Vec<domain::skill::SkillFinding>>,
    /// With `budget_exceeded`: the id of the budget.
    budget: Option<String>,
    /// With `budget_exceeded`: the limit of the budget in US dollars.
    limit: Option<f64>,
    /// With `budget_exceeded`: what was spent in US dollars.
    spent: Option<f64>,
    /// With `budget_exceeded`: when the budget starts again.
    resets_at: Option<String>,
    /// With `mcp_failed`: the kind of failure, such as `mcp_timeout`.
    failure: Option<String>,
    /// With `position_reset`: the epoch to start over in.
    epoch: Option<String>,
    /// With `position_reset`: the room's newest position.
    head: Option<u64>,
}

/// The position that a client has is not in the journal of this room.
pub fn position_reset(epoch: &Epoch, head: Seq) -> Problem {
    let detail = "This position is not in the room's journal, which was restored or is shorter; discard what you have and \
                  read again from position 0.";
    Problem::new(Code::PositionReset, detail).with("epoch", epoch.as_str()).with("head", head)
}

fn problem_type(code: Code) -> String {
    format!("urn:greenroom:problem:{code}")
}

/// The body of a problem that does not name its request yet.
#[derive(Clone)]
struct UnnamedProblem(Bytes);

/// Adds the `instance` to a problem: only who knows the request id can.
pub fn name_instance(response: &mut Response, request_id: &str) {
    let Some(UnnamedProblem(body)) = response.extensions_mut().remove::<UnnamedProblem>() else { return };
    if let Some(open) = body.strip_suffix(b"}") {
        // A request id has no characters that JSON escapes.
        let named = [open, br#","instance":"urn:greenroom:request:"#, request_id.as_bytes(), br#""}"#].concat();
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = named.into();
    }
}

/// The cause to log, kept in the response's extensions until the response leaves.
#[derive(Clone)]
struct LoggedCause(Arc<dyn Error + Send + Sync>);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let ProblemParts { code, detail, members, headers, cause } = *self.0;
        let details = ProblemDetails {
            kind: &problem_type(code),
            title: code.title(),
            status: code.status().as_u16(),
            code,
            detail: &detail,
            members: &members,
        };
        // Strings, numbers and maps with string keys always serialize.
        let body: Bytes = serde_json::to_vec(&details).unwrap_or_default().into();
        let unnamed = UnnamedProblem(body.clone());
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        let mut response = (code.status(), [kind], body).into_response();
        response.headers_mut().extend(headers);
        response.extensions_mut().insert(unnamed);
        if let Some(cause) = cause {
            response.extensions_mut().insert(LoggedCause(cause));
        }
        response
    }
}

/// Logs the cause of a failed response, once, when it leaves.
pub fn log_cause(response: &mut Response, request_id: &str, method: &str, route: &str) {
    if let Some(LoggedCause(cause)) = response.extensions_mut().remove::<LoggedCause>() {
        let status = response.status().as_u16();
        tracing::error!(request_id, method, route, status, error = %chain(cause.as_ref()), "request failed");
    }
}

/// The error and its sources on one line. Control characters are replaced, so that the text cannot forge a log line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text.replace(char::is_control, " ")
}

fn shortened(detail: Cow<'static, str>) -> Cow<'static, str> {
    match detail.char_indices().nth(MAX_DETAIL_CHARS) {
        Some((end, _)) => format!("{}…", &detail[..end]).into(),
        None => detail,
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Problem};
    use axum::response::IntoResponse;
    use serde_json::{Value, json};

    async fn body(problem: Problem) -> Value {
        let body = problem.into_response().into_body();
        serde_json::from_slice(&axum::body::to_bytes(body, 1 << 20).await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_problem_has_its_members_and_never_the_cause() {
        let problem = Problem::new(Code::PositionReset, "start over").with("head", 7).caused_by("secret");
        assert_eq!(
            body(problem).await,
            json!({"type": "urn:greenroom:problem:position_reset", "title": "The position is not in this journal", "status": 409,
                   "code": "position_reset", "detail": "start over", "head": 7})
        );
    }

    #[tokio::test]
    async fn a_long_detail_is_cut_between_characters() {
        let detail = body(Problem::invalid("é".repeat(5000))).await["detail"].as_str().unwrap().to_owned();
        assert_eq!(detail.chars().count(), 601);
    }

    #[test]
    fn codes_are_unique_and_serialize_as_their_name() {
        for (n, code) in Code::ALL.iter().enumerate() {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert!(Code::ALL[n + 1..].iter().all(|other| other.as_str() != code.as_str()));
            assert!(code.status().as_u16() >= 400);
        }
    }
}
