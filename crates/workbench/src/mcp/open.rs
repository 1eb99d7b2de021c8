//! Opens a connection from a config: starts or reaches the server, performs a handshake that it supports, checks the
//! version.

use super::{
    McpClientSettings, McpFailure, McpServerIdentity, PlacedMcpServer,
    connection::{McpConnection, McpServerInfo},
    handler::McpClientHandler,
    health::McpServerHealth,
    placed,
    settings::{ProtocolEra, SUPPORTED_VERSIONS},
    transport::{self, BoxedTransport, EndReason, InProcessServer, InProcessTransport, SseTransport, StdioTransport},
};
use crate::{
    egress::{self, EgressResolver},
    process::{Launcher, StderrTail},
    project_sandbox::SandboxSpec,
};
use domain::mcp::{McpTransport, NamedMcpServer, url_without_secrets};
use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    model::{ProtocolVersion, SubscriptionFilter},
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService},
    transport::streamable_http_client::{AuthRequiredError, HttpStatusError, InsufficientScopeError},
};
use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use tokio_util::task::TaskTracker;

/// What all connections of a manager share; opens connections.
pub struct McpConnector {
    launcher: Arc<dyn Launcher>,
    pub settings: McpClientSettings,
    pub background_tasks: TaskTracker,
    /// For servers of the operator.
    http: OnceLock<Result<reqwest::Client, String>>,
    /// For servers of others: connects only where the egress policy allows.
    guarded_http: OnceLock<Result<reqwest::Client, String>>,
    /// In-process servers, by name.
    pub in_process_servers: Mutex<BTreeMap<String, Arc<dyn InProcessServer>>>,
}

/// URL prefix of an in-process server. A config file cannot use it: URLs in files begin with http:// or https://.
pub const IN_PROCESS_PREFIX: &str = "in-process:";

type McpClientService = RunningService<RoleClient, McpClientHandler>;

impl McpConnector {
    pub fn new(launcher: Arc<dyn Launcher>, settings: McpClientSettings) -> Self {
        Self {
            launcher,
            settings,
            background_tasks: TaskTracker::new(),
            http: OnceLock::new(),
            guarded_http: OnceLock::new(),
            in_process_servers: Mutex::default(),
        }
    }

    /// The client for a server, if the server may be at this URL.
    fn http(&self, server: &NamedMcpServer, url: &str) -> Result<reqwest::Client, McpFailure> {
        let client = |guard| transport::http_client(guard).map_err(|error| error.to_string());
        let client = match server.is_from_operator() {
            true => self.http.get_or_init(|| client(None)),
            false => {
                let egress = &self.settings.egress;
                egress.check_url(url).map_err(McpFailure::EgressRefused)?;
                self.guarded_http.get_or_init(|| client(Some(EgressResolver(Arc::clone(egress)))))
            }
        };
        client.clone().map_err(|error| McpFailure::Unreachable(error.into()))
    }

    /// `era` is the one that worked last time. Also returns the one that worked now.
    pub async fn open(
        &self,
        PlacedMcpServer { server, sandbox }: &PlacedMcpServer,
        health: &Arc<McpServerHealth>,
        era: Option<ProtocolEra>,
    ) -> Result<(McpConnection, ProtocolEra), McpFailure> {
        let handler = McpClientHandler::new(Arc::clone(health));
        let startup = server.config.startup_timeout.unwrap_or(self.settings.startup_timeout);
        let sandbox = sandbox.as_ref();
        let handshake = Handshake { connector: self, server, sandbox, health, handler: handler.clone(), startup };
        let (opened, era) = match &server.config.transport {
            McpTransport::Stdio { .. } => handshake.stdio(era.unwrap_or(self.settings.stdio_era)).await?,
            McpTransport::Sse { .. } => (handshake.sse().await?, ProtocolEra::Legacy),
            McpTransport::Http { url, .. } if url.starts_with(IN_PROCESS_PREFIX) => {
                (handshake.in_process(url).await?, ProtocolEra::Legacy)
            }
            McpTransport::Http { .. } => (handshake.http().await?, ProtocolEra::Modern),
        };
        let OpenedConnection { mut service, end_reason, process_id, stderr } = opened;
        let server_info = match server_info(&service) {
            Ok(server_info) => server_info,
            Err(failure) => {
                drop(service.close_with_timeout(self.settings.close_timeout).await);
                return Err(failure);
            }
        };
        let connection = McpConnection {
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            handler,
            end_reason,
            server_info,
            started: Instant::now(),
            process_id,
            stderr,
            background_tasks: self.background_tasks.clone(),
            list_lock: AsyncMutex::new(()),
            listing: Mutex::new(None),
        };
        Ok((connection, era))
    }
}

struct Handshake<'a> {
    connector: &'a McpConnector,
    server: &'a NamedMcpServer,
    sandbox: Option<&'a Arc<SandboxSpec>>,
    health: &'a Arc<McpServerHealth>,
    handler: McpClientHandler,
    startup: Duration,
}

struct OpenedConnection {
    service: McpClientService,
    end_reason: EndReason,
    process_id: Option<i32>,
    stderr: Option<StderrTail>,
}

impl Handshake<'_> {
    async fn stdio(&self, first: ProtocolEra) -> Result<(OpenedConnection, ProtocolEra), McpFailure> {
        let begin = Instant::now();
        let second = match first {
            ProtocolEra::Legacy => ProtocolEra::Modern,
            ProtocolEra::Modern => ProtocolEra::Legacy,
        };
        // A server that ignores unknown methods does not answer the newer handshake.
        let handshake_timeout = if first == ProtocolEra::Modern { self.startup / 2 } else { self.startup };
        match self.stdio_in(first, handshake_timeout).await {
            Ok(opened) => Ok((opened, first)),
            // Only for an answer of a server that does not know this handshake; a crashing server is not started twice.
            Err((failure, true)) => {
                tracing::debug!(server = self.server.name, %failure, ?second, "retrying with the other MCP handshake");
                let left = self.startup.saturating_sub(begin.elapsed());
                match self.stdio_in(second, left).await {
                    Ok(opened) => Ok((opened, second)),
                    // The error of the older handshake is more useful.
                    Err((other, _)) if first == ProtocolEra::Modern => Err(other),
                    Err(_) => Err(failure),
                }
            }
            Err((failure, false)) => Err(failure),
        }
    }

    /// A failure comes with whether the other handshake may work.
    async fn stdio_in(
        &self,
        era: ProtocolEra,
        handshake_timeout: Duration,
    ) -> Result<OpenedConnection, (McpFailure, bool)> {
        let settings = &self.connector.settings;
        let command = placed::command(&self.server.config, self.sandbox, settings);
        let command = command.map_err(|reason| (McpFailure::Start(reason.into()), false))?;
        let started = self.connector.launcher.launch(command).await;
        let child = started.map_err(|error| (McpFailure::Start(error_chain(&error).into()), false))?;
        let end_reason = EndReason::default();
        let stdio = StdioTransport::new(child, Arc::clone(self.health), end_reason.clone(), settings.close_timeout);
        let (process_id, stderr) = (Some(stdio.process_id()), stdio.stderr());
        let mode = match era {
            ProtocolEra::Legacy => ClientLifecycleMode::Initialize,
            ProtocolEra::Modern => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        };
        match timeout(handshake_timeout, self.serve(BoxedTransport::new(stdio), mode)).await {
            Ok(Ok(service)) => Ok(OpenedConnection { service, end_reason, process_id, stderr: Some(stderr) }),
            Ok(Err(error)) => Err((self.handshake_failure(&error, &end_reason), is_protocol_rejection(&error))),
            Err(_) => {
                let excerpt =
                    transport::stderr_excerpt(&stderr).map(|excerpt| format!("; stderr ends with: {excerpt}"));
                let timeout = self.timeout(handshake_timeout, excerpt.unwrap_or_default());
                Err((timeout, era == ProtocolEra::Modern))
            }
        }
    }

    async fn sse(&self) -> Result<OpenedConnection, McpFailure> {
        let McpTransport::Sse { url, headers } = &self.server.config.transport else {
            return Err(McpFailure::Start("it is not an SSE server".into()));
        };
        let client = self.connector.http(self.server, url)?;
        let end_reason = EndReason::default();
        let handshake = async {
            let connected =
                SseTransport::connect(client, url, headers, Arc::clone(self.health), end_reason.clone()).await;
            let sse = connected.map_err(|error| match error {
                transport::SseConnectError::Egress(refused) => McpFailure::EgressRefused(refused),
                transport::SseConnectError::Status(status) if matches!(status.as_u16(), 401 | 403) => {
                    McpFailure::Unauthorized { reason: error.to_string().into(), challenge: None }
                }
                _ => McpFailure::Unreachable(error_chain(&error).into()),
            })?;
            let mode = ClientLifecycleMode::Initialize;
            let service = self.serve(BoxedTransport::new(sse), mode).await;
            service.map_err(|error| self.handshake_failure(&error, &end_reason))
        };
        let service =
            timeout(self.startup, handshake).await.map_err(|_| self.timeout(self.startup, String::new()))??;
        Ok(OpenedConnection { service, end_reason, process_id: None, stderr: None })
    }

    async fn http(&self) -> Result<OpenedConnection, McpFailure> {
        let McpTransport::Http { url, headers } = &self.server.config.transport else {
            return Err(McpFailure::Start("it is not an HTTP server".into()));
        };
        let (client, begin) = (self.connector.http(self.server, url)?, Instant::now());
        let end_reason = EndReason::default();
        let handshake = async |mode: ClientLifecycleMode| {
            let http = transport::streamable_http_transport(client.clone(), url, headers)
                .map_err(|reason| (McpFailure::Unreachable(reason.into()), false))?;
            let left = self.startup.saturating_sub(begin.elapsed());
            match timeout(left, self.serve(BoxedTransport::new(http), mode)).await {
                Ok(answered) => answered
                    .map_err(|error| (self.handshake_failure(&error, &end_reason), is_protocol_rejection(&error))),
                Err(_) => Err((self.timeout(self.startup, String::new()), false)),
            }
        };
        let auto = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let service = match handshake(auto).await {
            Ok(service) => service,
            // Some servers answer any request with a result; rmcp falls back only after an error.
            Err((_, true)) => handshake(ClientLifecycleMode::Initialize).await.map_err(|(failure, _)| failure)?,
            Err((failure, false)) => return Err(failure),
        };
        self.subscribe(&service);
        Ok(OpenedConnection { service, end_reason, process_id: None, stderr: None })
    }

    async fn in_process(&self, url: &str) -> Result<OpenedConnection, McpFailure> {
        let name = url.strip_prefix(IN_PROCESS_PREFIX).unwrap_or_default();
        let found = self.connector.in_process_servers.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let server = found.ok_or_else(|| McpFailure::Start("no in-process server has this name".into()))?;
        let end_reason = EndReason::default();
        let transport = BoxedTransport::new(InProcessTransport::new(server));
        let handshake = self.serve(transport, ClientLifecycleMode::Initialize);
        let answered = timeout(self.startup, handshake).await.map_err(|_| self.timeout(self.startup, String::new()))?;
        let service = answered.map_err(|error| self.handshake_failure(&error, &end_reason))?;
        Ok(OpenedConnection { service, end_reason, process_id: None, stderr: None })
    }

    /// The only place that starts rmcp's client.
    fn serve(
        &self,
        transport: BoxedTransport,
        mode: ClientLifecycleMode,
    ) -> BoxFuture<'static, Result<McpClientService, ClientInitializeError>> {
        Box::pin(self.handler.clone().serve_with_lifecycle(transport, mode))
    }

    /// Since 2026-07-28 a server sends change notifications only to subscribers.
    fn subscribe(&self, service: &McpClientService) {
        let peer = service.peer().clone();
        let Some(info) = peer.peer_info() else { return };
        let announces_changes =
            info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed).unwrap_or_default();
        if info.protocol_version.has_initialize() || !announces_changes {
            return;
        }
        let handler = self.handler.clone();
        self.connector.background_tasks.spawn(async move {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            match peer.listen(filter).await {
                Ok(mut changes) => {
                    while let Ok(Some(_)) = changes.next().await {
                        handler.record_tool_change();
                    }
                }
                Err(error) => tracing::debug!(%error, "could not subscribe to changes of an MCP server"),
            }
        });
    }

    fn timeout(&self, after: Duration, detail: String) -> McpFailure {
        McpFailure::Timeout { what: "complete the handshake", after, detail }
    }

    fn handshake_failure(&self, error: &ClientInitializeError, end_reason: &EndReason) -> McpFailure {
        let url = match &self.server.config.transport {
            McpTransport::Http { url, .. } | McpTransport::Sse { url, .. } => url,
            McpTransport::Stdio { .. } => "",
        };
        // A URL may contain a key.
        let hide = |text: String| if url.is_empty() { text } else { text.replace(url, &url_without_secrets(url)) };
        let cause = match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback.as_ref(),
            other => other,
        };
        match cause {
            ClientInitializeError::TransportError { error, .. } => {
                let source = error.error.as_ref();
                match end_reason.get() {
                    Some(reason) => McpFailure::Start(reason.into()),
                    None => known_failure(source)
                        .unwrap_or_else(|| McpFailure::Unreachable(hide(error_chain(source)).into())),
                }
            }
            ClientInitializeError::ConnectionClosed(_) => {
                McpFailure::Start(end_reason.get().unwrap_or("it closed the connection without an answer").into())
            }
            ClientInitializeError::JsonRpcError(error) => {
                McpFailure::Handshake(format!("error {}: {}", error.code.0, error.message).into())
            }
            other => McpFailure::Handshake(hide(other.to_string()).into()),
        }
    }
}

/// Returns whether the server answered that it does not know this handshake.
fn is_protocol_rejection(error: &ClientInitializeError) -> bool {
    matches!(
        error,
        ClientInitializeError::JsonRpcError(_)
            | ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. }
    )
}

fn server_info(service: &McpClientService) -> Result<McpServerInfo, McpFailure> {
    let Some(info) = service.peer().peer_info() else {
        return Err(McpFailure::Handshake("its answer has no server information".into()));
    };
    let version = info.protocol_version.as_str();
    if !SUPPORTED_VERSIONS.contains(&version) {
        return Err(McpFailure::Version {
            version: version.chars().take(50).collect(),
            known: SUPPORTED_VERSIONS.join(", "),
        });
    }
    Ok(McpServerInfo {
        protocol_version: version.to_owned(),
        server: info.server_info.as_ref().map(McpServerIdentity::from),
        instructions: info.instructions.clone().filter(|text| !text.is_empty()),
    })
}

/// Returns a failure of its own kind: the egress policy refused the address, or the server rejected the credentials.
pub fn known_failure(error: &(dyn Error + 'static)) -> Option<McpFailure> {
    if let Some(refused) = egress::refusal_in(error) {
        return Some(McpFailure::EgressRefused(refused));
    }
    let mut cause = Some(error);
    while let Some(inner) = cause {
        let challenge =
            match (inner.downcast_ref::<AuthRequiredError>(), inner.downcast_ref::<InsufficientScopeError>()) {
                (Some(required), _) => Some(&required.www_authenticate_header),
                (_, Some(scope)) => Some(&scope.www_authenticate_header),
                _ => None,
            };
        let status = inner.downcast_ref::<HttpStatusError>().map(|error| error.status);
        if challenge.is_some() || matches!(status, Some(401 | 403)) {
            let reason = inner.to_string().into();
            return Some(McpFailure::Unauthorized { reason, challenge: challenge.cloned() });
        }
        cause = inner.source();
    }
    None
}

/// Formats an error with its causes, without repetitions.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let message = inner.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = inner.source();
    }
    text
}
