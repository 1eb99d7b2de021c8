//! What `/mcp` is to the program of an agent inside a run, which shows its pass there: the host tools, and nothing else of
//! Greenroom. Every request stands alone, so there is no session to keep or to lose.

use crate::{
    Mcp,
    handler::carried,
    transport::{
        message::{NoMessage, Outline, is_json},
        patience::patiently,
        reply::{self, Reply},
    },
};
use bytes::Bytes;
use engine::host_tools::{
    SERVER, TOOLS,
    pass::{Call, Pass, agents_name},
};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
        Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
        ToolAnnotations,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A question is a few sentences.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// All that can be asked for here. Whatever else the protocol has, or will have, is refused.
const METHODS: [&str; 5] = ["initialize", "ping", "server/discover", "tools/list", "tools/call"];
const CANCELLED: &str = "notifications/cancelled";

pub struct Host(StreamableHttpService<HostTools, NeverSessionManager>);

impl Host {
    pub fn new(over: &CancellationToken) -> Self {
        let config = StreamableHttpServerConfig::default()
            // Host and Origin have been looked at, by rules that hold for the whole server.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_BODY_BYTES)
            .with_cancellation_token(over.clone());
        Self(StreamableHttpService::new(|| Ok(HostTools), Arc::default(), config))
    }
}

/// A message, as far as it has to be known before it is let in.
#[derive(Deserialize)]
struct Asked {
    method: String,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    #[serde(default, rename = "requestId")]
    request_id: Option<Value>,
}

impl Mcp {
    /// `pass` has been found good.
    pub async fn host_tools(&self, pass: &Arc<Pass>, mut request: Request<Bytes>) -> Reply {
        if request.method() != Method::POST {
            return reply::not_allowed("POST", "Every message is a POST of its own here.");
        }
        let asked = match read(&request) {
            Ok(asked) => asked,
            Err(refused) => return *refused,
        };
        let Some(id) = asked.id else {
            if let (CANCELLED, Some(id)) = (asked.method.as_str(), asked.params.and_then(|params| params.request_id)) {
                pass.cancel(&id.to_string());
            }
            return reply::empty(StatusCode::ACCEPTED);
        };
        if !METHODS.contains(&asked.method.as_str()) {
            let is_modern = Outline::of(request.body()).is_ok_and(|outline| outline.is_modern(request.headers()));
            let status = if is_modern { StatusCode::NOT_FOUND } else { StatusCode::OK };
            let why = format!("there is no such method here; there are: {}", METHODS.join(", "));
            return reply::refusal(status, -32601, &why, &id);
        }
        let Some(call) = pass.begin(&id.to_string()).map(Arc::new) else {
            let why = "Too many requests are under way with this pass; wait for an answer first.";
            return reply::refusal(StatusCode::TOO_MANY_REQUESTS, -32000, why, &id);
        };
        request.extensions_mut().insert(Arc::clone(&call));
        let service = self.0.host.0.clone();
        let answer = async move {
            let reply = service.handle(request.map(Full::new)).await.map(|body| body.boxed_unsync());
            match reply.status() {
                // So the library calls what it cannot read.
                StatusCode::UNSUPPORTED_MEDIA_TYPE => NoMessage::Other.refuse(),
                _ => reply,
            }
        };
        // It counts until the last byte of its answer is out.
        patiently(answer, self.0.settings.heartbeat).await.map(|body| {
            let kept = move |frame| {
                let _call = &call;
                frame
            };
            body.map_frame(kept).boxed_unsync()
        })
    }
}

fn read(request: &Request<Bytes>) -> Result<Asked, Box<Reply>> {
    let refuse = |status, code, why| Err(Box::new(reply::refusal(status, code, why, &Value::Null)));
    if !is_json(request.headers()) {
        let why = "Send JSON with the header `Content-Type: application/json`.";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32700, why);
    }
    if request.body().len() > MAX_BODY_BYTES {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, -32600, "The body is too long; send less.");
    }
    Outline::of(request.body()).map_err(|none| Box::new(none.refuse()))?;
    serde_json::from_slice(request.body()).map_err(|error| Box::new(NoMessage::of(&error).refuse()))
}

#[derive(Clone)]
struct HostTools;

impl ServerHandler for HostTools {
    fn get_info(&self) -> ServerConfig {
        let mut us = Implementation::new(SERVER, env!("CARGO_PKG_VERSION"));
        us.title = Some("Greenroom".into());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(us)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools().collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(call) = carried::<Arc<Call>>(&context.extensions) else {
            return Err(ErrorData::internal_error("nobody is known to have asked this", None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let given_up = || ErrorData::invalid_request("the request was cancelled", None);
        let outcome = tokio::select! {
            outcome = call.tool(&request.name, &arguments) => outcome.ok_or_else(given_up)?,
            () = context.ct.cancelled() => return Err(given_up()),
        };
        let text = vec![ContentBlock::text(outcome.text)];
        let result = if outcome.is_error { CallToolResult::error(text) } else { CallToolResult::success(text) };
        Ok(CallToolResponse::Complete(result))
    }

    /// The library takes a request whose parameters it cannot read for one that it does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(ErrorData::invalid_params(format!("the parameters of {method} are not those that it takes"), None))
    }
}

fn tools() -> impl Iterator<Item = Tool> {
    TOOLS.iter().map(|tool| {
        let schema: JsonObject = match (tool.schema)() {
            Value::Object(schema) => schema,
            _ => JsonObject::default(),
        };
        // They tell or ask; nothing here changes anything.
        Tool::new(agents_name(tool.name), tool.description, schema).annotate(ToolAnnotations::new().read_only(true))
    })
}
