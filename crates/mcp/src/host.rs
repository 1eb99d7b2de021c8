//! `/mcp` for an agent's program inside a run, which authenticates with its agent token: it gets the host tools and
//! nothing else of Greenroom. Requests are stateless, so there are no sessions.

use crate::{
    McpService,
    handler::extension,
    session_handler::SessionHandler,
    transport::{
        message::{InvalidMessage, MessageOutline, is_json},
        response::{self, McpResponse},
        slow_response::stream_if_slow,
        streamable::RmcpHttpService,
    },
};
use bytes::Bytes;
use engine::{AgentAccess, AgentAccessOwner, AgentRequest, AgentTool, HOST_TOOLS_SERVER};
use futures_util::future::BoxFuture;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
        Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
        ToolAnnotations,
    },
    service::RequestContext,
    transport::StreamableHttpServerConfig,
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Requests are small: a question is a few sentences.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// The supported methods. All others, including future ones, are rejected.
const METHODS: [&str; 5] = ["initialize", "ping", "server/discover", "tools/list", "tools/call"];
const CANCELLED_METHOD: &str = "notifications/cancelled";

pub struct HostToolsService(RmcpHttpService);

impl HostToolsService {
    pub fn new(over: &CancellationToken) -> Self {
        let config = StreamableHttpServerConfig::default()
            // The server has already checked Host and Origin.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_BODY_BYTES)
            .with_cancellation_token(over.clone());
        let handler = SessionHandler::new(HostToolsHandler);
        Self(RmcpHttpService::new(move || Ok(handler.clone()), Arc::default(), config))
    }
}

/// The part of a message that is needed before rmcp handles it.
#[derive(Deserialize)]
struct HostToolsMessage {
    method: String,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    params: Option<CancelParams>,
}

#[derive(Deserialize)]
struct CancelParams {
    #[serde(default, rename = "requestId")]
    request_id: Option<Value>,
}

impl McpService {
    /// Boxed like `streamable`.
    pub fn host_tools<'a>(&'a self, access: &'a AgentAccess, request: Request<Bytes>) -> BoxFuture<'a, McpResponse> {
        Box::pin(self.handle_host_tools(access, request))
    }

    async fn handle_host_tools(&self, access: &AgentAccess, mut request: Request<Bytes>) -> McpResponse {
        if request.method() != Method::POST {
            return response::method_not_allowed("POST", "Send each message in its own POST request.");
        }
        let message = match read(&request) {
            Ok(message) => message,
            Err(response) => return *response,
        };
        let Some(id) = message.id else {
            if let (CANCELLED_METHOD, Some(id)) =
                (message.method.as_str(), message.params.and_then(|params| params.request_id))
            {
                access.cancel(&id.to_string());
            }
            return response::empty(StatusCode::ACCEPTED);
        };
        if !METHODS.contains(&message.method.as_str()) {
            let is_modern =
                MessageOutline::of(request.body()).is_ok_and(|outline| outline.is_modern(request.headers()));
            let status = if is_modern { StatusCode::NOT_FOUND } else { StatusCode::OK };
            let why = format!("unknown method; available: {}", METHODS.join(", "));
            return response::json_rpc_error(status, -32601, &why, &id);
        }
        let AgentAccessOwner { agent_id, room_id, run_id } = access.belongs_to();
        tracing::debug!(%agent_id, %room_id, ?run_id, method = message.method, "an agent's program uses the host tools");
        let Some(call) = access.begin_request(&id.to_string()).map(Arc::new) else {
            let why = "Too many requests with this token are in progress; wait for an answer first.";
            return response::json_rpc_error(StatusCode::TOO_MANY_REQUESTS, -32000, why, &id);
        };
        request.extensions_mut().insert(Arc::clone(&call));
        let service = self.0.host.0.clone();
        let answer = async move {
            let response = service.handle(request.map(Full::new)).await.map(|body| body.boxed_unsync());
            match response.status() {
                // rmcp answers with this status if it cannot parse a message.
                StatusCode::UNSUPPORTED_MEDIA_TYPE => InvalidMessage::NotJsonRpc.to_response(),
                _ => response,
            }
        };
        // The call counts as open until the last byte of its answer is sent.
        stream_if_slow(answer, self.0.settings.heartbeat).await.map(|body| {
            let kept = move |frame| {
                let _call = &call;
                frame
            };
            body.map_frame(kept).boxed_unsync()
        })
    }
}

fn read(request: &Request<Bytes>) -> Result<HostToolsMessage, Box<McpResponse>> {
    let refuse = |status, code, why| Err(Box::new(response::json_rpc_error(status, code, why, &Value::Null)));
    if !is_json(request.headers()) {
        let why = "Send JSON with the header `Content-Type: application/json`.";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32700, why);
    }
    if request.body().len() > MAX_BODY_BYTES {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, -32600, "The request body is too large.");
    }
    MessageOutline::of(request.body()).map_err(|none| Box::new(none.to_response()))?;
    serde_json::from_slice(request.body()).map_err(|error| Box::new(InvalidMessage::of(&error).to_response()))
}

struct HostToolsHandler;

impl ServerHandler for HostToolsHandler {
    fn get_info(&self) -> ServerConfig {
        let mut us = Implementation::new(HOST_TOOLS_SERVER, env!("CARGO_PKG_VERSION"));
        us.title = Some("Greenroom".into());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(us)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools(request_of(&context)?)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = request_of(&context)?;
        let arguments = request.arguments.unwrap_or_default();
        let cancelled = || ErrorData::invalid_request("the request was cancelled", None);
        let outcome = tokio::select! {
            outcome = call.call_tool(&request.name, arguments) => outcome.ok_or_else(cancelled)?,
            () = context.ct.cancelled() => return Err(cancelled()),
        };
        let text = vec![ContentBlock::text(outcome.text)];
        let result = if outcome.is_error { CallToolResult::error(text) } else { CallToolResult::success(text) };
        Ok(CallToolResponse::Complete(result))
    }

    /// rmcp treats a request with invalid parameters as an unknown method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(ErrorData::invalid_params(format!("invalid parameters for {method}"), None))
    }
}

fn request_of(context: &RequestContext<RoleServer>) -> Result<&Arc<AgentRequest>, ErrorData> {
    extension::<Arc<AgentRequest>>(&context.extensions)
        .ok_or_else(|| ErrorData::internal_error("the request has no agent token", None))
}

fn tools(request: &AgentRequest) -> Vec<Tool> {
    let tool = |tool: AgentTool| {
        let annotations = ToolAnnotations::new().read_only(tool.is_read_only);
        Tool::new(tool.name, tool.description, tool.schema).annotate(annotations)
    };
    request.tools().into_iter().map(tool).collect()
}
