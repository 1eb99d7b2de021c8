//! The OpenAPI document, generated from the handlers. What every operation shares is added here: problem responses,
//! authentication, the Idempotency-Key. `shapes` makes the schemas fit for validators and generators, `glossary` describes
//! fields that mean the same everywhere, `examples` has an example of each.

mod examples;
mod glossary;
mod shapes;

use crate::{
    App,
    auth::session_cookie,
    error::ProblemSchema,
    feed::{
        SocketMessage, SocketRequest,
        dialect::Dialect,
        sse::{self, StreamPlace, StreamProblem},
    },
    http::approvals::ListedApprovals,
    path_routes::DescribeOperation,
    routing::{Policy, RouteInfo},
};
use axum::{
    extract::State,
    http::{Method, header},
    response::IntoResponse,
};
use bytes::Bytes;
use domain::{
    ids::{AgentId, ApprovalId, EventId, MessageId, ProjectId, ProposalId, RoomId, RunId, TokenId, UploadId},
    room::WhenBusy,
    run::RunStatus,
};
use std::sync::OnceLock;
use utoipa::{
    ToSchema,
    openapi::{
        Components, ContentBuilder, Header, HeaderBuilder, InfoBuilder, LicenseBuilder, ObjectBuilder, OpenApiBuilder,
        PathItem, Ref, RefOr, Required, Response, ResponseBuilder, ServerBuilder, Type,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn},
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
        tag::TagBuilder,
    },
};

const ABOUT: &str = "Greenroom runs AI agents in rooms. Every event is stored before it is shown; a position in a \
                     room's journal resumes any stream without a gap. Errors are problem details (RFC 9457) with a \
                     stable `code`. Most writes accept an `Idempotency-Key`, which makes them safe to retry.";

/// The groups of operations.
const TAGS: [(&str, &str); 22] = [
    ("agents", "Configured personas whose answers come from a provider"),
    ("aliases", "Paths of other agent servers, for programs that were written for them"),
    ("audit", "Who did what in the workspace"),
    ("events", "A room's journal: pages, streams and WebSockets"),
    ("execute", "Run an agent once"),
    ("mcp-servers", "The MCP servers that agents use"),
    ("memories", "The notes that agents keep across rooms"),
    ("messages", "Post messages and read the conversation"),
    ("project-commands", "Commands in the sandbox of a project: run, follow, stop"),
    ("project-files", "The files of a project: list, upload, read, write, move, delete"),
    ("projects", "Folders in which agents work, each with its sandbox"),
    ("providers", "What makes agents answer: whether it is ready, keys, addresses, models"),
    ("rooms", "Conversations with their participants"),
    ("runs", "Attempts of agents to answer: list, follow, cancel, approve"),
    ("search", "Find messages, rooms, agents and files by words"),
    ("server", "Health, metrics and this document"),
    ("session", "Sign a browser in and out"),
    ("skills", "Instructions that agents can use, with versions and training"),
    ("tape", "Which agents of a room speak next, and in which order"),
    ("tokens", "Credentials for programs"),
    ("uploads", "Files that messages attach"),
    ("usage", "What runs have cost, and budgets"),
];

/// Writes that repeat without harm, or must not repeat by themselves: they take no key (docs/api.md, "Retry safely").
const WITHOUT_KEY: &[(Method, &str)] = &[
    (Method::POST, "/api/agent-runs/{id}/stop"),
    // Repeating an import changes nothing.
    (Method::POST, "/api/agents/files"),
    (Method::POST, "/api/chat/sessions/{id}/cancel"),
    (Method::POST, "/api/chat/sessions/{id}/messages/{stream}/cancel"),
    (Method::POST, "/api/mcp-servers/{name}/call"),
    (Method::POST, "/api/mcp-servers/{name}/test"),
    (Method::DELETE, "/api/mcp-variables/{name}"),
    (Method::PUT, "/api/mcp-variables/{name}"),
    // A command is a process, and is not stored.
    (Method::POST, "/api/projects/{id}/commands"),
    (Method::DELETE, "/api/projects/{id}/commands/{command}"),
    // An address that is not stored, and ends by itself.
    (Method::POST, "/api/projects/{id}/ports/{port}/preview"),
    // A result is stored with its change, and a change of these is on the disk.
    (Method::DELETE, "/api/projects/{id}/files"),
    (Method::POST, "/api/projects/{id}/files"),
    (Method::PUT, "/api/projects/{id}/files/content"),
    (Method::POST, "/api/projects/{id}/files/move"),
    (Method::POST, "/api/providers/{id}/test"),
    (Method::DELETE, "/api/rooms/{id}/mcp-trust"),
    (Method::POST, "/api/rooms/{id}/mcp-trust"),
    (Method::DELETE, "/api/rooms/{id}/skill-trust"),
    (Method::POST, "/api/rooms/{id}/skill-trust"),
    (Method::DELETE, "/api/rooms/{id}/remembered/{agent}"),
    (Method::POST, "/api/rooms/{id}/cancel"),
    (Method::POST, "/api/rooms/{id}/tape/insert"),
    (Method::POST, "/api/rooms/{id}/tape/pause"),
    (Method::POST, "/api/rooms/{id}/tape/reorder"),
    (Method::POST, "/api/rooms/{id}/tape/resume"),
    (Method::POST, "/api/rooms/{id}/tape/skip"),
    (Method::POST, "/api/rooms/{id}/tape/step"),
    (Method::POST, "/api/runs/{id}/approvals/{approval}"),
    (Method::POST, "/api/runs/{id}/cancel"),
    (Method::POST, "/api/session/links"),
    (Method::POST, "/api/skills/{name}/accept"),
    (Method::POST, "/api/tickets"),
];

/// Where a POST creates something that has a path of its own.
const LOCATED: [&str; 8] = [
    "/api/agent/initiate",
    "/api/agents",
    "/api/mcp-servers",
    "/api/projects",
    "/api/rooms",
    "/api/skills",
    "/api/skills/import",
    "/api/uploads",
];

const IDEMPOTENCY_KEY: &str = "IdempotencyKey";
const BEARER: &str = "bearer";
const SESSION: &str = "session";

/// Get the OpenAPI document
///
/// OpenAPI 3.1 with all operations, also for client generators.
#[utoipa::path(get, path = "/openapi.json", tag = "server", responses(
    (status = 200, description = "OpenAPI 3.1", content_type = "application/json"),
))]
pub async fn openapi_json(State(app): State<App>) -> impl IntoResponse {
    let json = app.openapi.get().map(ApiDescription::json).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], json)
}

/// Everything that is needed to write the document when it is first requested.
pub(crate) struct ApiDescription {
    operations: Vec<DescribeOperation>,
    routes: Vec<RouteInfo>,
    json: OnceLock<Bytes>,
}

impl ApiDescription {
    pub(crate) fn new(operations: Vec<DescribeOperation>, routes: Vec<RouteInfo>) -> Self {
        Self { operations, routes, json: OnceLock::new() }
    }

    fn json(&self) -> Bytes {
        self.json.get_or_init(|| self.write()).clone()
    }

    fn write(&self) -> Bytes {
        let license = LicenseBuilder::new().name(env!("CARGO_PKG_LICENSE")).identifier(Some(env!("CARGO_PKG_LICENSE")));
        let info = InfoBuilder::new().title("Greenroom").version(env!("CARGO_PKG_VERSION")).description(Some(ABOUT));
        let info = info.license(Some(license.build()));
        let server = ServerBuilder::new().url("/").description(Some("The server that sent this document")).build();
        let tags = TAGS.map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build());
        let mut api = OpenApiBuilder::new().info(info.build()).servers(Some([server])).tags(Some(tags)).build();
        self.operations.iter().for_each(|describe| describe(&mut api));
        describe_shared(api.components.get_or_insert_default());
        for (path, item) in &mut api.paths.paths {
            for (method, operation) in operations_mut(item) {
                let route = self.routes.iter().find(|route| route.method == method && route.path == *path);
                complete_operation(operation, &method, path, route.map(|route| route.policy));
            }
        }
        // Maps with string keys always serialize.
        let mut document = serde_json::to_value(&api).unwrap_or_default();
        shapes::finish(&mut document);
        glossary::describe(&mut document);
        examples::add(&mut document);
        serde_json::to_vec(&document).unwrap_or_default().into()
    }
}

fn describe_shared(components: &mut Components) {
    register_schema::<ProblemSchema>(components);
    // A WebSocket's messages have no place in the document but this.
    register_schema::<SocketRequest>(components);
    register_schema::<SocketMessage>(components);
    // Used only in parameters, for which utoipa collects no schemas.
    register_schema::<AgentId>(components);
    register_schema::<ApprovalId>(components);
    register_schema::<MessageId>(components);
    register_schema::<ProjectId>(components);
    register_schema::<ProposalId>(components);
    register_schema::<RoomId>(components);
    register_schema::<RunId>(components);
    register_schema::<TokenId>(components);
    register_schema::<UploadId>(components);
    register_schema::<RunStatus>(components);
    register_schema::<WhenBusy>(components);
    register_schema::<Dialect>(components);
    register_schema::<EventId>(components);
    register_schema::<ListedApprovals>(components);
    register_schema::<StreamPlace>(components);
    register_schema::<StreamProblem>(components);
    components.responses.insert("Problem".to_owned(), problem("What is wrong and what to do").into());
    let key = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("Makes the request safe to retry: the same key and request give the same result."))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(255))
                .pattern(Some("^[!-~]+$"))
                .examples(["5f0c9d0e-6b1f-4a53-9d5e-0f6c7a2b9c11"]),
        ))
        .build();
    components.parameters.insert(IDEMPOTENCY_KEY.to_owned(), key.into());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("grm_…")
        .description(Some(
            "A token of `greenroom token create`, or the local key of the server: `greenroom auth header`.",
        ))
        .build();
    components.security_schemes.insert(BEARER.to_owned(), RefOr::T(SecurityScheme::Http(bearer)));
    let about = "The cookie of a signed-in browser. Writes also need an Origin of this server.";
    let session = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::with_description(session_cookie::COOKIE, about)));
    components.security_schemes.insert(SESSION.to_owned(), RefOr::T(session));
}

fn register_schema<T: ToSchema>(components: &mut Components) {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    components.schemas.extend(schemas);
}

fn complete_operation(operation: &mut Operation, method: &Method, path: &str, policy: Option<Policy>) {
    let mut errors =
        vec![("403", "The Host or the Origin does not belong to this server, or your role does not allow this")];
    let is_query = |one: &RefOr<Parameter>| matches!(one, RefOr::T(one) if one.parameter_in != ParameterIn::Path);
    if operation.parameters.iter().flatten().any(is_query) || operation.request_body.is_some() {
        errors.push(("400", "The request is not valid; `detail` says why"));
    }
    if path.contains('{') {
        errors.push(("404", "Nothing with this id exists"));
    }
    if let Some(body) = &operation.request_body {
        errors.push(("413", "The body is too large"));
        if matches!(body, RefOr::T(body) if body.content.contains_key("application/json")) {
            errors.push(("422", "The request is valid, but not possible here; `pointer` says which part"));
            errors.push(("415", "The body is not JSON"));
        }
    }
    if policy.is_some_and(|policy| policy != Policy::Public) {
        errors.push(("401", "A valid token is required"));
        operation.security = Some(vec![
            SecurityRequirement::new(BEARER, Vec::<String>::new()),
            SecurityRequirement::new(SESSION, Vec::<String>::new()),
        ]);
        let is_without_key = WITHOUT_KEY.iter().any(|(other, without)| other == method && *without == path);
        if !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) && !is_without_key {
            errors.push(("400", "The request is not valid; `detail` says why"));
            errors
                .push(("409", "The key was used for another request, or the request conflicts with the current state"));
            let key = Ref::new(format!("#/components/parameters/{IDEMPOTENCY_KEY}"));
            operation.parameters.get_or_insert_default().push(RefOr::Ref(key));
        }
    } else {
        operation.security = Some(Vec::new());
    }
    if *method == Method::GET && streams(operation) {
        errors.push(("400", "The request is not valid; `detail` says why"));
        operation.parameters.get_or_insert_default().push(RefOr::T(last_event_id(path)));
    }
    // Handler names such as `list` are unique only within their file, so the tag is added.
    if let (Some(id), Some(tag)) = (&mut operation.operation_id, operation.tags.iter().flatten().next()) {
        *id = format!("{tag}_{id}");
    }
    let responses = &mut operation.responses.responses;
    for response in responses.values_mut() {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            "Success".clone_into(&mut response.description);
        }
    }
    if let Some(RefOr::T(created)) = responses.get_mut("201").filter(|_| LOCATED.contains(&path)) {
        created.headers.insert("Location".to_owned(), text_header("The path of what was created").into());
    }
    if let Some(RefOr::T(found)) = responses.get_mut("200").filter(|_| *method == Method::GET)
        && found.content.contains_key("application/json")
    {
        let about = "Changes with the content. A request with it in If-None-Match gets a 304 without a body.";
        found.headers.insert("ETag".to_owned(), text_header(about).into());
    }
    for response in responses.values_mut() {
        if let RefOr::T(response) = response {
            let about = "The request's id, as in the log of the server";
            response.headers.insert("X-Request-Id".to_owned(), text_header(about).into());
        }
    }
    for (status, description) in errors {
        responses.entry(status.to_owned()).or_insert_with(|| problem(description).into());
    }
    responses.entry("429".to_owned()).or_insert_with(|| too_many().into());
    responses.entry("default".to_owned()).or_insert_with(|| Ref::from_response_name("Problem").into());
}

/// Whether the operation can answer with server-sent events.
fn streams(operation: &Operation) -> bool {
    operation
        .responses
        .responses
        .values()
        .any(|response| matches!(response, RefOr::T(response) if response.content.contains_key(sse::MIME)))
}

/// An empty one counts as none, as from a browser.
fn last_event_id(path: &str) -> Parameter {
    let (pattern, example) = match path {
        "/api/projects/{id}/commands/{command}/stream" => ("^[0-9]{0,18}$", "17"),
        "/api/rooms/{id}/events" => ("^(([0-9A-Za-z]{1,64}-)?[0-9]{1,18})?$", "7c9e6f2a-17"),
        // With a dialect the id has the run too.
        "/api/runs/{id}/stream" => (
            "^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/[0-9A-Za-z]{1,64}-[0-9]{1,18}([.][0-9]{1,4})?|([0-9A-Za-z]{1,64}-)?[0-9]{1,18})?$",
            "7c9e6f2a-17",
        ),
        _ => (
            "^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/[0-9A-Za-z]{1,64}-[0-9]{1,18}([.][0-9]{1,4})?)?$",
            "0199c1de-7d3f-7000-8000-000000000001/7c9e6f2a-17",
        ),
    };
    let id = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).examples([example]);
    ParameterBuilder::new()
        .name("Last-Event-ID")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The `id` of the last frame that the client has: the stream continues after it."))
        .schema(Some(id))
        .build()
}

fn text_header(about: &str) -> Header {
    HeaderBuilder::new().description(Some(about)).schema(Some(ObjectBuilder::new().schema_type(Type::String))).build()
}

fn problem(description: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemSchema::name()))).build();
    ResponseBuilder::new().description(description).content("application/problem+json", content).build()
}

fn too_many() -> Response {
    let mut response = problem("Too many requests; wait for the time in Retry-After");
    let seconds = HeaderBuilder::new()
        .description(Some("Seconds to wait"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::Integer)))
        .build();
    response.headers.insert("Retry-After".to_owned(), seconds.into());
    let left = "How many requests are left: `r`, in `t` seconds again. Other responses have it too.";
    response.headers.insert("RateLimit".to_owned(), text_header(left).into());
    let policy = "How many requests may be sent at once, `q`, and in how many seconds that many again, `w`";
    response.headers.insert("RateLimit-Policy".to_owned(), text_header(policy).into());
    response
}

/// The operations of one path by method.
fn operations_mut(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    [
        (Method::GET, &mut item.get),
        (Method::PUT, &mut item.put),
        (Method::POST, &mut item.post),
        (Method::DELETE, &mut item.delete),
        (Method::OPTIONS, &mut item.options),
        (Method::HEAD, &mut item.head),
        (Method::PATCH, &mut item.patch),
        (Method::TRACE, &mut item.trace),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}
